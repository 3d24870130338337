-- Every statement of the PostgreSQL dispatch, each with its name and the sentence that is true of it.
-- Rows of several leases are always locked in the order of their keys, so that no two statements wait for each other.
-- `state || ''` is a state that is looked at and not looked up by: the statistics of tables like these are always out of date, and
-- the planner would take a small index of all that is held for the shorter way to one key.

-- name: channel
-- The name of a channel.
SELECT dispatch_channel(%(kind)s, %(name)s);

-- name: now
-- The one clock.
SELECT extract(epoch FROM dispatch_now())::float8;

-- name: offer
-- What nobody knows waits now, and what had come back waits again with its next attempt; the pools it waits in are told once.
WITH given AS MATERIALIZED (
  SELECT g.*, nextval('dispatch_number') AS number
  FROM (
    SELECT * FROM unnest(
      %(keys)s::text[], %(execution_ids)s::text[], %(partitions)s::smallint[], %(pools)s::text[], %(needs)s::text[],
      %(limits)s::text[], %(ranges)s::boolean[], %(leases)s::float8[], %(stalls)s::float8[], %(ttls)s::float8[],
      %(payloads)b::bytea[]
    ) WITH ORDINALITY AS one (
      key, execution_id, partition, pool, needs, limits, is_range, lease_s, stall_s, ttl_s, payload, place
    )
    ORDER BY place
  ) AS g
),
offered AS (
  INSERT INTO dispatch_lease AS l (
    key, execution_id, partition, number, state, pool, needs, limit_names, limit_counts, is_range,
    lease_time, stall_time, expires, token, payload
  )
  SELECT
    key, execution_id, partition, number, 'waiting', pool,
    ARRAY(SELECT jsonb_array_elements_text(needs::jsonb)),
    ARRAY(SELECT one ->> 0 FROM jsonb_array_elements(limits::jsonb) WITH ORDINALITY AS a (one, place) ORDER BY place),
    ARRAY(SELECT (one ->> 1)::integer FROM jsonb_array_elements(limits::jsonb) WITH ORDINALITY AS a (one, place) ORDER BY place),
    is_range, make_interval(secs => lease_s), make_interval(secs => stall_s),
    dispatch_now() + make_interval(secs => ttl_s), %(token)s, payload
  FROM given
  ORDER BY key
  ON CONFLICT (key) DO UPDATE SET
    execution_id = excluded.execution_id, partition = excluded.partition, number = excluded.number, state = 'waiting',
    pool = excluded.pool, needs = excluded.needs,
    limit_names = excluded.limit_names, limit_counts = excluded.limit_counts, is_range = excluded.is_range,
    lease_time = excluded.lease_time, stall_time = excluded.stall_time, expires = excluded.expires,
    attempt = l.attempt + 1, since = excluded.since, token = excluded.token, payload = excluded.payload
  WHERE l.state = 'back' AND l.token <> excluded.token
  RETURNING l.pool
)
SELECT pg_notify(dispatch_channel('work', pool), '') FROM (SELECT DISTINCT pool FROM offered) AS pools;

-- name: withdraw
-- Offers that nobody holds wait no more; those that this very call has withdrawn before are among them.
WITH mine AS (
  SELECT key FROM dispatch_lease
  WHERE key = ANY(%(keys)s) AND (state || '' = 'waiting' OR state || '' = 'back' AND token = %(token)s)
  ORDER BY key
  FOR UPDATE
)
UPDATE dispatch_lease AS l SET state = 'back', payload = '', token = %(token)s
FROM mine
WHERE l.key = mine.key
RETURNING l.key;

