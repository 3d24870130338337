-- Views of runs at some of their entries, made by readers. Derived: a format that no program knows any more is never read.

CREATE TABLE snapshot (
  execution_id text COLLATE "C" NOT NULL REFERENCES execution ON DELETE CASCADE,
  format integer NOT NULL,
  seq bigint NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (execution_id, format, seq)
);
