"""The dispatch tables of one PostgreSQL schema, brought to what this program knows.

Law: whoever gets a connection gets it with durable commits, the tables of this program and a bound on every wait, or an
`Unavailable` that says what is wrong with the database.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from penstock.adapters.postgres.errors import Lost
from penstock.adapters.sql_files import queries, schema_files
from penstock.kernel.errors import Unavailable

T = TypeVar("T")

STORE = "postgres/dispatch"
SQL = queries(STORE)

OLDEST_SERVER = 140_000
STATEMENT_SECONDS = 15.0
LOCK_SECONDS = 5.0

# Without these a server that vanished would be waited for for hours.
_NETWORK = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


class Connection(psycopg.AsyncConnection[TupleRow]):
    """A connection on which no wait is for ever, not even when the network swallows the answer; and none outlives its task.

    Who is cancelled while he waits for an answer waits until the server has given it up. If the connection breaks meanwhile, the
    driver tells only that; whoever tries again then would do so for ever.
    """

    limit_s = STATEMENT_SECONDS + LOCK_SECONDS
    name = ""
    """By which the server can be told to end it."""

    async def wait(self, gen: Any, *args: Any, **more: Any) -> Any:
        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        try:
            return await super().wait(_limited(gen, self.limit_s), *args, **more)
        except psycopg.Error as error:
            if task is not None and task.cancelling() > before:
                raise asyncio.CancelledError from error
            raise


def _limited(steps: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    deadline = time.monotonic() + seconds
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise Lost(f"no answer within {seconds:g} s")
            wanted = steps.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


async def connect(url: str) -> Connection:
    """A connection on which every statement is a transaction of its own, under a name of its own. Raises psycopg's errors."""
    said = conninfo_to_dict(url)
    name = f"{said.get('application_name', 'penstock dispatch')} {uuid4().hex[:16]}"
    conninfo = make_conninfo("", **{**_NETWORK, **said, "client_encoding": "utf8", "application_name": name})
    connection = await Connection.connect(conninfo, autocommit=True, prepare_threshold=1)
    connection.name = name
    return connection


async def prepare(connection: Connection, place: str) -> None:
    values = {"statement_ms": _ms(STATEMENT_SECONDS), "lock_ms": _ms(LOCK_SECONDS)}
    cursor = await connection.execute(SQL["prepare_session"], values)
    *_, version, encoding, schema = await cursor.fetchone() or ()
    _check_server(place, version, encoding, schema)


async def bring_up(connection: Connection, place: str) -> None:
    known = schema_files(STORE)
    newest = max(known)
    if await _version(connection, place, newest) == newest:
        return
    async with connection.transaction():
        await connection.execute(SQL["lock_schema"])
        # Asked again under the lock: another process may have brought the schema up in the meantime.
        version = await _version(connection, place, newest)
        for number in range(version + 1, newest + 1):
            await connection.execute(known[number].read_bytes())
            await connection.execute(SQL["record_version"], {"version": number})


async def _version(connection: Connection, place: str, newest: int) -> int:
    (is_there,) = await (await connection.execute(SQL["has_tables"])).fetchone() or (False,)
    if not is_there:
        return 0
    (version,) = await (await connection.execute(SQL["schema_version"])).fetchone() or (0,)
    if version > newest:
        raise Unavailable(
            f"the dispatch tables in {place} are of a newer Penstock (schema {version}; this one knows up to {newest})",
            "use that version, or another schema",
        )
    return int(version)


def _check_server(place: str, version: int, encoding: str, schema: str | None) -> None:
    if version < OLDEST_SERVER:
        raise Unavailable(
            f"{place} is PostgreSQL {version // 10_000}, and Penstock needs {OLDEST_SERVER // 10_000} or newer",
            "upgrade the server",
        )
    if encoding != "UTF8":
        raise Unavailable(
            f"{place} has the encoding `{encoding}`, in which not every text can be kept",
            "make a database with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`",
        )
    if schema is None:
        raise Unavailable(
            f"{place} has none of the schemas in its `search_path`",
            "make one with `CREATE SCHEMA`, or correct the `search_path` of the URL",
        )


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))
