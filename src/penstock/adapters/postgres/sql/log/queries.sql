-- Every statement the PostgreSQL log and the shares of servers run, each with its name and the sentence that is true of it.
-- Names in braces are identifiers or literals that are put in by psycopg's own composition.

-- name: lock_schema
-- One process at a time changes the tables of this schema.
SELECT pg_advisory_xact_lock(hashtextextended('penstock ' || current_schema(), 0));

-- name: months
-- The partitions of the entries.
SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'entry'::regclass;

-- name: make_month
-- A table for the entries of the executions that are born in one month.
CREATE TABLE {month} (LIKE entry INCLUDING DEFAULTS INCLUDING STORAGE);

-- name: attach_month
-- The table becomes a partition; attaching, other than making it as one, lets everybody go on reading and writing.
ALTER TABLE entry ATTACH PARTITION {month} FOR VALUES FROM ({first}) TO ({next});

-- name: empty_months
-- Months that are over, with a day for those that cross midnight, and in which no execution that is left was born.
SELECT month FROM unnest(%(firsts)s::date[]) AS month
WHERE month + interval '1 month 1 day' < clock_timestamp() AT TIME ZONE 'UTC'
  AND NOT EXISTS (SELECT FROM execution WHERE born >= month AND born < month + interval '1 month');

-- name: long_statements
-- The statements of this transaction may take longer than others.
SELECT set_config('statement_timeout', %(ms)s, true);

-- name: brief_lock
-- Rather than make others wait long for a lock that is not to be had, give up.
SET LOCAL lock_timeout = '1s';

-- name: drop_month
-- The entries of a month are gone at once.
DROP TABLE {month};

-- name: register_holder
-- A process that is going to own executions is alive until its lease runs out.
INSERT INTO holder (id, name, lease, until)
VALUES (%(holder)s, %(name)s, %(lease)s, clock_timestamp() + %(lease)s);

-- name: renew_holder
-- A process is alive for another lease; no row says that it has been given up for good.
UPDATE holder SET until = clock_timestamp() + lease WHERE id = %(holder)s RETURNING id;

-- name: remove_holder
-- A process has given up all it owned.
DELETE FROM holder WHERE id = %(holder)s;

-- name: remove_old_holders
-- Processes that died long ago; a row that is gone says the same as one that has run out.
DELETE FROM holder WHERE until < clock_timestamp() - interval '1 hour' - lease;

-- name: remove_old_writers
-- Writers that have written nothing for long. No commit is in doubt for so long.
DELETE FROM writer WHERE at < clock_timestamp() - interval '1 day';

-- name: remove_writer
-- A writer has ended, and nothing it wrote is in doubt.
DELETE FROM writer WHERE id = %(writer)s;

-- name: create_executions
-- Register executions with their documents, each with its first owner if it has one: those whose id did not exist.
WITH given AS MATERIALIZED (
  SELECT * FROM unnest(
    %(execution_ids)s::text[], %(kinds)s::text[], %(names)s::text[], %(paths)s::text[], %(digests)s::text[],
    %(statuses)s::text[], %(starts)s::float8[], %(ends)s::float8[], %(labels)s::text[], %(traces)s::text[],
    %(partitions)s::smallint[], %(epochs)s::bigint[], %(holders)s::uuid[], %(owners)s::text[], %(tokens)s::uuid[],
    %(documents)b::bytea[]
  ) WITH ORDINALITY AS one (
    execution_id, kind, name, path, digest, status, started_at, ended_at, label, trace_id, partition, epoch, holder, owner,
    token, bytes, place
  )
), made AS (
  INSERT INTO execution (
    execution_id, kind, name, path, digest, status, started_at, ended_at, label, trace_id, born, partition, epoch, holder,
    owner, token)
  SELECT
    execution_id, kind, name, path, digest, status, started_at, ended_at, label, trace_id,
    (clock_timestamp() AT TIME ZONE 'UTC')::date, partition, epoch, holder, owner, token
  FROM given ORDER BY place
  ON CONFLICT (execution_id) DO NOTHING
  RETURNING execution_id, born, token
), kept AS (
  INSERT INTO document (execution_id, bytes) SELECT made.execution_id, given.bytes FROM made JOIN given USING (token)
)
SELECT token, born FROM made;

-- name: is_made_by
-- The execution was made by this very call, whose connection broke before it was told.
SELECT 1 FROM execution WHERE execution_id = %(execution_id)s AND token = %(token)s;

-- name: submitted
-- The execution that was made under a submission key.
SELECT execution_id FROM submission WHERE key = %(key)s;

