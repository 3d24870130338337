-- A checksum of each entry, written with it and compared when it is read. Entries of earlier releases have none.

ALTER TABLE entry ADD COLUMN checksum bigint;
