"""The duckdb tool, on real files and in memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.tools.base import ToolFailure
from penstock.tools.registry import example_of
from penstock.tools.sql import duckdb as duckdb_tool
from penstock.tools.sql.connection import Stop, Stopped, interruptible
from penstock.tools.sql.duckdb import DuckdbTool, connect
from tests.tools.support import SharedResources, make_call, run, run_async

Do = Callable[..., Any]
ENDLESS = "SELECT count(*) FROM range(1000000000000) a(i) WHERE i % 3 = 1"


@pytest.fixture
def do(tmp_path: Path) -> Do:
    def run_one(*, spec: Any = None, **params: Any) -> Any:
        return run(DuckdbTool(), {"path": "test.duckdb", **params}, make_call(tmp_path, spec=spec or {})).result

    return run_one


def failed(do: Do, **params: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        do(**params)
    return caught.value


def test_commands_give_rows_counts_and_columns(do: Do) -> None:
    setup = "CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL)"
    result = do(command=f"{setup}; SELECT * FROM t ORDER BY a DESC")
    assert result["rows"] == [{"a": 2, "b": None}, {"a": 1, "b": "x"}]
    assert result["command_0"] == {"rows": [], "row_count": 0, "columns": []}
    assert result["command_1"] == {"rows": [], "row_count": 2, "columns": []}
    assert do(query="SELECT * FROM t WHERE false")["columns"] == ["a", "b"]
    assert do(command="UPDATE t SET b = 'y'")["row_count"] == 2
    assert do(command="DELETE FROM t WHERE a = 1 RETURNING b")["rows"] == [{"b": "y"}]
    assert do(query="SELECT 5 AS Count")["rows"] == [{"Count": 5}]


def test_files_are_read_from_the_documents_folder(do: Do, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,amount\n1,2.5\n2,4\n")
    assert do(query="SELECT sum(amount) AS sum FROM 'orders.csv'", path=None)["rows"] == [{"sum": 6.5}]
    failure = failed(do, query="SELECT * FROM 'missing.csv'")
    assert (failure.kind, "missing.csv" in failure.message) == ("not_found", True)


def test_values_are_bound_in_every_spelling(do: Do) -> None:
    assert do(query="SELECT :a::INT + $b AS sum", params={"a": 1, "b": 2})["rows"] == [{"sum": 3}]
    assert do(query="SELECT ?::INT + ? AS sum", params=[1, 2])["rows"] == [{"sum": 3}]
    assert do(query="SELECT $2::INT - $1 AS rest", params=[1, 5])["rows"] == [{"rest": 4}]
    assert do(query="SELECT list_sum(:ids) AS sum", params={"ids": [1, 2, 3]})["rows"] == [{"sum": 6}]


def test_every_type_is_said_in_json(do: Do) -> None:
    columns = {
        "1.50::DECIMAL(9, 2)": 1.5,
        "1::HUGEINT << 100": str(2**100),
        "'NaN'::DOUBLE": "NaN",
        "DATE '2024-01-02'": "2024-01-02",
        "TIME '10:00'": "10:00:00",
        "TIMESTAMP '2024-01-02 03:04:05'": "2024-01-02T03:04:05",
        "TIMESTAMPTZ '2024-01-02 03:04:05+02'": "2024-01-02T01:04:05.000000+00:00",
        "INTERVAL 90 MINUTE": "PT1H30M",
        "'00000000-0000-0000-0000-000000000001'::UUID": "00000000-0000-0000-0000-000000000001",
        "'ab'::BLOB": "YWI=",
        "'{\"a\": [1]}'::JSON": {"a": [1]},
        "{'a': 1, 'b': [1, NULL]}": {"a": 1, "b": [1, None]},
        "MAP {'k': 1}": {"k": 1},
    }
    text = ", ".join(f"{sql} AS c{index}" for index, sql in enumerate(columns))
    (row,) = do(query=f"SELECT {text}")["rows"]
    json.dumps(row)
    assert list(row.values()) == list(columns.values())


def test_timestamps_with_a_zone_keep_order_and_double_names(do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytz", None)  # DuckDB would give them back if it were there.
    query = (
        "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_days(i::INT) AS t, i AS t FROM range(3) r(i) ORDER BY i DESC"
    )
    assert do(query=query)["rows"][0] == {"t": "2024-01-03T00:00:00.000000+00:00", "t_2": 2}
    failure = failed(do, command="CREATE TABLE z (t TIMESTAMPTZ); INSERT INTO z VALUES (now()) RETURNING t")
    assert "::VARCHAR" in failure.message


def test_all_commands_of_a_task_count_or_none_does(do: Do) -> None:
    do(command="CREATE TABLE t (a INT PRIMARY KEY)")
    failure = failed(do, commands=["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2), (2)"])
    assert (failure.kind, failure.detail["command"]) == ("constraint", 1)
    assert failure.helpers == {"duckdb": {"code": "ConstraintException"}}
    assert do(query="SELECT * FROM t")["rows"] == []


@pytest.mark.clause("P5.2")
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("SELEC 1", "syntax"),
        ("SELECT * FROM nowhere", "not_found"),
        ("SELECT nothing", "not_found"),
        ("SELECT 'x'::INT", "database"),
    ],
)
def test_errors_have_a_kind_and_name_the_statement(do: Do, command: str, kind: str) -> None:
    failure = failed(do, command=f"SELECT 1; {command}")
    assert failure.kind == kind
    assert f"`{command}`" in failure.message


def test_variables_of_the_program_are_not_tables(do: Do) -> None:
    assert failed(do, query="SELECT * FROM call").kind == "not_found"


def test_an_upsert_can_be_run_again(do: Do) -> None:
    do(command="CREATE TABLE t (id INT, part TEXT, name TEXT, tags INT[], raw BLOB, PRIMARY KEY (id, part))")
    rows = [
        {"id": 1, "part": "a", "name": "x", "tags": [1, 2]},
        {"id": 1, "part": "a", "name": "it's"},
        {"id": 2, "part": "b", "name": None},
    ]
    for _ in range(2):
        do(upsert={"table": "t", "keys": ["id", "part"], "rows": rows})
    assert do(query="SELECT id, name, tags FROM t ORDER BY id")["rows"] == [
        {"id": 1, "name": "it's", "tags": None},
        {"id": 2, "name": None, "tags": None},
    ]


def test_a_database_in_memory_is_shared_within_an_execution_only(tmp_path: Path) -> None:
    call = make_call(tmp_path)

    async def work() -> Any:
        async def ask(command: str) -> Any:
            return (await run_async(DuckdbTool(), {"command": command}, call)).result

        await ask("CREATE TABLE t (a INT)")
        await asyncio.gather(*(ask(f"INSERT INTO t VALUES ({number})") for number in range(10)))
        result = await ask("SELECT count(*) AS n FROM t")
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()
        return result

    assert asyncio.run(work())["rows"] == [{"n": 10}]
    with pytest.raises(ToolFailure, match="does not exist"):
        run(DuckdbTool(), {"query": "SELECT * FROM t"}, make_call(tmp_path))


def test_a_row_that_another_is_changing_is_a_serialization_failure(do: Do, tmp_path: Path) -> None:
    do(command="CREATE TABLE t (a INT); INSERT INTO t VALUES (0)")
    other = connect(str(tmp_path / "test.duckdb"))
    other.begin()
    other.execute("UPDATE t SET a = 5")
    failure = failed(do, command="UPDATE t SET a = a + 1")
    other.close()
    assert (failure.kind, failure.retryable) == ("serialization", True)


def test_the_time_limit_interrupts_a_statement_and_the_database_stays_usable(tmp_path: Path) -> None:
    resources = SharedResources()

    async def work() -> Any:
        slow = make_call(tmp_path, spec={"timeout": 0.1}, resources=resources)
        with pytest.raises(ToolFailure) as caught:
            await run_async(DuckdbTool(), {"command": ENDLESS}, slow)
        assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
        result = await run_async(DuckdbTool(), {"query": "SELECT 1 AS fine"}, make_call(tmp_path, resources=resources))
        await resources.close()
        return result.result

    assert asyncio.run(work())["rows"] == [{"fine": 1}]


def test_cancelling_a_task_ends_its_statement_and_undoes_its_work(do: Do, tmp_path: Path) -> None:
    do(command="CREATE TABLE t (a INT)")
    call = make_call(tmp_path)

    async def work() -> None:
        params = {"path": "test.duckdb", "command": f"INSERT INTO t VALUES (1); {ENDLESS}"}
        task = asyncio.ensure_future(run_async(DuckdbTool(), params, call))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()

    asyncio.run(work())
    assert do(query="SELECT * FROM t")["rows"] == []


def test_more_rows_than_the_limit_are_refused_without_reading_them_all(do: Do) -> None:
    assert failed(do, query="SELECT * FROM range(1000000000000)", max_rows=100).kind == "too_large"


def test_the_folders_of_a_database_are_made_unless_it_is_only_read(do: Do, tmp_path: Path) -> None:
    failed(do, command="SELECT 1", path="a/new/x.duckdb", read_only=True)
    assert not (tmp_path / "a").exists()
    do(command="SELECT 1", path="a/new/x.duckdb")
    assert (tmp_path / "a" / "new" / "x.duckdb").is_file()


def test_a_file_that_cannot_be_opened_is_named(do: Do, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("not a database, but long enough to be looked at " * 500)
    for path in ("text.txt/missing.duckdb", "text.txt"):
        failure = failed(do, command="SELECT 1", path=path)
        assert (failure.kind, path in failure.message) == ("connect", True)


def test_the_example_runs(tmp_path: Path) -> None:
    (task,) = yaml.safe_load(example_of(DuckdbTool))
    params = {key: value for key, value in task.items() if key not in ("name", "kind")}
    assert run(DuckdbTool(), params, make_call(tmp_path)).result["rows"] == [{"customer": "ada", "total": 20}]


HOLDS = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
connection.close()
"""


