"""Readers with `incremental`: each run reads what the last completed one has not."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pymysql
import pytest

from penstock.app.embedded import embedded
from tests.jobs import Ran, problems, resume_job, run_job
from tests.servers import mariadb_server, mariadb_url, postgres_server, postgres_url
from tests.tools.databases import opened

__all__ = ["mariadb_server", "mariadb_url", "postgres_server", "postgres_url"]

JOB = """
metadata: {name: load}
components:
  - name: read
    type: TYPE
    params: {PARAMS, incremental: {INCREMENTAL}}
    schema: {id: integer, at: timestamp}
  - name: write
    type: write_csv
    params: {path: out.csv, append: true}
connections: {data: "read.main -> write.input"}
"""


def job(params: str = "path: in.csv", incremental: str = "column: at", kind: str = "read_csv") -> str:
    return JOB.replace("TYPE", kind).replace("PARAMS", params).replace("INCREMENTAL", incremental)


def marks(home: Path) -> dict[str, Any]:
    async def main() -> dict[str, Any]:
        engine = embedded(home / ".penstock")
        try:
            return {one.key: one.value for one in engine.log.kept() if one.kind == "watermark"}
        finally:
            await engine.close()

    return asyncio.run(main())


def lines(home: Path, *rows: str) -> None:
    with (home / "in.csv").open("a") as file:
        if file.tell() == 0:
            file.write("id,at\n")
        file.writelines(f"{row}\n" for row in rows)


def read(ran: Ran, name: str = "read") -> Any:
    assert ran.status == "completed", ran.error
    return ran.component(name)["rows_out"]["main"]


def test_each_run_reads_what_is_above_the_watermark(tmp_path: Path) -> None:
    lines(tmp_path, "1,2026-01-01T00:00:00", "2,2026-01-02T00:00:00")
    assert read(run_job(job(), tmp_path)) == 2
    assert marks(tmp_path) == {"read": "2026-01-02T00:00:00.000000"}
    lines(
        tmp_path, "3,2026-01-03T12:00:00.5", "4,2026-01-02T00:00:00", "5,"
    )  # new; the same moment again; without a time
    second = run_job(job(), tmp_path, execution_id="run-2")
    assert read(second) == 1
    assert second.payloads("job.started")[0]["state"]["watermarks"] == {"read": "2026-01-02T00:00:00.000000"}
    assert marks(tmp_path) == {"read": "2026-01-03T12:00:00.500000"}
    assert read(run_job(job(), tmp_path, execution_id="run-3")) == 0
    assert marks(tmp_path) == {"read": "2026-01-03T12:00:00.500000"}


def test_the_first_run_begins_at_the_start_and_later_ones_look_back(tmp_path: Path) -> None:
    lines(tmp_path, "1,2026-01-01T00:00:00", "2,2026-01-02T00:00:00", "3,2026-01-03T00:00:00")
    text = job(incremental="column: AT, start: 2026-01-01T00:00:00, lookback: 25h")
    assert read(run_job(text, tmp_path)) == 2
    assert read(run_job(text, tmp_path, execution_id="run-2")) == 2  # the third, and the second within the 25 hours


@pytest.mark.parametrize(
    ("column", "first", "second", "mark"),
    [("id", "1,", "2,", 2), ("at", "1,2026-01-01", "2,2026-02-01", "2026-02-01T00:00:00.000000")],
)
def test_numbers_and_dates_are_watermarks(tmp_path: Path, column: str, first: str, second: str, mark: Any) -> None:
    lines(tmp_path, first)
    assert read(run_job(job(incremental=f"column: {column}"), tmp_path)) == 1
    lines(tmp_path, second)
    assert read(run_job(job(incremental=f"column: {column}"), tmp_path, execution_id="run-2")) == 1
    assert marks(tmp_path) == {"read": mark}


def test_a_column_that_is_not_there_is_an_error_that_names_the_near_one(tmp_path: Path) -> None:
    """Before the run where the columns are known, else in it."""
    lines(tmp_path, "1,2026-01-01")
    (found,) = problems(job(incremental="column: att"), tmp_path)
    assert (found.code, found.label) == ("J0601", "did you mean `at`?")
    ran = run_job(
        job("path: \"{{ global.where | default('in.csv') }}\"", "column: att").replace(
            "    schema: {id: integer, at: timestamp}\n", ""
        ),
        tmp_path,
    )
    assert (ran.status, "did you mean `at`?" in ran.error["message"]) == ("failed", True)


def test_a_lookback_that_is_no_time_is_told_of_before_the_run(tmp_path: Path) -> None:
    lines(tmp_path, "1,2026-01-01")
    (found,) = problems(job(incremental="column: at, lookback: one day"), tmp_path)
    assert (found.code, "`one day` is not a time" in found.message) == ("J0501", True)


WRITES = """
metadata: {name: load}
components:
  - name: read
    type: read_csv
    params: {path: in.csv, incremental: {column: at}}
    schema: {id: integer, at: timestamp}
  - name: write
    type: write_csv
    params: {path: there/out.csv}
