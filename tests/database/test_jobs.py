"""Jobs whose rows stay in the database that has the tables: PostgreSQL, and a DuckDB file."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import penstock
from penstock.components.registry import ComponentRegistry
from penstock.data.database.postgres import PostgresEngine
from penstock.dialects.job.compile import compile_text
from penstock.dialects.job.plan import plan, plan_text
from penstock.ports.rows import Column, OwnQuery, RowsFailed
from tests.cases import cases
from tests.database.conftest import server_at

REGISTRY = ComponentRegistry(with_lineage=False)
ORDERS = "CREATE TABLE orders (id bigint, city text, amount numeric(10,2), day date)"
ROW = "SELECT i, CASE WHEN i % 7 > 0 THEN 'City ' || (i % 5) END, i * 1.5, DATE '2024-01-01' + CAST(i % 30 AS integer)"


@dataclass
class Home:
    """A database with orders in it."""

    connection: str
    """As the document describes it."""
    ask: Callable[[str], Any]


@pytest.fixture
def in_server(postgres_url: str) -> Home:
    def ask(text: str) -> Any:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else None

    ask(ORDERS)
    ask(f"INSERT INTO orders {ROW} FROM generate_series(1, 1000) AS r(i)")
    return Home(f'{{ kind: postgres, url: "{postgres_url}" }}', ask)


@pytest.fixture
def in_file(tmp_path: Path) -> Home:
    def ask(text: str) -> Any:
        with duckdb.connect(tmp_path / "home.duckdb") as connection:
            return connection.execute(text).fetchall()

    ask(ORDERS)
    ask(f"INSERT INTO orders {ROW} FROM range(1, 1001) AS r(i)")
    return Home("{ kind: duckdb, path: home.duckdb }", ask)


@pytest.fixture(params=["in_server", "in_file"])
def home(request: pytest.FixtureRequest) -> Home:
    found: Home = request.getfixturevalue(request.param)
    return found


JOB = """
metadata: {{ name: totals }}
context: {{ engine: {{ kind: database, connection: home }} }}
job_config: {{ engine: "{{{{ context.engine }}}}" }}
connections:
  home: {connection}
  data: |
    orders.main -> paid.input
    paid.main -> totals.input
    totals.main -> out.input
components:
  - {{ name: orders, type: read_sql, params: {{ connection: home, table: orders }} }}
  - {{ name: paid, type: filter, params: {{ where: "{where}" }} }}
  - {{ name: totals, type: aggregate, params: {{ by: [city], measures: {{ total: sum(amount), orders: count(*), last: max(day) }} }} }}
  - {{ name: out, type: write_sql, params: {{ connection: home, table: totals, {mode} }} }}
"""


def run(folder: Path, text: str, **more: Any) -> Any:
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return penstock.run(path, home=folder / ".penstock", **more)


def counts(run: Any) -> dict[str, dict[str, int]]:
    ends = [event for event in run.events() if event["event_type"] == "component.ok"]
    return {end["scope"]: {port: one["rows"] for port, one in end["payload"]["outputs"].items()} for end in ends}


def test_the_engine_is_chosen_by_the_context_and_nothing_else_changes(home: Home, tmp_path: Path) -> None:
    text = JOB.format(connection=home.connection, where="amount > 10", mode="mode: replace")
    there = run(tmp_path, text)
    assert there.status == "completed", there.error
    found = sorted(home.ask("SELECT * FROM totals"), key=str)
    here = run(tmp_path, text, inputs={"engine": "duckdb"})
    assert here.status == "completed", here.error
    assert sorted(home.ask("SELECT * FROM totals"), key=str) == found
    assert len(found) == 6
    assert counts(there) == counts(here)
    assert counts(there)["orders"] == {"main": 1000}
    assert counts(there)["paid"] == {"main": 994}


LISTS = """
metadata: {{ name: lists }}
job_config: {{ engine: {{ kind: database, connection: home }} }}
connections:
  home: {connection}
  data: given.main -> out.input
