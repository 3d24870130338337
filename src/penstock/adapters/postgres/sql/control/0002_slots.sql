-- The context group of a hook. What became of each slot of a schedule, what a schedule does when its runs overlap, and when they are late.

ALTER TABLE control_schedule ADD COLUMN overlap text NOT NULL DEFAULT 'allow'
  CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel'));

ALTER TABLE control_schedule ADD COLUMN deadline_s float8;

CREATE TABLE control_slot (
  schedule text COLLATE "C" NOT NULL REFERENCES control_schedule (name) ON DELETE CASCADE,
  at float8 NOT NULL,
  state text NOT NULL CHECK (state IN ('due', 'queued', 'started', 'skipped', 'refused', 'missed')),
  run text,
  note text,
  attempt integer NOT NULL,
  backfill text,
  at_once integer NOT NULL,
  ended text,
  is_late boolean NOT NULL,
  is_open boolean NOT NULL,
  revision integer NOT NULL,
  PRIMARY KEY (schedule, at)
) WITH (fillfactor = 70);

CREATE INDEX control_slot_open ON control_slot (schedule, at) WHERE is_open;

ALTER TABLE control_hook ADD COLUMN context text;

-- Rules that tell people what went wrong; `said` is JSON and holds no secret. What they have told, and what is to be told.
CREATE TABLE control_alert (
  name text COLLATE "C" PRIMARY KEY CHECK (name <> ''),
  said text NOT NULL,
  created_at float8 NOT NULL
);

CREATE TABLE control_delivery (
  alert text COLLATE "C" NOT NULL REFERENCES control_alert (name) ON DELETE CASCADE,
  about text COLLATE "C" NOT NULL,
  event text NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts integer NOT NULL,
  next_at float8 NOT NULL,
  error text,
  at float8 NOT NULL,
  revision integer NOT NULL,
  PRIMARY KEY (alert, about)
) WITH (fillfactor = 70);
