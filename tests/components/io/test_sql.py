"""`read_sql` and `write_sql` on SQLite, DuckDB, PostgreSQL and MariaDB."""

from __future__ import annotations

import asyncio
import datetime
import logging
import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import mistakes, run, schema
from tests.jobs import run_job
from tests.servers import mariadb_server, mariadb_url, postgres_server, postgres_url

__all__ = ["mariadb_server", "mariadb_url", "postgres_server", "postgres_url"]

DATABASES = ["sqlite", "duckdb", "postgres", "mysql"]


class Database:
    """One empty database, and a folder for the jobs that use it."""

    def __init__(self, kind: str, url: str, folder: Path) -> None:
        self.kind = kind
        self.url = url
        self.folder = folder

    def read(self, query: str | None = None, **params: Any) -> Any:
        asked = {"connection": self.url, **({"query": query} if query else {}), **params}
        return run("read_sql", asked, folder=self.folder)

    def write(self, rows: Any, connected: Any = (), shape: Any = None, **params: Any) -> Any:
        given = {"connection": self.url, "table": "t", **params}
        schemas = {"input": shape} if shape else None
        return run("write_sql", given, {"input": rows}, connected=connected, folder=self.folder, schemas=schemas)

    def rows(self, order: str = "id") -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.read(f"SELECT * FROM t ORDER BY {order}").main]


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    kind = request.param
    urls = {"sqlite": "sqlite:///shop.db", "duckdb": "duckdb:///shop.duckdb"}
    fixtures = {"postgres": "postgres_url", "mysql": "mariadb_url"}
    url = urls.get(kind) or request.getfixturevalue(fixtures[kind])
    return Database(kind, url, tmp_path)


@pytest.fixture
def postgres(postgres_url: str, tmp_path: Path) -> Database:
    return Database("postgres", postgres_url, tmp_path)


TWO = [{"id": 1, "name": "ada"}, {"id": 2, "name": "bob"}]


def test_rows_are_written_into_a_table_that_is_made_and_read_back(database: Database) -> None:
    ran = database.write(TWO, ["main"], mode="create", keys=["id"])
    assert ran.main == TWO
    assert ran.after == {"NB_LINE_INSERTED": 2, "NB_LINE_REJECTED": 0, "NB_LINE_OUT_reject": 0}
    assert ran.result == {"table": "t", "rows": 2, "rejected": 0}
    assert database.read(table="t").main == TWO
    assert database.read(table="t", columns=["name"]).main == [{"name": "ada"}, {"name": "bob"}]
    assert database.read("SELECT name FROM t WHERE id = :id", params={"id": 2}).main == [{"name": "bob"}]


def test_rows_are_inserted_updated_upserted_and_deleted(database: Database) -> None:
    database.write(TWO, create=True, keys=["id"])
    assert database.write([{"id": 3, "name": "cy"}], create=True).after["NB_LINE_INSERTED"] == 1
    assert database.write([{"id": 1, "name": "ann"}, {"id": 9, "name": "x"}], mode="update", keys=["id"]).after[
        "NB_LINE_UPDATED"
    ] == 1  # fmt: skip
    changed = [{"id": 2, "name": "b"}, {"id": 4, "name": "d"}, {"id": 4, "name": "dee"}]
    database.write(changed, mode="upsert", keys=["id"])
    assert database.rows() == [(1, "ann"), (2, "b"), (3, "cy"), (4, "dee")]
    assert database.write([{"id": 1}, {"id": 7}], mode="delete", keys=["id"]).after["NB_LINE_DELETED"] == 1
    assert database.rows() == [(2, "b"), (3, "cy"), (4, "dee")]


def test_a_table_is_emptied_or_made_anew(database: Database) -> None:
    database.write(TWO, create=True, keys=["id"])
    database.write([{"id": 1, "name": "new"}], mode="truncate_insert")
    assert database.rows() == [(1, "new")]
    database.write([{"id": 5, "more": "x"}], mode="replace")
    assert database.read(table="t").main == [{"id": 5, "more": "x"}]
    with pytest.raises(ComponentFailure, match=r"exists.*hint: `mode: replace` makes it anew"):
        database.write(TWO, mode="create")


