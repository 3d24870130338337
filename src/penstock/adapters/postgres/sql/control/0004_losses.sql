-- Leases that workers were lost with, and who took them then. `number` tells one life of a key from the next, in which attempts
-- count from 1 again.

CREATE TABLE control_loss (
  execution_id text NOT NULL,
  key text COLLATE "C" NOT NULL,
  attempt integer NOT NULL,
  number bigint NOT NULL,
  at float8 NOT NULL,
  worker text,
  taken_by text,
  is_done boolean NOT NULL,
  PRIMARY KEY (key, attempt, number)
) WITH (fillfactor = 70);

CREATE INDEX control_loss_by_time ON control_loss (at, number);
