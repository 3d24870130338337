"""The mysql tool: what needs no server everywhere, the rest against a real MariaDB where one is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT

from penstock.tools.base import ToolFailure
from penstock.tools.sql.connection import Address
from penstock.tools.sql.mysql import MysqlTool, bindable, failure_of, login_of
from penstock.tools.sql.results import RunningCommand
from tests.cases import cases
from tests.servers import mariadb_server, mariadb_url
from tests.tools.support import SharedResources, make_call, run, run_async

__all__ = ["mariadb_server", "mariadb_url"]

Do = Callable[..., Any]


def test_a_url_and_single_fields_say_the_same(tmp_path: Path) -> None:
    call = make_call(tmp_path, spec={"timeout": {"connect": 3}})
    expected = {
        "charset": "utf8mb4",
        "client_flag": CLIENT.FOUND_ROWS,
        "connect_timeout": 3,
        "host": "db.example",
        "port": 3307,
        "user": "ada",
        "password": "p@ss",
        "database": "shop",
    }
    fields = Address(host="db.example", port=3307, user="ada", password="p@ss", database="shop")
    assert login_of(Address(url="mysql://ada:p%40ss@db.example:3307/shop"), call).arguments == expected
    assert login_of(fields, call).arguments == expected
    other = login_of(Address(url="mysql+pymysql://ada:p%40ss@db.example:3307/x", database="shop"), call)
    assert other.arguments == expected
    assert "p@ss" not in repr(fields) + repr(other)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (Address(url="postgresql://h/x"), "`mysql://`"),
        (Address(url="mysql://u:secret@h:1:1/x"), "cannot be read"),
        (Address(host="h", options={"sslmode": "maybe"}), "`maybe` is not an sslmode"),
    ],
)
def test_an_address_that_makes_no_sense_is_explained(address: Address, words: str, tmp_path: Path) -> None:
    with pytest.raises(ToolFailure) as caught:
        login_of(address, make_call(tmp_path))
    assert caught.value.kind == "parameters"
    assert words in caught.value.message
    assert "secret" not in caught.value.message


def test_lists_are_for_in_and_mappings_go_as_json() -> None:
    assert bindable([1, 2]) == [1, 2]
    assert bindable([]) == [None]
    assert bindable({"a": [1]}) == '{"a":[1]}'
    assert bindable([{"a": 1}]) == '[{"a":1}]'


@pytest.mark.clause("P5.2")
@cases(
    "number, kind, retryable",
    [
        (1062, "constraint", False),
        (1452, "constraint", False),
        (1064, "syntax", False),
        (1146, "not_found", False),
        (1213, "serialization", True),
        (1205, "timeout", True),
        (1045, "permission", False),
        (2013, "connect", True),
        (1366, "database", False),
    ],
)
def test_error_numbers_have_a_kind(number: int, kind: str, retryable: bool) -> None:
    failure = failure_of(pymysql.OperationalError(number, "so it is"), RunningCommand(1, 2, "SELECT 1"))
    assert (failure.kind, failure.retryable, failure.helpers["mysql"]["code"]) == (kind, retryable, number)
    assert failure.message == "so it is (in command 1 of 2, counted from 0: `SELECT 1`)"


@pytest.mark.clause("P5.2")
def test_a_server_that_is_not_there_is_an_error_of_kind_connect_without_the_password(tmp_path: Path) -> None:
    auth = {"host": "127.0.0.1", "port": 1, "user": "ada", "password": "hunter2-canary"}
    with pytest.raises(ToolFailure) as caught:
        run(MysqlTool(), {"auth": "my", "command": "SELECT 1"}, make_call(tmp_path, credentials={"my": auth}))
    failure = caught.value
    assert (failure.kind, failure.retryable, failure.helpers["mysql"]["code"]) == ("connect", True, 2003)
    assert "refused" in failure.message
    assert "hunter2" not in repr((failure.message, failure.detail, failure.helpers, failure.__cause__))


@pytest.fixture
def do(mariadb_url: str, tmp_path: Path) -> Do:
    def run_one(*, spec: Any = None, **params: Any) -> Any:
        call = make_call(tmp_path, spec=spec or {}, credentials={"my": {"url": mariadb_url}})
        return run(MysqlTool(), {"auth": "my", **params}, call).result

    return run_one


def failed(do: Do, **params: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        do(**params)
    return caught.value


def test_commands_give_rows_counts_and_columns(do: Do) -> None:
    setup = "CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL)"
    result = do(command=f"{setup}; SELECT * FROM t ORDER BY a DESC")
    assert result["rows"] == [{"a": 2, "b": None}, {"a": 1, "b": "x"}]
    assert result["command_1"] == {"rows": [], "row_count": 2, "columns": []}
    assert do(query="SELECT * FROM t WHERE false")["columns"] == ["a", "b"]


def test_values_are_bound_in_every_spelling(do: Do) -> None:
    evil = 'it\'s \\ "x"; -- %s'
    assert do(query="SELECT :a AS a, '%s :a' AS b", params={"a": evil})["rows"] == [{"a": evil, "b": "%s :a"}]
    assert do(query="SELECT %s + ? AS sum, 7 % 4 AS rest", params=[1, 2])["rows"] == [{"sum": 3, "rest": 3}]
    assert do(query="SELECT 1 IN :ids AS yes, 1 IN :none AS no", params={"ids": [1, 2], "none": []})["rows"] == [
        {"yes": 1, "no": None}
    ]


def test_every_type_is_said_in_json(do: Do) -> None:
    query = (
        "SELECT CAST(1.50 AS DECIMAL(9, 2)) AS d, x'abcd' AS b, DATE '2024-01-02' AS day, CAST('10:30' AS TIME) AS t"
    )
    assert do(query=query)["rows"] == [{"d": 1.5, "b": "q80=", "day": "2024-01-02", "t": "PT10H30M"}]


def test_all_commands_of_a_task_count_or_none_does(do: Do) -> None:
    do(command="CREATE TABLE t (a INT PRIMARY KEY)")
    failure = failed(do, commands=["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2), (2)"])
    assert (failure.kind, failure.helpers["mysql"]["code"], failure.detail["command"]) == ("constraint", 1062, 1)
    assert do(query="SELECT * FROM t")["rows"] == []


def test_an_upsert_can_be_run_again(do: Do) -> None:
    do(command="CREATE TABLE t (id INT PRIMARY KEY, `na me` TEXT, extra JSON)")
    rows = [{"id": 1, "na me": "a", "extra": {"x": "100%"}}, {"id": 2, "na me": "b"}, {"id": 1, "na me": "c"}]
    for _ in range(2):
        assert do(upsert={"table": "t", "keys": ["id"], "rows": rows})["row_count"] == 3
    assert do(query="SELECT id, `na me` FROM t ORDER BY id")["rows"] == [
        {"id": 1, "na me": "c"},
        {"id": 2, "na me": "b"},
    ]
    do(upsert={"table": "t", "keys": ["id"], "rows": [{"id": 1}]})
    assert do(query="SELECT count(*) AS n FROM t")["rows"] == [{"n": 2}]


def test_more_rows_than_the_limit_are_refused(do: Do) -> None:
    assert failed(do, query="SELECT * FROM seq_1_to_10000000", max_rows=100).kind == "too_large"


def test_a_time_limit_and_a_cancel_stop_the_statement_on_the_server(do: Do, mariadb_url: str, tmp_path: Path) -> None:
    failure = failed(do, command="SELECT sleep(61)", spec={"timeout": 0.1})
    assert (failure.kind, failure.retryable) == ("timeout", True)
    call = make_call(tmp_path)

    async def work() -> None:
        slow = {"url": mariadb_url, "command": "SELECT sleep(62)"}
        task = asyncio.ensure_future(run_async(MysqlTool(), slow, call))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()

    asyncio.run(work())
    running = do(query="SELECT info FROM information_schema.processlist WHERE info LIKE 'SELECT sleep(6_)'")
    assert running["rows"] == []


def test_tasks_of_an_execution_share_connections_but_no_settings(mariadb_url: str, tmp_path: Path) -> None:
    call = make_call(tmp_path)

    async def work() -> list[Any]:
        async def ask(command: str) -> Any:
            outcome = await run_async(MysqlTool(), {"url": mariadb_url, "command": command}, call)
            return outcome.result["rows"]

        first = await ask("SELECT connection_id() AS id")
        second = await ask("SELECT connection_id() AS id")
        await ask("SET @mine = 5")
        third = await ask("SELECT @mine AS mine")
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()
        return [first, second, third]

    first, second, third = asyncio.run(work())
    assert first == second
    assert third == [{"mine": None}]


def test_routines_can_be_made_and_called(do: Do) -> None:
    body = "BEGIN DECLARE i INT DEFAULT 0; WHILE i < n DO SET i = i + 1; END WHILE; SELECT i; END"
    assert do(command=f"CREATE PROCEDURE p(IN n INT) {body}; CALL p(3)")["rows"] == [{"i": 3}]