def test_columns_are_picked_and_renamed(database: Database) -> None:
    rows = [{"nr": 1, "who": "ada", "more": 5}]
    ran = database.write(rows, ["main"], create=True, keys=["id"], columns={"id": "nr", "name": "who"})
    assert ran.main == rows
    assert database.rows() == [(1, "ada")]
    database.write([{"id": 2, "name": "bob", "extra": 1}], columns=["name", "id"])
    assert database.rows() == [(1, "ada"), (2, "bob")]


def test_rows_that_the_database_refuses_go_to_the_reject_port_and_the_others_are_written(database: Database) -> None:
    database.write([{"id": 50, "name": "there"}], create=True, keys=["id"])
    rows = [{"id": number, "name": f"n{number}"} for number in range(1, 101)] + [{"id": 7, "name": "again"}]
    ran = database.write(rows, ["main", "reject"], batch_size=30)
    assert [row["id"] for row in ran.outputs["reject"]] == [50, 7]
    assert ran.after == {"NB_LINE_INSERTED": 99, "NB_LINE_REJECTED": 2}
    assert [row["id"] for row in ran.main] == [number for number in range(1, 101) if number != 50]
    assert len(database.rows()) == 100
    codes = {
        "sqlite": "SQLITE_CONSTRAINT_PRIMARYKEY",
        "duckdb": "ConstraintException",
        "postgres": "23505",
        "mysql": "1062",
    }
    assert {row["error_code"] for row in ran.outputs["reject"]} == {codes[database.kind]}
    assert all(row["error_message"] for row in ran.outputs["reject"])


def test_without_rejects_the_reject_port_is_empty(database: Database) -> None:
    ran = database.write(TWO, ["main", "reject"], create=True, keys=["id"])
    assert ran.outputs == {"main": TWO, "reject": []}
    assert [column.name for column in ran.schemas["reject"]] == ["id", "name", "error_code", "error_message"]


def test_a_duplicate_key_is_an_error_that_takes_everything_back(database: Database) -> None:
    database.write(TWO, create=True, keys=["id"])
    rows = [{"id": number, "name": "x"} for number in (3, 4, 2, 5)]
    with pytest.raises(ComponentFailure) as failed:
        database.write(rows, batch_size=2)
    assert failed.value.kind == "constraint"
    assert failed.value.message.startswith("writing to `t`: ")
    assert "hint: connect the `reject` port" in failed.value.message
    if database.kind != "duckdb":  # it has no savepoints to find the row with
        assert "row 3: " in failed.value.message
    assert database.rows() == [(1, "ada"), (2, "bob")]


def test_commits_in_between_stay(database: Database) -> None:
    database.write(TWO, create=True, keys=["id"])
    rows = [{"id": number, "name": "x"} for number in (3, 4, 5, 6, 2)]
    with pytest.raises(ComponentFailure, match=r"\(4 rows before it are committed\)"):
        database.write(rows, batch_size=2, commit_every=2)
    assert [row[0] for row in database.rows()] == [1, 2, 3, 4, 5, 6]


def test_what_is_missing_in_the_database_is_named(database: Database) -> None:
    with pytest.raises(ComponentFailure, match=r"writing to `t`: .*hint: `create: true` makes a missing table"):
        database.write(TWO)
    with pytest.raises(ComponentFailure, match="nothing") as failed:
        database.read(table="nothing")
    assert failed.value.kind == "not_found"
    database.write(TWO, create=True)
    with pytest.raises(ComponentFailure, match="nme"):
        database.read("SELECT nme FROM t")
    with pytest.raises(ComponentFailure, match="strange"):
        database.write([{"id": 1, "strange": 2}])


def test_an_upsert_without_a_unique_key_says_what_it_needs(postgres: Database) -> None:
    postgres.write(TWO, create=True)
    with pytest.raises(ComponentFailure, match="hint: `upsert` needs a primary key or unique constraint on the `keys`"):
        postgres.write(TWO, mode="upsert", keys=["id"])


def test_no_rows_are_no_error(database: Database) -> None:
    database.write([], ["main"], schema(id="BIGINT", name="VARCHAR"), create=True, keys=["id"])
    ran = database.read(table="t")
    assert ran.main == []
    assert [column.name for column in ran.schemas["main"]] == ["id", "name"]


