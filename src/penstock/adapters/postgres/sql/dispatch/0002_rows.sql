-- The rows that the components under a lease have made so far, as its holder says with each heartbeat: for those who watch.

ALTER TABLE dispatch_lease ADD COLUMN rows bytea NOT NULL DEFAULT '';
