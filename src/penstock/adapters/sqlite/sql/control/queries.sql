-- Every statement the control store in SQLite runs, each with its name and the sentence that is true of it.

-- name: schema_version
-- The highest schema file that has been applied to this database.
SELECT max(version) FROM control_version;

-- name: record_version
-- A schema file has been applied.
INSERT INTO control_version (version) VALUES (?);

-- name: table_names
-- What is in the database, to tell a new one from one of another program.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%';

-- name: newest_document
-- The newest version of a document, if it is still in the catalog.
SELECT d.path, d.version, d.digest, d.kind, d.created_at, d.created_by, d.text, d.sources
FROM path AS p JOIN document AS d ON d.path = p.path AND d.version = p.newest
WHERE p.path = :path;

-- name: document
-- One version of a document.
SELECT path, version, digest, kind, created_at, created_by, text, sources
FROM document WHERE path = :path AND version = :version;

-- name: next_version
-- A path has a version more, whose number it never had.
INSERT INTO path (path, newest) VALUES (:path, 1)
ON CONFLICT (path) DO UPDATE SET newest = newest + 1
RETURNING newest;

-- name: file
-- A version of a document is in the catalog.
INSERT INTO document (path, version, digest, kind, created_at, created_by, text, sources)
VALUES (:path, :version, :digest, :kind, :now, :by, :text, :sources);

-- name: documents
-- The newest versions of the documents whose paths begin so, by path, without what is in them.
SELECT d.path, d.version, d.digest, d.kind, d.created_at, d.created_by
FROM path AS p JOIN document AS d ON d.path = p.path AND d.version = p.newest
WHERE p.path > :after AND p.path >= :prefix AND instr(p.path, :prefix) = 1
ORDER BY p.path LIMIT :limit;

-- name: versions
-- The versions of a document, the oldest first, without what is in them.
SELECT path, version, digest, kind, created_at, created_by FROM document WHERE path = :path ORDER BY version;

-- name: unfile
-- A document is in the catalog no more.
DELETE FROM document WHERE path = :path;

-- name: add_token
-- A token is good from now on.
INSERT INTO token (id, hash, name, scope, created_at, expires_at) VALUES (:id, :hash, :name, :scope, :now, :expires_at);

-- name: token
-- The token whose secret has this hash, unless it has expired.
SELECT hash, id, name, scope, created_at, expires_at, last_used_at
FROM token WHERE hash = :hash AND (expires_at IS NULL OR expires_at > :now);

-- name: open_session
-- The session of a token has this hash; it has only one.
UPDATE token SET session = :session WHERE hash = :hash AND session IS NOT :session;

-- name: token_of_session
-- The token whose session has this hash, unless it has expired.
SELECT session, id, name, scope, created_at, expires_at, last_used_at
FROM token WHERE session = :session AND (expires_at IS NULL OR expires_at > :now);

-- name: use_token
-- A token was used just now.
UPDATE token SET last_used_at = :now WHERE id = :id;

-- name: tokens
-- All tokens, the oldest first.
SELECT id, name, scope, created_at, expires_at, last_used_at FROM token ORDER BY number;

-- name: revoke
-- A token is good no more.
DELETE FROM token WHERE id = :id;

-- name: schedule
-- One schedule.
SELECT
  name, cron, path, zone, version, payload, context, missed, is_on, fired_to, last_slot, last_run, last_error,
  overlap, deadline_s
FROM schedule WHERE name = :name;

-- name: schedules
-- All schedules.
SELECT
  name, cron, path, zone, version, payload, context, missed, is_on, fired_to, last_slot, last_run, last_error,
  overlap, deadline_s
FROM schedule ORDER BY name;

-- name: put_schedule
-- A schedule says this from now on; what it has fired is not forgotten.
INSERT INTO schedule (
  name, cron, path, zone, version, payload, context, missed, is_on, fired_to, last_slot, last_run, last_error,
  overlap, deadline_s
) VALUES (
  :name, :cron, :path, :zone, :version, :payload, :context, :missed, :is_on, :fired_to, :last_slot, :last_run, :last_error,
  :overlap, :deadline_s
)
ON CONFLICT (name) DO UPDATE SET
  cron = excluded.cron, path = excluded.path, zone = excluded.zone, version = excluded.version,
  payload = excluded.payload, context = excluded.context, missed = excluded.missed, is_on = excluded.is_on,
  overlap = excluded.overlap, deadline_s = excluded.deadline_s,
  fired_to = max(schedule.fired_to, excluded.fired_to);

-- name: drop_schedule
-- A schedule is gone.
DELETE FROM schedule WHERE name = :name;

-- name: fired
-- The slots up to a time are dealt with, if nobody else has dealt with them.
UPDATE schedule SET fired_to = :to WHERE name = :name AND fired_to = :before AND :to >= :before;

-- name: fired_slot
-- The same, and this is what became of the last of them.
UPDATE schedule
SET fired_to = :to, last_slot = coalesce(:slot, last_slot), last_run = :run, last_error = :error
WHERE name = :name AND fired_to = :before AND :to >= :before;