def test_a_result_larger_than_a_batch_is_read_whole(database: Database) -> None:
    database.write([{"id": number} for number in range(2_500)], create=True)
    assert [row["id"] for row in database.read("SELECT id FROM t ORDER BY id", batch_size=1_000).main] == list(
        range(2_500)
    )


def test_values_of_every_type_come_back_as_they_went(database: Database) -> None:
    row = {
        "id": 1,
        "big": 2**40,
        "real": 1.5,
        "price": Decimal("12.50"),
        "flag": True,
        "text": "é'\"%s\\",
        "day": datetime.date(2024, 1, 31),
        "moment": datetime.datetime(2024, 1, 31, 12, 30, 15, 500),
        "data": b"\x00\xff",
        "uid": UUID(int=5),
        "list": [1, 2],
        "nothing": None,
    }
    shape = schema(
        id="INTEGER", big="BIGINT", real="DOUBLE", price="DECIMAL(10,2)", flag="BOOLEAN", text="VARCHAR", day="DATE",
        moment="TIMESTAMP", data="BLOB", uid="UUID", list="INTEGER[]", nothing="VARCHAR",
    )  # fmt: skip
    database.write([row], ["main"], shape, create=True)
    (back,) = database.read(table="t").main
    if database.kind in ("sqlite", "mysql"):
        back["uid"] = UUID(back["uid"])
    if database.kind == "mysql":
        back["flag"] = bool(back["flag"])
    if database.kind != "duckdb":
        assert str(back["list"]).replace(" ", "") == "[1,2]"
        back["list"] = [1, 2]
    assert back == row


def test_the_schema_that_the_document_declares_is_what_is_read(database: Database) -> None:
    database.write(TWO, create=True)
    params = {"connection": database.url, "table": "t"}
    ran = run("read_sql", params, folder=database.folder, schemas={"main": schema(name="VARCHAR", id="DOUBLE")})
    assert ran.main == [{"name": "ada", "id": 1.0}, {"name": "bob", "id": 2.0}]
    with pytest.raises(ComponentFailure, match=r"the result has no column `nme`; did you mean `name`\?"):
        run("read_sql", params, folder=database.folder, schemas={"main": schema(nme="VARCHAR")})


def test_numbers_without_a_width_keep_all_their_digits(postgres: Database) -> None:
    query = (
        "SELECT x.a, x.b, x.c, 1.5::numeric(5,2) AS d FROM (VALUES (1::numeric, 12345678901234567890.5::numeric, 'NaN'::numeric), "
        "(0.125, 2, 1)) AS x(a, b, c)"
    )
    ran = postgres.read(query)
    assert [column.type for column in ran.schemas["main"]] == [
        "DECIMAL(38,3)",
        "DECIMAL(38,1)",
        "DOUBLE",
        "DECIMAL(5,2)",
    ]
    assert ran.main[0]["b"] == Decimal("12345678901234567890.5")
    assert ran.main[1]["a"] == Decimal("0.125")


def test_types_of_postgres_that_duckdb_does_not_have_come_as_text(postgres: Database) -> None:
    query = (
        "SELECT '{1,2}'::int[] AS l, '{\"a\": 1}'::jsonb AS j, '1 day'::interval AS i, '10.0.0.1'::inet AS n, "
        "'2024-01-31 12:00+00'::timestamptz AS z, 'infinity'::date AS f"
    )
    ran = postgres.read(query)
    assert [column.type for column in ran.schemas["main"]] == [
        "INTEGER[]",
        "JSON",
        "VARCHAR",
        "VARCHAR",
        "TIMESTAMP WITH TIME ZONE",
        "DATE",
    ]
    (row,) = ran.main
    assert (row["l"], row["i"], row["n"]) == ([1, 2], "1 day", "10.0.0.1")
    assert row["z"] == datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC)


def test_rows_go_into_json_and_array_columns_of_postgres(postgres: Database) -> None:
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int, j jsonb, a int[])")
    postgres.write([{"id": 1, "j": {"x": [1]}, "a": [1, 2]}])
    postgres.write([{"id": 1, "j": {"x": 2}, "a": [3]}], mode="update", keys=["id"])
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == [(1, {"x": 2}, [3])]