-- name: submitted_of
-- The executions that were made under submission keys.
SELECT key, execution_id FROM submission WHERE key = ANY(%(keys)s);

-- name: submit
-- Submission keys have made their executions; no row for one with which another call has been quicker.
INSERT INTO submission (key, execution_id) SELECT * FROM unnest(%(keys)s::text[], %(names)s::text[]) AS one (key, name)
ORDER BY key
ON CONFLICT (key) DO NOTHING RETURNING key;

-- name: ownership
-- Where an execution stands, and which live process owns it.
SELECT x.epoch, x.holder, x.owner, x.last_seq, h.name, to_char(h.started, 'YYYY-MM-DD HH24:MI:SS')
FROM execution AS x LEFT JOIN live_holder AS h ON h.id = x.holder
WHERE x.execution_id = %(execution_id)s;

-- name: claim
-- A new owner under a new epoch, which fences out the one before; no row when somebody else has been quicker.
UPDATE execution SET epoch = epoch + 1, holder = %(holder)s, owner = %(owner)s
WHERE execution_id = %(execution_id)s AND epoch = %(epoch)s
RETURNING epoch, last_seq, born;

-- name: release
-- The owners under these epochs have stopped; one who has been replaced releases nothing.
UPDATE execution AS x SET holder = NULL, owner = NULL
FROM unnest(%(names)s::text[], %(epochs)s::bigint[], %(holders)s::uuid[]) AS c (execution_id, epoch, holder)
WHERE x.execution_id = c.execution_id AND x.epoch = c.epoch AND x.holder = c.holder;

-- name: admit
-- In one step: this batch is written for the first time (a row of NULL says so), and each of its executions moves on if it
-- stands where its owner says; with its last append its owner lets go of it.
WITH mark AS (
  INSERT INTO writer AS w (id, batch, at) VALUES (%(writer)s, %(batch)s, clock_timestamp())
  ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at WHERE w.batch < excluded.batch
  RETURNING id
), moved AS (
  UPDATE execution AS x SET
    last_seq = x.last_seq + a.count,
    status = coalesce(a.status, x.status),
    holder = CASE WHEN a.is_last THEN NULL ELSE x.holder END,
    owner = CASE WHEN a.is_last THEN NULL ELSE x.owner END,
    ended_at = CASE
      WHEN a.status IS NULL THEN x.ended_at
      WHEN a.status = 'running' THEN NULL
      ELSE coalesce(
        a.at,
        (SELECT e.ts FROM entry AS e WHERE e.born = x.born AND e.execution_id = x.execution_id AND e.seq = x.last_seq),
        x.started_at)
    END
  FROM mark, unnest(
    %(names)s::text[], %(epochs)s::bigint[], %(holders)s::uuid[], %(lasts)s::bigint[], %(counts)s::bigint[],
    %(statuses)s::text[], %(times)s::float8[], %(are_last)s::boolean[]
  ) AS a (execution_id, epoch, holder, last_seq, count, status, at, is_last)
  WHERE x.execution_id = a.execution_id AND x.epoch = a.epoch AND x.holder = a.holder AND x.last_seq = a.last_seq
  RETURNING x.execution_id
)
SELECT execution_id FROM moved UNION ALL SELECT NULL FROM mark;

-- name: copy_entries
-- The entries of a batch, in the binary form of COPY.
COPY entry (born, execution_id, seq, ts, type, scope, task, clock, cause, source, worker, payload, checksum)
FROM STDIN (FORMAT binary);

-- name: standings
-- Where executions stand, to say why an append to them was refused.
SELECT execution_id, epoch, owner, last_seq FROM execution WHERE execution_id = ANY(%(names)s);

-- name: extent
-- Where the entries of an execution lie, and how many they are now.
SELECT born, last_seq FROM execution WHERE execution_id = %(execution_id)s;

-- name: read_page
-- The next entries of an execution in order, up to the one that was the last when reading began, and not too many bytes.
SELECT seq, ts, type, scope, task, clock, cause, source, worker, payload, checksum
FROM (
  SELECT *, sum(octet_length(payload)) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - octet_length(payload) AS bytes_before
  FROM entry
  WHERE born = %(born)s AND execution_id = %(execution_id)s AND seq > %(after)s AND seq <= %(last)s
  ORDER BY seq
  LIMIT %(limit)s
) AS page
WHERE bytes_before < %(bytes)s
ORDER BY seq;

-- name: header
-- One execution as the list of runs shows it.
SELECT execution_id, kind, name, path, digest, status, started_at, ended_at, last_seq, label, trace_id
FROM execution WHERE execution_id = %(execution_id)s;