def test_a_cancel_ends_the_wait_for_a_file_that_another_process_has_open(tmp_path: Path) -> None:
    """The thread ends with the task: nothing opens the file later, when the other has closed it."""
    command = [sys.executable, "-c", HOLDS, str(tmp_path / "test.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        waiting = threading.Event()
        call = make_call(tmp_path, say=lambda line: waiting.set())
        ended: list[object] = []

        async def ask() -> None:
            shared = await duckdb_tool.shared_database(str(tmp_path / "test.duckdb"), call)

            def work(stop: Stop) -> None:
                try:
                    shared.cursor(tmp_path, stop)
                except BaseException as error:
                    ended.append(type(error))
                    raise

            await interruptible(call, work)

        async def main() -> None:
            task = asyncio.ensure_future(ask())
            await asyncio.to_thread(waiting.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert ended == [Stopped], "before the cancel was over"

        asyncio.run(main())
        other.communicate("\n")


def test_a_file_that_another_process_has_open_is_waited_for(
    do: Do, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other closes it when this one has tried in vain, or not at all."""
    command = [sys.executable, "-c", HOLDS, str(tmp_path / "test.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdout.readline()
        monkeypatch.setattr(duckdb_tool, "LOCK_WAIT_S", 0.0)
        refused = failed(do, query="SELECT 1 AS one")
        assert (refused.kind, refused.retryable) == ("connect", True)
        assert f"is locked by PID {other.pid}" in refused.message
        monkeypatch.setattr(duckdb_tool, "LOCK_WAIT_S", 60.0)
        monkeypatch.setattr(duckdb_tool.time, "sleep", lambda seconds: other.communicate("\n"))
        said: list[str] = []
        duckdb_tool.connect(str(tmp_path / "test.duckdb"), say=said.append).close()
        path = tmp_path / "test.duckdb"
        holder = Path(sys.executable).resolve().name
        assert said == [f"database `{path}` is locked by PID {other.pid} ({holder}), trying again for 60 s"]
        assert do(query="SELECT 1 AS one")["rows"] == [{"one": 1}]
