-- Leases that workers were lost with, and who took them then. `number` tells one life of a key from the next, in which attempts
-- count from 1 again.

CREATE TABLE loss (
  execution_id TEXT NOT NULL,
  key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  number INTEGER NOT NULL,
  at REAL NOT NULL,
  worker TEXT,
  taken_by TEXT,
  is_done INTEGER NOT NULL CHECK (is_done IN (0, 1)),
  PRIMARY KEY (key, attempt, number)
) WITHOUT ROWID;

CREATE INDEX loss_by_time ON loss (at, number);
