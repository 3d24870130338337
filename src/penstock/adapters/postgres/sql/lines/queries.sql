-- name: append
-- Lines of several executions, numbered on from what each has.
INSERT INTO run_line (execution_id, number, ts, scope, task, text)
SELECT
  said.execution_id,
  coalesce((SELECT max(number) FROM run_line AS before WHERE before.execution_id = said.execution_id), 0)
    + row_number() OVER (PARTITION BY said.execution_id ORDER BY said.place),
  said.ts, said.scope, said.task, said.text
FROM unnest(%s::text[], %s::float8[], %s::text[], %s::text[], %s::text[])
  WITH ORDINALITY AS said (execution_id, ts, scope, task, text, place);

-- name: read
-- The next lines of an execution.
SELECT ts, scope, task, text FROM run_line WHERE execution_id = %s AND number > %s ORDER BY number LIMIT %s;

-- name: count
-- How many lines an execution has: the number of its last one.
SELECT coalesce(max(number), 0) FROM run_line WHERE execution_id = %s;

-- name: drop
-- All lines of some executions.
DELETE FROM run_line WHERE execution_id = ANY(%s);
