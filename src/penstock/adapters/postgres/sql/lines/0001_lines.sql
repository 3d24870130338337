-- What tools said while they ran. Made by the first process that keeps lines here, under an advisory lock.

-- Numbers are given per execution, from 1 and without gaps, in the transaction that writes the lines: who writes to the same
-- execution waits for the other at the key, so a number that can be seen has no smaller one still to come.
CREATE TABLE run_line (
  execution_id text NOT NULL CHECK (execution_id <> ''),
  number bigint NOT NULL CHECK (number > 0),
  ts float8 NOT NULL,
  scope text NOT NULL,
  task text,
  text text NOT NULL,
  PRIMARY KEY (execution_id, number)
);