-- name: take
-- A worker is granted what waits in its pool and it can do: of each execution at most the next few, the execution that holds the
-- fewest first. Looks at so many executions after the one where the last look ended, and says where this one did.
-- Offers with limits are granted only `under_lock`; without it nothing is granted while such offers wait, and this is said.
WITH RECURSIVE me AS MATERIALIZED (
  SELECT pool, can FROM dispatch_worker WHERE id = %(worker)s AND NOT is_draining
),
-- Steps from one execution to the next, however many offers each of them has.
step AS (
  SELECT (
    SELECT l.execution_id FROM dispatch_lease AS l
    WHERE l.state = 'waiting' AND l.pool = (SELECT pool FROM me) AND l.execution_id > %(after)s
    ORDER BY l.execution_id LIMIT 1
  ) AS execution_id
  UNION ALL
  SELECT (
    SELECT l.execution_id FROM dispatch_lease AS l
    WHERE l.state = 'waiting' AND l.pool = (SELECT pool FROM me) AND l.execution_id > step.execution_id
    ORDER BY l.execution_id LIMIT 1
  )
  FROM step WHERE step.execution_id IS NOT NULL
),
seen AS MATERIALIZED (
  SELECT execution_id, (
    SELECT count(*) FROM dispatch_lease AS h WHERE h.state = 'held' AND h.execution_id = step.execution_id
  ) AS held
  FROM step WHERE execution_id IS NOT NULL LIMIT %(window)s
),
limited AS MATERIALIZED (
  SELECT EXISTS (
    SELECT FROM me JOIN dispatch_lease AS l ON l.pool = me.pool WHERE l.state = 'waiting' AND l.limit_names <> '{}'
  ) AS is_so
),
used AS MATERIALIZED (
  SELECT name, count(*) AS held
  FROM dispatch_lease AS l CROSS JOIN unnest(l.limit_names) AS name
  WHERE l.state = 'held' AND l.limit_names <> '{}'
  GROUP BY name
),
next AS MATERIALIZED (
  SELECT n.key, n.is_range, n.number, n.limit_names, n.limit_counts, n.rank + seen.held AS turn
  FROM me CROSS JOIN seen CROSS JOIN LATERAL (
    SELECT
      l.key, l.is_range, l.number, l.limit_names, l.limit_counts,
      row_number() OVER (ORDER BY l.is_range, l.number) AS rank
    FROM dispatch_lease AS l
    WHERE l.state = 'waiting' AND l.pool = (SELECT pool FROM me) AND l.execution_id = seen.execution_id AND l.needs <@ me.can
      AND (NOT l.is_range OR %(ranges)s > 0)
      AND (l.limit_names = '{}' OR NOT EXISTS (
        SELECT FROM unnest(l.limit_names, l.limit_counts) AS own (name, most) JOIN used USING (name)
        WHERE used.held >= own.most
      ))
    ORDER BY l.is_range, l.number
    LIMIT %(reach)s
  ) AS n
  WHERE %(under_lock)s OR NOT (SELECT is_so FROM limited)
  ORDER BY turn, n.is_range, n.number
  LIMIT %(reach)s
),
-- Whether an offer with limits is granted may depend on the one before: so a look ends with the first of these.
sure AS MATERIALIZED (
  SELECT * FROM (
    SELECT key, is_range, number, turn, count(*) FILTER (WHERE limit_names <> '{}') OVER (
      ORDER BY turn, is_range, number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS limited_before
    FROM next
  ) AS counted
  WHERE limited_before = 0
),
steps AS MATERIALIZED (
  SELECT sure.key, sure.turn, sure.is_range, sure.number
  FROM sure JOIN dispatch_lease AS l ON l.key = sure.key
  WHERE l.state || '' = 'waiting' AND NOT sure.is_range
  ORDER BY sure.turn, sure.number
  LIMIT %(room)s
  FOR UPDATE OF l SKIP LOCKED
),
pieces AS MATERIALIZED (
  SELECT sure.key, sure.turn, sure.is_range, sure.number
  FROM sure JOIN dispatch_lease AS l ON l.key = sure.key
  WHERE l.state || '' = 'waiting' AND sure.is_range
  ORDER BY sure.turn, sure.number
  LIMIT %(ranges)s
  FOR UPDATE OF l SKIP LOCKED
),
granted AS (
  UPDATE dispatch_lease AS l SET
    state = 'held', holder = %(worker)s, since = dispatch_now(),
    until = dispatch_now() + least(l.lease_time, l.stall_time),
    progress = 0, progress_at = dispatch_now(), cursor = '', rows = '', mark = %(token)s
  FROM (
    SELECT * FROM steps UNION ALL SELECT * FROM pieces
    ORDER BY turn, is_range, number
    LIMIT %(room)s
  ) AS chosen
  WHERE l.key = chosen.key
  RETURNING
    l.key, l.execution_id, l.attempt, l.payload, extract(epoch FROM l.lease_time)::float8, l.is_range,
    chosen.turn, l.number
)
SELECT
  (SELECT is_so FROM limited) AS is_limited,
  (SELECT count(*) FROM next) AS candidates,
  (SELECT CASE WHEN count(*) = %(window)s THEN max(execution_id) END FROM seen) AS after,
  granted.*
FROM (VALUES (1)) AS always LEFT JOIN granted ON true
ORDER BY granted.turn, granted.is_range, granted.number;

-- name: lock_limits
-- One worker at a time is granted offers with limits, so that no two count the same place as free.
SELECT pg_advisory_xact_lock(hashtextextended('penstock limits ' || current_schema(), 0));

-- name: taken
-- What a call whose answer was lost had been granted.
SELECT key, execution_id, attempt, payload, extract(epoch FROM lease_time)::float8, is_range
FROM dispatch_lease
WHERE state = 'held' AND holder = %(worker)s AND mark = %(token)s
ORDER BY number;

-- name: give_up
-- What was granted to a call that nobody waits for any more waits again, where it was in the queue.
WITH mine AS (
  SELECT l.key FROM dispatch_lease AS l
  WHERE l.key = ANY(%(keys)s) AND l.state || '' = 'held' AND l.holder = %(worker)s AND l.mark = %(token)s
  ORDER BY l.key
  FOR UPDATE
),
back AS (
  UPDATE dispatch_lease AS l SET state = 'waiting', holder = NULL, attempt = l.attempt + 1, since = dispatch_now()
  FROM mine
  WHERE l.key = mine.key
  RETURNING l.pool
)
SELECT pg_notify(dispatch_channel('work', pool), '') FROM (SELECT DISTINCT pool FROM back) AS pools;

-- name: beat
-- A worker is alive, and with it those of its leases that it names and still holds: does it drain (null if it is not known), and
-- which are they.
WITH me AS (
  UPDATE dispatch_worker SET seen = dispatch_now(), is_draining = is_draining OR %(draining)s
  WHERE id = %(worker)s
  RETURNING is_draining
),
pulse AS MATERIALIZED (
  SELECT * FROM unnest(
    %(keys)s::text[], %(attempts)s::integer[], %(progresses)s::bigint[], %(cursors)b::bytea[], %(rows)b::bytea[]
  ) AS one (key, attempt, progress, cursor, rows)
),
mine AS MATERIALIZED (
  SELECT l.key, pulse.progress, pulse.cursor, pulse.rows
  FROM pulse JOIN dispatch_lease AS l ON l.key = pulse.key
  WHERE l.state || '' = 'held' AND l.holder = %(worker)s AND l.attempt = pulse.attempt AND EXISTS (SELECT FROM me)
  ORDER BY l.key
  FOR UPDATE OF l
),
renewed AS (
  UPDATE dispatch_lease AS l SET
    progress = mine.progress,
    progress_at = CASE WHEN l.progress = mine.progress THEN l.progress_at ELSE dispatch_now() END,
    until = least(
      dispatch_now() + l.lease_time,
      CASE WHEN l.progress = mine.progress THEN l.progress_at ELSE dispatch_now() END + l.stall_time
    ),
    cursor = coalesce(mine.cursor, l.cursor),
    rows = coalesce(mine.rows, l.rows)
  FROM mine
  WHERE l.key = mine.key
  RETURNING l.key
)
SELECT (SELECT is_draining FROM me), ARRAY(SELECT key FROM renewed);

-- name: drain
-- A worker is to take nothing more: is it known.
UPDATE dispatch_worker SET is_draining = true WHERE id = %(worker)s RETURNING id;

-- name: say
-- Of these calls, those are kept whose lease is the caller's, each with a note for every body; an end is kept with its last note.
-- A call that was kept before is not kept again, nor is one that a later call of its holder has overtaken. Whoever owns the
-- executions is told once, and so are those who wait for a limit.
WITH call AS MATERIALIZED (
  SELECT * FROM unnest(
    %(calls)s::integer[], %(workers)s::text[], %(keys)s::text[], %(attempts)s::integer[], %(kinds)s::text[], %(tokens)s::uuid[]
  ) AS one (call, worker, key, attempt, kind, token)
),
mine AS MATERIALIZED (
  SELECT
    call.*, l.execution_id, l.partition, l.limit_names, coalesce(l.mark = call.token, false) AS is_kept,
    call.kind IN ('done', 'returned') AS is_end
  FROM call JOIN dispatch_lease AS l ON l.key = call.key
  WHERE l.mark = call.token OR l.state || '' = 'held' AND l.holder = call.worker AND l.attempt = call.attempt
    AND (l.mark IS NULL OR l.mark < call.token)
  ORDER BY l.key
  FOR UPDATE OF l
),
changed AS (
  UPDATE dispatch_lease AS l SET
    state = CASE mine.kind WHEN 'done' THEN 'done' WHEN 'returned' THEN 'back' ELSE l.state END,
    holder = CASE WHEN mine.is_end THEN NULL ELSE l.holder END,
    payload = CASE WHEN mine.is_end THEN '' ELSE l.payload END,
    mark = mine.token
  FROM mine
  WHERE l.key = mine.key AND NOT mine.is_kept
),
noted AS (
  INSERT INTO dispatch_note (partition, execution_id, key, attempt, worker, kind, is_end, body)
  SELECT
    mine.partition, mine.execution_id, mine.key, mine.attempt, mine.worker, mine.kind,
    mine.kind = 'done' AND note.is_last, note.body
  FROM mine
  JOIN unnest(%(note_calls)s::integer[], %(lasts)s::boolean[], %(bodies)b::bytea[])
    WITH ORDINALITY AS note (call, is_last, body, place) ON note.call = mine.call
  WHERE NOT mine.is_kept
  ORDER BY note.place
  RETURNING partition
),
freed AS (
  SELECT DISTINCT l.pool
  FROM mine JOIN dispatch_lease AS l ON l.state = 'waiting' AND l.limit_names <> '{}' AND l.limit_names && mine.limit_names
  WHERE mine.is_end AND mine.limit_names <> '{}'
)
SELECT
  ARRAY(SELECT call FROM mine),
  (SELECT count(pg_notify(dispatch_channel('notes', ''), told.partitions))
   FROM (SELECT string_agg(DISTINCT partition::text, ' ') AS partitions FROM noted) AS told
   WHERE told.partitions IS NOT NULL),
  (SELECT count(pg_notify(dispatch_channel('work', pool), '')) FROM freed);

-- name: are_known
-- Those of the keys of which something is kept.
SELECT key FROM dispatch_lease WHERE key = ANY(%(keys)s);

-- name: notes
-- The oldest notes of these partitions, of which no more are shown than fit into so many bytes, but one at least.
SELECT number, execution_id, key, attempt, worker, kind, body
FROM (
  SELECT n.*, sum(octet_length(body)) OVER (ORDER BY number) - octet_length(body) AS before
  FROM (
    SELECT * FROM dispatch_note WHERE partition = ANY(%(partitions)s::smallint[]) ORDER BY number LIMIT %(limit)s
  ) AS n
) AS shown
WHERE before < %(most_bytes)s
ORDER BY number;

-- name: heard
-- Notes that have taken effect are gone, and with the last one of a lease that is done all that was kept of it.
-- The lease goes first, as it does in `forget_leases`, so that the two do not wait for each other.
WITH over AS MATERIALIZED (
  SELECT l.key FROM dispatch_note AS n JOIN dispatch_lease AS l ON l.key = n.key
  WHERE n.number = ANY(%(numbers)s) AND n.is_end AND l.attempt = n.attempt AND l.state || '' = 'done'
  ORDER BY l.key
  FOR UPDATE OF l
),
gone AS (
  DELETE FROM dispatch_note WHERE number = ANY(%(numbers)s)
)
DELETE FROM dispatch_lease AS l USING over WHERE l.key = over.key;

-- name: reap
-- Some leases that have run out and offers that waited too long have come back, each with a note; what somebody is just
-- renewing is left alone. Gives how many.
WITH lost AS MATERIALIZED (
  SELECT * FROM dispatch_lease
  WHERE state = 'held' AND dispatch_is_over(until, lease_time)
  ORDER BY key LIMIT %(limit)s
  FOR UPDATE SKIP LOCKED
),
stale AS MATERIALIZED (
  SELECT * FROM dispatch_lease
  WHERE state = 'waiting' AND expires <= (SELECT dispatch_now())
  ORDER BY key LIMIT %(limit)s
  FOR UPDATE SKIP LOCKED
),
back AS (
  UPDATE dispatch_lease AS l SET state = 'back', holder = NULL, payload = '', cursor = ''
  WHERE l.key IN (SELECT key FROM lost UNION ALL SELECT key FROM stale)
),
noted AS (
  INSERT INTO dispatch_note (partition, execution_id, key, attempt, worker, kind, body)
  SELECT partition, execution_id, key, attempt, holder, 'lost', cursor FROM lost
  UNION ALL
  SELECT partition, execution_id, key, attempt, '', 'stale', '' FROM stale
  RETURNING partition
),
freed AS (
  SELECT DISTINCT l.pool
  FROM lost JOIN dispatch_lease AS l ON l.state = 'waiting' AND l.limit_names <> '{}' AND l.limit_names && lost.limit_names
  WHERE lost.limit_names <> '{}'
)
SELECT
  (SELECT count(*) FROM noted),
  (SELECT count(pg_notify(dispatch_channel('notes', ''), told.partitions))
   FROM (SELECT string_agg(DISTINCT partition::text, ' ') AS partitions FROM noted) AS told
   WHERE told.partitions IS NOT NULL),
  (SELECT count(pg_notify(dispatch_channel('work', pool), '')) FROM freed);

-- name: retire
-- A worker has gone: it is listed no more, and all it held has come back as lost.
WITH gone AS (
  DELETE FROM dispatch_worker WHERE id = %(worker)s
),
lost AS MATERIALIZED (
  SELECT * FROM dispatch_lease WHERE state = 'held' AND holder = %(worker)s ORDER BY key FOR UPDATE
),
back AS (
  UPDATE dispatch_lease AS l SET state = 'back', holder = NULL, payload = '', cursor = ''
  FROM lost
  WHERE l.key = lost.key
),
noted AS (
  INSERT INTO dispatch_note (partition, execution_id, key, attempt, worker, kind, body)
  SELECT partition, execution_id, key, attempt, holder, 'lost', cursor FROM lost
  RETURNING partition
),
freed AS (
  SELECT DISTINCT l.pool
  FROM lost JOIN dispatch_lease AS l ON l.state = 'waiting' AND l.limit_names <> '{}' AND l.limit_names && lost.limit_names
  WHERE lost.limit_names <> '{}'
)
SELECT
  (SELECT count(pg_notify(dispatch_channel('notes', ''), told.partitions))
   FROM (SELECT string_agg(DISTINCT partition::text, ' ') AS partitions FROM noted) AS told
   WHERE told.partitions IS NOT NULL),
  (SELECT count(pg_notify(dispatch_channel('work', pool), '')) FROM freed);

-- name: tidy
-- Words to holders that hold no more, and workers that died long ago, are forgotten.
WITH words AS (
  DELETE FROM dispatch_told AS t
  WHERE NOT EXISTS (
    SELECT FROM dispatch_lease AS l
    WHERE l.key = t.key AND l.state || '' = 'held' AND l.number = t.place AND l.attempt = t.attempt
  )
)
DELETE FROM dispatch_worker WHERE seen < dispatch_now() - make_interval(secs => %(kept_s)s);

-- name: missing
-- Keys that neither wait nor are held, and of which no note is to be heard.
SELECT wanted.key FROM unnest(%(keys)s::text[]) AS wanted (key)
WHERE NOT EXISTS (SELECT FROM dispatch_lease AS l WHERE l.key = wanted.key AND l.state || '' IN ('waiting', 'held'))
  AND NOT EXISTS (SELECT FROM dispatch_note AS n WHERE n.key = wanted.key);

-- name: forget_leases
-- Of executions that are over nobody holds anything any more.
WITH mine AS MATERIALIZED (
  SELECT l.key, l.limit_names
  FROM unnest(%(partitions)s::smallint[], %(names)s::text[]) AS one (partition, execution_id)
  JOIN dispatch_lease AS l ON l.partition = one.partition AND l.execution_id = one.execution_id
  ORDER BY l.key
  FOR UPDATE OF l
),
gone AS (
  DELETE FROM dispatch_lease AS l USING mine WHERE l.key = mine.key
),
words AS (
  DELETE FROM dispatch_told AS t USING mine WHERE t.key = mine.key
),
freed AS (
  SELECT DISTINCT l.pool
  FROM mine JOIN dispatch_lease AS l ON l.state = 'waiting' AND l.limit_names <> '{}' AND l.limit_names && mine.limit_names
  WHERE mine.limit_names <> '{}'
)
SELECT pg_notify(dispatch_channel('work', pool), '') FROM freed;

-- name: forget_notes
-- What was said of them is gone as well; to be run after `forget_leases`, which has waited for those who were just saying something.
DELETE FROM dispatch_note WHERE execution_id = ANY(%(names)s);

-- name: executions
-- Those of which a lease is kept, in whatever state.
SELECT DISTINCT execution_id FROM dispatch_lease
WHERE partition = ANY(%(partitions)s::integer[]) AND execution_id > %(after)s
ORDER BY execution_id
LIMIT %(limit)s;

-- name: tell
-- The holder of a lease will be shown this: who it is, if there is one.
WITH told AS (
  INSERT INTO dispatch_told (worker, key, place, attempt, body)
  SELECT holder, key, number, attempt, %(body)b FROM dispatch_lease WHERE key = %(key)s AND state || '' = 'held'
  RETURNING worker
)
SELECT worker, pg_notify(dispatch_channel('told', worker), '') FROM told;

-- name: told
-- What holders are to be told and have not seen, for as long as they hold.
WITH gone AS (
  DELETE FROM dispatch_told WHERE worker = %(worker)s AND number = ANY(%(seen)s::bigint[])
)
SELECT t.number, t.key, t.attempt, t.body
FROM dispatch_told AS t JOIN dispatch_lease AS l ON l.key = t.key
WHERE t.worker = %(worker)s AND t.number <> ALL(%(seen)s::bigint[])
  AND l.state || '' = 'held' AND l.number = t.place AND l.attempt = t.attempt
ORDER BY t.number;

-- name: enlist
-- A worker is there.
INSERT INTO dispatch_worker AS w (id, name, pool, slots, can, version, seen)
VALUES (%(id)s, %(name)s, %(pool)s, %(slots)s, %(can)s, %(version)s, dispatch_now())
ON CONFLICT (id) DO UPDATE SET
  name = excluded.name, pool = excluded.pool, slots = excluded.slots, can = excluded.can, version = excluded.version,
  seen = excluded.seen, is_draining = false;

-- name: pool_of
-- The pool of a worker.
SELECT pool FROM dispatch_worker WHERE id = %(worker)s;

-- name: is_pressed
-- Whether work that this worker could do has waited for a moment, of an execution that has less than one whose range it holds.
-- A range for a range is worth while only if it leaves the two more even than they were.
WITH RECURSIVE me AS MATERIALIZED (
  SELECT pool, can FROM dispatch_worker WHERE id = %(worker)s
),
most AS MATERIALIZED (
  SELECT coalesce(max((
    SELECT count(*) FROM dispatch_lease AS h WHERE h.state = 'held' AND h.execution_id = mine.execution_id
  )), 0) AS held
  FROM (
    SELECT DISTINCT execution_id FROM dispatch_lease WHERE state = 'held' AND holder = %(worker)s AND is_range
  ) AS mine
),
step AS (
  SELECT (
    SELECT l.execution_id FROM dispatch_lease AS l
    WHERE l.state = 'waiting' AND l.pool = (SELECT pool FROM me)
    ORDER BY l.execution_id LIMIT 1
  ) AS execution_id
  WHERE (SELECT held FROM most) > 0
  UNION ALL
  SELECT (
    SELECT l.execution_id FROM dispatch_lease AS l
    WHERE l.state = 'waiting' AND l.pool = (SELECT pool FROM me) AND l.execution_id > step.execution_id
    ORDER BY l.execution_id LIMIT 1
  )
  FROM step WHERE step.execution_id IS NOT NULL
),
used AS MATERIALIZED (
  SELECT name, count(*) AS held
  FROM dispatch_lease AS l CROSS JOIN unnest(l.limit_names) AS name
  WHERE l.state = 'held' AND l.limit_names <> '{}'
  GROUP BY name
)
SELECT EXISTS (
  SELECT
  FROM me CROSS JOIN step CROSS JOIN LATERAL (
    SELECT count(*) AS held FROM dispatch_lease AS h WHERE h.state = 'held' AND h.execution_id = step.execution_id
  ) AS its
  WHERE step.execution_id IS NOT NULL AND its.held < (SELECT held FROM most) AND EXISTS (
    SELECT FROM dispatch_lease AS l
    WHERE l.state = 'waiting' AND l.pool = (SELECT pool FROM me) AND l.execution_id = step.execution_id AND l.needs <@ me.can
      AND l.since <= dispatch_now() - make_interval(secs => %(moment_s)s)
      AND its.held + l.is_range::integer < (SELECT held FROM most)
      AND (l.limit_names = '{}' OR NOT EXISTS (
        SELECT FROM unnest(l.limit_names, l.limit_counts) AS own (name, most) JOIN used USING (name)
        WHERE used.held >= own.most
      ))
  )
);

-- name: workers
-- Who works, with what each holds.
SELECT
  w.id, w.name, w.pool, w.slots, w.can, w.version,
  coalesce(its.held, 0),
  extract(epoch FROM dispatch_now() - w.seen)::float8,
  w.is_draining
FROM dispatch_worker AS w
LEFT JOIN (
  SELECT holder, count(*) AS held FROM dispatch_lease WHERE state = 'held' GROUP BY holder
) AS its ON its.holder = w.id
ORDER BY w.started, w.id;

-- name: leases
-- What waits and what is held, as it was offered.
SELECT
  key, execution_id, pool, attempt, holder,
  extract(epoch FROM dispatch_now() - since)::float8,
  extract(epoch FROM until - dispatch_now())::float8,
  needs, limit_names, limit_counts, rows
FROM dispatch_lease
WHERE state IN ('waiting', 'held')
ORDER BY number
LIMIT %(limit)s;

-- name: leases_of
-- The same for one execution.
SELECT
  key, execution_id, pool, attempt, holder,
  extract(epoch FROM dispatch_now() - since)::float8,
  extract(epoch FROM until - dispatch_now())::float8,
  needs, limit_names, limit_counts, rows
FROM dispatch_lease
WHERE partition = %(partition)s AND execution_id = %(execution_id)s AND state || '' IN ('waiting', 'held')
ORDER BY number
LIMIT %(limit)s;

-- name: waiting
-- How many offers wait in each pool.
SELECT pool, count(*) FROM dispatch_lease WHERE state = 'waiting' GROUP BY pool;
