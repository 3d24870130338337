"""The sqlite tool, on real files and in memory."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.tools.base import ToolFailure
from penstock.tools.registry import example_of
from penstock.tools.sql.sqlite import SqliteTool
from tests.tools.support import SharedResources, make_call, run, run_async

Do = Callable[..., Any]
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


@pytest.fixture
def do(tmp_path: Path) -> Do:
    def run_one(*, spec: Any = None, **params: Any) -> Any:
        return run(SqliteTool(), {"path": "test.db", **params}, make_call(tmp_path, spec=spec or {})).result

    return run_one


def failed(do: Do, **params: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        do(**params)
    return caught.value


def test_commands_give_rows_counts_and_columns(do: Do) -> None:
    result = do(
        command="CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, NULL); SELECT * FROM t ORDER BY a DESC"
    )
    assert result["rows"] == [{"a": 2, "b": None}, {"a": 1, "b": "x"}]
    assert (result["row_count"], result["columns"]) == (2, ["a", "b"])
    assert result["command_1"] == {"rows": [], "row_count": 2, "columns": []}
    assert do(query="SELECT * FROM t WHERE false")["columns"] == ["a", "b"]
    assert do(command="DELETE FROM t WHERE a = 1 RETURNING b")["rows"] == [{"b": "x"}]


def test_the_path_is_relative_to_the_documents_folder(do: Do, tmp_path: Path) -> None:
    do(command="CREATE TABLE t (a)")
    assert (tmp_path / "test.db").exists()


def test_values_are_bound_and_lists_go_as_json(do: Do) -> None:
    assert do(query="SELECT :a AS a", params={"a": "x'; --"})["rows"] == [{"a": "x'; --"}]
    assert do(query="SELECT ? || ? AS a", params=["x", "y"])["rows"] == [{"a": "xy"}]
    ids = do(query="SELECT sum(value) AS sum FROM json_each(:ids)", params={"ids": [1, 2, 3]})
    assert ids["rows"] == [{"sum": 6}]


def test_all_commands_of_a_task_count_or_none_does(do: Do) -> None:
    do(command="CREATE TABLE t (a INTEGER PRIMARY KEY)")
    failure = failed(do, commands=["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)"])
    assert (failure.kind, failure.detail["command"]) == ("constraint", 1)
    assert failure.helpers == {"sqlite": {"code": "SQLITE_CONSTRAINT_PRIMARYKEY"}}
    assert do(query="SELECT * FROM t")["rows"] == []
    failed(do, command="INSERT INTO t VALUES (1); SELEC", autocommit=True)
    assert do(query="SELECT * FROM t")["rows"] == [{"a": 1}]


@pytest.mark.clause("P5.2")
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("SELEC 1", "syntax"),
        ("SELECT * FROM nowhere", "not_found"),
        ("SELECT missing", "not_found"),
        ("SELECT json('{')", "database"),
    ],
)
def test_errors_have_a_kind_and_name_the_statement(do: Do, command: str, kind: str) -> None:
    failure = failed(do, command=f"SELECT 1; {command}")
    assert failure.kind == kind
    assert failure.helpers == {"sqlite": {"code": "SQLITE_ERROR"}}
    assert f"`{command}`" in failure.message


def test_an_upsert_can_be_run_again(do: Do) -> None:
    do(command="CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, tags TEXT)")
    rows = [{"id": 1, "name": "a", "tags": ["x"]}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"}]
    for _ in range(2):
        do(upsert={"table": "t", "keys": ["id"], "rows": rows})
    assert do(query="SELECT * FROM t ORDER BY id")["rows"] == [
        {"id": 1, "name": "c", "tags": None},
        {"id": 2, "name": "b", "tags": None},
    ]


def test_a_database_in_memory_is_shared_within_an_execution_only(tmp_path: Path) -> None:
    call = make_call(tmp_path)

    async def work() -> Any:
        async def ask(command: str) -> Any:
            return (await run_async(SqliteTool(), {"path": ":memory:", "command": command}, call)).result

        await ask("CREATE TABLE t (a)")
        await asyncio.gather(*(ask(f"INSERT INTO t VALUES ({number})") for number in range(20)))
        result = await ask("SELECT count(*) AS n FROM t")
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()
        return result

    assert asyncio.run(work())["rows"] == [{"n": 20}]
    with pytest.raises(ToolFailure, match="no such table"):
        run(SqliteTool(), {"path": ":memory:", "query": "SELECT * FROM t"}, make_call(tmp_path))


def test_writers_of_one_execution_wait_for_each_other(tmp_path: Path) -> None:
    call = make_call(tmp_path)

    async def work() -> Any:
        async def ask(command: str) -> Any:
            return (await run_async(SqliteTool(), {"path": "test.db", "command": command}, call)).result

        await ask("CREATE TABLE t (a); INSERT INTO t VALUES (0)")
        await asyncio.gather(*(ask("SELECT a FROM t; UPDATE t SET a = a + 1") for _ in range(10)))
        result = await ask("SELECT a FROM t")
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()
        return result

    assert asyncio.run(work())["rows"] == [{"a": 10}]


def test_a_lock_held_too_long_by_another_is_worth_a_retry(do: Do, tmp_path: Path) -> None:
    do(command="CREATE TABLE t (a)")
    other = sqlite3.connect(tmp_path / "test.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    failure = failed(do, command="INSERT INTO t VALUES (1)", busy_timeout=0.05)
    other.close()
    assert (failure.kind, failure.retryable, failure.helpers["sqlite"]["code"]) == ("timeout", True, "SQLITE_BUSY")


@pytest.mark.parametrize("path", ["test.db", ":memory:"])
def test_the_time_limit_interrupts_a_statement_and_the_database_stays_usable(tmp_path: Path, path: str) -> None:
    resources = SharedResources()

    async def work() -> Any:
        slow = make_call(tmp_path, spec={"timeout": 0.05}, resources=resources)
        with pytest.raises(ToolFailure) as caught:
            await run_async(SqliteTool(), {"path": path, "command": ENDLESS}, slow)
        assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
        call = make_call(tmp_path, resources=resources)
        result = await run_async(SqliteTool(), {"path": path, "query": "SELECT 1 AS fine"}, call)
        await resources.close()
        return result.result

    assert asyncio.run(work())["rows"] == [{"fine": 1}]


def test_cancelling_a_task_ends_its_statement_and_undoes_its_work(do: Do, tmp_path: Path) -> None:
    do(command="CREATE TABLE t (a)")
    call = make_call(tmp_path)

    async def work() -> None:
        params = {"path": "test.db", "command": f"INSERT INTO t VALUES (1); {ENDLESS}"}
        task = asyncio.ensure_future(run_async(SqliteTool(), params, call))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()

    asyncio.run(work())
    assert do(query="SELECT * FROM t")["rows"] == []


def test_more_rows_than_the_limit_are_refused(do: Do) -> None:
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
    assert failed(do, query=endless, max_rows=100).kind == "too_large"


def test_statements_that_cannot_be_in_a_transaction_run_with_autocommit(do: Do) -> None:
    assert "`autocommit: true`" in failed(do, command="VACUUM").message
    do(command="VACUUM", autocommit=True)


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"path": "folder/missing.db"}, "connect"),
        ({"path": "missing.db", "create": False}, "connect"),
        ({"path": "text.txt"}, "connect"),
        ({"path": None}, "parameters"),
    ],
)
def test_a_file_that_cannot_be_opened_is_named(do: Do, tmp_path: Path, params: dict[str, Any], kind: str) -> None:
    (tmp_path / "text.txt").write_text("not a database, but long enough to be looked at " * 50)
    failure = failed(do, command="SELECT 1", **params)
    assert failure.kind == kind
    assert (params["path"] or "path") in failure.message


def test_a_file_opened_for_reading_only_is_not_written(do: Do) -> None:
    do(command="CREATE TABLE t (a)")
    assert failed(do, command="INSERT INTO t VALUES (1)", read_only=True).kind == "permission"
    assert do(query="SELECT count(*) AS n FROM t", read_only=True)["rows"] == [{"n": 0}]


def test_blobs_are_base64_and_triggers_can_be_made(do: Do) -> None:
    trigger = "CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET b = CASE WHEN 1 THEN 'set' END; SELECT 1; END"
    result = do(command=f"CREATE TABLE t (a, b); {trigger}; INSERT INTO t (a) VALUES (x'abcd'); SELECT * FROM t")
    assert result["rows"] == [{"a": "q80=", "b": "set"}]


def test_the_path_may_come_from_the_keychain(tmp_path: Path) -> None:
    call = make_call(tmp_path, credentials={"db": {"path": "kept.db"}})
    run(SqliteTool(), {"auth": "db", "command": "CREATE TABLE t (a)"}, call)
    assert (tmp_path / "kept.db").exists()


def test_the_example_runs(tmp_path: Path) -> None:
    (task,) = yaml.safe_load(example_of(SqliteTool))
    params = {key: value for key, value in task.items() if key not in ("name", "kind")}
    assert run(SqliteTool(), params, make_call(tmp_path)).result["rows"] == [{"customer": "ada", "total": 12.5}]
