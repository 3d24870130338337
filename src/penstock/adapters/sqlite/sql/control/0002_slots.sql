-- The context group of a hook. What became of each slot of a schedule, what a schedule does when its runs overlap, and when they are late.

ALTER TABLE schedule ADD COLUMN overlap TEXT NOT NULL DEFAULT 'allow'
  CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel'));

ALTER TABLE schedule ADD COLUMN deadline_s REAL;

CREATE TABLE slot (
  schedule TEXT NOT NULL REFERENCES schedule (name) ON DELETE CASCADE,
  at REAL NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('due', 'queued', 'started', 'skipped', 'refused', 'missed')),
  run TEXT,
  note TEXT,
  attempt INTEGER NOT NULL,
  backfill TEXT,
  at_once INTEGER NOT NULL,
  ended TEXT,
  is_late INTEGER NOT NULL CHECK (is_late IN (0, 1)),
  is_open INTEGER NOT NULL CHECK (is_open IN (0, 1)),
  revision INTEGER NOT NULL,
  PRIMARY KEY (schedule, at)
) WITHOUT ROWID;

CREATE INDEX slot_open ON slot (schedule, at) WHERE is_open;

ALTER TABLE hook ADD COLUMN context TEXT;

-- Rules that tell people what went wrong; `said` is JSON and holds no secret. What they have told, and what is to be told.
CREATE TABLE alert (
  name TEXT PRIMARY KEY CHECK (name <> ''),
  said TEXT NOT NULL,
  created_at REAL NOT NULL
);

CREATE TABLE delivery (
  alert TEXT NOT NULL REFERENCES alert (name) ON DELETE CASCADE,
  about TEXT NOT NULL,
  event TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL,
  next_at REAL NOT NULL,
  error TEXT,
  at REAL NOT NULL,
  revision INTEGER NOT NULL,
  PRIMARY KEY (alert, about)
);
