"""`idempotency` of the SQL tools: what a task writes is written once, however often the task is run."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.values import JsonMap
from penstock.tools.base import Call, Success, ToolFailure
from penstock.tools.sql.plan import MOST_BYTES
from tests.depth import times
from tests.servers import mariadb_server, mariadb_url, postgres_server, postgres_url
from tests.tools.databases import Place, place
from tests.tools.paging import played
from tests.tools.support import make_call, run_async

__all__ = ["mariadb_server", "mariadb_url", "place", "postgres_server", "postgres_url"]


def call_for(place: Place, index: int | None = None, **more: Any) -> Call:
    """A call as a worker makes it, for one element of a loop."""
    if index is None:
        return make_call(place.folder, **more)
    name = f"load@1[{index}]"
    element = {"loop_id": "load@1", "shard_id": name, "iter_key": f"key {index}", "index": index, "item": None}
    return make_call(
        place.folder, **{"element": element, "idempotency_key": f"run-1/{name}/save#1", "task": "save", **more}
    )


def run(place: Place, call: Call, **params: Any) -> Success:
    async def scene() -> Success:
        outcome = await run_async(place.tool, {**place.names, "idempotency": True, **params}, call)
        assert isinstance(outcome, Success)
        return outcome

    return played(call, scene)


def fill(place: Place) -> None:
    place.do("CREATE TABLE sums (n INT, word VARCHAR(100))")


def rows(place: Place) -> list[Any]:
    return [tuple(row) for row in place.do("SELECT n, word FROM sums ORDER BY n, word")]


INSERT = "INSERT INTO sums VALUES (:n, 'x'), (:n + 100, 'y')"


@pytest.mark.clause("F7.2")
def test_a_task_that_is_run_again_after_its_commit_writes_nothing_and_gives_the_same(place: Place) -> None:
    """A worker that is lost between the commit and its report leaves just this: the same call is made again, elsewhere."""
    fill(place)
    first = run(place, call_for(place, 1), command=INSERT, params={"n": 1})
    again = run(place, call_for(place, 1, attempt=2), command=INSERT, params={"n": 1})
    assert rows(place) == [(1, "x"), (101, "y")]
    assert first.result == again.result == {"rows": [], "row_count": 2, "columns": []}
    assert [one.helpers[place.helper]["repeated"] for one in (first, again)] == [False, True]


@pytest.mark.clause("F7.2")
def test_every_element_and_every_task_has_an_effect_of_its_own(place: Place) -> None:
    fill(place)
    for _ in range(2):
        for index in range(3):
            run(place, call_for(place, index), command="INSERT INTO sums VALUES (:n, 'a')", params={"n": index})
            other = call_for(place, index, idempotency_key=f"run-1/load@1[{index}]/more#1", task="more")
            run(place, other, command="INSERT INTO sums VALUES (:n, 'b')", params={"n": index})
    assert rows(place) == [(n, word) for n in range(3) for word in "ab"]
    kept = place.do(
        "SELECT execution_id, loop_id, shard_id, iter_key, task FROM penstock_effects ORDER BY shard_id, task"
    )
    assert [tuple(row) for row in kept] == [
        ("run-1", "load@1", f"load@1[{n}]", f"key {n}", task) for n in range(3) for task in ("more", "save")
    ]


def test_outside_of_loops_an_effect_has_a_name_too(place: Place) -> None:
    fill(place)
    for _ in range(2):
        run(place, call_for(place), command=INSERT, params={"n": 1})
    run(place, call_for(place, idempotency_key="run-2/start@0/save#1"), command=INSERT, params={"n": 1})
    assert len(rows(place)) == 4


@pytest.mark.clause("F7.2")
def test_what_fails_has_had_no_effect_and_can_be_tried_again(place: Place) -> None:
    fill(place)
    with pytest.raises(ToolFailure):
        run(place, call_for(place, 1), commands=["INSERT INTO sums VALUES (1, 'x')", "INSERT INTO nowhere VALUES (1)"])
    assert rows(place) == []
    assert place.do("SELECT count(*) FROM penstock_effects")[0][0] == 0
    outcome = run(place, call_for(place, 1), command="INSERT INTO sums VALUES (1, 'x')")
    assert outcome.helpers[place.helper]["repeated"] is False
    assert rows(place) == [(1, "x")]


def test_rows_that_a_command_gave_are_given_again(place: Place) -> None:
    fill(place)
    commands = ["INSERT INTO sums VALUES (1, 'naïve é')", "SELECT n, word FROM sums"]
    first = run(place, call_for(place, 1), commands=commands)
    place.do("DELETE FROM sums")
    again = run(place, call_for(place, 1), commands=commands)
    assert first.result == again.result
    assert isinstance(again.result, dict)
    assert again.result["rows"] == [{"n": 1, "word": "naïve é"}]
    assert again.result["command_0"]["row_count"] == 1


def test_an_upsert_can_be_an_effect(place: Place) -> None:
    place.do("CREATE TABLE things (id INT PRIMARY KEY, n INT)")
    for n in (1, 2):
        params = {"upsert": {"table": "things", "rows": [{"id": 1, "n": n}], "keys": ["id"]}}
        run(place, call_for(place, 1), **params)
    assert [tuple(row) for row in place.do("SELECT id, n FROM things")] == [(1, 1)]


def test_the_table_may_have_another_name(place: Place) -> None:
    fill(place)
    for _ in range(2):
        run(place, call_for(place, 1), command=INSERT, params={"n": 1}, idempotency={"table": "my effects"})
    mark = "`" if place.kind == "mysql" else '"'
    assert place.do(f"SELECT count(*) FROM {mark}my effects{mark}")[0][0] == 1
    assert len(rows(place)) == 2


@pytest.mark.clause("F7.2")
def test_many_that_run_the_same_at_once_have_one_effect(place: Place) -> None:
    """As when a lease is lost by a worker that goes on all the same."""
    fill(place)
    call = call_for(place, 1)
    params = {**place.names, "idempotency": True, "command": INSERT, "params": {"n": 1}}

    async def scene() -> list[Any]:
        return await asyncio.gather(*(run_async(place.tool, params, call) for _ in range(8)), return_exceptions=True)

    outcomes = played(call, scene)
    done = [one for one in outcomes if isinstance(one, Success)]
    failed = [one for one in outcomes if not isinstance(one, Success)]
    assert all(isinstance(one, ToolFailure) and one.retryable for one in failed), failed
    assert [one.helpers[place.helper]["repeated"] for one in done].count(False) == 1
    assert rows(place) == [(1, "x"), (101, "y")]


@pytest.mark.clause("F7.2")
def test_forced_retries_of_many_elements_write_each_row_once(place: Place) -> None:
    fill(place)
    count = times(12 if place.kind == "duckdb" else 60)

    async def scene() -> None:
        for turn in range(3):
            for index in range(0, count, turn + 1):
                call = replace(call_for(place, index, attempt=turn + 1), resources=shared.resources)
                params = {"command": "INSERT INTO sums VALUES (:n, 'x')", "params": {"n": index}, "idempotency": True}
                await run_async(place.tool, {**place.names, **params}, call)

    shared = call_for(place)
    played(shared, scene)
    assert rows(place) == [(n, "x") for n in range(count)]


def test_a_result_too_large_to_be_kept_is_refused_and_nothing_is_written(place: Place) -> None:
    fill(place)
    many = f"SELECT n, {'repeat' if place.kind != 'sqlite' else 'printf'}"
    many += f"('x', {MOST_BYTES})" if place.kind != "sqlite" else f"('%.{MOST_BYTES}c', 'x')"
    with pytest.raises(ToolFailure, match="is kept with its effect") as caught:
        run(place, call_for(place, 1), commands=["INSERT INTO sums VALUES (1, 'x')", f"{many} AS word FROM sums"])
    assert caught.value.kind == "too_large"
    assert rows(place) == []


def test_what_commits_by_itself_cannot_be_an_effect(place: Place) -> None:
    with pytest.raises(ToolFailure, match="cannot stand beside `autocommit: true`"):
        run(place, call_for(place, 1), command="SELECT 1", autocommit=True)
    if place.kind == "mysql":
        with pytest.raises(ToolFailure, match="`CREATE` commits by itself in MySQL"):
            run(place, call_for(place, 1), command="CREATE TABLE t (a INT)")
    else:
        for _ in range(2):
            run(place, call_for(place, 1), command="CREATE TABLE t (a INT)")


def test_without_idempotency_nothing_is_made(place: Place) -> None:
    fill(place)
    outcome = run(place, call_for(place, 1), command=INSERT, params={"n": 1}, idempotency=False)
    assert "repeated" not in outcome.helpers[place.helper]
    with pytest.raises(Exception, match="penstock_effects"):
        place.do("SELECT * FROM penstock_effects")


def test_the_name_of_an_effect_is_short_and_whole(place: Place) -> None:
    fill(place)
    long: JsonMap = {"loop_id": "ä" * 5000, "shard_id": "s" * 5000, "iter_key": "☃" * 5000}
    call = replace(call_for(place, 1), element=long, idempotency_key="k" * 10_000)
    for _ in range(2):
        run(place, call, command=INSERT, params={"n": 1})
    ((name, key),) = [tuple(row) for row in place.do("SELECT effect, iter_key FROM penstock_effects")]
    assert (len(name), key) == (64, "☃" * 5000)
    assert json.loads(place.do("SELECT result FROM penstock_effects")[0][0])["row_count"] == 2


def test_a_table_that_may_not_be_made_is_told(postgres_url: str, tmp_path: Path) -> None:
    from penstock.tools.sql.postgres import PostgresTool
    from tests.tools.support import run as run_tool

    params = {"url": postgres_url, "command": "SELECT 1", "idempotency": {"table": "no_such_schema.effects"}}
    with pytest.raises(ToolFailure, match="no_such_schema") as caught:
        run_tool(PostgresTool(), params, make_call(tmp_path))
    assert caught.value.kind == "not_found"
