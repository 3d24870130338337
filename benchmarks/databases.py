"""Rows out of and into PostgreSQL: jobs, and the same work by hand in the fastest way there is. Each has its own server.

What a process loads for its first run is measured by `start`, and is no part of these: a small job has run before.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.fleet_scene import postgres
from benchmarks.jobs import run_job, timed

COLUMNS = "id bigint PRIMARY KEY, name text, place int, amount numeric(12,2), day timestamp, is_new boolean"
MADE = (
    "SELECT i::bigint AS id, 'customer ' || i AS name, (i % 100)::int AS place, (i * 1.37)::numeric(12,2) AS amount, "
    "timestamp '2024-01-01' + i * interval '1 minute' AS day, i % 2 = 0 AS is_new"
)
READ = """\
job_config: {{ memory_limit: {memory} }}
components:
  - {{ name: rows, type: read_sql, params: {{ connection: "{url}", table: orders }} }}
  - {{ name: out, type: write_parquet, params: {{ path: orders.parquet }} }}
connections: {{ data: rows.main -> out.input }}
"""
WRITE = """\
job_config: {{ memory_limit: {memory} }}
components:
  - {{ name: rows, type: read_parquet, params: {{ path: given.parquet }} }}
  - name: out
    type: write_sql
    params: {{ connection: "{url}", table: orders, mode: {mode}, keys: [id] }}
connections: {{ data: rows.main -> out.input }}
"""

INSIDE = """\
job_config: {{ engine: {{ kind: database, connection: home }} }}
components:
  - {{ name: orders, type: read_sql, params: {{ connection: home, table: orders }} }}
  - {{ name: paid, type: filter, params: {{ where: "amount > 100 AND is_new" }} }}
  - name: totals
    type: aggregate
    params: {{ by: [place], measures: {{ total: sum(amount), n: count(*), last: max(day) }} }}
  - {{ name: out, type: write_sql, params: {{ connection: home, table: totals, mode: upsert, keys: [place] }} }}
connections:
  home: {{ kind: postgres, url: "{url}" }}
  data: |
    orders.main -> paid.input
    paid.main -> totals.input
    totals.main -> out.input
"""
TOTALS = "place int PRIMARY KEY, total numeric(20,2), n bigint, last timestamp"
_PAID = "SELECT * FROM {} WHERE amount > 100 AND is_new"
_SUMMED = "SELECT place, sum(amount) AS total, count(*) AS n, max(day) AS last FROM {} GROUP BY place"
_PUT = (
    "INSERT INTO totals SELECT * FROM {} AS summed WHERE true ON CONFLICT (place) "
    "DO UPDATE SET total = excluded.total, n = excluded.n, last = excluded.last"
)

FIRST = """\
components:
  - { name: rows, type: fixed_rows, params: { columns: [id], rows: [[1]] } }
  - { name: there, type: write_sql, params: { connection: "duckdb:///few.duckdb", table: few, create: true } }
  - { name: few, type: write_parquet, params: { path: few.parquet } }
  - { name: read, type: read_parquet, params: { path: few.parquet } }
  - { name: back, type: read_sql, params: { connection: "duckdb:///few.duckdb", table: few } }
  - { name: seen, type: log_rows }
  - { name: also, type: log_rows }
connections:
  data: |
    rows.main -> there.input
    there.main -> few.input
    read.main -> seen.input
    back.main -> also.input
  control: |
    rows (subjob_ok) read
    rows (subjob_ok) back