def test_values_that_do_not_fit_are_rejected_row_by_row(postgres: Database) -> None:
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int NOT NULL, d date, name varchar(3), CHECK (id < 100))")
    rows = [
        {"id": 1, "d": "2024-01-31", "name": "ok"},
        {"id": None, "d": None, "name": "a"},
        {"id": 2, "d": "nodate", "name": "b"},
        {"id": 3, "d": None, "name": "long"},
        {"id": 300, "d": None, "name": "c"},
        {"id": 4, "d": None, "name": "z\0"},
    ]
    ran = postgres.write(rows, ["main", "reject"])
    assert [(row["id"], row["error_code"]) for row in ran.outputs["reject"]] == [
        (None, "23502"),
        (2, "22007"),
        (3, "22001"),
        (300, "23514"),
        (4, "22021"),
    ]
    assert [row["id"] for row in ran.main] == [1]
    assert logging.getLogger("psycopg").handlers, "what the driver logs of it would be printed on the terminal"


def test_a_server_that_is_not_there_is_an_error_that_may_be_tried_again() -> None:
    for url in ("postgresql://nobody@127.0.0.1:1/db", "mysql://nobody@127.0.0.1:1/db"):
        params = {"connection": url, "connect_timeout": 2}
        with pytest.raises(ComponentFailure, match="no connection to") as failed:
            run("read_sql", {**params, "query": "SELECT 1"})
        assert (failed.value.kind, failed.value.retryable) == ("connect", True)
        with pytest.raises(ComponentFailure, match="no connection to"):
            run("write_sql", {**params, "table": "t"}, {"input": TWO})


def test_a_server_that_goes_away_while_rows_are_read_is_an_error_that_may_be_tried_again(postgres: Database) -> None:
    query = (
        "SELECT i, CASE WHEN i = 7 THEN pg_terminate_backend(pg_backend_pid()) END FROM generate_series(1, 100) AS i"
    )
    with pytest.raises(ComponentFailure, match=r"after \d rows: ") as failed:
        postgres.read(query, batch_size=2)
    assert (failed.value.kind, failed.value.retryable) == ("connect", True)


@pytest.mark.parametrize("connected", [(), ("main", "reject")])
def test_a_server_that_goes_away_while_rows_are_written_leaves_nothing_behind(
    postgres: Database, connected: Any
) -> None:
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int)")
        connection.execute(
            "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN IF NEW.id = 7 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END'"
        )
        connection.execute("CREATE TRIGGER die BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION die()")
    with pytest.raises(ComponentFailure, match="writing to `t`: ") as failed:
        postgres.write([{"id": number} for number in range(20)], connected, batch_size=5)
    assert (failed.value.kind, failed.value.retryable) == ("connect", True)
    assert postgres.read(table="t").main == []


def test_a_query_that_is_cancelled_stops_at_the_server(postgres: Database) -> None:
    import psycopg

    from penstock.components import runner
    from penstock.data.duckdb_engine import DuckDbEngine
    from tests.components.harness import REGISTRY, make_call

    def is_running() -> bool:
        with psycopg.connect(postgres.url) as connection:
            asked = (
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'to_be_cancelled' AND state = 'active'"
            )
            return bool(connection.execute(asked).fetchone()[0])  # type: ignore[index]

    async def whole() -> None:
        engine = DuckDbEngine(postgres.folder / "rows")
        call = make_call(engine.session(), postgres.folder, connected=frozenset({"main"}))
        url = f"{postgres.url}&application_name=to_be_cancelled"
        params = REGISTRY.convert("read_sql", {"connection": url, "query": "SELECT pg_sleep(60)"})
        running_now = asyncio.ensure_future(runner.run(REGISTRY.get("read_sql"), params, call))
        while not await asyncio.to_thread(is_running):
            await asyncio.sleep(0.01)
        running_now.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running_now
        await call.resources.close()  # type: ignore[attr-defined]
        engine.close()

    asyncio.run(whole())
    assert not is_running()