-- name: headers
-- The newest executions first. `{filters}` are the conditions below, of the values that are given.
SELECT execution_id, kind, name, path, digest, status, started_at, ended_at, last_seq, label, trace_id
FROM execution
WHERE true{filters}
ORDER BY number DESC LIMIT %(limit)s;

-- name: headers.after
-- Registered before this one.
number < (SELECT number FROM execution WHERE execution_id = %(after)s);

-- name: headers.status
-- In this status.
status = %(status)s;

-- name: headers.name
-- With this name or label.
(name = %(name)s OR label = %(name)s);

-- name: headers.since
-- Started then or later. Clocks jump, so the number of the oldest bounds the search, and the time itself decides.
-- OFFSET keeps the planner from walking all numbers in order until it meets the first.
number >= (SELECT min(number) FROM (SELECT number FROM execution WHERE started_at >= %(since)s OFFSET 0) AS late)
  AND started_at >= %(since)s;

-- name: headers.until
-- Started then or earlier. As above, from the other end.
number <= (SELECT max(number) FROM (SELECT number FROM execution WHERE started_at <= %(until)s OFFSET 0) AS early)
  AND started_at <= %(until)s;

-- name: headers.kind
-- Of this kind.
kind = %(kind)s;

-- name: headers.label
-- With this label.
label = %(label)s;

-- name: headers.text
-- With this text somewhere. Only ASCII letters are lowered: what `lower` does to others depends on the database.
position(%(text)s IN translate(concat_ws(chr(10), name, label, execution_id, path),
  'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')) > 0;

-- name: named
-- The executions that a label or the beginning of an id can mean, the newest first.
SELECT execution_id, kind, name, path, digest, status, started_at, ended_at, last_seq, label, trace_id
FROM execution
WHERE label = %(name)s OR (execution_id >= %(name)s AND execution_id < %(name)s || chr(1114111))
ORDER BY number DESC LIMIT %(limit)s;

-- name: unfinished
-- The executions that somebody should be working on, oldest first.
SELECT execution_id FROM execution WHERE status = 'running' ORDER BY number;

-- name: unfinished_of
-- Those of them that belong to some partitions.
SELECT execution_id FROM execution WHERE status = 'running' AND partition = ANY(%(partitions)s) ORDER BY number;

-- name: document
-- The document an execution is pinned to.
SELECT bytes FROM document WHERE execution_id = %(execution_id)s;

-- name: ask
-- Leave a request for the owner of an execution, whoever that is; once, though the call may be repeated.
INSERT INTO request (execution_id, what, payload, token)
SELECT execution_id, %(what)s, %(payload)s, %(token)s FROM execution WHERE execution_id = %(execution_id)s
ON CONFLICT (token) DO UPDATE SET what = excluded.what
RETURNING number;

-- name: asked
-- The requests an execution's owner has not answered yet, oldest first.
SELECT number, execution_id, what, payload FROM request WHERE execution_id = %(execution_id)s ORDER BY number;

-- name: asked_of_all
-- The requests that no owner has answered yet, oldest first.
SELECT number, execution_id, what, payload FROM request ORDER BY number;

-- name: answered
-- A request is a letter, not a fact: once answered it goes, and what came of it is in the entries.
DELETE FROM request WHERE number = %(number)s;

-- name: has_owner
-- Somebody alive works on the execution now.
SELECT 1 FROM execution AS x JOIN live_holder AS h ON h.id = x.holder WHERE x.execution_id = %(execution_id)s;

-- name: lock_execution
-- Nobody claims, appends to or forgets the execution until this transaction ends.
SELECT born FROM execution WHERE execution_id = %(execution_id)s FOR UPDATE;

-- name: lock_ended
-- Executions that ended before a time and have no live owner, the earliest first; those another transaction holds are left out.
SELECT x.execution_id, x.born FROM execution AS x
WHERE x.status IN ('completed', 'failed', 'cancelled') AND x.ended_at < %(before)s
  AND NOT EXISTS (SELECT FROM live_holder AS h WHERE h.id = x.holder)
ORDER BY x.ended_at, x.number
LIMIT %(limit)s
FOR UPDATE OF x SKIP LOCKED;

-- name: delete_executions
-- Executions, and with them by cascade their documents, requests and submission keys.
DELETE FROM execution WHERE execution_id = ANY(%(names)s);

-- name: delete_entries
-- The entries of executions that were born on one day.
DELETE FROM entry WHERE born = %(born)s AND execution_id = ANY(%(names)s);

