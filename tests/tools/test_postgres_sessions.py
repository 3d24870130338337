"""The postgres tool, against a real PostgreSQL: transactions, connections, time limits and cancelling."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.tools.base import ToolFailure
from penstock.tools.sql.postgres import PostgresTool
from tests.servers import postgres_server, postgres_url
from tests.tools.asking import Do, do, failed, together, until
from tests.tools.support import make_call, run, run_async

__all__ = ["do", "postgres_server", "postgres_url"]


@pytest.mark.clause("P5.2")
def test_an_update_of_what_another_changed_meanwhile_is_a_serialization_failure(
    postgres_url: str, tmp_path: Path
) -> None:
    call = make_call(tmp_path)

    async def work() -> ToolFailure:
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as other:
            await other.execute("CREATE TABLE t (a int)")
            await other.execute("INSERT INTO t VALUES (1)")
            await other.execute("SELECT pg_advisory_lock(hashtext(current_schema()))")
            task = asyncio.ensure_future(
                run_async(
                    PostgresTool(),
                    {
                        "url": postgres_url,
                        "isolation": "repeatable read",
                        # The snapshot is taken by the first statement, which then waits for the lock.
                        "command": "SELECT pg_advisory_xact_lock(hashtext(current_schema())); UPDATE t SET a = a + 1",
                    },
                    call,
                )
            )
            await until(lambda: _waiting(other))
            await other.execute("UPDATE t SET a = 10")
            await other.execute("SELECT pg_advisory_unlock(hashtext(current_schema()))")
            with pytest.raises(ToolFailure) as caught:
                await task
            return caught.value

    failure = together(call, work)
    assert (failure.kind, failure.retryable, failure.helpers["pg"]["code"]) == ("serialization", True, "40001")
    assert failure.detail["command"] == 1


async def _waiting(connection: psycopg.AsyncConnection[Any]) -> bool:
    found = await connection.execute(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid <> pg_backend_pid() "
        "AND pid IN (SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory' "
        "AND objid = (hashtext(current_schema())::bigint & x'ffffffff'::bigint)::oid)"
    )
    return await found.fetchone() is not None


@pytest.mark.clause("P5.2")
def test_a_deadlock_is_retryable_and_has_code_40p01(postgres_url: str, tmp_path: Path) -> None:
    call = make_call(tmp_path)

    def locking(first: int, second: int) -> dict[str, Any]:
        meet = "SELECT pg_sleep(0.2)"
        quick = "SET LOCAL deadlock_timeout = '50ms'"
        lock = "UPDATE t SET b = b + 1 WHERE a = {}"
        return {"url": postgres_url, "commands": [quick, lock.format(first), meet, lock.format(second)]}

    async def work() -> list[Any]:
        tool = PostgresTool()
        setup = "CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 0), (2, 0)"
        await run_async(tool, {"url": postgres_url, "command": setup}, call)
        runs = [run_async(tool, locking(*order), call) for order in ((1, 2), (2, 1))]
        return await asyncio.gather(*runs, return_exceptions=True)

    outcomes = together(call, work)
    failures = [outcome for outcome in outcomes if isinstance(outcome, ToolFailure)]
    assert [(each.kind, each.retryable, each.helpers["pg"]["code"]) for each in failures] == [
        ("serialization", True, "40P01")
    ]


def test_statements_that_cannot_be_in_a_transaction_run_with_autocommit(do: Do) -> None:
    do(command="CREATE TABLE t (a int)")
    failure = failed(do, commands=["SELECT 1", "VACUUM t"])
    assert (failure.helpers["pg"]["code"], "`autocommit: true`" in failure.message) == ("25001", True)
    do(commands=["SELECT 1", "VACUUM t"], autocommit=True, spec={"timeout": 20})
    failed(do, command="INSERT INTO t VALUES (1); SELECT 1 / 0", autocommit=True)
    assert do(query="SELECT * FROM t")["rows"] == [{"a": 1}]


def test_a_commit_of_ones_own_is_refused_in_a_transaction(do: Do) -> None:
    failure = failed(do, command="INSERT INTO t VALUES (1); commit; SELECT 1")
    assert (failure.kind, "`COMMIT`" in failure.message) == ("parameters", True)
    do(command="CREATE TABLE t (a int); SAVEPOINT s; INSERT INTO t VALUES (1); ROLLBACK TO SAVEPOINT s")
    assert do(query="SELECT * FROM t")["rows"] == []


def test_the_time_limit_of_the_task_is_the_servers_too(do: Do) -> None:
    failure = failed(do, command="SELECT pg_sleep(30)", spec={"timeout": 0.1})
    assert (failure.kind, failure.helpers["pg"]["code"]) == ("timeout", "57014")


def test_tasks_of_an_execution_share_connections_and_nothing_else(postgres_url: str, tmp_path: Path) -> None:
    call = make_call(tmp_path)

    async def work() -> list[Any]:
        async def ask(command: str) -> Any:
            outcome = await run_async(PostgresTool(), {"url": postgres_url, "command": command}, call)
            return outcome.result["rows"]

        first = await ask("SELECT pg_backend_pid() AS pid")
        with pytest.raises(ToolFailure):
            await ask("SELECT 1 / 0")
        await ask("SET work_mem = '7MB'; CREATE TEMP TABLE mine (a int)")
        second = await ask("SELECT pg_backend_pid() AS pid")
        state = await ask("SELECT current_setting('work_mem') = '7MB' AS leaked, to_regclass('mine') IS NULL AS clean")
        several = await asyncio.gather(*(ask("SELECT pg_backend_pid() AS pid, pg_sleep(0.05)") for _ in range(25)))
        return [first, second, state, {rows[0]["pid"] for rows in several}]

    first, second, state, several = together(call, work)
    assert first == second
    assert state == [{"leaked": False, "clean": True}]
    assert 1 < len(several) <= 10


def test_a_connection_the_server_closed_meanwhile_is_replaced(postgres_url: str, tmp_path: Path) -> None:
    call = make_call(tmp_path)

    async def work() -> Any:
        async def ask(command: str) -> Any:
            outcome = await run_async(PostgresTool(), {"url": postgres_url, "command": command}, call)
            return outcome.result["rows"]

        pid = (await ask("SELECT pg_backend_pid() AS pid"))[0]["pid"]
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as other:
            await other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        return await ask("SELECT 1 AS fine")

    assert together(call, work) == [{"fine": 1}]


@pytest.mark.clause("P5.2")
def test_a_connection_lost_in_the_middle_is_worth_a_retry(do: Do) -> None:
    failure = failed(do, command="SELECT pg_terminate_backend(pg_backend_pid())")
    assert (failure.kind, failure.retryable) == ("connect", True)
    assert failure.helpers["pg"]["code"] in ("57P01", "08006")


def test_cancelling_a_task_cancels_its_statement_on_the_server(postgres_url: str, tmp_path: Path) -> None:
    call = make_call(tmp_path)
    mark = f"/* {tmp_path.name} */"
    running = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s AND state = 'active' AND pid <> pg_backend_pid()"
    )

    async def work() -> Any:
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as other:

            async def is_running() -> bool:
                found = await (await other.execute(running, [f"%{mark}%"])).fetchone()
                return bool(found and found[0])

            async def is_over() -> bool:
                return not await is_running()

            slow = {"url": postgres_url, "command": f"SELECT pg_sleep(60) {mark}"}
            task = asyncio.ensure_future(run_async(PostgresTool(), slow, call))
            await until(is_running)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(is_over)
        outcome = await run_async(PostgresTool(), {"url": postgres_url, "command": "SELECT 1 AS fine"}, call)
        return outcome.result["rows"]

    assert together(call, work) == [{"fine": 1}]


def test_remarks_of_the_server_go_to_the_runs_log(postgres_url: str, tmp_path: Path) -> None:
    lines: list[str] = []
    call = make_call(tmp_path, say=lines.append)
    run(PostgresTool(), {"url": postgres_url, "command": "DO $$ BEGIN RAISE NOTICE 'half way'; END $$"}, call)
    assert lines == ["NOTICE: half way"]


@pytest.mark.clause("P5.2")
@pytest.mark.parametrize(
    "auth",
    [
        {"host": "127.0.0.1", "port": 1, "username": "ada", "password": "hunter2-canary", "dbname": "shop"},
        {"url": "postgresql+psycopg://ada:hunter2-canary@127.0.0.1:1/shop"},
        {"value": "postgres://ada:hunter2-canary@127.0.0.1:1/shop"},
        {"dsn": "host=127.0.0.1 port=1 user=ada password=hunter2-canary"},
    ],
)
def test_a_server_that_is_not_there_is_an_error_of_kind_connect_without_the_password(
    auth: dict[str, Any], tmp_path: Path
) -> None:
    call = make_call(tmp_path, credentials={"pg": auth}, spec={"timeout": {"connect": 2}})
    with pytest.raises(ToolFailure) as caught:
        run(PostgresTool(), {"auth": "pg", "command": "SELECT 1"}, call)
    failure = caught.value
    assert (failure.kind, failure.retryable, failure.helpers["pg"]["code"]) == ("connect", True, "08001")
    assert "refused" in failure.message
    assert "hunter2" not in repr((failure.message, failure.detail, failure.helpers, failure.__cause__))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@canary@127.0.0.1:1/shop",
        "postgresql://ada:hunter2/canary@127.0.0.1:1/shop",
        "postgresql://ada:x@127.0.0.1:hunter2/shop",
        "postgresql://a%zz@h/hunter2",
    ],
)
def test_a_connection_text_that_cannot_be_read_is_not_quoted(url: str, tmp_path: Path) -> None:
    with pytest.raises(ToolFailure) as caught:
        run(PostgresTool(), {"url": url, "command": "SELECT 1"}, make_call(tmp_path))
    assert caught.value.kind == "parameters"
    assert "canary" not in caught.value.message
    assert "hunter2" not in caught.value.message


def test_a_database_that_is_not_there_is_told_from_a_server_that_is_not(postgres_server: str, tmp_path: Path) -> None:
    params = {"url": postgres_server, "database": "no_such_database", "command": "SELECT 1"}
    with pytest.raises(ToolFailure) as caught:
        run(PostgresTool(), params, make_call(tmp_path))
    assert (caught.value.kind, caught.value.retryable) == ("not_found", False)
    assert caught.value.helpers["pg"]["code"] == "3D000"


def test_without_a_database_the_message_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match="`auth: <name of a keychain entry>`"):
        run(PostgresTool(), {"command": "SELECT 1"}, make_call(tmp_path))


def test_auth_may_be_an_entry_a_template_has_looked_up(postgres_url: str, tmp_path: Path) -> None:
    for auth in ({"url": postgres_url}, postgres_url, {"credential": "pg"}):
        call = make_call(tmp_path, credentials={"pg": {"value": postgres_url}})
        assert run(PostgresTool(), {"auth": auth, "query": "SELECT 1 AS a"}, call).result["rows"] == [{"a": 1}]