components:
  - {{ name: given, type: read_sql, params: {{ connection: home, table: given }} }}
  - {{ name: out, type: write_sql, params: {{ connection: home, table: made, mode: replace }} }}
"""


def test_lists_are_written_into_a_table_that_is_made(home: Home, tmp_path: Path) -> None:
    home.ask(
        "CREATE TABLE given AS SELECT 1 AS id, ARRAY[1, NULL, 3] AS a, ARRAY[1.50, 2.25] AS n, ARRAY['a,b', NULL] AS t"
    )
    done = run(tmp_path, LISTS.format(connection=home.connection))
    assert done.status == "completed", done.error
    assert home.ask("SELECT id, a, t FROM made") == [(1, [1, None, 3], ["a,b", None])]
    assert home.ask("SELECT CAST(CAST(n AS varchar[]) AS varchar) FROM made") == home.ask(
        "SELECT CAST(CAST(n AS varchar[]) AS varchar) FROM given"
    )


def test_nothing_of_a_run_stays_in_the_database(home: Home, tmp_path: Path) -> None:
    done = run(tmp_path, JOB.format(connection=home.connection, where="amount > 10", mode="mode: replace"))
    assert done.status == "completed", done.error
    tables = home.ask(
        "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'penstock%' AND table_schema = current_schema()"
    )
    assert tables == []


CHANGES = {
    "insert": ("", "mode: insert"),
    "update": ("", "mode: update, keys: [city]"),
    "upsert": ("", "mode: upsert, keys: [city]"),
    "delete": ("", "mode: delete, keys: [city], columns: [city]"),
    "truncate_insert": ("", "mode: truncate_insert"),
    "other names": ("", "mode: insert, columns: { city: city, total: total }"),
    "around": ("", 'mode: insert, before: "DELETE FROM totals", after: "UPDATE totals SET orders = 0"'),
}


@cases("change", list(CHANGES))
def test_a_change_of_a_table_is_the_same_whoever_makes_it(change: str, in_server: Home, tmp_path: Path) -> None:
    text = JOB.format(connection=in_server.connection, where="city IS NOT NULL", mode=CHANGES[change][1])
    made = []
    for number, engine in enumerate(({"kind": "database", "connection": "home"}, "duckdb")):
        in_server.ask("DROP TABLE IF EXISTS totals")
        in_server.ask("CREATE TABLE totals (city text, total numeric(12,2), orders integer, last date)")
        in_server.ask("INSERT INTO totals VALUES ('City 1', 1, 1, NULL), ('Elsewhere', 2, 2, NULL)")
        if change == "upsert":
            in_server.ask("ALTER TABLE totals ADD PRIMARY KEY (city)")
        folder = tmp_path / f"{change} {number}"
        folder.mkdir()
        done = run(folder, text, inputs={"engine": engine})
        assert done.status == "completed", done.error
        after = [
            one["payload"].get("after") for one in done.events() if one["scope"] == "out" and "after" in one["payload"]
        ]
        written = {name: value for name, value in after[-1].items() if name.startswith("NB_LINE")}
        made.append((sorted(in_server.ask("SELECT * FROM totals"), key=str), written))
    assert made[0] == made[1]


REJECTING = """
connections:
  home: {connection}
  data: "orders.main -> out.input\\nout.main -> good.input\\nout.reject -> bad.input"
job_config: {{ engine: {{ kind: database, connection: home }} }}
components:
  - {{ name: orders, type: read_sql, params: {{ connection: home, query: "SELECT id, city FROM orders WHERE id <= 60" }} }}
  - {{ name: out, type: write_sql, params: {{ connection: home, table: cities }} }}
  - {{ name: good, type: write_sql, params: {{ connection: home, table: good, create: true }} }}
  - {{ name: bad, type: write_sql, params: {{ connection: home, table: bad, create: true }} }}
