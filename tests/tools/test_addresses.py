"""Which addresses tasks may reach: what an operator can write, and that every tool asks before it opens a socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.errors import Refused
from penstock.keychain import KeychainError, resolve
from penstock.ports.ambient import SystemClock
from penstock.tools.addresses import LOOPBACK, OPEN, PUBLIC_ONLY, Addresses
from penstock.tools.base import Settings, ToolFailure
from penstock.tools.http.tool import HttpTool
from penstock.tools.sql.duckdb import DuckdbTool
from penstock.tools.sql.mysql import MysqlTool
from penstock.tools.sql.postgres import PostgresTool
from penstock.tools.sql.postgres_connection import reaching
from penstock.tools.transfer.tool import TransferTool
from tests.cases import cases
from tests.tools.support import Reply, make_call, run, serve

CLOSED = Settings(PUBLIC_ONLY)


@contextmanager
def listening() -> Iterator[tuple[int, list[Any]]]:
    """A port of this machine, and who called there."""
    callers: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)

        def accept() -> None:
            try:
                while True:
                    connection, peer = listener.accept()
                    callers.append(peer)
                    connection.close()
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1], callers
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


# ---- what can be written


@cases(
    "words, opened, closed",
    [
        ([], ["8.8.8.8"], ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "100.64.0.1", "0.0.0.0"]),
        (["loopback"], ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"], ["10.0.0.1", "169.254.169.254"]),
        (["private"], ["10.0.0.1", "172.20.0.1", "192.168.3.4", "100.64.0.1", "fd00::1"], ["127.0.0.1", "169.254.1.1"]),
        (["link-local"], ["169.254.169.254", "fe80::1"], ["127.0.0.1"]),
        (["10.1.0.0/16"], ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"], ["10.2.0.1", "127.0.0.1"]),
        (["10.1.2.3"], ["10.1.2.3"], ["10.1.2.4"]),
        (["fd00:1::/32"], ["fd00:1::5"], ["fd00:2::5"]),
        (["loopback, 10.1.0.0/16", "private"], ["127.0.0.1", "10.1.0.1", "192.168.0.1"], ["169.254.0.1"]),
        (["any"], ["127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1"], []),
    ],
)
def test_what_the_operator_opens_is_open_and_nothing_else(
    words: list[str], opened: list[str], closed: list[str]
) -> None:
    found = Addresses.parsed(words)
    assert [address for address in opened if found.refusal(address) is not None] == []
    assert [address for address in closed if found.refusal(address) is None] == []


@cases("word", ["10.1.2.300", "300.1", "0x7f", "10.0.0.0/40", "a b", "http://x/", "*.example"])
def test_a_word_that_is_none_is_refused_with_those_there_are(word: str) -> None:
    with pytest.raises(Refused, match="neither a network nor a host") as caught:
        Addresses.parsed([word])
    assert "`private`" in str(caught.value.hint)


def test_a_host_that_is_opened_by_name_is_trusted_wherever_it_leads() -> None:
    found = Addresses.parsed(["Warehouse.Internal."])
    assert found.trusts("warehouse.internal")
    assert found.trusts("WAREHOUSE.internal.")
    assert not found.trusts("warehouse.internal.evil.example")
    assert found.refusal("10.0.0.1") == "a private address"


# ---- every tool asks


def refused(tmp_path: Path, tool: Any, **params: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        run(tool, params, make_call(tmp_path, settings=CLOSED))
    assert caught.value.kind == "address_refused"
    assert not caught.value.retryable
    assert "--allow-address" in caught.value.message
    return caught.value


HOSTS = ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "017700000001", "127.1", "::ffff:127.0.0.1", "0.0.0.0"]


@cases("host", HOSTS)
@cases("tool", [PostgresTool, MysqlTool])
def test_a_database_at_an_address_that_is_not_open_is_not_called(tmp_path: Path, tool: Any, host: str) -> None:
    with listening() as (port, callers):
        refused(tmp_path, tool(), query="SELECT 1", host=host, port=port, user="u", database="d")
        assert callers == []


@cases(
    "url",
    [
        "postgresql://u@127.0.0.1:{port}/d",
        "postgresql://u@[::ffff:127.0.0.1]:{port}/d",
        "postgresql://u@8.8.8.8,127.0.0.1:{port}/d",
        "postgresql://u@8.8.8.8:{port}/d?hostaddr=127.0.0.1",
        "host=8.8.8.8 hostaddr=127.0.0.1 port={port} dbname=d",
        "postgresql:///d?host=/tmp",
        "postgresql:///d",
        "dbname=d service=x",
        "dbname=d host=@penstock",
    ],
)
def test_no_spelling_of_a_postgresql_connection_leads_round_it(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    with listening() as (port, callers):
        refused(tmp_path, PostgresTool(), query="SELECT 1", url=url.format(port=port))
        assert callers == []


@pytest.mark.parametrize("variable", ["PGHOST", "PGHOSTADDR"])
def test_what_libpq_would_take_from_the_environment_is_judged_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "127.0.0.1")
    with listening() as (port, callers):
        refused(tmp_path, PostgresTool(), query="SELECT 1", url=f"dbname=d port={port}")
        assert callers == []


def test_libpq_is_given_the_addresses_that_were_judged() -> None:
    from psycopg.conninfo import conninfo_to_dict

    found = conninfo_to_dict(reaching("host=127.0.0.1,localhost port=5433 dbname=d", LOOPBACK))
    assert found["hostaddr"].split(",")[0] == "127.0.0.1"
    assert len(found["hostaddr"].split(",")) == len(found["host"].split(",")) == len(found["port"].split(","))
    assert reaching("host=localhost", OPEN) == "host=localhost"


def test_a_mysql_socket_in_the_file_system_is_this_machine(tmp_path: Path) -> None:
    refused(tmp_path, MysqlTool(), query="SELECT 1", auth={"host": "8.8.8.8", "unix_socket": "/tmp/x", "user": "u"})


def test_an_address_that_was_opened_is_called(tmp_path: Path) -> None:
    for tool in (PostgresTool(), MysqlTool()):
        with listening() as (port, callers):
            params = {"query": "SELECT 1", "host": "localhost", "port": port, "user": "u", "database": "d"}
            with pytest.raises(ToolFailure) as caught:
                run(tool, params, make_call(tmp_path, settings=Settings(LOOPBACK)))
            assert caught.value.kind == "connect"
            assert callers
    with serve(lambda request: Reply(200, "hello")) as server:
        call = make_call(tmp_path, settings=Settings(LOOPBACK))
        assert run(HttpTool(), {"url": server.url}, call).result["data"] == "hello"  # type: ignore[attr-defined]


def test_a_redirect_from_an_open_address_to_one_that_is_not_is_refused(tmp_path: Path) -> None:
    moved = Reply(302, b"", {"Location": "http://169.254.169.254/latest"})
    with serve(lambda request: moved) as server, pytest.raises(ToolFailure) as caught:
        run(HttpTool(), {"url": server.url}, make_call(tmp_path, settings=Settings(LOOPBACK)))
    assert caught.value.kind == "address_refused"
    assert "link-local" in caught.value.message


@pytest.mark.parametrize("end", ["source", "target"])
@pytest.mark.parametrize("kind", ["postgres", "mysql"])
def test_a_transfer_asks_at_both_ends(tmp_path: Path, end: str, kind: str) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    with listening() as (port, callers):
        database = {"kind": kind, "host": "127.0.0.1", "port": port, "user": "u", "database": "d"}
        if end == "source":
            params = {"source": {**database, "query": "SELECT 1 AS a"}, "target": {"kind": "csv", "path": "out.csv"}}
        else:
            params = {"source": {"kind": "csv", "path": "rows.csv"}, "target": {**database, "table": "t"}}
        refused(tmp_path, TransferTool(), **params)
        assert callers == []


# ---- DuckDB opens sockets of its own


@cases(
    "query",
    [
        "INSTALL httpfs FROM '{url}'",
        "FORCE INSTALL httpfs FROM '{url}'",
        "/* x */ -- y\n install httpfs from '{url}'",
        "LOAD httpfs",
        "SET autoload_known_extensions = true",
        "SET GLOBAL autoinstall_extension_repository = '{url}'",
        'PRAGMA "autoinstall_known_extensions" = true',
        "SELECT 1; SET custom_extension_repository = '{url}'",
    ],
)
def test_duckdb_fetches_no_extension(tmp_path: Path, query: str) -> None:
    with serve(lambda request: Reply(200, "x")) as server:
        refused(tmp_path, DuckdbTool(), query=query.format(url=server.url.rstrip("/")))
        assert server.requests == []


def test_duckdb_reads_no_remote_file_and_the_local_ones_as_before(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    call = make_call(tmp_path, settings=CLOSED)
    with serve(lambda request: Reply(200, "a\n1\n")) as server:
        for query in (f"SELECT * FROM read_csv('{server.url}/rows.csv')", f"ATTACH '{server.url}/x.duckdb' AS x"):
            with pytest.raises(ToolFailure):
                run(DuckdbTool(), {"query": query}, call)
        assert server.requests == []
    assert run(DuckdbTool(), {"query": "SELECT * FROM 'rows.csv'"}, call).result["rows"] == [{"a": 1}]  # type: ignore[attr-defined]


# ---- secrets that have to be asked for


ISSUERS = [
    {"kind": "oauth2", "token_url": "{url}/token", "client_id": "c", "client_secret": "s"},
    {"kind": "secret_manager", "provider": "vault", "key": "a/b", "address": "{url}", "token": "t"},
]


@pytest.mark.parametrize("entry", ISSUERS, ids=["oauth2", "vault"])
def test_an_issuer_that_a_document_names_is_judged(tmp_path: Path, entry: dict[str, str]) -> None:
    with serve(lambda request: Reply(200, "{}")) as server:
        given = {"name": "k", **{key: value.format(url=server.url) for key, value in entry.items()}}
        asked = resolve([given], folder=tmp_path, home=tmp_path, environ={}, clock=SystemClock(), allowed=PUBLIC_ONLY)
        with pytest.raises(KeychainError, match=r"loopback address.*--allow-address"):
            asyncio.run(asked)
        assert server.requests == []


def test_a_vault_of_the_operators_own_environment_is_asked(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200, '{"data": {"data": {"value": "s3cret"}}}')) as server:
        entry = {"name": "k", "kind": "secret_manager", "provider": "vault", "key": "a/b"}
        environ = {"VAULT_ADDR": server.url, "VAULT_TOKEN": "t"}
        asked = resolve(
            [entry], folder=tmp_path, home=tmp_path, environ=environ, clock=SystemClock(), allowed=PUBLIC_ONLY
        )
        asyncio.run(asked)
        assert len(server.requests) == 1
