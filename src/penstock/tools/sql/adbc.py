"""Rows of PostgreSQL as an Arrow stream, through its driver of ADBC: no value of them becomes one of Python's.

The server sends them with a binary COPY. A type whose binary form the driver does not know, or reads as something else, is
sent as text or as JSON; the type that it is to be is told beside the stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.kernel.values import JsonMap
from penstock.ports.rows import Column, Schema
from penstock.tools.base import ToolFailure
from penstock.tools.sql import postgres_connection
from penstock.tools.sql.connection import Address, Stop, in_a_thread
from penstock.tools.sql.postgres_connection import is_retryable, kind_of
from penstock.tools.sql.results import distinct, failure, scrubbed
from penstock.tools.sql.text import Bound, Dialect, quote
from penstock.tools.sql.types import EXACT, from_postgres

if TYPE_CHECKING:
    import psycopg
    from adbc_driver_manager import AdbcConnection


@contextmanager
def _connected(conninfo: str, secrets: Sequence[str | None]) -> Iterator[AdbcConnection]:
    """A connection in autocommit mode. What the driver raises while it is open becomes ToolFailure."""
    import adbc_driver_manager as adbc  # Slow to import: only a connection needs it.
    import adbc_driver_postgresql

    try:
        opened = adbc_driver_postgresql.connect(conninfo)
        try:
            connection = adbc.AdbcConnection(opened)
            try:
                yield connection
            finally:
                connection.close()
        finally:
            opened.close()
    except adbc.Error as error:
        raise _failure_of(error, secrets) from None


def _failure_of(error: Any, secrets: Sequence[str | None]) -> ToolFailure:
    state = error.sqlstate or ""
    said = dict(error.details).get(b"PG_DIAG_MESSAGE_PRIMARY") or str(error)
    message = scrubbed(said.decode() if isinstance(said, bytes) else said, secrets)
    helpers: dict[str, JsonMap] = {"pg": {"code": state or None, "sqlstate": state or None}}
    return failure(kind_of(state), message, None, helpers, retryable=is_retryable(state))


_BROKEN = re.compile(r"reading the (?:schema of the )?stream registered as .*? failed: (?P<said>.*)", re.DOTALL)
_LOST = re.compile(r"server closed the connection|terminating connection|connection .*(lost|reset)", re.IGNORECASE)


def stream_failure(message: str) -> ToolFailure | None:
    """Of a stream that broke off: what the reader says of it has the driver's own words in it. None: that was not it."""
    found = _BROKEN.search(message)
    if found is None:
        return None
    said = " ".join(found["said"].split()).partition("ERROR: ")
    is_lost = _LOST.search(message) is not None
    kind = "connect" if is_lost else "database"
    return ToolFailure(kind, (said[2] or said[0]).strip(), retryable=is_lost, helpers={"pg": {"code": None}})


@contextmanager
def _rows_of(connection: AdbcConnection, text: str, stop: Stop) -> Iterator[Any]:
    """The rows of a statement, as something with `__arrow_c_stream__` that can be read once while the block runs."""
    import adbc_driver_manager as adbc  # Slow to import: only a connection needs it.

    statement = adbc.AdbcStatement(connection)

    def cancel() -> None:
        with suppress(adbc.Error):
            statement.cancel()

    forget = stop.on_stop(in_a_thread(cancel))
    try:
        statement.set_sql_query(text)
        stream, _ = statement.execute_query()
        yield stream
    finally:
        forget()
        statement.close()


def _run(connection: AdbcConnection, text: str) -> None:
    import adbc_driver_manager as adbc  # Slow to import: only a connection needs it.

    statement = adbc.AdbcStatement(connection)
    try:
        statement.set_sql_query(text)
        statement.execute_update()
    finally:
        statement.close()


# ---- PostgreSQL

# As the driver reads them, whole and exactly.
_NATIVE = {16, 17, 18, 19, 20, 21, 23, 25, 114, 700, 701, 1042, 1043, 1083, 1700, 2950, 3802}
_OID, _NUMERICS = 26, 1231
_TIMES = {1082: "date", 1114: "timestamp", 1184: "timestamptz"}
FOREVER = {
    "DATE": ("5874897-12-31", "5874897-12-30"),
    "TIMESTAMP": ("294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.775805"),
    "TIMESTAMP WITH TIME ZONE": ("294247-01-10 04:00:54.775806+00", "294247-01-10 04:00:54.775805+00"),
}
"""`infinity` and `-infinity` on their way: the last moments that both databases know, as the driver has none for them."""