"""


def test_rows_that_the_table_refuses_go_to_reject(home: Home, tmp_path: Path) -> None:
    home.ask("CREATE TABLE cities (id bigint PRIMARY KEY, city text NOT NULL)")
    done = run(tmp_path, REJECTING.format(connection=home.connection))
    assert done.status == "completed", done.error
    assert home.ask("SELECT count(*) FROM cities") == [(52,)]
    assert home.ask("SELECT count(*), count(error_code) FROM bad") == [(8, 8)]
    assert home.ask("SELECT count(*) FROM good") == [(52,)]


def test_a_row_that_the_table_refuses_is_named_and_nothing_is_written(in_server: Home, tmp_path: Path) -> None:
    in_server.ask("CREATE TABLE cities (id bigint PRIMARY KEY, city text NOT NULL)")
    text = REJECTING.format(connection=in_server.connection).replace("\\nout.reject -> bad.input", "")
    done = run(
        tmp_path,
        text.replace(
            "  - { name: bad, type: write_sql, params: { connection: home, table: bad, create: true } }\n", ""
        ),
    )
    assert done.status == "failed"
    assert done.error["component"] == "out"
    assert "row 7:" in done.error["message"]
    assert in_server.ask("SELECT count(*) FROM cities") == [(0,)]


def test_a_failure_is_that_of_the_component_it_is_in(home: Home, tmp_path: Path) -> None:
    text = JOB.format(connection=home.connection, where="CAST(city AS INTEGER) > 1", mode="mode: replace")
    done = run(tmp_path, text)
    assert done.status == "failed"
    assert done.error["component"] == "paid"
    assert done.error["kind"] == "conversion"


CROSSING = """
connections:
  home: {connection}
  data: "given.main -> code.input\\ncode.main -> sum.input\\nsum.main -> out.input"
job_config: {{ engine: {{ kind: database, connection: home }} }}
components:
  - {{ name: given, type: read_csv, params: {{ path: given.csv }} }}
  - {{ name: code, type: python, params: {{ mode: row, code: "row['id'] += 1" }} }}
  - {{ name: sum, type: aggregate, params: {{ measures: {{ total: sum(id) }} }} }}
  - {{ name: out, type: write_csv, params: {{ path: out.csv }} }}
"""


def test_rows_come_here_for_components_that_need_them_here(home: Home, tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_text("id,name\n1,a\n2,\n")
    done = run(tmp_path, CROSSING.format(connection=home.connection))
    assert done.status == "completed", done.error
    assert (tmp_path / "out.csv").read_text().splitlines() == ["total", "5"]


RESUMED = """
metadata: {{ name: two }}
job_config: {{ engine: {{ kind: database, connection: home }} }}
connections:
  home: {connection}
  data: |
    orders.main -> paid.input
    paid.main -> out.input
  control: orders (subjob_ok) later
components:
  - {{ name: orders, type: read_sql, params: {{ connection: home, query: "SELECT id, city FROM orders WHERE id < 5" }} }}
  - {{ name: paid, type: filter, params: {{ where: "id > 1" }} }}
  - {{ name: out, type: write_sql, params: {{ connection: home, table: first, create: true }} }}
  - {{ name: later, type: read_sql, params: {{ connection: home, table: not_yet }} }}
  - {{ name: seen, type: write_csv, params: {{ path: seen.csv }} }}
"""


def test_a_resume_goes_on_after_what_was_done(home: Home, tmp_path: Path) -> None:
    text = RESUMED.format(connection=home.connection).replace(
        "    paid.main -> out.input\n", "    paid.main -> out.input\n    later.main -> seen.input\n"
    )
    lost = run(tmp_path, text)
    assert lost.status == "failed"
    assert lost.error["component"] == "later"
    home.ask("CREATE TABLE not_yet AS SELECT 1 AS n")
    done = penstock.resume(lost)
    assert done.status == "completed", done.error
    assert home.ask("SELECT count(*) FROM first") == [(3,)]
    assert (tmp_path / "seen.csv").read_text().splitlines() == ["n", "1"]


TWICE = """
kind: Joblet
metadata: { name: twice }
components:
  - { name: double, type: derive, params: { columns: { id: id * 2 } } }
inputs: { rows: double.input }
outputs: { made: double.main }
"""
CALLING = """
metadata: {{ name: calling }}
connections:
  home: {connection}
  data: "rows -> there.rows\\nthere.made -> out"
