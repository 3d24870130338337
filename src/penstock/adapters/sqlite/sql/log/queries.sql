-- Every statement the SQLite log runs, each with its name and the sentence that is true of it.

-- name: schema_version
-- The highest schema file that has been applied to this database.
SELECT max(version) FROM schema_version;

-- name: record_version
-- A schema file has been applied.
INSERT INTO schema_version (version) VALUES (?);

-- name: table_names
-- What is in the database, to tell a new one from one of another program.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%';

-- name: create_execution
-- Register an execution; its id is refused by the UNIQUE constraint when it exists.
INSERT INTO execution (id, kind, name, path, digest, status, started_at, ended_at, label, trace_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
RETURNING key;

-- name: create_document
-- Pin the document an execution runs.
INSERT INTO document (execution, body) VALUES (?, ?);

-- name: submitted
-- The execution that was made under a submission key.
SELECT x.id FROM submission AS s JOIN execution AS x ON x.key = s.execution WHERE s.key = ?;

-- name: submit
-- A submission key has made its execution.
INSERT INTO submission (key, execution) VALUES (?, ?);

-- name: claim
-- A new owner under a new epoch, which fences out the one before.
UPDATE execution SET epoch = epoch + 1, owner = ? WHERE id = ? AND NOT forgotten RETURNING epoch;

-- name: release
-- The owner under this epoch has stopped; one who has been replaced releases nothing.
UPDATE execution SET owner = NULL WHERE id = ? AND epoch = ?;

-- name: standing
-- Where an execution stands, asked inside the transaction that appends to it.
SELECT
  x.key,
  x.epoch,
  x.owner,
  (SELECT e.place - (x.key << 36) FROM event AS e
   WHERE e.place > (x.key << 36) AND e.place < ((x.key + 1) << 36)
   ORDER BY e.place DESC LIMIT 1) AS last_seq
FROM execution AS x
WHERE x.id = ? AND NOT x.forgotten;

-- name: last_time
-- When the last entry of an execution was made, or the execution itself while it has none.
SELECT coalesce(
  (SELECT e.ts FROM event AS e
   WHERE e.place > (x.key << 36) AND e.place < ((x.key + 1) << 36)
   ORDER BY e.place DESC LIMIT 1),
  x.started_at)
FROM execution AS x
WHERE x.key = ?;

-- name: insert_entries
-- The head of a statement that inserts many entries at once; the rows are put behind it.
INSERT INTO event (place, ts, type, scope, task, clock, cause, source, worker, payload, checksum) VALUES;

-- name: change_status
-- An execution's status, in the commit of the entries that say why.
UPDATE execution SET status = ?, ended_at = ? WHERE key = ?;

-- name: read_page
-- The next entries of an execution in order, up to the one that was the last when reading began.
SELECT place - ?1, ts, type, scope, task, clock, cause, source, worker, payload, checksum
FROM event WHERE place > ?1 + ?2 AND place <= ?1 + ?3 ORDER BY place LIMIT ?4;

-- name: header
-- One execution as the list of runs shows it.
SELECT
  x.id, x.kind, x.name, x.path, x.digest, x.status, x.started_at, x.ended_at,
  coalesce((SELECT e.place - (x.key << 36) FROM event AS e
    WHERE e.place > (x.key << 36) AND e.place < ((x.key + 1) << 36)
    ORDER BY e.place DESC LIMIT 1), 0) AS last_seq,
  x.label, x.trace_id
FROM execution AS x
WHERE x.id = ? AND NOT x.forgotten;

-- name: headers
-- The newest executions first. `{filters}` are the conditions below, of the values that are given.
SELECT
  x.id, x.kind, x.name, x.path, x.digest, x.status, x.started_at, x.ended_at,
  coalesce((SELECT e.place - (x.key << 36) FROM event AS e
    WHERE e.place > (x.key << 36) AND e.place < ((x.key + 1) << 36)
    ORDER BY e.place DESC LIMIT 1), 0) AS last_seq,
  x.label, x.trace_id
FROM execution AS x
WHERE NOT x.forgotten{filters}
ORDER BY x.key DESC
LIMIT :limit;

-- name: headers.after
-- Registered before this one.
x.key < (SELECT o.key FROM execution AS o WHERE o.id = :after);

-- name: headers.status
-- In this status.
x.status = :status;

-- name: headers.name
-- With this name or label.
(x.name = :name OR x.label = :name);

-- name: headers.since
-- Started then or later. Clocks jump, so the key of the oldest bounds the search, and the time itself decides.
-- The plus keeps the planner from walking all keys in order until it meets the first.
x.key >= (SELECT min(+o.key) FROM execution AS o WHERE o.started_at >= :since) AND x.started_at >= :since;

-- name: headers.until
-- Started then or earlier. As above, from the other end.
x.key <= (SELECT max(+o.key) FROM execution AS o WHERE o.started_at <= :until) AND x.started_at <= :until;

-- name: headers.kind
-- Of this kind.
x.kind = :kind;

-- name: headers.label
-- With this label.
x.label = :label;

-- name: headers.text
-- With this text somewhere.
(instr(lower(x.name), :text) OR instr(lower(x.id), :text) OR instr(lower(x.path), :text)
  OR instr(lower(coalesce(x.label, '')), :text));

-- name: named
-- The executions that a label or the beginning of an id can mean, the newest first.
SELECT
  x.id, x.kind, x.name, x.path, x.digest, x.status, x.started_at, x.ended_at,
  coalesce((SELECT e.place - (x.key << 36) FROM event AS e
    WHERE e.place > (x.key << 36) AND e.place < ((x.key + 1) << 36)
    ORDER BY e.place DESC LIMIT 1), 0) AS last_seq,
  x.label, x.trace_id
FROM execution AS x
WHERE NOT x.forgotten AND (x.label = :name OR (x.id >= :name AND x.id < :name || char(1114111)))
ORDER BY x.key DESC
LIMIT :limit;

-- name: unfinished
-- The executions that somebody should be working on, oldest first.
SELECT id FROM execution WHERE status = 'running' AND NOT forgotten ORDER BY key;

-- name: document
-- The document an execution is pinned to.
SELECT d.body FROM execution AS x JOIN document AS d ON d.execution = x.key WHERE x.id = ? AND NOT x.forgotten;

-- name: ask
-- Leave a request for the owner of an execution, whoever that is.
INSERT INTO request (execution, what, payload)
SELECT key, ?2, ?3 FROM execution WHERE id = ?1 AND NOT forgotten;

-- name: asked
-- The requests an execution's owner has not answered yet, oldest first.
SELECT r.number, x.id, r.what, r.payload
FROM execution AS x JOIN request AS r ON r.execution = x.key
WHERE x.id = ? AND NOT x.forgotten
ORDER BY r.number;

-- name: asked_of_all
-- The requests that no owner has answered yet, oldest first.
SELECT r.number, x.id, r.what, r.payload
FROM execution AS x JOIN request AS r ON r.execution = x.key
WHERE NOT x.forgotten
ORDER BY r.number;

-- name: answered
-- A request is a letter, not a fact: once answered it goes, and what came of it is in the entries.
DELETE FROM request WHERE number = ?;

-- name: ended_before
-- Executions that ended before a time and may be pruned, the earliest first.
SELECT id FROM execution
WHERE status IN ('completed', 'failed', 'cancelled') AND ended_at < ? AND NOT forgotten
ORDER BY ended_at, key
LIMIT ?;

-- name: is_ended
-- An execution that ended before a time.
SELECT 1 FROM execution
WHERE id = ? AND status IN ('completed', 'failed', 'cancelled') AND ended_at < ? AND NOT forgotten;

-- name: mark_forgotten
-- From here on nobody sees the execution, and its id is free; its entries go in many small transactions.
UPDATE execution SET forgotten = 1, id = id || ' forgotten ' || key WHERE id = ? AND NOT forgotten RETURNING key;

-- name: forget_submissions
-- The submission keys of an execution that is forgotten may be used anew.
DELETE FROM submission WHERE execution = ?;

-- name: forgotten
-- Executions whose forgetting has begun and not ended, perhaps in a process that died, with the last entry left of each.
SELECT
  x.key,
  coalesce((SELECT e.place - (x.key << 36) FROM event AS e
    WHERE e.place > (x.key << 36) AND e.place < ((x.key + 1) << 36)
    ORDER BY e.place DESC LIMIT 1), 0) AS last_seq
FROM execution AS x
WHERE x.forgotten
ORDER BY x.key;

-- name: delete_entries
-- Some of a forgotten execution's entries: few enough that other writers wait only a moment.
DELETE FROM event WHERE place > (?1 << 36) + ?2 AND place <= (?1 << 36) + ?3;

-- name: delete_execution
-- The last of a forgotten execution: its row, and with it by cascade its document and requests.
DELETE FROM execution WHERE key = ? AND forgotten;

-- name: kept
-- What a document keeps between runs, or all do.
SELECT document, kind, key, value, run, changed_at, lost_run, lost_value
FROM kept WHERE :document IS NULL OR document = :document ORDER BY document, kind, key;

-- name: kept_one
-- One value of it.
SELECT document, kind, key, value, run, changed_at, lost_run, lost_value
FROM kept WHERE document = :document AND kind = :kind AND key = :key;

-- name: keep
-- A document keeps this from now on.
INSERT INTO kept (document, kind, key, value, run, changed_at, lost_run, lost_value)
VALUES (:document, :kind, :key, :value, :run, :changed_at, :lost_run, :lost_value)
ON CONFLICT (document, kind, key) DO UPDATE SET
  value = excluded.value, run = excluded.run, changed_at = excluded.changed_at,
  lost_run = excluded.lost_run, lost_value = excluded.lost_value;

-- name: drop_kept
-- A document keeps this no more.
DELETE FROM kept WHERE document = :document
  AND (:kind IS NULL OR kind = :kind) AND (:key IS NULL OR key = :key);

-- name: snapshot
-- The last view of a run in a format, at an entry or before it.
SELECT s.seq, s.data FROM execution AS x JOIN snapshot AS s ON s.execution = x.key
WHERE x.id = ?1 AND NOT x.forgotten AND s.format = ?2 AND s.seq <= ?3
ORDER BY s.seq DESC LIMIT 1;

-- name: keep_snapshot
-- A reader has a view of a run at an entry.
INSERT INTO snapshot (execution, format, seq, data)
SELECT key, ?2, ?3, ?4 FROM execution WHERE id = ?1 AND NOT forgotten
ON CONFLICT (execution, format, seq) DO NOTHING;
