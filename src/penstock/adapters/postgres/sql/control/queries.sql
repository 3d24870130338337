-- Every statement the control store in PostgreSQL runs, each with its name and the sentence that is true of it.

-- name: lock_path
-- Until the end of the transaction nobody else gives this path a version.
INSERT INTO control_path (path, newest) VALUES (%(path)s, 0)
ON CONFLICT (path) DO UPDATE SET newest = control_path.newest;

-- name: newest_document
-- The newest version of a document, if it is still in the catalog.
SELECT d.path, d.version, d.digest, d.kind, d.created_at, d.created_by, d.text, d.sources
FROM control_path AS p JOIN control_document AS d ON d.path = p.path AND d.version = p.newest
WHERE p.path = %(path)s;

-- name: document
-- One version of a document.
SELECT path, version, digest, kind, created_at, created_by, text, sources
FROM control_document WHERE path = %(path)s AND version = %(version)s;

-- name: file
-- A path has a version more, whose number it never had.
WITH next AS (
  UPDATE control_path SET newest = newest + 1 WHERE path = %(path)s RETURNING newest
)
INSERT INTO control_document (path, version, digest, kind, created_at, created_by, text, sources)
SELECT %(path)s, newest, %(digest)s, %(kind)s, control_now(), %(by)s, %(text)s, %(sources)s FROM next
RETURNING path, version, digest, kind, created_at, created_by, text, sources;

-- name: documents
-- The newest versions of the documents whose paths begin so, by path, without what is in them.
SELECT d.path, d.version, d.digest, d.kind, d.created_at, d.created_by
FROM control_path AS p JOIN control_document AS d ON d.path = p.path AND d.version = p.newest
WHERE p.path > %(after)s AND p.path >= %(prefix)s AND starts_with(p.path, %(prefix)s)
ORDER BY p.path LIMIT %(limit)s;

-- name: versions
-- The versions of a document, the oldest first, without what is in them.
SELECT path, version, digest, kind, created_at, created_by
FROM control_document WHERE path = %(path)s ORDER BY version;

-- name: unfile
-- A document is in the catalog no more.
DELETE FROM control_document WHERE path = %(path)s;

-- name: add_token
-- A token is good from now on. Repeated after a lost connection, it is the same one.
INSERT INTO control_token (id, hash, name, scope, created_at, expires_at)
VALUES (%(id)s, %(hash)s, %(name)s, %(scope)s, control_now(), %(expires_at)s)
ON CONFLICT (id) DO UPDATE SET name = excluded.name
RETURNING id, name, scope, created_at, expires_at, last_used_at;

-- name: token
-- The token whose secret has this hash, unless it has expired; and the time.
SELECT hash, control_now(), id, name, scope, created_at, expires_at, last_used_at
FROM control_token WHERE hash = %(hash)s AND (expires_at IS NULL OR expires_at > control_now());

-- name: open_session
-- The session of a token has this hash; it has only one.
UPDATE control_token SET session = %(session)s WHERE hash = %(hash)s AND session IS DISTINCT FROM %(session)s;

-- name: token_of_session
-- The token whose session has this hash, unless it has expired; and the time.
SELECT session, control_now(), id, name, scope, created_at, expires_at, last_used_at
FROM control_token WHERE session = %(session)s AND (expires_at IS NULL OR expires_at > control_now());

-- name: use_token
-- A token was used just now.
UPDATE control_token SET last_used_at = %(now)s WHERE id = %(id)s;

-- name: tokens
-- All tokens, the oldest first.
SELECT id, name, scope, created_at, expires_at, last_used_at FROM control_token ORDER BY number;

-- name: revoke
-- A token is good no more.
DELETE FROM control_token WHERE id = %(id)s;

-- name: schedule
-- One schedule.
SELECT
  name, cron, path, zone, version, payload, context, missed, is_on, fired_to, last_slot, last_run, last_error,
  overlap, deadline_s
FROM control_schedule WHERE name = %(name)s;