def test_the_connection_may_come_from_the_keychain(postgres: Database) -> None:
    postgres.write(TWO, create=True)
    keychain = {"warehouse": {"url": postgres.url}}
    for params in ({"auth": "warehouse"}, {"connection": "warehouse"}):
        ran = run("read_sql", {**params, "table": "t"}, credentials=keychain, folder=postgres.folder)
        assert ran.main == TWO


def test_a_password_is_never_shown() -> None:
    with pytest.raises(ComponentFailure) as failed:
        run(
            "read_sql",
            {"connection": "postgresql://me:s3cret@127.0.0.1:1/db", "query": "SELECT 1", "connect_timeout": 2},
        )
    assert "s3cret" not in failed.value.message


def test_what_sqlite_declares_is_the_type_when_every_value_agrees(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "it.db") as connection:
        connection.execute("CREATE TABLE t (d DATE, n DECIMAL(8,2), b BOOLEAN, x DATE, m)")
        connection.execute("INSERT INTO t VALUES ('2024-01-31', 1.5, 1, 'soon', 1), (NULL, NULL, 0, '2024-01-01', 'a')")
    connection.close()
    ran = run("read_sql", {"connection": "sqlite:///it.db", "table": "t"}, folder=tmp_path)
    assert [column.type for column in ran.schemas["main"]] == ["DATE", "DECIMAL(8,2)", "BOOLEAN", "VARCHAR", "VARCHAR"]
    assert ran.main[0] == {"d": datetime.date(2024, 1, 31), "n": Decimal("1.50"), "b": True, "x": "soon", "m": "1"}


def test_a_file_that_is_not_there_is_not_made_by_reading_it(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure, match="cannot be opened"):
        run("read_sql", {"connection": "sqlite:///no.db", "query": "SELECT 1"}, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"connection": "sqlite:///x.db"}, "exactly one of `query` and `table`"),
        ({"connection": "sqlite:///x.db", "query": "SELECT 1", "table": "t"}, "exactly one of `query` and `table`"),
        ({"query": "SELECT 1"}, "no database is named"),
        ({"connection": "sqlite:///x.db", "query": "SELECT 1", "columns": ["a"]}, "`columns` goes with `table`"),
    ],
)
def test_wrong_parameters_of_read_sql_are_mistakes(params: Any, words: str) -> None:
    (mistake,) = mistakes("read_sql", params)
    assert words in mistake.message
    with pytest.raises(ComponentFailure):
        run("read_sql", params)


@pytest.mark.parametrize(
    ("params", "path", "words"),
    [
        ({"mode": "upsert"}, ("mode",), "`mode: upsert` needs `keys`"),
        ({"keys": ["idd"]}, ("keys",), "no column `idd`; did you mean `id`?"),
        ({"columns": ["id", "nme"]}, ("columns", 1), "no column `nme`; did you mean `name`?"),
        ({"columns": {"a": "nme"}}, ("columns", "a"), "no column `nme`"),
        ({"mode": "update", "keys": ["id", "name"]}, ("keys",), "nothing to update"),
        ({"types": {"x": "int"}}, ("types",), "no column `x`"),
    ],
)
def test_wrong_parameters_of_write_sql_are_mistakes(params: Any, path: Any, words: str) -> None:
    given = {"connection": "sqlite:///x.db", "table": "t", **params}
    (mistake,) = mistakes("write_sql", given, {"input": schema(id="BIGINT", name="VARCHAR")})
    assert mistake.path == path
    assert words in mistake.message


def test_a_database_that_is_not_known_is_named() -> None:
    with pytest.raises(ComponentFailure, match="`oracle://` is not a database that is known here"):
        run("read_sql", {"connection": "oracle://x", "query": "SELECT 1"})


ITERATIONS = 8
PARALLEL = """
components:
  each: {type: iterate_range, params: {start: 1, stop: %d, parallel: 8}}
  rows: {type: fixed_rows, params: {columns: [id, name], rows: [["{{ iteration.item }}", "n{{ iteration.item }}"]]}}
  write: {type: write_sql, params: {connection: "%s", table: t, keys: [id], create: true, mode: %s}}
connections:
  data: rows.main -> write.input
  control: each (iterate) rows
"""


