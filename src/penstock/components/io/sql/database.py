"""The database that a component names: its driver and address, and small queries through the SQL tools.

Law: a connection is named as in `read_sql`. The driver follows from the URL; a keychain entry that has none is PostgreSQL, unless
something in it says otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from penstock.components.base import Call
from penstock.components.flow.tool_calls import tool_call, tool_failures
from penstock.kernel.values import JsonMap
from penstock.ports.meanings import DATABASE, KEYCHAIN_ENTRY
from penstock.ports.rows import DATABASES, DRIVERS
from penstock.tools.base import Call as ToolCall
from penstock.tools.base import Success, Tool, ToolFailure
from penstock.tools.parameters import about
from penstock.tools.sql import drivers, duckdb, sqlite
from penstock.tools.sql.connection import Address, Stop, address, entry_of
from penstock.tools.sql.drivers import DriverParams, DriverTool
from penstock.tools.sql.duckdb import DuckdbParams, DuckdbTool
from penstock.tools.sql.mysql import MysqlParams, MysqlTool, login_of
from penstock.tools.sql.places import place_of, place_of_file
from penstock.tools.sql.postgres import PostgresParams, PostgresTool
from penstock.tools.sql.postgres_connection import conninfo
from penstock.tools.sql.sqlite import SqliteParams, SqliteTool
from penstock.tools.sql.text import Dialect, quote_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from penstock.tools.sql.mysql import Login
    from penstock.tools.sql.sqlite import SharedSqlite


Connection = Annotated[
    str | None,
    about(
        "The database as a URL: `postgresql://…`, `mysql://…`, `sqlite:///orders.db`, `duckdb:///orders.duckdb`; "
        "files are relative to the document's folder.",
        schema=DATABASE,
    ),
]
Auth = Annotated[
    str | dict[str, Any] | None,
    about("Name of the keychain entry with the connection, or with the login for `connection`.", schema=KEYCHAIN_ENTRY),
]
Bindings = Annotated[
    dict[str, Any] | list[Any] | None,
    about("Values to bind, never pasted: a mapping for `:name`, a list for `%s`, `?` or `$1`."),
]

Driver = Literal["postgres", "mysql", "sqlite", "duckdb", "adbc", "dbapi"]
SCHEMES: dict[str, Driver] = {
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "sqlite": "sqlite",
    "duckdb": "duckdb",
}


class Question(msgspec.Struct, kw_only=True, frozen=True):
    """One query, and where it goes. Without a query: how many rows `table` has."""

    connection: str | None
    auth: str | dict[str, Any] | None
    query: str | None = None
    table: str | None = None
    bindings: dict[str, Any] | list[Any] | None = None
    max_rows: int = 100_000


async def ask(question: Question, call: ToolCall) -> JsonMap:
    """`{rows, row_count, columns}` of the query, every value as JSON can say it. The connection is closed afterwards."""
    question = meant(question)
    driver, url = driver_of(question, call)
    resources = _OwnResources()
    try:
        with tool_failures():
            tool, params = tool_of(driver, _asked(question, driver), url, question.auth, create=False)
            answer = await tool.run(params, replace(call, resources=resources))
    finally:
        await resources.close()
    result = answer.result if isinstance(answer, Success) else answer
    assert isinstance(result, dict)
    return result


def ask_in_thread(question: Question, call: ToolCall) -> JsonMap:
    """The same, for code that runs in a thread and has no event loop: it gets one of its own for as long as this takes."""
    return asyncio.run(ask(question, replace(call, threads=_OwnThreads())))


class _OwnThreads:
    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.to_thread(function, *arguments)


class _OwnResources:
    """Nothing is kept for the next question: between two looks at a file, its writer must find it free."""

    def __init__(self) -> None:
        self._made: dict[object, tuple[Any, Callable[[], Awaitable[None]]]] = {}

    async def get(self, key: object, make: Callable[[], Awaitable[tuple[Any, Callable[[], Awaitable[None]]]]]) -> Any:
        if key not in self._made:
            self._made[key] = await make()
        return self._made[key][0]

    async def close(self) -> None:
        for _, close in self._made.values():
            with suppress(OSError):
                await close()


def meant(question: Question) -> Question:
    """`connection: warehouse` can only be meant as the keychain entry of that name."""
    given = question.connection
    if given is None or question.auth is not None or "://" in given or "." in given or "/" in given:
        return question
    return msgspec.structs.replace(question, connection=None, auth=given)


def driver_of(question: Question, call: ToolCall) -> tuple[Driver, str | None]:
    """Which driver, and the URL if there is one beside `auth`. Raises ComponentFailure."""
    with tool_failures():
        entry = entry_of(question.auth, call)
        if question.connection is None and (kind := entry.get("kind")) in ("adbc", "dbapi"):
            return kind, None
        url = question.connection or _text(entry, "url") or _text(entry, "dsn") or _text(entry, "value")
        if url is not None and "://" in url:
            scheme = url.partition("://")[0].partition("+")[0].lower()
            if scheme not in SCHEMES:
                known = "`, `".join(f"{each}://" for each in SCHEMES)
                raise ToolFailure(
                    "parameters", f"`{scheme}://` is not a database that is known here; there are `{known}`"
                )
            return SCHEMES[scheme], question.connection
        if question.connection is not None:
            hint = "write it as a URL, `sqlite:///orders.db`, or name a keychain entry in `auth`"
            raise ToolFailure("parameters", f"`connection` is not a URL: {hint}")
        if not entry:
            hint = "give `connection: postgresql://…`, or `auth: <name of a keychain entry>`"
            raise ToolFailure("parameters", f"no database is named; {hint}")
    return _guessed(entry), None


def _text(entry: dict[str, Any], name: str) -> str | None:
    value = entry.get(name)
    return value if isinstance(value, str) else None


def _guessed(entry: dict[str, Any]) -> Driver:
    named = next((_text(entry, key) for key in ("kind", "driver", "engine", "type") if _text(entry, key)), None)
    if named is not None and named.lower() in SCHEMES:
        return SCHEMES[named.lower()]
    path = _text(entry, "path")
    if path is not None:
        return "duckdb" if path.endswith((".duckdb", ".ddb")) else "sqlite"
    return "mysql" if str(entry.get("port")) == "3306" else "postgres"


def tool_of(
    driver: Driver, asked: dict[str, Any], url: str | None, auth: str | dict[str, Any] | None, *, create: bool = True
) -> tuple[Tool[Any], msgspec.Struct]:
    """The tool of a database with its parameters. `create`: a file that SQLite would keep is made when it is missing."""
    match driver:
        case "postgres":
            return PostgresTool(), PostgresParams(**asked, url=url, auth=auth)
        case "mysql":
            return MysqlTool(), MysqlParams(**asked, url=url, auth=auth)
        case "sqlite":
            return SqliteTool(), SqliteParams(**asked, path=url, auth=auth, create=create)
        case "duckdb":
            return DuckdbTool(), DuckdbParams(**asked, path=url, auth=auth)
        case "adbc" | "dbapi":
            return DriverTool(), DriverParams(**asked, auth=auth)


def _asked(question: Question, driver: Driver) -> dict[str, Any]:
    query = question.query
    if query is None:
        query = f"SELECT count(*) AS n FROM {quote_table(question.table or '', DIALECTS[driver])}"
    return {"query": query, "params": question.bindings, "max_rows": question.max_rows}


DIALECTS: dict[Driver, Dialect] = {
    "postgres": Dialect.POSTGRES,
    "mysql": Dialect.MYSQL,
    "sqlite": Dialect.SQLITE,
    "duckdb": Dialect.DUCKDB,
    "adbc": drivers.DIALECT,
    "dbapi": drivers.DIALECT,
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The database of one component run."""

    driver: Driver
    url: str | None
    auth: str | dict[str, Any] | None
    call: ToolCall

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.driver]

    def address(self) -> Address:
        return address(self.auth, {"url": self.url}, self.call)

    def lies_in(self, place: object) -> bool:
        """Is it the database that the engine's rows are in?"""
        return place is not None and self.driver in (*DATABASES, "dbapi") and place == self._place()

    def _place(self) -> object:
        if self.driver == "dbapi":
            address = self.driver_address()
            return address if address.driver in DRIVERS else None
        if self.driver == "duckdb":
            return place_of_file(duckdb.path_of(self.url, self.auth, self.call))
        return place_of(self.driver, self.address())

    def conninfo(self) -> str:
        return conninfo(self.address(), self.call)

    def driver_address(self) -> drivers.DriverAddress:
        return drivers.driver_address(self.auth, self.call)

    def login(self) -> Login:
        return login_of(self.address(), self.call)


