"""The words of public playbooks for SQL tasks, in every database: `query` for any statement, `commands` as text, and `pool`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.dialects.playbook import compile_text
from penstock.dialects.problems import Severity
from penstock.expr.result_views import viewed
from penstock.tools.base import Call, ToolFailure
from penstock.tools.registry import Registry
from penstock.tools.sql.duckdb import DuckdbTool
from penstock.tools.sql.plan import MOST_BYTES
from tests.cases import cases
from tests.engine import document, play
from tests.servers import mariadb_server, mariadb_url, postgres_server, postgres_url
from tests.tools.databases import Place, opened, place
from tests.tools.paging import played
from tests.tools.support import Reply, make_call, run_async, serve
from tests.tools.support import run as run_tool

__all__ = ["mariadb_server", "mariadb_url", "place", "postgres_server", "postgres_url"]


async def one(place: Place, call: Call, **params: Any) -> Any:
    return (await run_async(place.tool, {**place.names, **params}, call)).result


def run(place: Place, *, spec: Any = None, **params: Any) -> Any:
    call = make_call(place.folder, spec=spec or {})
    return played(call, lambda: one(place, call, **params))


def failed(place: Place, **params: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        run(place, **params)
    return caught.value


# ---- `query` and `commands`

THREE = "CREATE TABLE sums (n INT); INSERT INTO sums VALUES (:n), (:n + 1); SELECT n FROM sums ORDER BY n"


@cases("word", ["query", "commands"])
def test_a_text_means_the_same_under_each_word(place: Place, word: str) -> None:
    results = []
    for name in (word, "command"):
        place.do("DROP TABLE IF EXISTS sums")
        results.append(run(place, **{name: THREE}, params={"n": 1}))
    result, same = results
    assert result == same
    assert (result["rows"], result["command_1"]["row_count"]) == ([{"n": 1}, {"n": 2}], 2)


def test_a_query_may_be_any_statement(place: Place) -> None:
    run(place, query="CREATE TABLE sums (n INT)")
    assert run(place, query="INSERT INTO sums VALUES (1), (2)") == {"rows": [], "row_count": 2, "columns": []}
    assert run(place, query="DELETE FROM sums WHERE n = :n", args={"n": 1})["row_count"] == 1
    assert run(place, query="SELECT n FROM sums") == {"rows": [{"n": 2}], "row_count": 1, "columns": ["n"]}


def test_a_query_may_be_a_list(place: Place) -> None:
    result = run(place, query=["CREATE TABLE sums (n INT); INSERT INTO sums VALUES (1)", "SELECT n FROM sums"])
    assert (result["command_0"]["row_count"], result["command_1"]["rows"]) == (1, [{"n": 1}])


def test_a_semicolon_inside_of_quotes_separates_nothing(place: Place) -> None:
    result = run(place, commands="SELECT 'a;b' AS x; SELECT ';' AS y")
    assert [result[name]["rows"] for name in ("command_0", "command_1")] == [[{"x": "a;b"}], [{"y": ";"}]]


@cases("word", ["query", "commands"])
def test_values_are_bound_under_each_word(place: Place, word: str) -> None:
    place.do("DROP TABLE IF EXISTS sums")
    nasty = "x'); DROP TABLE sums; --"
    run(
        place,
        **{word: "CREATE TABLE sums (word VARCHAR(100)); INSERT INTO sums VALUES (:word)"},
        params={"word": nasty},
    )
    assert [tuple(row) for row in place.do("SELECT word FROM sums")] == [(nasty,)]


@cases("params", [{"query": " ; -- nothing"}, {"commands": ""}, {"query": []}])
def test_a_text_without_sql_is_refused_under_each_word(place: Place, params: Any) -> None:
    failure = failed(place, **params)
    assert (failure.kind, "empty" in failure.message) == ("parameters", True)


def test_two_words_at_once_are_refused(place: Place) -> None:
    assert "`commands` and `query`" in failed(place, query="SELECT 1", commands="SELECT 2").message


def test_a_long_query_runs_as_a_long_command_does(place: Place) -> None:
    padding = "/* x */ " * (MOST_BYTES // 100)
    assert run(place, query=f"{padding}SELECT 1 AS n")["rows"] == [{"n": 1}]


def test_the_result_of_a_single_command_is_also_its_first(place: Place) -> None:
    result = run(place, command="SELECT 1 AS n")
    assert sorted(result) == ["columns", "row_count", "rows"]
    assert viewed(result, "command_0", None) is result
    two = run(place, command="SELECT 1 AS n; SELECT 2 AS n")
    assert two["command_0"]["rows"] == [{"n": 1}]


def test_the_path_memory_is_the_database_of_a_task_without_path(place: Place) -> None:
    call = make_call(place.folder)

    async def scene() -> Any:
        await run_async(DuckdbTool(), {"path": ":memory:", "query": "CREATE TABLE t AS SELECT 7 AS n"}, call)
        return (await run_async(DuckdbTool(), {"query": "SELECT n FROM t"}, call)).result

    assert played(call, scene)["rows"] == [{"n": 7}]


# ---- `script`


def test_a_script_runs_as_the_same_text_in_command_does(place: Place) -> None:
    (place.folder / "sums.sql").write_text(
        f"-- What `command` says, in a file: {{{{'{{{{'}}}} is no template.\n{THREE};\n"
    )
    spellings: list[Any] = [
        {"command": THREE},
        {"script": "sums.sql"},
        {"script": {"uri": "sums.sql"}},
        {"script": {"uri": "sums.sql", "source": {"type": "file"}}},
        {"script": {"source": {"type": "inline", "code": THREE}}},
    ]
    results = []
    for one_of_them in spellings:
        place.do("DROP TABLE IF EXISTS sums")
        results.append(run(place, **one_of_them, params={"n": 1}))
    assert results == [results[0]] * len(spellings)
    assert results[0]["rows"] == [{"n": 1}, {"n": 2}]


def test_a_script_of_a_web_server_runs(place: Place) -> None:
    with serve(lambda request: Reply(200, f"SELECT '{request.headers['x-who']}' AS who, :n AS n")) as server:
        source = {"type": "http", "endpoint": f"{server.url}/it.sql", "headers": {"x-who": "me"}}
        assert run(place, script={"source": source}, params={"n": 5})["rows"] == [{"who": "me", "n": 5}]


NAMES: dict[str, Any] = {"table": "nums", "ctx": {"n": 1}, "args": {"n": 2}, "load": {"rows": [{"id": 4}]}, "n": 1}


def test_templates_in_a_script_see_the_names_and_args_of_the_task(place: Place) -> None:
    text = """
        CREATE TABLE {{ table }} (n INT);
        {% for row in load.rows %}INSERT INTO {{ table }} VALUES ({{ row.id }});{% endfor %}
        INSERT INTO {{ table }} VALUES ({{ ctx.n }}), ({{ n }}), ({{ args.m + load.data.rows[0].id }}), (:n);
        SELECT n FROM {{ table }} ORDER BY n
    """
    (place.folder / "it.sql").write_text(text)
    call = make_call(place.folder, names=lambda: NAMES)
    result = played(call, lambda: one(place, call, script="it.sql", args={"n": 7, "m": 10}))
    assert [row["n"] for row in result["rows"]] == [1, 4, 7, 7, 14]


def test_what_is_undefined_in_a_script_is_named_with_its_line_and_nothing_runs(place: Place) -> None:
    (place.folder / "it.sql").write_text("CREATE TABLE sums (n INT);\nINSERT INTO sums VALUES ({{ ctx.nothing }})")
    failure = failed(place, script="it.sql")
    assert failure.kind == "expression"
    assert "in line 2 of the script `it.sql`: `ctx.nothing` is undefined" in failure.message
    assert run(place, command="CREATE TABLE sums (n INT)")["row_count"] == 0


def test_text_of_the_document_is_not_filled_in_twice(place: Place) -> None:
    """The templates of an inline script are those of the document; what they gave is not read as one again."""
    code = "SELECT '{{ ctx.n }}' AS word"
    call = make_call(place.folder, names=lambda: NAMES)
    script = {"source": {"type": "inline", "code": code}}
    assert played(call, lambda: one(place, call, script=script))["rows"] == [{"word": "{{ ctx.n }}"}]


@cases(
    "params, words",
    [
        ({"script": "no.sql"}, "there is no script `no.sql`"),
        ({"script": "empty.sql"}, "the command is empty"),
        ({"script": "number.sql"}, "the script `number.sql` gives a number, not SQL"),
        ({"script": "empty.sql", "command": "SELECT 1"}, "`command` and `script`"),
        ({"script": "latin.sql"}, "the script `latin.sql` is not UTF-8"),
    ],
)
def test_a_script_that_cannot_run_says_why(place: Place, params: Any, words: str) -> None:
    (place.folder / "empty.sql").write_text("-- nothing\n")
    (place.folder / "number.sql").write_text("{{ 5 }}")
    (place.folder / "latin.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    assert words in failed(place, **params).message


@pytest.mark.parametrize("kind", ["postgres", "mysql", "sqlite", "duckdb"])
def test_a_script_in_an_object_store_is_refused_before_the_run_with_the_way_out(kind: str) -> None:
    tool = f"{{kind: {kind}, script: {{uri: x.sql, source: {{type: s3}}}}}}"
    found = compile_text(document(f"- step: start\n  tool: {tool}"), "it.yaml", Registry()).problems
    assert [(one.code, one.message, one.hint) for one in found if one.severity is Severity.ERROR] == [
        ("P0508", "a script cannot come from `s3`", "fetch it with `files` first, and give its path in `uri`")
    ]


def test_a_script_sees_what_the_playbook_s_templates_see_except_secrets(tmp_path: Path) -> None:
    (tmp_path / "it.sql").write_text("SELECT {{ workload.n }} + {{ fetch.data.k }} + {{ ctx.m }} + {{ extra }} AS n")
    (tmp_path / "secret.sql").write_text("SELECT '{{ keychain.key }}' AS stolen")
    text = """
        workload: {n: 1}
        keychain: [{name: key, kind: env, var: THE_KEY}]
        workflow:
          - step: start
            tool:
              - {name: fetch, kind: noop, value: {k: 10}, set: {ctx.m: 100}}
              - {name: load, kind: sqlite, path: "it.db", script: {uri: it.sql, source: {type: file}}, args: {extra: 1000}}
            next: {arcs: [{step: steal}]}
          - step: steal
            tool: {name: it, kind: sqlite, path: "it.db", script: secret.sql}
            next: {arcs: [{step: end, when: "{{ event.name == 'step.failed' }}", set: {ctx.why: "{{ event.error.message }}"}}]}
          - step: end
            tool: {kind: noop, value: ["{{ start.rows[0].n }}", "{{ ctx.why }}"]}
    """
    run = play(text, tmp_path, environ={"THE_KEY": "s3cret"})
    assert run.result[0] == 1111
    assert "in line 1 of the script `secret.sql`: `keychain.key` is undefined" in run.result[1]


# ---- `pool`

WHO = {"postgres": "SELECT pg_backend_pid() AS id", "mysql": "SELECT CONNECTION_ID() AS id"}


@pytest.fixture(params=["postgres", "mysql"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with opened(request.param, request, tmp_path) as found:
        yield found


def connections(place: Place, *settings: dict[str, Any], spec: Any = None) -> list[Any]:
    """The connection that each of the tasks of an execution had, one task after the other."""
    call = make_call(place.folder, spec=spec or {})

    async def scene() -> list[Any]:
        found = [await one(place, call, command=WHO[place.kind], **more) for more in settings]
        return [result["rows"][0]["id"] for result in found]

    return list(played(call, scene))


@cases("pool", [True, {}, {"min_size": 1, "max_waiting": 8, "timeout": 30}, None])
def test_tasks_share_a_connection_under_every_pool_that_is_the_usual_one(server: Place, pool: Any) -> None:
    assert len(set(connections(server, {}, {"pool": pool}, {}))) == 1


def test_a_task_without_pool_has_a_connection_of_its_own(server: Place) -> None:
    first, own, another, last = connections(server, {}, {"pool": False}, {"pool": False}, {})
    assert first == last
    assert len({first, own, another}) == 3


def test_a_connection_of_a_task_s_own_is_closed_with_it(server: Place) -> None:
    call = make_call(server.folder)

    async def scene() -> Any:
        own = (await one(server, call, command=WHO[server.kind], pool=False))["rows"][0]["id"]
        there = {
            "postgres": "SELECT count(*) AS n FROM pg_stat_activity WHERE pid = :id",
            "mysql": "SELECT count(*) AS n FROM information_schema.processlist WHERE id = :id",
        }
        while (await one(server, call, command=there[server.kind], params={"id": own}))["rows"][0]["n"]:
            await asyncio.sleep(0.01)
        return "gone"

    assert played(call, scene) == "gone"


def test_pools_of_other_names_have_other_connections(server: Place) -> None:
    a, b, c, again = connections(server, {"pool": {"name": "a"}}, {"pool": {"name": "b"}}, {}, {"pool": {"name": "a"}})
    assert a == again
    assert len({a, b, c}) == 3


LOCK = {"postgres": "SELECT pg_advisory_lock(77)", "mysql": "SELECT GET_LOCK('seventy-seven', 100)"}
UNLOCK = {"postgres": "SELECT pg_advisory_unlock(77)", "mysql": "SELECT RELEASE_LOCK('seventy-seven')"}
WAITING = {
    "postgres": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%advisory_lock(77)%'",
    "mysql": "SELECT count(*) FROM information_schema.processlist WHERE state = 'User lock'",
}

Scene = Callable[[Call], Awaitable[Any]]


def beside_one_that_waits(server: Place, spec: Any, pool: Any, scene: Scene) -> Any:
    """What `scene` gives while another task of the execution has a connection and waits for a lock of the test's."""
    call = make_call(server.folder, spec=spec)

    async def whole() -> Any:
        server.do(LOCK[server.kind])
        holder = asyncio.create_task(one(server, call, command=LOCK[server.kind], pool=pool))
        try:
            while not server.do(WAITING[server.kind])[0][0]:
                await asyncio.sleep(0.01)
            return await scene(call)
        finally:
            server.do(UNLOCK[server.kind])
            await holder

    return played(call, whole)


