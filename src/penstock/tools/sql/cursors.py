"""A statement's rows through a server-side cursor, which holds no more than a batch; closed however the reading ends.

The caller knows what the rows are for; this module has only what it takes to get at them: the connection, a way to stop it from
outside, and what an error of this driver means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.tools.base import ToolFailure
from penstock.tools.sql import duckdb as duckdb_tool
from penstock.tools.sql import postgres_connection, sqlite
from penstock.tools.sql.connection import Address, Stop, in_a_thread
from penstock.tools.sql.mysql import bindable, connect, failure_of, kill_query, thread_of
from penstock.tools.sql.results import distinct, prefixed
from penstock.tools.sql.text import Bound
from penstock.tools.sql.types import from_mysql, from_postgres

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from penstock.tools.sql.mysql import Login
    from penstock.tools.sql.sqlite import SharedSqlite


@dataclass(frozen=True, slots=True)
class Opened:
    """A statement that was sent, with the columns of its rows: their names, and DuckDB's names for the types that the database
    says they have, `""` where it says nothing."""

    cursor: Any
    columns: list[tuple[str, str]]
    errors: tuple[type[Exception], ...]
    failure: Callable[[Any], ToolFailure]

    def batches(self, size: int, where: Callable[[int], str]) -> Iterator[Sequence[Any]]:
        """Errors are turned into failures here, where it is certain which end they come from; `where` is told how many rows
        came before."""
        total = 0
        while True:
            try:
                batch = self.cursor.fetchmany(size)
            except self.errors as error:
                raise prefixed(self.failure(error), where(total)) from None
            if not batch:
                return
            total += len(batch)
            yield batch


def _named(names: Sequence[str], types: Iterable[str]) -> list[tuple[str, str]]:
    return list(zip(distinct(names), types, strict=True))


@contextmanager
def open_postgres(conninfo: str, address: Address, statement: Bound, stop: Stop) -> Iterator[Opened]:
    import psycopg  # Slow to import: only a connection needs it.

    connection = postgres_connection.connect_blocking(conninfo, address)
    forget = stop.on_stop(in_a_thread(lambda: postgres_connection.cancel(connection)))

    def failure(error: psycopg.Error) -> ToolFailure:
        return postgres_connection.failure_of(error, None, connection_lost=connection.closed)

    cursor = psycopg.RawServerCursor(connection, "penstock_rows")
    try:
        # A server-side cursor needs a transaction, which must not change anything.
        connection.read_only = True
        cursor.execute(statement.text.encode(), postgres_connection.arguments(statement))
        described = cursor.description or []
        columns = _named([column.name for column in described], map(from_postgres, described))
        yield Opened(cursor, columns, (psycopg.Error,), failure)
    except psycopg.Error as error:
        raise failure(error) from None
    finally:
        forget()
        with suppress(psycopg.Error):
            cursor.close()
        connection.close()


@contextmanager
def open_mysql(login: Login, statement: Bound, stop: Stop, *, reads_ahead: bool = False) -> Iterator[Opened]:
    """`reads_ahead`: what comes is taken in large pieces, for `mysql_rows.fetch`."""
    import pymysql  # Slow to import: only a connection needs it.
    from pymysql.cursors import SSCursor

    connection = connect(login)
    number = thread_of(connection)
    forget = stop.on_stop(in_a_thread(lambda: kill_query(login, number)))
    errors = (pymysql.MySQLError, OSError)

    def failure(error: Exception) -> ToolFailure:
        return failure_of(error, None)

    finished = False
    cursor: Any = connection.cursor(SSCursor)
    try:
        args = [bindable(value) for value in statement.args] if isinstance(statement.args, list) else None
        if reads_ahead:
            connection.read_ahead()
        cursor.execute(statement.text, args)
        fields = cursor._result.fields if cursor.description and cursor._result else []
        columns = _named([field.name for field in fields], map(from_mysql, fields))
        yield Opened(cursor, columns, errors, failure)
        finished = True
    except errors as error:
        raise failure(error) from None
    finally:
        forget()
        if not finished:
            # Closing the cursor reads what is still to come, so the server is told to send no more.
            kill_query(login, number)
        with suppress(*errors):
            cursor.close()
        if connection.open:
            connection.close()


@contextmanager
def open_sqlite(
    shared: SharedSqlite, statement: Bound, stop: Stop, look: Callable[[Any], None] = lambda connection: None
) -> Iterator[Opened]:
    """`look` is given the connection before the statement runs on it."""
    connection = shared.take()
    forget = stop.on_stop(connection.interrupt)
    errors = sqlite.SqliteSession.errors

    def failure(error: Exception) -> ToolFailure:
        return sqlite.failure_of(error, None)

    try:
        look(connection)
        args = statement.args if isinstance(statement.args, dict) else {}
        values = {name: sqlite.bindable(value) for name, value in args.items()}
        with closing(connection.execute(statement.text, values)) as cursor:
            names = [column[0] for column in cursor.description or []]
            yield Opened(cursor, _named(names, [""] * len(names)), errors, failure)
    except errors as error:
        raise failure(error) from None
    finally:
        forget()
        shared.give_back(connection)


@contextmanager
def open_duckdb(open_cursor: Callable[[Stop], DuckDBPyConnection], statement: Bound, stop: Stop) -> Iterator[Opened]:
    import duckdb  # Slow to import: only a query needs it.

    connection = open_cursor(stop)
    forget = stop.on_stop(connection.interrupt)

    def failure(error: Exception) -> ToolFailure:
        return duckdb_tool.failure_of(error, None)

    try:
        args = statement.args if isinstance(statement.args, dict) else None
        types = duckdb_tool.described(statement, args, connection)
        text = duckdb_tool.zone_free(statement, args, connection)
        cursor = connection.execute(text, args) if args else connection.execute(text)
        columns = _named([name for name, _ in types], [type for _, type in types])
        yield Opened(cursor, columns, (duckdb.Error,), failure)
    except duckdb.Error as error:
        raise failure(error) from None
    finally:
        forget()
        connection.close()
