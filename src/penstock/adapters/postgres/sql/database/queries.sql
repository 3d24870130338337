-- Statements that every PostgreSQL store uses: sessions, connections that were given up, and the versions of tables.

-- name: prepare_session
-- What a connection needs to keep the law whatever the server's defaults are, and what the server must be able to do.
SELECT
  set_config('statement_timeout', %(statement_ms)s, false),
  set_config('lock_timeout', %(lock_ms)s, false),
  set_config('idle_in_transaction_session_timeout', %(idle_ms)s, false),
  set_config('default_transaction_isolation', 'read committed', false),
  set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false),
  set_config('timezone', 'UTC', false),
  set_config('jit', 'off', false),
  -- Rows that live for moments have no statistics to be trusted: an index is always the better way, and one plan will do.
  set_config('enable_seqscan', CASE WHEN %(is_short_lived)s THEN 'off' ELSE current_setting('enable_seqscan') END, false),
  set_config('plan_cache_mode', CASE WHEN %(is_short_lived)s THEN 'force_generic_plan'
    ELSE current_setting('plan_cache_mode') END, false),
  -- Locks of a machine that lost its power must not be held for hours.
  set_config('tcp_keepalives_idle', '10', false),
  set_config('tcp_keepalives_interval', '5', false),
  set_config('tcp_keepalives_count', '3', false),
  current_setting('server_version_num')::integer,
  current_setting('server_encoding'),
  current_schema();

-- name: end_backends
-- Connections that their process has given up, and the server has not, hold their locks no longer when this returns.
SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE application_name = ANY(%(names)s);

-- name: end_stalled
-- Writers of the log that stopped in the middle of a COPY hold their locks no longer when this returns: no time limit ends a COPY
-- that waits for its client, and a client that still runs has all of its rows at hand.
SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name LIKE %(application)s || ' %%'
  AND state = 'active' AND wait_event = 'ClientRead' AND query_start < clock_timestamp() - %(seconds)s * interval '1 second';

-- name: lock_tables
-- One process at a time changes the tables of a store in this schema.
SELECT pg_advisory_xact_lock(hashtextextended(%(lock)s || ' ' || current_schema(), 0));

-- name: tables_there
-- Which of these tables this schema has. Asked of the catalog itself: what a session has looked up before (`to_regclass`) it does
-- not look up again within a transaction.
SELECT coalesce(array_agg(tablename::text ORDER BY tablename), '{}') FROM pg_tables
WHERE schemaname = current_schema() AND tablename = ANY(%(tables)s);

-- name: newest_version
-- The highest schema file that has been applied to this schema.
SELECT coalesce(max(version), 0) FROM {table};

-- name: record_version
-- A schema file has been applied.
INSERT INTO {table} (version) VALUES (%(version)s);

-- name: spill_soon
-- In this transaction, what does not fit into very little memory is put into a file of the database's own disk.
SELECT
  set_config('work_mem', '64kB', true),
  set_config('temp_tablespaces', '', true),
  set_config('jit', 'off', true),
  set_config('statement_timeout', '3000', true);

-- name: spill
-- May this session write, and is there room on the disk: what a function returns is kept, and so much of it takes a file.
SELECT
  current_setting('transaction_read_only')::boolean OR pg_is_in_recovery(),
  (SELECT count(*) FROM generate_series(1, 20000));