-- name: claim_slot
-- What is to become of a slot is decided, unless it has been.
INSERT INTO slot (schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, is_open, revision)
SELECT name, :at, :state, :run, :note, :attempt, :backfill, :at_once, :ended, :is_late, :is_open, 0
FROM schedule WHERE name = :name
ON CONFLICT (schedule, at) DO NOTHING;

-- name: slot
-- What is known of one slot.
SELECT schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, revision
FROM slot WHERE schedule = :name AND at = :at;

-- name: change_slot
-- Something else is known of a slot, if nobody else has learned more of it.
UPDATE slot SET
  state = :state, run = :run, note = :note, attempt = :attempt, backfill = :backfill, at_once = :at_once,
  ended = :ended, is_late = :is_late, is_open = :is_open, revision = revision + 1
WHERE schedule = :name AND at = :at AND revision = :revision;

-- name: slots
-- The newest of the slots in a period.
SELECT schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, revision
FROM slot WHERE schedule = :name AND at >= :since AND at <= :until
ORDER BY at DESC LIMIT :limit;

-- name: open_slots
-- Slots that wait, and slots whose runs are not known to have ended.
SELECT schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, revision
FROM slot WHERE is_open ORDER BY schedule, at;

-- name: trim_slots
-- Of the slots of a schedule, only the newest and the open ones are remembered.
DELETE FROM slot WHERE schedule = :name AND NOT is_open
  AND at < (SELECT at FROM slot WHERE schedule = :name ORDER BY at DESC LIMIT 1 OFFSET :keep);

-- name: hook
-- One hook.
SELECT name, path, version, secret, payload, is_on, context FROM hook WHERE name = :name;

-- name: hooks
-- All hooks.
SELECT name, path, version, secret, payload, is_on, context FROM hook ORDER BY name;

-- name: put_hook
-- A hook says this from now on.
INSERT INTO hook (name, path, version, secret, payload, is_on, context)
VALUES (:name, :path, :version, :secret, :payload, :is_on, :context)
ON CONFLICT (name) DO UPDATE SET
  path = excluded.path, version = excluded.version, secret = excluded.secret, payload = excluded.payload,
  is_on = excluded.is_on, context = excluded.context;

-- name: put_hook_with_its_secret
-- A hook says this from now on, and keeps the secret it has.
UPDATE hook SET path = :path, version = :version, payload = :payload, is_on = :is_on, context = :context
WHERE name = :name AND secret IS NOT NULL;

-- name: drop_hook
-- A hook is gone.
DELETE FROM hook WHERE name = :name;

-- name: alerts
-- All alerts.
SELECT said, created_at FROM alert ORDER BY name;

-- name: put_alert
-- An alert says this from now on.
INSERT INTO alert (name, said, created_at) VALUES (:name, :said, :created_at)
ON CONFLICT (name) DO UPDATE SET said = excluded.said, created_at = excluded.created_at;

-- name: drop_alert
-- An alert is gone.
DELETE FROM alert WHERE name = :name;

-- name: raise_alert
-- Something is to be told, unless it is known already.
INSERT INTO delivery (alert, about, event, state, attempts, next_at, error, at, revision)
SELECT name, :about, :event, :state, :attempts, :next_at, :error, :at, 0
FROM alert WHERE name = :alert
ON CONFLICT (alert, about) DO NOTHING;

-- name: deliveries
-- What is to be told and was, the newest first.
SELECT alert, about, event, state, attempts, next_at, error, at, revision
FROM delivery WHERE (:alert IS NULL OR alert = :alert) AND (:state IS NULL OR state = :state)
ORDER BY at DESC, alert, about LIMIT :limit;

-- name: change_delivery
-- Something else is known of what was told, if nobody else has learned more of it.
UPDATE delivery SET
  state = :state, attempts = :attempts, next_at = :next_at, error = :error, at = :at, revision = revision + 1
WHERE alert = :alert AND about = :about AND revision = :revision;

-- name: trim_deliveries
-- Of what an alert has told only the newest is remembered.
DELETE FROM delivery WHERE alert = :alert AND state <> 'pending'
  AND at < (SELECT at FROM delivery WHERE alert = :alert ORDER BY at DESC LIMIT 1 OFFSET :keep);

-- name: add_loss
-- A lease was lost, if this is not known yet.
INSERT INTO loss (execution_id, key, attempt, number, at, worker, taken_by, is_done)
VALUES (:execution_id, :key, :attempt, :number, :at, :worker, :taken_by, :is_done)
ON CONFLICT (key, attempt, number) DO NOTHING;

-- name: take_loss
-- Somebody has taken what was lost last before this attempt.
UPDATE loss SET taken_by = :worker, is_done = is_done OR :is_done
WHERE (key, attempt, number) = (
  SELECT key, attempt, number FROM loss WHERE key = :key AND attempt < :attempt ORDER BY number DESC LIMIT 1
);

-- name: losses
-- The newest losses.
SELECT execution_id, key, attempt, number, at, worker, taken_by, is_done
FROM loss ORDER BY at DESC, number DESC LIMIT :limit;

-- name: trim_losses
-- Only the newest losses are remembered.
DELETE FROM loss WHERE (at, number) < (
  SELECT at, number FROM loss ORDER BY at DESC, number DESC LIMIT 1 OFFSET :keep
);