def where(
    connection: str | None,
    auth: str | dict[str, Any] | None,
    call: Call,
    connect_timeout: float,
    timeout: float | None = None,
) -> Endpoint:
    """Raises ComponentFailure when no database is named, or none that is known."""
    spec: JsonMap = {"timeout": {"connect": connect_timeout, "total": timeout}}
    asked = tool_call(call, spec)
    if connection is not None and "://" not in connection and auth is None:
        # `connection: warehouse` can only be meant as the keychain entry of that name.
        connection, auth = None, connection
    driver, url = driver_of(Question(connection=connection, auth=auth), asked)
    return Endpoint(driver, url, auth, asked)


@dataclass(frozen=True, slots=True)
class Files:
    """What must be awaited before a thread can open a database that is a file."""

    sqlite: SharedSqlite | None = None
    duckdb: Callable[[Stop], DuckDBPyConnection] | None = None


async def opened_files(endpoint: Endpoint, *, create: bool) -> Files:
    """The execution's own connections to a file: a second program could not open it at the same time, and need not."""
    match endpoint.driver:
        case "sqlite":
            path = sqlite.path_of(endpoint.url, endpoint.auth, endpoint.call)
            return Files(sqlite=await sqlite.shared_database(path, endpoint.call, create=create))
        case "duckdb":
            path = duckdb.path_of(endpoint.url, endpoint.auth, endpoint.call)
            shared = await duckdb.shared_database(path, endpoint.call)
            return Files(duckdb=lambda stop: shared.cursor(endpoint.call.folder, stop))
        case _:
            return Files()


@contextmanager
def interrupting(stop: Any, interrupt: Callable[[], None]) -> Iterator[None]:
    """While the block runs, a stop interrupts this, too."""
    forget = stop.on_stop(interrupt)
    try:
        yield
    finally:
        forget()