-- name: schedules
-- All schedules.
SELECT
  name, cron, path, zone, version, payload, context, missed, is_on, fired_to, last_slot, last_run, last_error,
  overlap, deadline_s
FROM control_schedule ORDER BY name;

-- name: put_schedule
-- A schedule says this from now on; what it has fired is not forgotten.
INSERT INTO control_schedule (
  name, cron, path, zone, version, payload, context, missed, is_on, fired_to, last_slot, last_run, last_error,
  overlap, deadline_s
) VALUES (
  %(name)s, %(cron)s, %(path)s, %(zone)s, %(version)s, %(payload)s, %(context)s, %(missed)s, %(is_on)s,
  %(fired_to)s, %(last_slot)s, %(last_run)s, %(last_error)s, %(overlap)s, %(deadline_s)s
)
ON CONFLICT (name) DO UPDATE SET
  cron = excluded.cron, path = excluded.path, zone = excluded.zone, version = excluded.version,
  payload = excluded.payload, context = excluded.context, missed = excluded.missed, is_on = excluded.is_on,
  overlap = excluded.overlap, deadline_s = excluded.deadline_s,
  fired_to = greatest(control_schedule.fired_to, excluded.fired_to);

-- name: drop_schedule
-- A schedule is gone.
DELETE FROM control_schedule WHERE name = %(name)s;

-- name: fired
-- The slots up to a time are dealt with, if nobody else has dealt with them.
UPDATE control_schedule SET fired_to = %(to)s
WHERE name = %(name)s AND fired_to = %(before)s AND %(to)s::float8 >= %(before)s::float8;

-- name: fired_slot
-- The same, and this is what became of the last of them.
UPDATE control_schedule
SET fired_to = %(to)s, last_slot = coalesce(%(slot)s, last_slot), last_run = %(run)s, last_error = %(error)s
WHERE name = %(name)s AND fired_to = %(before)s AND %(to)s::float8 >= %(before)s::float8;

-- name: claim_slot
-- What is to become of a slot is decided, unless it has been.
INSERT INTO control_slot (schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, is_open, revision)
SELECT name, %(at)s, %(state)s, %(run)s, %(note)s, %(attempt)s, %(backfill)s, %(at_once)s, %(ended)s, %(is_late)s, %(is_open)s, 0
FROM control_schedule WHERE name = %(name)s
ON CONFLICT (schedule, at) DO NOTHING;

-- name: slot
-- What is known of one slot.
SELECT schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, revision
FROM control_slot WHERE schedule = %(name)s AND at = %(at)s;

-- name: change_slot
-- Something else is known of a slot, if nobody else has learned more of it.
UPDATE control_slot SET
  state = %(state)s, run = %(run)s, note = %(note)s, attempt = %(attempt)s, backfill = %(backfill)s, at_once = %(at_once)s,
  ended = %(ended)s, is_late = %(is_late)s, is_open = %(is_open)s, revision = revision + 1
WHERE schedule = %(name)s AND at = %(at)s AND revision = %(revision)s;

-- name: slots
-- The newest of the slots in a period.
SELECT schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, revision
FROM control_slot WHERE schedule = %(name)s AND at >= %(since)s AND at <= %(until)s
ORDER BY at DESC LIMIT %(limit)s;

-- name: open_slots
-- Slots that wait, and slots whose runs are not known to have ended.
SELECT schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, revision
FROM control_slot WHERE is_open ORDER BY schedule, at;

-- name: trim_slots
-- Of the slots of a schedule, only the newest and the open ones are remembered.
DELETE FROM control_slot WHERE schedule = %(name)s AND NOT is_open
  AND at < (SELECT at FROM control_slot WHERE schedule = %(name)s ORDER BY at DESC LIMIT 1 OFFSET %(keep)s);

-- name: hook
-- One hook.
SELECT name, path, version, secret, payload, is_on, context FROM control_hook WHERE name = %(name)s;

-- name: hooks
-- All hooks.
SELECT name, path, version, secret, payload, is_on, context FROM control_hook ORDER BY name;

