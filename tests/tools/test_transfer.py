"""The transfer tool between real databases."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
import yaml

from penstock.tools.registry import example_of
from penstock.tools.sql.duckdb import DuckdbTool
from penstock.tools.sql.sqlite import SqliteTool
from penstock.tools.transfer.tool import TransferTool
from tests.cases import cases
from tests.servers import mariadb_server, mariadb_url, postgres_server, postgres_url
from tests.tools.asking import failed
from tests.tools.databases import KINDS, opened
from tests.tools.moving import Move, asked, lines, move, rows
from tests.tools.support import SharedResources, make_call, run, run_async

__all__ = ["mariadb_server", "mariadb_url", "move", "postgres_server", "postgres_url"]


def test_rows_go_in_chunks_and_are_counted(move: Move, tmp_path: Path) -> None:
    source = rows(*((number, f"n{number}") for number in range(25)))
    target = {"kind": "sqlite", "path": "t.db", "table": "t", "create": True}
    result = move(source, target, chunk_rows=10)
    assert result == {"rows_read": 25, "rows_written": 25, "chunks": 3, "columns": ["a", "b"]}
    assert asked(tmp_path / "t.db", "SELECT count(*), min(a), max(b) FROM t") == [(25, 0, "n9")]


def test_columns_are_picked_and_renamed(move: Move, tmp_path: Path) -> None:
    target = {"kind": "jsonl", "path": "out.jsonl"}
    move(rows((1, 2, 3), (4, 5, 6)), target, columns={"x": "c", "y": "a"})
    assert lines(tmp_path / "out.jsonl") == [{"x": 3, "y": 1}, {"x": 6, "y": 4}]
    move(rows((1, 2, 3)), target, columns=["b"])
    assert lines(tmp_path / "out.jsonl") == [{"b": 2}]


def test_every_pair_of_kinds_moves_the_same_rows(move: Move, tmp_path: Path, postgres_url: str) -> None:
    """A chain through every kind: what comes out at the end is what went in."""
    given_rows = [(1, "one, 'two'\n\"three\"", 1.5), (2, None, None), (3, "ünï %s :x", -0.25)]
    ends: list[dict[str, Any]] = [
        {"kind": "postgres", "url": postgres_url, "table": "t", "create": True},
        {"kind": "parquet", "path": "t.parquet"},
        {"kind": "duckdb", "path": "t.duckdb", "table": "t", "create": True},
        {"kind": "json", "path": "t.json"},
        {"kind": "sqlite", "path": "t.db", "table": "t", "create": True},
        {"kind": "csv", "path": "t.csv"},
        {"kind": "postgres", "url": postgres_url, "table": "u", "create": True},
        {"kind": "jsonl", "path": "t.jsonl"},
    ]
    source = rows(*given_rows)
    for target in ends:
        assert move(source, target, chunk_rows=2)["rows_written"] == 3, target
        source = {key: value for key, value in target.items() if key not in ("create", "mode")}
    assert [tuple(row.values()) for row in lines(tmp_path / "t.jsonl")] == given_rows


def test_declared_types_survive_between_databases(move: Move, postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            "CREATE TABLE s (i bigint, n numeric, b boolean, d date, t timestamptz, j jsonb, u uuid, y bytea, x text, a int[])"
        )
        connection.execute(
            "INSERT INTO s VALUES (9223372036854775807, 12345678901234567890.123, true, '2024-01-02', "
            "'2024-01-02 03:04:05+02', '\"text\"', '00000000-0000-0000-0000-000000000001', '\\xabcd', '007', '{1,2}'), "
            "(NULL, 'NaN', NULL, 'infinity', 'infinity', 'null', NULL, NULL, NULL, NULL)"
        )
    source = {"kind": "postgres", "url": postgres_url, "query": "SELECT * FROM s ORDER BY i"}
    move(source, {"kind": "postgres", "url": postgres_url, "table": "t", "create": True})
    with psycopg.connect(postgres_url) as connection:
        types = connection.execute(
            "SELECT string_agg(data_type, ',' ORDER BY ordinal_position) FROM information_schema.columns "
            "WHERE table_name = 't' AND table_schema = current_schema()"
        ).fetchone()
        assert types == ("bigint,numeric,boolean,date,timestamp with time zone,jsonb,uuid,bytea,text,jsonb",)
        text = "SELECT i::text, n::text, b::text, d::text, t::text, j::text, u::text, y::text, x FROM {} ORDER BY i"
        copied = connection.execute(text.format("t")).fetchall()
        assert copied == connection.execute(text.format("s")).fetchall()
        assert connection.execute("SELECT a FROM t ORDER BY i").fetchall() == [([1, 2],), (None,)]
    move(
        {**source, "query": "SELECT * FROM s WHERE i > 0"},
        {"kind": "duckdb", "path": "t.duckdb", "table": "t", "create": True},
    )
    connected = duckdb.connect(str(tmp_path / "t.duckdb"))
    assert connected.execute("SELECT i, b, d::text, j::text, u::text, y, x FROM t").fetchall() == [
        (2**63 - 1, True, "2024-01-02", '"text"', "00000000-0000-0000-0000-000000000001", b"\xab\xcd", "007")
    ]
    connected.close()


def test_an_upsert_can_be_run_again_in_every_database(move: Move, postgres_url: str, tmp_path: Path) -> None:
    source = rows((1, "x"), (2, "y"), (1, "z"))
    ends: list[dict[str, Any]] = [
        {"kind": "postgres", "url": postgres_url},
        {"kind": "sqlite", "path": "t.db"},
        {"kind": "duckdb", "path": "t.duckdb"},
    ]
    for end in ends:
        target = {**end, "table": "t", "mode": "upsert", "keys": ["a"], "create": True}
        for _ in range(2):
            assert move(source, target)["rows_written"] == 3
        out = {"kind": "jsonl", "path": "out.jsonl"}
        move({**end, "query": "SELECT * FROM t WHERE a > :least ORDER BY a", "params": {"least": 0}}, out)
        assert lines(tmp_path / "out.jsonl") == [{"a": 1, "b": "z"}, {"a": 2, "b": "y"}]


def test_modes_decide_what_happens_to_rows_that_are_there(move: Move, tmp_path: Path) -> None:
    target = {"kind": "sqlite", "path": "t.db", "table": "t"}
    read = "SELECT group_concat(a) FROM t"
    move(rows((1, "x")), {**target, "create": True})
    move(rows((2, "y")), {**target, "mode": "append"})
    assert asked(tmp_path / "t.db", read) == [("1,2",)]
    move(rows((3, "z")), {**target, "mode": "truncate"})
    assert asked(tmp_path / "t.db", read) == [("3",)]
    move(rows(("now", "text", "three")), {**target, "mode": "replace"})
    assert asked(tmp_path / "t.db", "SELECT * FROM t") == [("now", "text", "three")]


def test_postgres_is_emptied_and_filled_in_one_commit(move: Move, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE t (a int NOT NULL, b jsonb)")
        connection.execute("INSERT INTO t VALUES (0)")
    target = {"kind": "postgres", "url": postgres_url, "table": "t", "mode": "truncate"}
    assert failed(move, rows((1, {}), (None, {})), target).kind == "constraint"
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [(0,)]
    move(rows((1, "text"), (2, [1, 2]), (3, {"k": None})), target)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT b FROM t ORDER BY a").fetchall() == [("text",), ([1, 2],), ({"k": None},)]


def test_a_failure_keeps_committed_chunks_and_says_how_many_rows_they_are(move: Move, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "t.db")
    connection.execute("CREATE TABLE t (a CHECK (a < 25))")
    connection.close()
    source = rows(*((number,) for number in range(40)))
    target = {"kind": "sqlite", "path": "t.db", "table": "t"}
    failure = failed(move, source, target, chunk_rows=10)
    assert failure.kind == "constraint"
    assert failure.message.startswith("writing to `t`: CHECK constraint failed")
    assert failure.detail == {"rows_read": 30, "rows_written": 20, "chunks": 2}
    assert asked(tmp_path / "t.db", "SELECT count(*) FROM t") == [(20,)]
    failure = failed(move, source, {**target, "mode": "truncate"}, chunk_rows=10, atomic=True)
    assert failure.detail["rows_written"] == 0
    assert asked(tmp_path / "t.db", "SELECT count(*) FROM t") == [(20,)]


def test_an_error_is_blamed_on_the_end_it_comes_from(move: Move, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE t (a int)")
    target = {"kind": "postgres", "url": postgres_url, "table": "t"}
    source = {
        "kind": "postgres",
        "url": postgres_url,
        "query": "SELECT 10 / (15 - n) AS a FROM generate_series(1, 20) n",
    }
    failure = failed(move, source, target, chunk_rows=5)
    assert (failure.message, failure.detail["rows_written"]) == ("reading: division by zero", 10)
    assert failure.helpers["pg"]["code"] == "22012"
    missing = failed(move, rows((1,)), {**target, "table": "nowhere"})
    assert (missing.kind, "`create: true`" in missing.message) == ("not_found", True)
    away = failed(move, {"kind": "postgres", "url": "postgresql://h:canary@127.0.0.1:1/x", "table": "t"}, target)
    assert away.message.startswith("opening the source: no connection")
    assert "canary" not in away.message


def test_databases_in_memory_are_those_of_the_execution(tmp_path: Path) -> None:
    call = make_call(tmp_path)

    async def work() -> list[Any]:
        found = []
        tools: list[tuple[Any, dict[str, Any]]] = [(DuckdbTool(), {}), (SqliteTool(), {"path": ":memory:"})]
        for tool, where in tools:
            target = {"kind": tool.kind, **where, "table": "t", "create": True}
            await run_async(TransferTool(), {"source": rows((1,), (2,)), "target": target}, call)
            found.append(
                (await run_async(tool, {**where, "query": "SELECT sum(a) AS sum FROM t"}, call)).result["rows"]
            )
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()
        return found

    assert asyncio.run(work()) == [[{"sum": 3}], [{"sum": 3}]]


def test_an_empty_source_makes_an_empty_target(move: Move, tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "in.csv").write_text("a,b\n")
    result = move({"kind": "csv", "path": "in.csv"}, {"kind": "csv", "path": "out.csv"})
    assert result == {"rows_read": 0, "rows_written": 0, "chunks": 0, "columns": ["a", "b"]}
    assert (tmp_path / "out.csv").read_text() == "a,b\n"
    source = {"kind": "postgres", "url": postgres_url, "query": "SELECT 1::bigint AS a, '{}'::jsonb AS b WHERE false"}
    move(source, {"kind": "postgres", "url": postgres_url, "table": "t", "create": True})
    with psycopg.connect(postgres_url) as connection:
        assert [column.type_code for column in connection.execute("SELECT * FROM t").description or []] == [20, 3802]
    move({"kind": "rows", "rows": []}, {"kind": "json", "path": "out.json"})
    assert json.loads((tmp_path / "out.json").read_text()) == []


@cases(
    "source, target, more, words",
    [
        ({"kind": "sqlite", "path": "a.db"}, {}, {}, "exactly one of `table` and `query`"),
        ({"kind": "sqlite", "path": "a.db", "query": "SELECT 1; SELECT 2"}, {}, {}, "takes one statement"),
        ({}, {"mode": "upsert"}, {}, "needs `keys`"),
        ({}, {"mode": "upsert", "keys": ["nope"]}, {}, "`nope` is not among those moved"),
        ({}, {}, {"columns": {"x": "nope"}}, "no column `nope`"),
        ({"kind": "sqlite", "path": "t.db", "table": "t"}, {}, {}, "the same SQLite database"),
        ({"kind": "rows", "rows": "text"}, {}, {}, "takes a list of rows, not text"),
    ],
)
def test_parameters_that_make_no_sense_are_explained(
    move: Move, tmp_path: Path, source: dict[str, Any], target: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    source = source or {"kind": "csv", "path": "in.csv"}
    failure = failed(move, source, {"kind": "sqlite", "path": "t.db", "table": "t", "create": True, **target}, **more)
    assert words in failure.message


def test_names_are_quoted_and_never_read_as_sql(move: Move, tmp_path: Path) -> None:
    evil = 'a"); DROP TABLE t; --'
    source = {"kind": "rows", "rows": [{evil: 1}]}
    for kind, path in (("sqlite", "t.db"), ("duckdb", "t.duckdb")):
        target = {"kind": kind, "path": path, "table": "ta ble", "create": True}
        move(source, target)
        move({"kind": kind, "path": path, "table": "ta ble"}, {"kind": "jsonl", "path": "out.jsonl"})
        assert lines(tmp_path / "out.jsonl") == [{evil: 1}]


def test_long_work_says_how_far_it_is(tmp_path: Path) -> None:
    class Ticking:
        time = 0.0

        def now(self) -> float:
            self.time += 2.0
            return self.time

        async def sleep(self, seconds: float) -> None: ...

    said: list[str] = []
    call = make_call(tmp_path, clock=Ticking(), say=said.append)
    params = {"source": rows(*((n,) for n in range(9))), "target": {"kind": "json", "path": "o.json"}, "chunk_rows": 1}
    run(TransferTool(), params, call)
    assert said == ["3 rows read, 3 committed", "6 rows read, 6 committed", "9 rows read, 9 committed"]


@pytest.mark.parametrize("atomic", [False, True])
def test_cancelling_a_transfer_stops_both_ends_and_leaves_whole_chunks(
    tmp_path: Path, postgres_url: str, atomic: bool
) -> None:
    call = make_call(tmp_path)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE t (a int)")
    endless = "SELECT n AS a, pg_sleep(0.001)::text AS z FROM generate_series(1, 10000000) n"
    params = {
        "source": {"kind": "postgres", "url": postgres_url, "query": endless},
        "target": {"kind": "postgres", "url": postgres_url, "table": "t"},
        "columns": ["a"],
        "chunk_rows": 10,
        "atomic": atomic,
    }

    async def work() -> None:
        task = asyncio.ensure_future(run_async(TransferTool(), params, call))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()

    asyncio.run(work())
    with psycopg.connect(postgres_url) as connection:
        (count,) = connection.execute("SELECT count(*) FROM t").fetchone() or (None,)
        running = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(0.001)%' AND pid <> pg_backend_pid() "
            "AND state = 'active'"
        ).fetchone()
    assert count % 10 == 0
    assert count == 0 or not atomic
    assert running == (0,)


def test_the_example_runs(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("order_id,customer,total\n1,ada,2.50\n")
    (task,) = yaml.safe_load(example_of(TransferTool))
    params = {key: value for key, value in task.items() if key not in ("name", "kind")}
    assert run(TransferTool(), params, make_call(tmp_path)).result["rows_written"] == 1


def test_mysql_is_a_source_and_a_target(move: Move, mariadb_url: str, tmp_path: Path) -> None:
    mysql = {"kind": "mysql", "url": mariadb_url}
    target = {**mysql, "table": "t", "mode": "upsert", "keys": ["a"], "create": True}
    source = rows((1, "it's 100%", {"k": [1]}), (2, None, None))
    for _ in range(2):
        assert move(source, target)["rows_written"] == 2
    move({**mysql, "table": "t"}, {"kind": "jsonl", "path": "out.jsonl"}, columns=["a", "b"])
    assert lines(tmp_path / "out.jsonl") == [{"a": 1, "b": "it's 100%"}, {"a": 2, "b": None}]
    failure = failed(move, {**mysql, "query": "SELECT * FROM nowhere"}, {"kind": "jsonl", "path": "no.jsonl"})
    assert (failure.kind, failure.helpers["mysql"]["code"]) == ("not_found", 1146)
    (tmp_path / "folder.csv").mkdir()
    many = {**mysql, "query": "SELECT seq AS a FROM seq_1_to_1000000"}
    assert failed(move, many, {"kind": "sqlite", "path": "t.db", "table": "no"}, chunk_rows=10).kind == "not_found"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_transfers_that_run_side_by_side_may_all_make_the_table(
    kind: str, mode: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Of several that make it at once the others find it made, and no row is lost."""
    with opened(kind, request, tmp_path) as database:
        resources = SharedResources()
        target = {"kind": kind, **database.names, "table": "t", "create": True, "mode": mode, "keys": ["a"]}

        async def moved(number: int) -> Any:
            call = make_call(tmp_path, resources=resources)
            return await run_async(TransferTool(), {"source": rows((number, "x")), "target": target}, call)

        async def main() -> None:
            await asyncio.gather(*map(moved, range(6)))
            await resources.close()

        asyncio.run(main())
        assert [row[0] for row in database.do("SELECT a FROM t ORDER BY a")] == list(range(6))