@pytest.mark.parametrize(
    ("database", "mode"), [*((kind, "upsert") for kind in DATABASES), ("postgres", "insert")], indirect=["database"]
)
def test_iterations_that_run_side_by_side_may_all_make_the_table(database: Database, mode: str) -> None:
    """Of several that make it at once the others find it made, and none is lost."""
    ran = run_job(PARALLEL % (ITERATIONS + 1, database.url, mode), database.folder)
    assert ran.status == "completed", ran.error
    assert [row[0] for row in database.rows()] == list(range(1, ITERATIONS + 1))


def test_statements_before_and_after_count_together_with_the_rows(database: Database) -> None:
    database.write([{"id": 1, "name": "old"}, {"id": 2, "name": "stays"}], create=True, keys=["id"])
    database.write(
        [{"id": 5, "name": "new"}],
        before="DELETE FROM t WHERE name = :gone",
        after=["INSERT INTO t (id, name) VALUES (9, :who)", "UPDATE t SET name = 'last' WHERE id = 9"],
        params={"gone": "old", "who": "after"},
    )
    assert database.rows() == [(2, "stays"), (5, "new"), (9, "last")]


def test_a_statement_that_fails_takes_the_rows_back_with_it(database: Database) -> None:
    database.write(TWO, create=True, keys=["id"])
    before, after = "DELETE FROM t; DELETE FROM nowhere", "DELETE FROM nowhere"
    for broken in ({"before": before}, {"before": "DELETE FROM t", "after": after}):
        with pytest.raises(ComponentFailure, match=r"(?i)nowhere"):
            database.write([{"id": 5, "name": "new"}], **broken)
        assert database.rows() == [(1, "ada"), (2, "bob")]


def test_an_update_counts_the_rows_that_it_finds_though_nothing_in_them_is_new(database: Database) -> None:
    database.write(TWO, create=True, keys=["id"])
    assert database.write(TWO, mode="update", keys=["id"]).after["NB_LINE_UPDATED"] == 2
    statement = {"connection": database.url, "sql": "UPDATE t SET name = 'ada' WHERE id = 1"}
    assert run("run_sql", statement, connected=("main",), folder=database.folder).result == {
        "statements": 1,
        "rows": [1],
    }


def test_names_and_texts_of_any_kind_are_written_changed_and_read(database: Database) -> None:
    """A table that is made has room for all of Unicode, whatever the server takes for granted."""
    rows = [{"id": 1, 'a %s `b` "c"': "100 %s", "VALUES (1)": "🚰 Öl\\n'"}]
    database.write(rows, create=True, keys=["id"], table="t %d")
    changed = [{**rows[0], "VALUES (1)": "東京"}]
    for mode in ("upsert", "update"):
        database.write(changed, mode=mode, keys=["id"], table="t %d")
        assert database.read(table="t %d").main == changed
    assert database.write(changed, mode="delete", keys=["id"], table="t %d").after["NB_LINE_DELETED"] == 1
    assert database.read(table="t %d").main == []


CONFLICTS = 6
IN_CONFLICT = """
components:
  each: {type: iterate_range, params: {start: 0, stop: %d, parallel: 6}}
  rows:
    type: fixed_rows
    params: {columns: [id, n], rows: "{{ [[1, 7], [2, 7], [3, 7]] if iteration.item is odd else [[3, 7], [2, 7], [1, 7]] }}"}
  write:
    type: write_sql
    params: {connection: "%s", table: t, keys: [id], mode: %s, batch_size: 1, before: UPDATE t SET n = n + 1 WHERE id = 0}
connections:
  data: rows.main -> write.input
  control: each (iterate) rows
"""


@pytest.mark.parametrize(
    ("database", "mode", "left"),
    [*((kind, "upsert", 4) for kind in DATABASES), ("postgres", "update", 4), ("mysql", "delete", 1)],
    indirect=["database"],
)
def test_iterations_that_change_the_same_rows_in_another_order_all_count_once(
    database: Database, mode: str, left: int
) -> None:
    """What begins anew after a deadlock has left nothing: each has counted itself in row 0."""
    database.write([{"id": each, "n": 0} for each in range(4)], create=True, keys=["id"])
    ran = run_job(IN_CONFLICT % (CONFLICTS, database.url, mode), database.folder)
    assert ran.status == "completed", ran.error
    assert (database.rows()[0], len(database.rows())) == ((0, CONFLICTS), left)


