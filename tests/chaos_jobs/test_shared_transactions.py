"""kill -9 at every event of a job whose sub-job is one transaction in PostgreSQL: resumed, each row is there once. Real processes."""

from __future__ import annotations

from pathlib import Path

import psycopg

from tests.chaos.engines import entries_on_disk
from tests.chaos_jobs import trials
from tests.chaos_jobs.zygote import JobZygote
from tests.depth import times
from tests.servers import fresh_schema, postgres_server

__all__ = ["postgres_server"]

KILLED = -9

JOB = """
apiVersion: penstock/v1
kind: Job
metadata: {name: shared}
components:
  count: {type: run_sql, params: {connection: "URL", sql: "UPDATE loads SET n = n + 1", transaction: shared}}
  rows: {type: generate_rows, params: {count: 50, columns: {id: i}}}
  load: {type: write_sql, params: {connection: "URL", table: orders}}
  last: {type: run_sql, params: {connection: "URL", sql: "INSERT INTO sizes SELECT count(*) FROM orders", transaction: shared}}
  each: {type: iterate_range, params: {start: 1, stop: 4}}
  note: {type: run_sql, params: {connection: "URL", sql: "UPDATE loads SET n = n + 100", transaction: shared}}
  more: {type: generate_rows, params: {count: 2, columns: {id: "{{ 1000 * iteration.item }} + i"}}}
  append: {type: write_sql, params: {connection: "URL", table: orders}}
connections:
  data: |
    rows.main -> load.input
    more.main -> append.input
  control: |
    count (ok) rows
    load (ok) last
    last (subjob_ok) each
    each (iterate) note
    note (ok) more
"""


def furnished(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for name, column in (("orders", "id"), ("loads", "n"), ("sizes", "n")):
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(f"CREATE TABLE {name} ({column} int)")
        connection.execute("INSERT INTO loads VALUES (0)")
        connection.execute("DROP TABLE IF EXISTS penstock_effects")  # All trials have the same execution id.


def found(url: str) -> tuple[list[int], list[int], list[int]]:
    with psycopg.connect(url, autocommit=True) as connection:
        orders, loads, sizes = (
            [row[0] for row in connection.execute(f"SELECT * FROM {name} ORDER BY 1")]
            for name in ("orders", "loads", "sizes")
        )
    return orders, loads, sizes


def test_a_job_that_is_killed_at_any_event_and_resumed_has_written_everything_once(
    zygote: JobZygote, folder: Path, postgres_server: str
) -> None:
    with fresh_schema(postgres_server) as url:
        file = folder / "job.yaml"
        file.write_text(JOB.replace("URL", url))

        def start(name: str, **death: int) -> int:
            furnished(url)
            (folder / name).mkdir()
            return int(zygote.call(trials.start, home=str(folder / name), file=str(file), **death).code)

        assert start("whole") == 0
        wanted, events = found(url), entries_on_disk(folder / "whole")
        assert wanted == ([*range(50), 1000, 1001, 2000, 2001, 3000, 3001], [301], [50])
        ended = [at for at, one in enumerate(events, 1) if one.type == "component.ok"]
        commits = [at for at in ended if "commit_" in events[at - 1].scope]
        assert len(commits) == 4
        # The moment that matters most is the one after a commit, when the log does not know of it yet.
        for at in sorted({*ended[1 :: max(1, 10 // times(1))], commits[0], commits[2]}):
            home = folder / f"killed-{at}"
            assert start(home.name, recorded=at) == KILLED
            resumed = zygote.call(trials.resume, home=str(home))
            assert (resumed.code, resumed.value["status"]) == (0, "completed"), resumed
            assert found(url) == wanted, f"killed at event {at}"
