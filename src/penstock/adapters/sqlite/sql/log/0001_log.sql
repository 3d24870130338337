-- The log on one machine: executions, the documents they are pinned to, their entries, and requests to their owners.
-- A released file is never edited: a change is a new file with the next number, applied once and in order.

CREATE TABLE schema_version (
  version INTEGER PRIMARY KEY,
  applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- AUTOINCREMENT: a key is never given twice, so a slow reader of a forgotten execution cannot meet another one's entries.
CREATE TABLE execution (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE CHECK (id <> ''),
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  path TEXT NOT NULL,
  digest TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'interrupted')),
  started_at REAL NOT NULL,
  ended_at REAL,
  label TEXT,
  trace_id TEXT,
  epoch INTEGER NOT NULL DEFAULT 0,
  owner TEXT,
  forgotten INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX execution_forgotten ON execution (key) WHERE forgotten;

-- Apart from its execution, because SQLite writes a changed row again as a whole.
CREATE TABLE document (
  execution INTEGER PRIMARY KEY REFERENCES execution (key) ON DELETE CASCADE,
  body BLOB NOT NULL
);

-- place = execution key * 2^36 + seq: one B-tree, read in order. A composite key costs a second tree or, WITHOUT ROWID,
-- pages three quarters empty once a payload passes a kilobyte. Room for 134 million executions of 68 milliard entries.
CREATE TABLE event (
  place INTEGER PRIMARY KEY,
  ts REAL NOT NULL,
  type TEXT NOT NULL,
  scope TEXT NOT NULL,
  task TEXT,
  clock TEXT NOT NULL,
  cause TEXT,
  source TEXT NOT NULL,
  worker TEXT,
  payload BLOB NOT NULL
);

-- AUTOINCREMENT: answering an old number must not take away a new request.
CREATE TABLE request (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  execution INTEGER NOT NULL REFERENCES execution (key) ON DELETE CASCADE,
  what TEXT NOT NULL,
  payload BLOB NOT NULL
);

CREATE INDEX request_execution ON request (execution);

-- For people with a database shell; no program reads it.
CREATE VIEW history AS
SELECT
  x.id AS execution_id,
  e.place - (x.key << 36) AS seq,
  datetime(e.ts, 'unixepoch') AS at,
  e.type, e.scope, e.task, e.clock, e.cause, e.source, e.worker,
  CAST(e.payload AS TEXT) AS payload
FROM execution AS x
JOIN event AS e ON e.place > (x.key << 36) AND e.place < ((x.key + 1) << 36)
WHERE NOT x.forgotten;
