-- Dispatch: leases on their way between servers and workers, the notes their holders leave, and who works.
-- A released file is never edited: a change is a new file with the next number, applied once and in order.
-- Nothing here is the truth about an execution; that is the log. All of it may be lost, and is offered anew then.
-- Rows live for moments, so the tables are vacuumed early; those that are renewed have room for it in their page.

CREATE TABLE dispatch_version (
  version integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The one clock.
CREATE FUNCTION dispatch_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT clock_timestamp() $$;

-- While this server was down nobody could renew a lease, so after a start all holders have their lease time again.
CREATE FUNCTION dispatch_is_over(until timestamptz, lease_time interval) RETURNS boolean LANGUAGE sql VOLATILE AS
$$ SELECT greatest(until, pg_postmaster_start_time() + lease_time) <= dispatch_now() $$;

-- The name under which news of one kind go out to those who wait for them: notes, work for a `pool`, words to a worker.
-- Channels belong to the whole database, hence the schema in it.
CREATE FUNCTION dispatch_channel(kind text, name text) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT 'penstock_' || kind || '_' || md5(current_schema() || '/' || name) $$;

CREATE SEQUENCE dispatch_number;

-- `state`: waiting, held, done (its end is not heard yet), back (came back or was withdrawn; what is left is the attempt).
-- `until`: when a holder that is silent, or makes no progress, has lost it. `expires`: so long it may wait.
-- `token` names the call of a server that made the row what it is, `mark` the last call of its holder: a call that is repeated
-- after a lost connection knows its own work by it.
-- No column that a renewal changes is in an index.
CREATE TABLE dispatch_lease (
  key text COLLATE "C" PRIMARY KEY CHECK (key <> ''),
  execution_id text COLLATE "C" NOT NULL CHECK (execution_id <> ''),
  partition smallint NOT NULL CHECK (partition BETWEEN 0 AND 255),
  number bigint NOT NULL,
  state text COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'held', 'done', 'back')),
  pool text COLLATE "C" NOT NULL CHECK (pool <> ''),
  needs text[] COLLATE "C" NOT NULL,
  limit_names text[] COLLATE "C" NOT NULL,
  limit_counts integer[] NOT NULL,
  is_range boolean NOT NULL,
  lease_time interval NOT NULL,
  stall_time interval,
  expires timestamptz,
  attempt integer NOT NULL DEFAULT 1,
  since timestamptz NOT NULL DEFAULT dispatch_now(),
  holder text COLLATE "C" CHECK (holder <> ''),
  until timestamptz,
  progress bigint NOT NULL DEFAULT 0,
  progress_at timestamptz,
  token uuid NOT NULL,
  mark uuid,
  cursor bytea NOT NULL DEFAULT '',
  payload bytea NOT NULL,
  CHECK ((state = 'held') = (holder IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX dispatch_lease_execution ON dispatch_lease (partition, execution_id);
CREATE INDEX dispatch_lease_queue ON dispatch_lease (pool, execution_id, is_range, number) WHERE state = 'waiting';
CREATE INDEX dispatch_lease_held ON dispatch_lease (execution_id) WHERE state = 'held';
CREATE INDEX dispatch_lease_limited ON dispatch_lease (state, pool) WHERE limit_names <> '{}';
CREATE INDEX dispatch_lease_expiring ON dispatch_lease (expires) WHERE state = 'waiting' AND expires IS NOT NULL;

-- `is_end`: once it is heard, nothing is kept of the lease.
CREATE TABLE dispatch_note (
  number bigint PRIMARY KEY DEFAULT nextval('dispatch_number'),
  partition smallint NOT NULL,
  execution_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  attempt integer NOT NULL,
  worker text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('said', 'asked', 'done', 'lost', 'returned', 'stale')),
  is_end boolean NOT NULL DEFAULT false,
  body bytea NOT NULL DEFAULT ''
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX dispatch_note_key ON dispatch_note (key);
CREATE INDEX dispatch_note_execution ON dispatch_note (execution_id);

-- `place` is the lease's number: it tells one life of a key from the next, in which attempts count from 1 again.
CREATE TABLE dispatch_told (
  number bigint PRIMARY KEY DEFAULT nextval('dispatch_number'),
  worker text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  place bigint NOT NULL,
  attempt integer NOT NULL,
  body bytea NOT NULL
);

CREATE INDEX dispatch_told_worker ON dispatch_told (worker, number);

-- One row per life of a worker. What it holds does not depend on this row.
CREATE TABLE dispatch_worker (
  id text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
  name text NOT NULL CHECK (name <> ''),
  pool text COLLATE "C" NOT NULL CHECK (pool <> ''),
  slots integer NOT NULL,
  can text[] COLLATE "C" NOT NULL,
  version text NOT NULL,
  started timestamptz NOT NULL DEFAULT dispatch_now(),
  seen timestamptz NOT NULL,
  is_draining boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
