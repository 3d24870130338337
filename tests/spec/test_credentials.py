"""Names in `auth` that `keychain` does not declare, in whole runs: the store, then the environment, in the form that the tool wants."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.keychain import KeychainError, LocalStore
from tests.engine import play
from tests.jobs import run_job
from tests.servers import postgres_server, postgres_url  # noqa: F401 - fixtures
from tests.tools.support import Reply, Server, serve

CANARY = "kanarie-credential-51c2"


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(lambda request: Reply(200, {"ok": True})) as found:
        yield found


def store(home: Path, **entries: str | JsonMap) -> None:
    local = LocalStore(home / ".penstock", {})
    for name, value in entries.items():
        local.set(name, value)


def stored(home: Path) -> bytes:
    with sqlite3.connect(home / ".penstock" / "penstock.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return b"".join(path.read_bytes() for path in sorted((home / ".penstock").rglob("*")) if path.is_file())


def asks(url: str, auth: str) -> str:
    return f"- step: start\n  tool: {{name: ask, kind: http, url: {url}, auth: {auth}}}\n"


BASIC = "Basic " + base64.b64encode(f"ann:{CANARY}".encode()).decode()
STORED: list[tuple[str | JsonMap, dict[str, str], dict[str, list[str]]]] = [
    (CANARY, {"authorization": f"Bearer {CANARY}"}, {}),
    ({"token": CANARY}, {"authorization": f"Bearer {CANARY}"}, {}),
    ({"username": "ann", "password": CANARY}, {"authorization": BASIC}, {}),
    ({"header": "X-Shop-Key", "value": CANARY}, {"x-shop-key": CANARY}, {}),
    ({"query": "key", "value": CANARY}, {}, {"key": [CANARY]}),
    ({"name": "shop", "type": "api_key", "data": {"key": CANARY}}, {"x-api-key": CANARY}, {}),
    ({"name": "shop", "type": "bearer", "data": {"token": CANARY}}, {"authorization": f"Bearer {CANARY}"}, {}),
]


@pytest.mark.parametrize("auth", ["shop", "{credential: shop}", "'{{ which }}'", "'{{ workload.which }}'"])
@pytest.mark.parametrize(("entry", "headers", "query"), STORED)
def test_http_takes_a_stored_name_for_what_its_form_says(
    tmp_path: Path,
    server: Server,
    entry: str | JsonMap,
    headers: dict[str, str],
    query: dict[str, list[str]],
    auth: str,
) -> None:
    store(tmp_path, shop=entry)
    text = f"workload: {{which: shop}}\nworkflow:\n{asks(server.url, auth)}"
    assert play(text, tmp_path, environ={}).status == "completed"
    (request,) = server.requests
    assert {name: request.headers[name] for name in headers} == headers
    assert parse_qs(urlsplit(request.target).query) == query
    assert CANARY.encode() not in stored(tmp_path)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"PENSTOCK_SHOP": CANARY}, f"Bearer {CANARY}"),
        ({"PENSTOCK_SHOP": f'{{"username": "ann", "password": "{CANARY}"}}'}, BASIC),
        ({"PENSTOCK_SHOP_USERNAME": "ann", "PENSTOCK_SHOP_PASSWORD": CANARY}, BASIC),
        ({"PENSTOCK_SHOP_TOKEN": CANARY}, f"Bearer {CANARY}"),
    ],
)
@pytest.mark.parametrize("auth", ["shop", "'{{ ctx.which }}'"])
def test_then_the_environment_is_asked(
    tmp_path: Path, server: Server, environ: dict[str, str], expected: str, auth: str
) -> None:
    text = f"- step: begin\n  tool: {{kind: noop, set: {{ctx.which: shop}}}}\n  next: {{arcs: [{{step: start}}]}}\n{asks(server.url, auth)}"
    text = "executor: {spec: {entry_step: begin}}\nworkflow:\n" + text
    assert play(text, tmp_path, environ=environ).status == "completed"
    assert server.requests[0].headers["authorization"] == expected
    assert CANARY.encode() not in stored(tmp_path)


# ---- what nothing has


@pytest.mark.parametrize(
    ("auth", "payload", "name"),
    [
        ("shop", {}, "shop"),
        ("{credential: shop}", {}, "shop"),
        ("'{{ workload.which }}'", {}, "default"),
        ("'{{ which }}'", {}, "default"),
        ("'{{ workload.which }}'", {"which": "paid"}, "paid"),
        ("'{{ which }}_auth'", {"which": "paid"}, "paid_auth"),
        ("'{{ workload.which | default(\"x\") }}'", {"which": "paid"}, "paid"),
    ],
)
def test_a_name_that_is_known_before_the_run_and_nowhere_stored_stops_it(
    tmp_path: Path, server: Server, auth: str, payload: dict[str, Any], name: str
) -> None:
    before = "- step: start\n  tool: {name: first, kind: files, action: write, path: ran.txt, content: x}\n"
    text = f"workload: {{which: default}}\nworkflow:\n{before}  next: {{arcs: [{{step: ask}}]}}\n"
    text += asks(server.url, auth).replace("step: start", "step: ask")
    with pytest.raises(KeychainError) as caught:
        play(text, tmp_path, payload, environ={})
    assert f"keychain entry `{name}` (" in caught.value.message
    assert f"looked for `{name}` in the local keychain" in caught.value.message
    assert "playbook.yaml:" in caught.value.message
    variable = f"PENSTOCK_{name.upper()}"
    assert caught.value.hint == f"store it with `penstock keychain set {name}`, or set `{variable}`"
    assert not (tmp_path / "ran.txt").exists()


def test_a_name_that_the_run_brings_about_is_looked_up_when_its_task_starts(tmp_path: Path, server: Server) -> None:
    text = f"""
    - step: start
      tool: {{name: pick, kind: noop, value: shop, set: {{ctx.which: "{{{{ outcome.result }}}}"}}}}
      next: {{arcs: [{{step: ask}}]}}
    - step: ask
      tool: {{name: ask, kind: http, url: {server.url}, auth: "{{{{ ctx.which }}}}"}}
    """
    (tmp_path / "a").mkdir()
    failed = play(text, tmp_path / "a", environ={})
    assert failed.status == "failed"
    assert failed.tasks() == ["pick", "ask"]
    (error,) = [one["outcome"]["error"] for one in failed.payloads("task.done") if one["task"] == "ask"]
    assert "looked for `shop` in the local keychain and environment variables `PENSTOCK_SHOP`" in error["message"]
    assert error["retryable"] is False
    (tmp_path / "b").mkdir()
    store(tmp_path / "b", shop=CANARY)
    assert play(text, tmp_path / "b", environ={}).status == "completed"
    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert CANARY.encode() not in stored(tmp_path / "b")


def test_each_element_of_a_loop_may_have_an_entry_of_its_own(tmp_path: Path, server: Server) -> None:
    store(tmp_path, one="token-one", two="token-two")
    text = f"""
    - step: start
      loop: {{in: [one, two], iterator: who, spec: {{mode: sequential}}}}
      tool: {{name: ask, kind: http, url: {server.url}, auth: "{{{{ iter.who }}}}"}}
    """
    assert play(text, tmp_path, environ={}).status == "completed"
    assert [one.headers["authorization"] for one in server.requests] == ["Bearer token-one", "Bearer token-two"]


def test_a_name_that_is_shadowed_during_the_run_is_not_looked_up_before_it(tmp_path: Path, server: Server) -> None:
    """`which` is read from ctx where something writes it there, whatever the workload says."""
    store(tmp_path, shop=CANARY)
    text = f"""
    workload: {{which: nowhere}}
    workflow:
    - step: start
      tool: {{name: pick, kind: noop, set: {{ctx.which: shop}}}}
      next: {{arcs: [{{step: ask}}]}}
    - step: ask
      tool: {{name: ask, kind: http, url: {server.url}, auth: "{{{{ which }}}}"}}
    """
    assert play(text, tmp_path, environ={}).status == "completed"


def test_a_declared_entry_may_be_named_by_a_template(tmp_path: Path, server: Server) -> None:
    text = "keychain: [{name: shop, kind: env, var: T}]\nworkload: {which: shop}\nworkflow:\n"
    text += asks(server.url, "'{{ which }}'")
    assert play(text, tmp_path, environ={"T": CANARY}).status == "completed"
    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"


def test_the_secret_itself_may_stand_in_auth(tmp_path: Path, server: Server) -> None:
    text = "keychain: [{name: shop, kind: bearer, token: {env: T}}]\nworkflow:\n"
    text += asks(server.url, "'{{ keychain.shop.access_token }}'")
    assert play(text, tmp_path, environ={"T": CANARY}).status == "completed"
    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert CANARY.encode() not in stored(tmp_path)


def test_a_value_in_the_task_goes_before_the_stored_one(tmp_path: Path, server: Server) -> None:
    store(tmp_path, shop={"header": "X-Old", "value": CANARY})
    assert play(asks(server.url, "{credential: shop, header: X-New}"), tmp_path, environ={}).status == "completed"
    assert server.requests[0].headers["x-new"] == CANARY
    assert "x-old" not in server.requests[0].headers


# ---- databases


def fields_of(url: str) -> JsonMap:
    found = conninfo_to_dict(url)
    return {name: str(value) for name, value in found.items() if value is not None}


def public(url: str) -> JsonMap:
    """The connection under the names that NoETL has for its fields."""
    found = fields_of(url)
    named = {"host": "db_host", "port": "db_port", "user": "db_user", "password": "db_password", "dbname": "db_name"}
    return {named.get(name, name): value for name, value in found.items()}


SHAPES: dict[str, Any] = {
    "url": lambda url: url,
    "words": psycopg.conninfo.make_conninfo,
    "public names": public,
    "a type beside": lambda url: {"type": "postgres", **public(url)},
    "another type": lambda url: {"type": "generic", **public(url)},
    "a record": lambda url: {"name": "pg_main", "type": "postgres", "data": public(url)},
}
QUERY = (
    "- step: start\n  tool: {{name: ask, kind: postgres, auth: {auth}, query: SELECT current_schema() AS s{more}}}\n"
)


@pytest.mark.parametrize("auth", ["pg_main", "'{{ pg_auth }}'", "'{{ ctx.pg }}'"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_database_is_found_in_any_form(tmp_path: Path, postgres_url: str, shape: str, auth: str) -> None:  # noqa: F811
    store(tmp_path, pg_main=SHAPES[shape](postgres_url))
    text = "workload: {pg_auth: pg_main}\nexecutor: {spec: {entry_step: begin}}\nworkflow:\n"
    text += "- step: begin\n  tool: {kind: noop, set: {ctx.pg: pg_main}}\n  next: {arcs: [{step: start}]}\n"
    played = play(text + QUERY.format(auth=auth, more=""), tmp_path, environ={})
    assert played.status == "completed", played.error
    assert played.result["rows"][0]["s"].startswith("test_")


def test_a_database_in_variables_of_its_own(tmp_path: Path, postgres_url: str) -> None:  # noqa: F811
    found = fields_of(postgres_url)
    environ = {"PENSTOCK_PG_MAIN_HOST": found["host"], "PENSTOCK_PG_MAIN_USER": found["user"]}
    environ |= {"PENSTOCK_PG_MAIN_DATABASE": found["dbname"], "PENSTOCK_PG_MAIN_PASSWORD": "not-asked-for"}
    for name in ("port",):
        environ |= {f"PENSTOCK_PG_MAIN_{name.upper()}": str(found[name])} if name in found else {}
    played = play(QUERY.format(auth="pg_main", more=""), tmp_path, environ=environ)
    assert played.status == "completed", played.error


@pytest.mark.parametrize("shape", ["url", "public names"])
def test_fields_of_the_task_go_before_stored_ones(tmp_path: Path, postgres_url: str, shape: str) -> None:  # noqa: F811
    store(tmp_path, pg_main=SHAPES[shape](postgres_url))
    played = play(QUERY.format(auth="pg_main", more=", database: no_such_database"), tmp_path, environ={})
    assert "no_such_database" in played.error["message"]


def test_a_file_is_found_by_a_stored_path(tmp_path: Path) -> None:
    store(tmp_path, lite={"path": "data.db"})
    text = "- step: start\n  tool: {name: q, kind: sqlite, auth: lite, query: SELECT 1 AS one}\n"
    assert play(text, tmp_path, environ={}).result["rows"] == [{"one": 1}]


# ---- jobs

JOB = """
context: {db: lite}
components:
  read: {type: run_sql, params: {auth: AUTH, sql: SELECT 1}}
"""


@pytest.mark.parametrize("auth", ["lite", '"{{ context.db }}"', '"{{ db }}"'])
def test_a_job_finds_them_too_and_is_stopped_before_it_begins(tmp_path: Path, auth: str) -> None:
    (tmp_path / "a").mkdir()
    store(tmp_path / "a", lite={"path": "data.db"})
    assert run_job(JOB.replace("AUTH", auth), tmp_path / "a", environ={}).status == "completed"
    (tmp_path / "b").mkdir()
    with pytest.raises(Refused, match="keychain entry `lite`"):
        run_job(JOB.replace("AUTH", auth), tmp_path / "b", environ={})
