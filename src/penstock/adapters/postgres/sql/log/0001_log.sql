-- The log on a fleet: executions, the documents they are pinned to, their entries, requests to their owners, and who is alive.
-- A released file is never edited: a change is a new file with the next number, applied once and in order.
-- Text has the character 0, which PostgreSQL cannot keep, written as `\x1a0` (and `\x1a` itself as `\x1a1`).

CREATE TABLE schema_version (
  version integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row per process that owns executions, and per life of it: an id is never used again after its lease was lost.
-- Room in each page, so that a renewal changes the row in place.
CREATE TABLE holder (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  started timestamptz NOT NULL DEFAULT clock_timestamp(),
  lease interval NOT NULL,
  until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Only the clock of this server counts. While it was down nobody could renew, so after a start all have their lease again.
CREATE VIEW live_holder AS
SELECT id, name, started
FROM holder
WHERE greatest(until, pg_postmaster_start_time() + lease) > clock_timestamp();

-- The last batch each writer has committed: a writer that lost its connection during a commit finds out here.
CREATE TABLE writer (
  id uuid PRIMARY KEY,
  batch bigint NOT NULL,
  at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- `token` names the call that made the row, so that a call repeated after a lost connection knows its own work.
CREATE TABLE execution (
  execution_id text COLLATE "C" PRIMARY KEY CHECK (execution_id <> ''),
  number bigint GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  name text NOT NULL,
  path text NOT NULL,
  digest text NOT NULL,
  status text NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'interrupted')),
  started_at float8 NOT NULL,
  ended_at float8,
  last_seq bigint NOT NULL DEFAULT 0,
  epoch bigint NOT NULL DEFAULT 0,
  holder uuid,
  owner text,
  label text,
  trace_id text,
  born date NOT NULL,
  partition smallint NOT NULL CHECK (partition BETWEEN 0 AND 255),
  token uuid NOT NULL
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX execution_newest ON execution (number);
CREATE INDEX execution_unfinished ON execution (partition, number) WHERE status = 'running';
CREATE INDEX execution_ended ON execution (ended_at, number) WHERE status IN ('completed', 'failed', 'cancelled');
CREATE INDEX execution_born ON execution (born);

CREATE TABLE document (
  execution_id text COLLATE "C" PRIMARY KEY REFERENCES execution ON DELETE CASCADE,
  bytes bytea NOT NULL
);

-- All entries of an execution lie in the partition of the month it was born in: when the last execution of a month has been
-- forgotten, the whole partition is dropped. Partitions are made when the first execution of a month is.
CREATE TABLE entry (
  born date NOT NULL,
  execution_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  ts float8 NOT NULL,
  type text NOT NULL,
  scope text NOT NULL,
  task text,
  clock text NOT NULL,
  cause text,
  source text NOT NULL,
  worker text,
  payload bytea NOT NULL,
  PRIMARY KEY (born, execution_id, seq)
) PARTITION BY RANGE (born);

CREATE TABLE request (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  execution_id text COLLATE "C" NOT NULL REFERENCES execution ON DELETE CASCADE,
  what text NOT NULL,
  payload bytea NOT NULL,
  token uuid NOT NULL UNIQUE
);

CREATE INDEX request_execution ON request (execution_id);

CREATE TABLE submission (
  key text COLLATE "C" PRIMARY KEY,
  execution_id text COLLATE "C" NOT NULL REFERENCES execution ON DELETE CASCADE
);

CREATE INDEX submission_execution ON submission (execution_id);

-- For people with a database shell; no program reads it.
CREATE VIEW history AS
SELECT
  e.execution_id, e.seq, to_timestamp(e.ts) AS at,
  e.type, e.scope, e.task, e.clock, e.cause, e.source, e.worker,
  encode(e.payload, 'escape') AS payload
FROM execution AS x
JOIN entry AS e ON e.born = x.born AND e.execution_id = x.execution_id;
