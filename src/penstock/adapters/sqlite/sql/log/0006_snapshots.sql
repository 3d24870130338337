-- Views of runs at some of their entries, made by readers. Derived: a format that no program knows any more is never read.

CREATE TABLE snapshot (
  execution INTEGER NOT NULL REFERENCES execution (key) ON DELETE CASCADE,
  format INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (execution, format, seq)
);