"""

PLENTY, LITTLE = "4GB", "128MB"
"""The engine keeps rows in memory up to a limit, and then on disk: only with little of it can growth of anything else be seen."""
Said = dict[str, float]


def measured(folder: Path, text: str, count: int) -> Said:
    first = folder / "first"
    first.mkdir()
    run_job(first, FIRST, 1)
    return run_job(folder, text, count)


def read(folder: Path, count: int, memory: str = PLENTY) -> Said:
    with postgres(folder / "pg") as url:
        _fill(url, count)
        said = measured(folder, READ.format(url=url, memory=memory), count)
    _check_file(folder / "orders.parquet", count)
    return said


def read_by_hand(folder: Path, count: int) -> Said:
    import adbc_driver_manager as adbc
    import adbc_driver_postgresql
    import duckdb

    out = folder / "orders.parquet"
    with postgres(folder / "pg") as url:
        _fill(url, count)

        def work() -> None:
            with adbc_driver_postgresql.connect(url) as database, adbc.AdbcConnection(database) as connection:
                statement = adbc.AdbcStatement(connection)
                statement.set_sql_query("SELECT * FROM orders")
                stream, _ = statement.execute_query()
                with duckdb.connect() as duck:
                    duck.register("rows", stream.__arrow_c_stream__())
                    exact = "* REPLACE (CAST(amount AS DECIMAL(12,2)) AS amount)"
                    duck.execute(f"COPY (SELECT {exact} FROM rows) TO '{out}' (FORMAT parquet)")
                statement.close()

        said = timed(work, count)
    _check_file(out, count)
    return said


def read_in_little(folder: Path, count: int) -> Said:
    return read(folder, count, LITTLE)


def insert(folder: Path, count: int, memory: str = PLENTY) -> Said:
    def work(url: str) -> Said:
        return measured(folder, WRITE.format(url=url, mode="insert", memory=memory), count)

    return _write(folder, count, 0, work)


def insert_in_little(folder: Path, count: int) -> Said:
    return insert(folder, count, LITTLE)


def insert_by_hand(folder: Path, count: int) -> Said:
    return _write(folder, count, 0, lambda url: timed(lambda: _copied(url, folder), count))


def upsert(folder: Path, count: int) -> Said:
    """Half of the rows are there already."""

    def work(url: str) -> Said:
        return measured(folder, WRITE.format(url=url, mode="upsert", memory=PLENTY), count)

    return _write(folder, count, count // 2, work)


def upsert_by_hand(folder: Path, count: int) -> Said:
    names = ("name", "place", "amount", "day", "is_new")
    change = ", ".join(f"{name} = excluded.{name}" for name in names)
    then = f"INSERT INTO orders SELECT * FROM stage ON CONFLICT (id) DO UPDATE SET {change}"
    return _write(folder, count, count // 2, lambda url: timed(lambda: _copied(url, folder, then), count))


def inside(folder: Path, count: int) -> Said:
    """Read, filter, sum up and upsert, all of it inside the database."""
    return _inside(folder, count, lambda url: measured(folder, INSIDE.format(url=url), count))


def inside_step_by_step(folder: Path, count: int) -> Said:
    """What the engine does, by hand: the rows as they were when they were read, and what came of them."""
    return _inside(
        folder,
        count,
        lambda url: timed(
            lambda: _each(
                url,
                "CREATE UNLOGGED TABLE read_orders AS SELECT * FROM orders",
                "CREATE UNLOGGED TABLE summed AS WITH paid AS MATERIALIZED ("
                + _PAID.format("read_orders")
                + ") "
                + _SUMMED.format("paid"),
                "SELECT count(*) FROM read_orders WHERE amount > 100 AND is_new",
                _PUT.format("(SELECT * FROM summed)"),
                "DROP TABLE read_orders, summed",
            ),
            count,
        ),
    )


def inside_at_once(folder: Path, count: int) -> Said:
    """The least that can be done: one statement, which counts nothing on its way."""
    statement = _PUT.format("(" + _SUMMED.format("(" + _PAID.format("orders") + ") AS paid") + ")")
    return _inside(folder, count, lambda url: timed(lambda: _each(url, statement), count))


def _each(url: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _inside(folder: Path, count: int, work: Callable[[str], Said]) -> Said:
    with postgres(folder / "pg") as url:
        _fill(url, count)
        _asked(url, f"CREATE TABLE totals ({TOTALS})")
        said = work(url)
        found = _asked(url, "SELECT sum(n) FROM totals")
        expected = _asked(url, "SELECT count(*) FROM orders WHERE amount > 100 AND is_new")
    assert found == expected, found
    return said


def _copied(url: str, folder: Path, then: str | None = None) -> None:
    import duckdb
    import psycopg

    with duckdb.connect() as duck:
        duck.execute(f"COPY (FROM '{folder / 'given.parquet'}') TO '{folder / 'given.csv'}' (FORMAT csv, HEADER false)")
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        if then is not None:
            cursor.execute("CREATE TEMP TABLE stage ON COMMIT DROP AS SELECT * FROM orders WITH NO DATA")
        into = b"orders" if then is None else b"stage"
        with (
            cursor.copy(b"COPY " + into + b" FROM STDIN (FORMAT csv)") as copy,
            (folder / "given.csv").open("rb") as file,
        ):
            while piece := file.read(1 << 18):
                copy.write(piece)
        if then is not None:
            cursor.execute(then.encode())


def _write(folder: Path, count: int, there: int, work: Callable[[str], Said]) -> Said:
    import duckdb

    with duckdb.connect() as duck:
        made = f"{MADE} FROM range({count}) AS r(i)"
        duck.execute(f"COPY ({made}) TO '{folder / 'given.parquet'}' (FORMAT parquet)")
    with postgres(folder / "pg") as url:
        _fill(url, there)
        said = work(url)
        found = _asked(url, "SELECT count(*) FROM orders")
    assert found == count, found
    return said


def _fill(url: str, count: int) -> None:
    _asked(url, f"CREATE TABLE orders ({COLUMNS})")
    _asked(url, f"INSERT INTO orders {MADE} FROM generate_series(0, {count - 1}) AS r(i)")
    _asked(url, "VACUUM ANALYZE orders")


def _asked(url: str, text: str) -> Any:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(text.encode())
        row = found.fetchone() if found.description else None
        return row[0] if row else None


def _check_file(path: Path, count: int) -> None:
    import duckdb

    with duckdb.connect() as duck:
        (found,) = duck.execute(f"SELECT count(*) FROM '{path}'").fetchone() or (0,)
    assert found == count, found


PROBES: dict[str, Callable[..., Said]] = {
    "sql-read": read,
    "sql-read-in-little": read_in_little,
    "sql-read-by-hand": read_by_hand,
    "sql-insert": insert,
    "sql-insert-in-little": insert_in_little,
    "sql-insert-by-hand": insert_by_hand,
    "sql-upsert": upsert,
    "sql-upsert-by-hand": upsert_by_hand,
    "sql-inside": inside,
    "sql-inside-step-by-step": inside_step_by_step,
    "sql-inside-at-once": inside_at_once,
}
