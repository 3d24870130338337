-- A client's key makes an execution once; the executions that servers must look after are found without reading all.

CREATE TABLE submission (
  key TEXT PRIMARY KEY,
  execution INTEGER NOT NULL REFERENCES execution (key) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE INDEX submission_execution ON submission (execution);

CREATE INDEX execution_unfinished ON execution (key) WHERE status = 'running' AND NOT forgotten;
