-- What a server keeps besides the log: documents by path and version, tokens, schedules and hooks.
-- A released file is never edited: a change is a new file with the next number, applied once and in order.

CREATE TABLE control_version (
  version INTEGER PRIMARY KEY,
  applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- The highest version that a path ever had. It outlives the documents, so that no number is given twice.
CREATE TABLE path (
  path TEXT PRIMARY KEY CHECK (path <> ''),
  newest INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE document (
  path TEXT NOT NULL REFERENCES path (path),
  version INTEGER NOT NULL CHECK (version > 0),
  digest TEXT NOT NULL,
  kind TEXT NOT NULL,
  created_at REAL NOT NULL,
  created_by TEXT NOT NULL,
  text TEXT NOT NULL,
  sources TEXT NOT NULL,
  PRIMARY KEY (path, version)
);

-- `hash`: of the secret, which itself is kept nowhere.
CREATE TABLE token (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE CHECK (id <> ''),
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL CHECK (name <> ''),
  scope TEXT NOT NULL CHECK (scope IN ('read', 'run', 'admin')),
  created_at REAL NOT NULL,
  expires_at REAL,
  last_used_at REAL
);

-- `fired_to`: all slots up to this time have been fired or let go.
CREATE TABLE schedule (
  name TEXT PRIMARY KEY CHECK (name <> ''),
  cron TEXT NOT NULL,
  path TEXT NOT NULL CHECK (path <> ''),
  zone TEXT NOT NULL,
  version INTEGER,
  payload TEXT NOT NULL,
  context TEXT,
  missed TEXT NOT NULL CHECK (missed IN ('all', 'last', 'none')),
  is_on INTEGER NOT NULL CHECK (is_on IN (0, 1)),
  fired_to REAL NOT NULL,
  last_slot REAL,
  last_run TEXT,
  last_error TEXT
);

-- `secret`: `clear:` and the secret, or `fernet:` and what the key in PENSTOCK_SECRET_KEY has made of it.
CREATE TABLE hook (
  name TEXT PRIMARY KEY CHECK (name <> ''),
  path TEXT NOT NULL CHECK (path <> ''),
  version INTEGER,
  secret TEXT,
  payload TEXT NOT NULL,
  is_on INTEGER NOT NULL CHECK (is_on IN (0, 1))
);