def test_iterations_that_change_the_same_rows_of_duckdb_batch_by_batch_do_not_fail(tmp_path: Path) -> None:
    database = Database("duckdb", "duckdb:///shop.duckdb", tmp_path)
    database.write([{"id": each, "n": 0} for each in range(4)], create=True, keys=["id"])
    text = IN_CONFLICT.replace(", before: UPDATE t SET n = n + 1 WHERE id = 0", "") % (
        CONFLICTS,
        database.url,
        "update",
    )
    ran = run_job(text.replace("write.input", "write.input\n    write.reject -> refused.input").replace(
        "data: rows", "data: |\n    rows").replace("components:", "components:\n  refused: {type: log_rows}"), tmp_path)  # fmt: skip
    assert ran.status == "completed", ran.error
    assert database.rows() == [(0, 0), (1, 7), (2, 7), (3, 7)]


ASKS = """
components:
  complete: {type: wait_for_rows, params: {connection: "URL", table: t, count: 2}}
  each: {type: iterate_query, params: {connection: "URL", query: "SELECT id, name FROM t WHERE id >= :least ORDER BY id", params: {least: 2}}}
  tell: {type: set_global, params: {values: {seen: ["{{ iteration.item.id }} {{ iteration.item.name }}"]}}}
connections:
  control: |
    complete (ok) each
    each (iterate) tell
"""


def test_a_job_waits_for_rows_and_iterates_over_a_query(database: Database) -> None:
    database.write(TWO, create=True, keys=["id"])
    ran = run_job(ASKS.replace("URL", database.url), database.folder)
    assert (ran.status, ran.globals) == ("completed", {"seen": ["2 bob"]}), ran.error


def test_mysql_refuses_what_does_not_fit_though_the_server_is_set_up_to_cut_it(
    mariadb_server: str, mariadb_url: str, tmp_path: Path
) -> None:
    import pymysql

    database = Database("mysql", mariadb_url, tmp_path)
    name = mariadb_url.partition("?")[0].rpartition("/")[2]
    with pymysql.connect(unix_socket=mariadb_server, user="root", database=name, ssl_disabled=True) as lax:
        lax.cursor().execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(3))")
        lax.cursor().execute("CREATE USER IF NOT EXISTS lax@localhost")
        lax.cursor().execute(f"GRANT ALL ON {name}.* TO lax@localhost")
        lax.cursor().execute("SET GLOBAL init_connect = \"SET sql_mode = ''\"")  # Not for root: only this test is lax.
        try:
            database.url = mariadb_url.replace("root@", "lax@")
            ran = database.write([{"id": 1, "name": "too long"}, {"id": 2, "name": "ok"}], ["main", "reject"])
        finally:
            lax.cursor().execute("SET GLOBAL init_connect = ''")
    assert ran.main == [{"id": 2, "name": "ok"}]
    assert [row["error_code"] for row in ran.outputs["reject"]] == ["1406"]


def test_types_of_mysql_that_duckdb_does_not_have_come_as_what_is_nearest(mariadb_url: str, tmp_path: Path) -> None:
    database = Database("mysql", mariadb_url, tmp_path)
    columns = (
        "a BIT(1), b YEAR, c SET('x','y'), d BIGINT UNSIGNED, e DECIMAL(38,2), f TIMESTAMP(6) NULL, g TIME, h DATETIME"
    )
    values = "b'1', 2026, 'x,y', 18446744073709551615, 0.25, '2026-01-01 12:00:00.000001', '-12:30:00', '2026-01-01'"
    made = [f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES ({values})", "SET sql_mode = ''"]
    made += ["INSERT INTO t (h) VALUES ('0000-00-00')"]
    run("run_sql", {"connection": mariadb_url, "sql": made}, connected=("main",), folder=tmp_path)
    first, second = database.read(table="t").main
    assert list(first.values()) == [
        b"\x01",
        2026,
        "x,y",
        2**64 - 1,
        Decimal("0.25"),
        datetime.datetime(2026, 1, 1, 12, 0, 0, 1),
        datetime.timedelta(hours=-12, minutes=-30),
        datetime.datetime(2026, 1, 1),
    ]
    assert set(second.values()) == {None}