ONE_PLACE = [({"pool": {"max_size": 1}}, None), ({}, {"max_size": 1})]


@pytest.mark.parametrize(("spec", "pool"), ONE_PLACE, ids=["spec", "parameter"])
def test_a_pool_that_is_full_makes_tasks_wait_as_long_as_they_say(server: Place, spec: Any, pool: Any) -> None:
    async def scene(call: Call) -> ToolFailure:
        with pytest.raises(ToolFailure) as caught:
            await one(server, call, command="SELECT 1", pool={**(pool or {}), "timeout": 0.05})
        return caught.value

    failure = beside_one_that_waits(server, spec, pool, scene)
    assert (failure.kind, failure.retryable) == ("timeout", True)
    assert "no connection was free within 0.05 s: the pool has 1" in failure.message


@pytest.mark.parametrize(("spec", "pool"), ONE_PLACE, ids=["spec", "parameter"])
def test_a_task_with_a_connection_of_its_own_does_not_wait_for_a_full_pool(server: Place, spec: Any, pool: Any) -> None:
    async def scene(call: Call) -> Any:
        return await one(server, call, command="SELECT 1 AS n", pool=False)

    assert beside_one_that_waits(server, spec, pool, scene)["rows"] == [{"n": 1}]


def test_what_a_parameter_says_of_the_pool_goes_before_the_spec_and_leaves_the_rest_of_it(server: Place) -> None:
    spec = {"pool": {"max_size": 1, "timeout": 0.05}}

    async def scene(call: Call) -> list[Any]:
        with pytest.raises(ToolFailure) as caught:
            await one(server, call, command="SELECT 1", pool={"min_size": 1})
        return [caught.value.kind, (await one(server, call, command="SELECT 1 AS n", pool={"max_size": 2}))["rows"]]

    assert beside_one_that_waits(server, spec, None, scene) == ["timeout", [{"n": 1}]]