components:
  - {{ name: rows, type: fixed_rows, params: {{ columns: [id, name], rows: [[1, a], [2, b], [3, null]] }} }}
  - {{ name: there, type: "@twice", engine: {{ kind: database, connection: home }} }}
  - {{ name: out, type: write_csv, params: {{ path: out.csv }} }}
"""


def test_a_joblet_runs_in_the_database_and_its_rows_cross_the_border(home: Home, tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text(TWICE, encoding="utf-8")
    done = run(tmp_path, CALLING.format(connection=home.connection))
    assert done.status == "completed", done.error
    assert (tmp_path / "out.csv").read_text().splitlines() == ["id,name", "2,a", "4,b", "6,"]


def test_several_writers_of_one_transaction_write_all_or_nothing(in_server: Home, tmp_path: Path) -> None:
    text = JOB.format(connection=in_server.connection, where="amount > 10", mode="mode: insert, transaction: shared")
    text = text.replace(
        "    totals.main -> out.input\n", "    totals.main -> out.input\n    paid.main -> more.input\n"
    ).replace(
        "    totals.main -> out.input\n    paid.main -> more.input\n",
        "    totals.main -> out.input\n    out.main -> more.input\n",
    )
    text += "  - { name: more, type: write_sql, params: { connection: home, table: few, mode: insert, transaction: shared } }\n"
    columns = "(city text, total numeric(12,2), orders integer{}, last date)"
    in_server.ask("CREATE TABLE totals " + columns.format(""))
    in_server.ask("CREATE TABLE few " + columns.format(" CHECK (orders < 0)"))
    done = run(tmp_path, text)
    assert done.status == "failed"
    assert in_server.ask("SELECT count(*) FROM totals") == [(0,)]
    in_server.ask("DROP TABLE few")
    in_server.ask("CREATE TABLE few " + columns.format(""))
    assert run(tmp_path, text).status == "completed"
    assert in_server.ask("SELECT (SELECT count(*) FROM totals), (SELECT count(*) FROM few)") == [(6, 6)]


# ---- Before the run


def problems(text: str) -> list[str]:
    return [f"{one.code} {one.message}" for one in compile_text(text, "job.yaml", REGISTRY).problems]


def test_a_connection_that_cannot_run_rows_is_refused_before_the_run() -> None:
    text = JOB.format(connection="{ kind: sqlite, path: home.db }", where="amount > 10", mode="mode: replace")
    assert any(one.startswith("J0317") and "of the kind `sqlite`" in one for one in problems(text))
    text = JOB.format(connection="{ kind: duckdb, path: home.db }", where="amount > 10", mode="mode: replace")
    other = text.replace("kind: database, connection: home", "kind: database, connection: house")
    assert any(one.startswith("J0317") and "there is no connection `house`" in one for one in problems(other))
    none = text.replace("kind: database, connection: home", "kind: database")
    assert any(one.startswith("J0317") and "needs to know in which database" in one for one in problems(none))


def test_a_function_without_a_counterpart_is_refused_before_the_columns_are_known() -> None:
    text = JOB.format(
        connection="{ kind: postgres, host: nowhere, database: db }", where="hash(amount) > 10", mode="mode: replace"
    )
    (found,) = [one for one in problems(text) if one.startswith("J0318")]
    assert "there is no `hash` in PostgreSQL" in found
    assert not [one for one in problems(text.replace("hash", "abs")) if one.startswith("J0318")]


def test_a_secret_of_the_connection_is_nowhere_to_be_seen(
    in_server: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME_PASSWORD", "open-sesame-4711")
    hidden = in_server.connection.replace(" }", ', password: "{{ keychain.home }}" }')
    text = JOB.format(connection=hidden, where="amount > 10", mode="mode: replace")
    text = text.replace("connections:", "keychain: [{ name: home, kind: env, var: HOME_PASSWORD }]\nconnections:", 1)
    done = run(tmp_path, text)
    assert done.status == "completed", done.error
    assert "sesame" not in str(list(done.events()))
    compiled = compile_text(text, "job.yaml", REGISTRY)
    assert "sesame" not in str(plan(compiled)) + plan_text(compiled)
    assert "password" not in plan_text(compiled)


# ---- What becomes of a run that does not end by itself


def test_a_statement_that_runs_is_cancelled(postgres_server: str, tmp_path: Path) -> None:
    engine = PostgresEngine(tmp_path, server_at(postgres_server))
    session = engine.session()
    threading.Timer(0.5, session.interrupt).start()
    began = time.monotonic()
    with pytest.raises(RowsFailed, match="interrupted"):
        session.take(OwnQuery("SELECT 1 AS n FROM pg_sleep(60)", (Column("n", "INTEGER"),)))
    assert time.monotonic() - began < 20
    session.close(())
    engine.close()


def test_a_table_that_a_transaction_reads_is_not_waited_for(postgres_url: str, tmp_path: Path) -> None:
    engine = PostgresEngine(tmp_path, server_at(postgres_url))
    session = engine.session()
    made = session.take(OwnQuery("SELECT 1 AS n", (Column("n", "INTEGER"),)))
    with psycopg.connect(postgres_url) as other:
        other.execute(f"SELECT * FROM {session.table(made)}".encode())
        began = time.monotonic()
        engine.drop(made)
        assert time.monotonic() - began < 5
    session.close([made])
    engine.close()
    with psycopg.connect(postgres_url) as other:
        left = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'penstock%'"
        assert other.execute(left.encode()).fetchall() == [(0,)]


MAKES_ROWS = """
import sys, time
from pathlib import Path
from penstock.data.database.postgres import PostgresEngine
from penstock.ports.rows import Column
from penstock.tools.sql.postgres_server import PostgresServer
engine = PostgresEngine(Path(sys.argv[1]), PostgresServer({"kind": "postgres", "url": sys.argv[2]}))
engine.session().load((Column("n", "BIGINT"),), [[(1,), (2,)]])
print("made", flush=True)
time.sleep(60)
"""


def test_what_a_killed_run_left_behind_is_dropped_by_the_next(
    in_server: Home, postgres_url: str, tmp_path: Path
) -> None:
    left = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'penstock%'"
    with subprocess.Popen(
        [sys.executable, "-c", MAKES_ROWS, str(tmp_path / "killed"), postgres_url], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "made\n"
        beside = run(tmp_path, JOB.format(connection=in_server.connection, where="amount > 10", mode="mode: replace"))
        assert beside.status == "completed", beside.error
        assert in_server.ask(left) == [(1,)]  # The other is alive.
        other.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while in_server.ask(left) != [(0,)] and time.monotonic() < deadline:
        done = run(tmp_path, JOB.format(connection=in_server.connection, where="amount > 10", mode="mode: replace"))
        assert done.status == "completed", done.error
    assert in_server.ask(left) == [(0,)]


def test_a_plan_shows_the_engine_of_each_component_in_one_way(in_file: Home) -> None:
    text = CALLING.format(connection=in_file.connection)
    inside = text.replace('"@twice"', "filter").replace("there.rows", "there.input").replace("there.made", "there.main")
    compiled = compile_text(
        inside.replace("type: filter", "type: filter, params: { where: id > 1 }"), "job.yaml", REGISTRY
    )
    assert [one["engine"] for one in plan(compiled)["components"]] == ["database"] * 3  # type: ignore[index, union-attr, call-overload]
    assert ", engine database, connection home\n" in plan_text(compiled)
    spark = inside.replace("{ kind: database, connection: home }", "{ kind: spark, remote: sc://a:1 }")
    compiled = compile_text(
        spark.replace("type: filter", "type: filter, params: { where: id > 1 }"), "job.yaml", REGISTRY
    )
    assert [one["engine"] for one in plan(compiled)["components"]] == ["spark"] * 3  # type: ignore[index, union-attr, call-overload]
    assert ", engine spark, remote sc://a:1\n" in plan_text(compiled)