@dataclass(frozen=True, slots=True)
class Described:
    """A statement of PostgreSQL as it is sent, and what its columns are to be here: `EXACT` are texts of numbers."""

    text: str
    columns: Schema
    query: str = ""
    """The statement itself, with all values in it."""
    printed: frozenset[str] = frozenset()
    """Columns of types that DuckDB has not: they are what the server prints."""


def describe_postgres(conninfo: str, address: Address, statement: Bound, stop: Stop) -> Described:
    """Raises ToolFailure for all that the server can say of a statement without running it."""
    import psycopg  # Slow to import: only a connection needs it.

    connection = postgres_connection.connect_blocking(conninfo, address)
    forget = stop.on_stop(in_a_thread(lambda: postgres_connection.cancel(connection)))
    try:
        connection.read_only = True
        asked = f"SELECT * FROM (\n{statement.text}\n) AS found LIMIT 0"
        cursor = connection.execute(asked.encode(), postgres_connection.arguments(statement))
        return _described(cursor.description or [], statement, connection)
    except psycopg.Error as error:
        failed = postgres_connection.failure_of(error, None, connection_lost=connection.closed)
        if failed.kind == "syntax" and statement.verb not in _GIVE_ROWS:
            # The server complains of what stands around the query, which nobody has written.
            raise ToolFailure("no_rows", f"`{statement.excerpt}` gives no rows to read; {_MUST_SELECT}") from None
        raise failed from None
    finally:
        forget()
        connection.close()


_GIVE_ROWS = ("select", "with", "values", "table")
_MUST_SELECT = "hint: it must be a SELECT; `run_sql` runs other statements"


def _described(found: Sequence[psycopg.Column], statement: Bound, connection: psycopg.Connection[Any]) -> Described:
    if not found:
        raise ToolFailure("no_rows", f"the query gives no columns; {_MUST_SELECT}")
    columns = [
        Column(name, from_postgres(column) or "VARCHAR")
        for name, column in zip(distinct([column.name for column in found]), found, strict=True)
    ]
    places = [f"c{index}" for index in range(len(found))]
    sent = [
        f"{_sent(place, column)} AS {quote(named.name, Dialect.POSTGRES)}"
        for place, column, named in zip(places, found, columns, strict=True)
    ]
    inner = postgres_connection.with_literals(statement, connection)
    text = f"SELECT {', '.join(sent)} FROM (\n{inner}\n) AS found ({', '.join(places)})"
    printed = {named.name for column, named in zip(found, columns, strict=True) if not from_postgres(column)}
    return Described(text, tuple(columns), inner, frozenset(printed))


def _sent(place: str, column: psycopg.Column) -> str:
    oid = column.type_code
    if oid in _NATIVE:
        return place
    if oid == _OID:
        return f"{place}::int8"
    if (time := _TIMES.get(oid)) is not None:
        last, before = FOREVER[from_postgres(column)]
        return f"CASE {place} WHEN 'infinity' THEN {time} '{last}' WHEN '-infinity' THEN {time} '{before}' ELSE {place} END"
    if from_postgres(column).endswith("[]"):
        # The driver makes one list of an array of arrays. Numbers go as texts: in JSON they may become floating.
        return f"array_to_json({place}{'::text[]' if oid == _NUMERICS else ''})"
    # What the server prints; a cast would say more of an `inet`.
    return f"CASE WHEN num_nulls({place}) = 0 THEN format('%s', {place}) END"


@contextmanager
def postgres_rows(conninfo: str, address: Address, described: Described, stop: Stop) -> Iterator[Any]:
    """The rows of a described statement. A reader must not change anything."""
    with rows_of_text(conninfo, address, described.text, stop) as stream:
        yield stream


@contextmanager
def rows_of_text(conninfo: str, address: Address, text: str, stop: Stop) -> Iterator[Any]:
    """The rows of a statement whose columns the driver reads as they are. A reader must not change anything."""
    reached = postgres_connection.reaching(conninfo, address.allowed)
    with _connected(reached, address.secrets) as connection:
        for setting in ("default_transaction_read_only = on", "TimeZone = 'UTC'"):
            _run(connection, f"SET {setting}")
        with _rows_of(connection, text, stop) as stream:
            yield stream


def exact_columns(columns: Schema) -> Schema:
    """Numbers with a width as texts, like those without."""

    def exact(type: str) -> str:
        if not type.startswith("DECIMAL"):
            return type
        return "VARCHAR[]" if type.endswith("[]") else EXACT

    return tuple(Column(each.name, exact(each.type)) for each in columns)