@cases("spec", [{"pool": {"max_size": 0}}, {"pool": {"size": 3}}, {"pool": {"timeout": "soon"}}])
def test_a_pool_that_nobody_can_make_is_refused(server: Place, spec: Any) -> None:
    call = make_call(server.folder, spec=spec)
    with pytest.raises(ToolFailure, match=r"parameters of `spec\.pool`: `\w+`"):
        run_tool(server.tool, {**server.names, "command": "SELECT 1"}, call)


def test_a_pool_of_workers_is_none_of_connections(server: Place) -> None:
    assert len(set(connections(server, {}, {}, spec={"pool": "gpu"}))) == 1


@pytest.mark.parametrize(
    ("kind", "kept"), [("sqlite", ["not_found", []]), ("duckdb", ["not_found", "not_found"])], ids=["sqlite", "duckdb"]
)
def test_a_file_s_connection_is_kept_for_the_next_task_unless_it_is_the_task_s_own(
    kind: str, kept: list[Any], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Temporary tables last as long as the connection; a task of DuckDB has one of its own in any case."""
    call = make_call(tmp_path)

    async def found(place: Place, pool: Any) -> Any:
        await one(place, call, command="CREATE TEMPORARY TABLE kept (n INT)", pool=pool, autocommit=True)
        try:
            return (await one(place, call, command="SELECT n FROM kept"))["rows"]
        except ToolFailure as failure:
            return failure.kind

    with opened(kind, request, tmp_path) as place:

        async def scene() -> list[Any]:
            return [await found(place, False), await found(place, {"max_size": 4})]

        assert played(call, scene) == kept