-- name: put_hook
-- A hook says this from now on.
INSERT INTO control_hook (name, path, version, secret, payload, is_on, context)
VALUES (%(name)s, %(path)s, %(version)s, %(secret)s, %(payload)s, %(is_on)s, %(context)s)
ON CONFLICT (name) DO UPDATE SET
  path = excluded.path, version = excluded.version, secret = excluded.secret, payload = excluded.payload,
  is_on = excluded.is_on, context = excluded.context;

-- name: put_hook_with_its_secret
-- A hook says this from now on, and keeps the secret it has.
UPDATE control_hook SET path = %(path)s, version = %(version)s, payload = %(payload)s, is_on = %(is_on)s, context = %(context)s
WHERE name = %(name)s AND secret IS NOT NULL;

-- name: drop_hook
-- A hook is gone.
DELETE FROM control_hook WHERE name = %(name)s;

-- name: alerts
-- All alerts.
SELECT said, created_at FROM control_alert ORDER BY name;

-- name: put_alert
-- An alert says this from now on.
INSERT INTO control_alert (name, said, created_at) VALUES (%(name)s, %(said)s, %(created_at)s)
ON CONFLICT (name) DO UPDATE SET said = excluded.said, created_at = excluded.created_at;

-- name: drop_alert
-- An alert is gone.
DELETE FROM control_alert WHERE name = %(name)s;

-- name: raise_alert
-- Something is to be told, unless it is known already.
INSERT INTO control_delivery (alert, about, event, state, attempts, next_at, error, at, revision)
SELECT name, %(about)s, %(event)s, %(state)s, %(attempts)s, %(next_at)s, %(error)s, %(at)s, 0
FROM control_alert WHERE name = %(alert)s
ON CONFLICT (alert, about) DO NOTHING;

-- name: deliveries
-- What is to be told and was, the newest first.
SELECT alert, about, event, state, attempts, next_at, error, at, revision
FROM control_delivery WHERE (%(alert)s::text IS NULL OR alert = %(alert)s) AND (%(state)s::text IS NULL OR state = %(state)s)
ORDER BY at DESC, alert, about LIMIT %(limit)s;

-- name: change_delivery
-- Something else is known of what was told, if nobody else has learned more of it.
UPDATE control_delivery SET
  state = %(state)s, attempts = %(attempts)s, next_at = %(next_at)s, error = %(error)s, at = %(at)s, revision = revision + 1
WHERE alert = %(alert)s AND about = %(about)s AND revision = %(revision)s;

-- name: trim_deliveries
-- Of what an alert has told only the newest is remembered.
DELETE FROM control_delivery WHERE alert = %(alert)s AND state <> 'pending'
  AND at < (SELECT at FROM control_delivery WHERE alert = %(alert)s ORDER BY at DESC LIMIT 1 OFFSET %(keep)s);

-- name: add_loss
-- A lease was lost, if this is not known yet.
INSERT INTO control_loss (execution_id, key, attempt, number, at, worker, taken_by, is_done)
VALUES (%(execution_id)s, %(key)s, %(attempt)s, %(number)s, %(at)s, %(worker)s, %(taken_by)s, %(is_done)s)
ON CONFLICT (key, attempt, number) DO NOTHING;

-- name: take_loss
-- Somebody has taken what was lost last before this attempt.
UPDATE control_loss SET taken_by = %(worker)s, is_done = is_done OR %(is_done)s
WHERE (key, attempt, number) = (
  SELECT key, attempt, number FROM control_loss WHERE key = %(key)s AND attempt < %(attempt)s ORDER BY number DESC LIMIT 1
);

-- name: losses
-- The newest losses.
SELECT execution_id, key, attempt, number, at, worker, taken_by, is_done
FROM control_loss ORDER BY at DESC, number DESC LIMIT %(limit)s;

-- name: trim_losses
-- Only the newest losses are remembered.
DELETE FROM control_loss WHERE (at, number) < (
  SELECT at, number FROM control_loss ORDER BY at DESC, number DESC LIMIT 1 OFFSET %(keep)s
);