MORE
connections: {data: "read.main -> write.input" CONTROL}
"""
PLAIN = WRITES.replace("MORE\n", "").replace(" CONTROL", "")
HANDLED = WRITES.replace("MORE", "  - name: after\n    type: noop").replace(
    " CONTROL", ', control: "read (subjob_error) after"'
)


def test_a_failed_run_leaves_the_watermark_and_its_resume_reads_from_the_same(tmp_path: Path) -> None:
    lines(tmp_path, "1,2026-01-01T00:00:00")
    (tmp_path / "there").touch()  # A file stands where the folder should be.
    assert run_job(PLAIN, tmp_path).status == "failed"
    assert marks(tmp_path) == {}
    (tmp_path / "there").unlink()
    (tmp_path / "there").mkdir()
    again = resume_job(tmp_path)
    assert again.status == "completed", again.error
    assert marks(tmp_path) == {"read": "2026-01-01T00:00:00.000000"}


def test_a_reader_whose_sub_job_failed_leaves_its_watermark_though_the_job_completes(tmp_path: Path) -> None:
    lines(tmp_path, "1,2026-01-01T00:00:00")
    (tmp_path / "there").touch()
    ran = run_job(HANDLED, tmp_path)
    assert (ran.status, ran.states()["write"]) == ("completed", "ERROR"), ran.error
    assert marks(tmp_path) == {}


EACH = """
metadata: {name: each}
components:
  - name: files
    type: iterate_list
    params: {items: [a, b]}
  - name: read
    type: read_csv
    params: {path: "{{ iteration.item }}.csv", incremental: {column: id KEY}}
  - name: show
    type: log_rows
connections:
  data: "read.main -> show.input"
  control: "files (iterate) read"
"""


def test_in_the_body_of_an_iterator_each_key_has_a_watermark_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    (tmp_path / "b.csv").write_text("id\n7\n")
    ran = run_job(EACH.replace(" KEY", ", key: '{{ iteration.item }}'"), tmp_path)
    assert ran.status == "completed", ran.error
    assert marks(tmp_path) == {"read/a": 2, "read/b": 7}
    refused = run_job(EACH.replace(" KEY", ""), tmp_path, execution_id="run-2")
    assert (refused.status, "needs a `key`" in str(refused.error)) == ("failed", True)


def test_rows_of_sqlite_are_read_from_where_the_last_run_ended(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE orders (id INTEGER, at TIMESTAMP)")
        database.execute("INSERT INTO orders VALUES (1, '2026-01-01 08:00:00'), (2, '2026-01-01 09:00:00')")
    text = job("connection: 'sqlite:///shop.db', table: orders", kind="read_sql")
    assert read(run_job(text, tmp_path)) == 2
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("INSERT INTO orders VALUES (3, '2026-01-01 09:30:00')")
    assert read(run_job(text, tmp_path, execution_id="run-2")) == 1


# The type of a time, and what fails when it is given a row that was read before.
SERVERS = {
    "postgres": ("timestamp", "1 / (id - id)"),
    "postgres-zoned": ("timestamptz", "1 / (id - id)"),
    "mysql": ("datetime(6)", "(SELECT 1 UNION ALL SELECT id)"),
    "mysql-zoned": ("timestamp(6) NULL", "(SELECT 1 UNION ALL SELECT id)"),
    "duckdb": ("timestamp", "error('an old row')"),
    "duckdb-zoned": ("timestamptz", "error('an old row')"),
}


@pytest.mark.parametrize(
    ("server", "column", "source"),
    [
        *((server, "at", "table: orders") for server in SERVERS),
        *((server, "id", "query: 'SELECT * FROM orders; '") for server in ("postgres", "mysql", "duckdb")),
    ],
)
def test_a_database_leaves_out_what_was_read_before(
    tmp_path: Path, request: pytest.FixtureRequest, source: str, server: str, column: str
) -> None:
    kind, trap = SERVERS[server]
    zone, at = "+00" if kind == "timestamptz" else "", "`at`" if "mysql" in server else '"at"'
    with opened(server.partition("-")[0], request, tmp_path) as database:
        database.do(f"CREATE TABLE orders (id bigint, {at} {kind})")
        database.do(f"INSERT INTO orders VALUES (1, '2026-01-01 08:00:00.000001{zone}'), (2, NULL)")
        where = database.names.get("url") or f"duckdb:///{database.names['path']}"
        text = job(f"connection: '{where}', {source}", incremental=f"column: {column}", kind="read_sql")
        text = text.replace("at: timestamp", "at: timestamptz") if zone else text
        assert read(run_job(text, tmp_path)) == 2
        database.do(f"INSERT INTO orders VALUES (3, '2026-01-01 08:00:00.000002{zone}')")
        # Whoever is given an old row fails: the database itself has to leave these out.
        database.do("ALTER TABLE orders RENAME TO all_orders")
        trapped = f"SELECT id, {at}, CASE WHEN id < 3 THEN {trap} ELSE 0 END AS trap FROM all_orders"
        database.do(f"CREATE VIEW orders AS {trapped}")
        with pytest.raises((psycopg.Error, pymysql.MySQLError, duckdb.Error)):
            database.do("SELECT * FROM orders")
        assert read(run_job(text, tmp_path, execution_id="run-2")) == 1
        if server in ("postgres", "mysql", "duckdb") and column == "at":
            assert read(run_job(text, tmp_path, execution_id="run-3")) == 0
