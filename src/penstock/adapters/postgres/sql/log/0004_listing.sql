-- What lists of runs are filtered by, and labels, by which runs are called.

CREATE INDEX execution_status ON execution (status, number);
CREATE INDEX execution_name ON execution (name, number);
CREATE INDEX execution_label ON execution (label, number) WHERE label IS NOT NULL;
CREATE INDEX execution_started ON execution (started_at, number);
