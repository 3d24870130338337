"""Which database a component means, and how rows of it are called for: shared by `read_sql`, `write_sql` and `run_sql`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.components.base import Call
from penstock.components.flow.tool_calls import tool_call
from penstock.components.io.sql.database import Driver, Question, driver_of
from penstock.kernel.values import JsonMap
from penstock.tools.base import Call as ToolCall
from penstock.tools.sql.connection import Address, address
from penstock.tools.sql.lexer import Dialect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from penstock.tools.sql.blocking import Stop
    from penstock.tools.sql.mysql_connection import Login
    from penstock.tools.sql.sqlite import SharedSqlite

DIALECTS: dict[Driver, Dialect] = {
    "postgres": Dialect.POSTGRES,
    "mysql": Dialect.MYSQL,
    "sqlite": Dialect.SQLITE,
    "duckdb": Dialect.DUCKDB,
}


@dataclass(frozen=True, slots=True)
class Where:
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

    def conninfo(self) -> str:
        from penstock.tools.sql.postgres_connection import conninfo

        return conninfo(self.address(), self.call)

    def login(self) -> Login:
        from penstock.tools.sql.mysql_connection import login_of

        return login_of(self.address(), self.call)


def where(
    connection: str | None,
    auth: str | dict[str, Any] | None,
    call: Call,
    connect_timeout: float,
    timeout: float | None = None,
) -> Where:
    """Raises ComponentFailure when no database is named, or none that is known."""
    spec: JsonMap = {"timeout": {"connect": connect_timeout, "total": timeout}}
    asked = tool_call(call, spec)
    if connection is not None and "://" not in connection and auth is None:
        # `connection: warehouse` can only be meant as the keychain entry of that name.
        connection, auth = None, connection
    driver, url = driver_of(Question(connection=connection, auth=auth), asked)
    return Where(driver, url, auth, asked)


@dataclass(frozen=True, slots=True)
class Files:
    """What must be awaited before a thread can open a database that is a file."""

    sqlite: SharedSqlite | None = None
    duckdb: Callable[[Stop], DuckDBPyConnection] | None = None


async def opened_files(place: Where, *, create: bool) -> Files:
    """The execution's own connections to a file: a second program could not open it at the same time, and need not."""
    from penstock.tools.sql import duckdb, sqlite

    match place.driver:
        case "sqlite":
            path = sqlite.path_of(place.url, place.auth, place.call)
            return Files(sqlite=await sqlite.shared_database(path, place.call, create=create))
        case "duckdb":
            path = duckdb.path_of(place.url, place.auth, place.call)
            shared = await duckdb.shared_database(path, place.call)
            return Files(duckdb=lambda stop: shared.cursor(place.call.folder, stop))
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