-- name: still_there
-- Which of these executions there still are.
SELECT execution_id FROM execution WHERE execution_id = ANY(%(names)s);

-- name: hold_server
-- A server is alive for another lease: how many are, with this one.
WITH me AS (
  INSERT INTO server AS s (id, name, lease, until) VALUES (%(id)s, %(name)s, %(lease)s, clock_timestamp() + %(lease)s)
  ON CONFLICT (id) DO UPDATE SET lease = excluded.lease, until = excluded.until
)
SELECT 1 + count(*) FROM live_server WHERE id <> %(id)s;

-- name: renew_partitions
-- What a server still owns is its own for another lease.
UPDATE partition_lease SET until = clock_timestamp() + %(lease)s WHERE owner = %(id)s RETURNING partition, epoch;

-- name: take_partitions
-- A server takes some of what is free or has run out, each under a new epoch.
UPDATE partition_lease AS p SET owner = %(id)s, epoch = p.epoch + 1, until = clock_timestamp() + %(lease)s
FROM (
  SELECT partition FROM partition_lease
  WHERE owner IS NULL OR greatest(until, pg_postmaster_start_time() + %(lease)s) <= clock_timestamp()
  ORDER BY partition
  LIMIT %(count)s
  FOR UPDATE SKIP LOCKED
) AS free
WHERE p.partition = free.partition
RETURNING p.partition, p.epoch;

-- name: give_back_partitions
-- What is more than a server's share is free for others at once.
UPDATE partition_lease SET owner = NULL, until = '-infinity'
WHERE owner = %(id)s AND partition = ANY(%(partitions)s)
RETURNING partition;

-- name: leave
-- A server has gone: all it owned is free, and it is alive no more.
WITH given AS (
  UPDATE partition_lease SET owner = NULL, until = '-infinity' WHERE owner = %(id)s
)
DELETE FROM server WHERE id = %(id)s;

-- name: remove_old_servers
-- Servers that died long ago.
DELETE FROM server WHERE until < clock_timestamp() - interval '1 hour' - lease;

-- name: servers
-- The servers that are alive, with the number of partitions each owns, the longest-lived first.
SELECT s.id, s.name, extract(epoch FROM s.started)::float8,
  (SELECT count(*) FROM partition_lease AS p
   WHERE p.owner = s.id AND greatest(p.until, pg_postmaster_start_time() + %(lease)s) > clock_timestamp())
FROM live_server AS s
ORDER BY s.started, s.id;

-- name: kept
-- What a document keeps between runs, or all do.
SELECT document, kind, key, value, run, changed_at, lost_run, lost_value
FROM kept WHERE %(document)s::text IS NULL OR document = %(document)s ORDER BY document, kind, key;

-- name: kept_one
-- One value of it.
SELECT document, kind, key, value, run, changed_at, lost_run, lost_value
FROM kept WHERE document = %(document)s AND kind = %(kind)s AND key = %(key)s;

-- name: keep
-- A document keeps this from now on.
INSERT INTO kept (document, kind, key, value, run, changed_at, lost_run, lost_value)
VALUES (%(document)s, %(kind)s, %(key)s, %(value)s, %(run)s, %(changed_at)s, %(lost_run)s, %(lost_value)s)
ON CONFLICT (document, kind, key) DO UPDATE SET
  value = excluded.value, run = excluded.run, changed_at = excluded.changed_at,
  lost_run = excluded.lost_run, lost_value = excluded.lost_value;

-- name: drop_kept
-- A document keeps this no more.
DELETE FROM kept WHERE document = %(document)s
  AND (%(kind)s::text IS NULL OR kind = %(kind)s) AND (%(key)s::text IS NULL OR key = %(key)s);

-- name: lock_kept
-- Until the end of the transaction nobody else changes what these documents keep; asked for in one order, so that nobody waits for ever.
SELECT pg_advisory_xact_lock(hashtextextended('penstock kept ' || one, 0)) FROM unnest(%(documents)s::text[]) AS one ORDER BY one;

-- name: snapshot
-- The last view of a run in a format, at an entry or before it.
SELECT seq, data FROM snapshot
WHERE execution_id = %(execution_id)s AND format = %(format)s AND seq <= %(upto)s
ORDER BY seq DESC LIMIT 1;

-- name: keep_snapshot
-- A reader has a view of a run at an entry.
INSERT INTO snapshot (execution_id, format, seq, data)
SELECT execution_id, %(format)s, %(seq)s, %(data)s FROM execution WHERE execution_id = %(execution_id)s
ON CONFLICT (execution_id, format, seq) DO NOTHING;
