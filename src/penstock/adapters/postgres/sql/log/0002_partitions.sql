-- Which server looks after which part of the executions.

CREATE TABLE server (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  started timestamptz NOT NULL DEFAULT clock_timestamp(),
  lease interval NOT NULL,
  until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- As with `live_holder`: only the clock of this server counts, and after a start of it all have their lease again.
CREATE VIEW live_server AS
SELECT id, name, started
FROM server
WHERE greatest(until, pg_postmaster_start_time() + lease) > clock_timestamp();

-- `epoch` rises with every change of owner. A partition is free when its owner is nobody, or nobody alive.
CREATE TABLE partition_lease (
  partition smallint PRIMARY KEY CHECK (partition BETWEEN 0 AND 255),
  owner uuid,
  epoch bigint NOT NULL DEFAULT 0,
  until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

INSERT INTO partition_lease (partition) SELECT generate_series(0, 255);
