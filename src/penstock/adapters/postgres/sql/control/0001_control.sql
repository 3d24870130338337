-- What servers keep besides the log: documents by path and version, tokens, schedules and hooks.
-- A released file is never edited: a change is a new file with the next number, applied once and in order.
-- Text has the character 0, which PostgreSQL cannot keep, written as `\x1a0` (and `\x1a` itself as `\x1a1`).

CREATE TABLE control_version (
  version integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The one clock, in seconds since 1970.
CREATE FUNCTION control_now() RETURNS float8 LANGUAGE sql VOLATILE AS
$$ SELECT extract(epoch FROM clock_timestamp())::float8 $$;

-- The highest version that a path ever had. It outlives the documents, so that no number is given twice.
CREATE TABLE control_path (
  path text COLLATE "C" PRIMARY KEY CHECK (path <> ''),
  newest integer NOT NULL
);

CREATE TABLE control_document (
  path text COLLATE "C" NOT NULL REFERENCES control_path,
  version integer NOT NULL CHECK (version > 0),
  digest text NOT NULL,
  kind text NOT NULL,
  created_at float8 NOT NULL,
  created_by text NOT NULL,
  text text NOT NULL,
  sources text NOT NULL,
  PRIMARY KEY (path, version)
);

-- `hash`: of the secret, which itself is kept nowhere.
CREATE TABLE control_token (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE CHECK (id <> ''),
  hash text COLLATE "C" NOT NULL UNIQUE,
  name text NOT NULL CHECK (name <> ''),
  scope text NOT NULL CHECK (scope IN ('read', 'run', 'admin')),
  created_at float8 NOT NULL,
  expires_at float8,
  last_used_at float8
) WITH (fillfactor = 50);

-- `fired_to`: all slots up to this time have been fired or let go.
CREATE TABLE control_schedule (
  name text COLLATE "C" PRIMARY KEY CHECK (name <> ''),
  cron text NOT NULL,
  path text NOT NULL CHECK (path <> ''),
  zone text NOT NULL,
  version integer,
  payload text NOT NULL,
  context text,
  missed text NOT NULL CHECK (missed IN ('all', 'last', 'none')),
  is_on boolean NOT NULL,
  fired_to float8 NOT NULL,
  last_slot float8,
  last_run text,
  last_error text
) WITH (fillfactor = 50);

-- `secret`: `clear:` and the secret, or `fernet:` and what the key in PENSTOCK_SECRET_KEY has made of it.
CREATE TABLE control_hook (
  name text COLLATE "C" PRIMARY KEY CHECK (name <> ''),
  path text NOT NULL CHECK (path <> ''),
  version integer,
  secret text,
  payload text NOT NULL,
  is_on boolean NOT NULL
);
