"""Databases at the reading end of a transfer: each is read through a cursor that holds no more than a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.tools.base import Call, ToolFailure
from penstock.tools.sql import duckdb as duckdb_tool
from penstock.tools.sql.binding import Bound
from penstock.tools.sql.blocking import Stop
from penstock.tools.sql.connection import Address
from penstock.tools.sql.lexer import Dialect
from penstock.tools.sql.mysql_connection import Login
from penstock.tools.sql.names import quote_all, quote_table
from penstock.tools.sql.plan import Planner
from penstock.tools.sql.reading import Opened, open_mysql, open_postgres, open_sqlite
from penstock.tools.sql.sqlite import SharedSqlite
from penstock.tools.sql.values import distinct
from penstock.tools.transfer.params import DatabaseFileSource, ServerSource
from penstock.tools.transfer.rows import Flow, Kind, Row

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def statement_of(
    source: ServerSource | DatabaseFileSource, dialect: Dialect, wanted: Sequence[str] | None, call: Call
) -> Bound:
    """The one statement that gives the rows."""
    if (source.table is None) == (source.query is None):
        raise ToolFailure("parameters", "the source has exactly one of `table` and `query`")
    planner = Planner(dialect, call)
    if source.table is not None:
        columns = quote_all(wanted, dialect) if wanted is not None else "*"
        return planner.text(f"SELECT {columns} FROM {quote_table(source.table, dialect)}", None)[0]
    statements = planner.text(source.query or "", source.params)
    if len(statements) != 1:
        raise ToolFailure("parameters", f"`source.query` takes one statement, and this text has {len(statements)}")
    return statements[0]


def _batches(opened: Opened, size: int) -> Iterator[list[Row]]:
    return map(list, opened.batches(size, lambda before: "reading"))


_PG_KINDS = {
    16: Kind.BOOLEAN,
    17: Kind.BYTES,
    20: Kind.INTEGER,
    21: Kind.INTEGER,
    23: Kind.INTEGER,
    25: Kind.TEXT,
    114: Kind.JSON,
    700: Kind.FLOAT,
    701: Kind.FLOAT,
    1042: Kind.TEXT,
    1043: Kind.TEXT,
    1082: Kind.DATE,
    1083: Kind.TIME,
    1114: Kind.TIMESTAMP,
    1184: Kind.TIMESTAMP_TZ,
    1700: Kind.DECIMAL,
    2950: Kind.UUID,
    3802: Kind.JSON,
}


@contextmanager
def read_postgres(conninfo: str, address: Address, statement: Bound, size: int, stop: Stop) -> Iterator[Flow]:
    with open_postgres(conninfo, address, statement, stop) as opened:
        described = opened.cursor.description or []
        columns = distinct([column.name for column in described])
        kinds = {
            name: _PG_KINDS[column.type_code]
            for name, column in zip(columns, described, strict=True)
            if column.type_code in _PG_KINDS
        }
        yield Flow(columns, "sql", _batches(opened, size), kinds)


_MYSQL_KINDS = {
    0: Kind.DECIMAL,
    2: Kind.INTEGER,
    3: Kind.INTEGER,
    4: Kind.FLOAT,
    5: Kind.FLOAT,
    7: Kind.TIMESTAMP,
    8: Kind.INTEGER,
    9: Kind.INTEGER,
    10: Kind.DATE,
    12: Kind.TIMESTAMP,
    245: Kind.JSON,
    246: Kind.DECIMAL,
}


@contextmanager
def read_mysql(login: Login, statement: Bound, size: int, stop: Stop) -> Iterator[Flow]:
    with open_mysql(login, statement, stop) as opened:
        described: Any = opened.cursor.description or ()
        columns = distinct([column[0] for column in described])
        kinds = {
            name: _MYSQL_KINDS[column[1]]
            for name, column in zip(columns, described, strict=True)
            if column[1] in _MYSQL_KINDS
        }
        yield Flow(columns, "sql", _batches(opened, size), kinds)


@contextmanager
def read_sqlite(shared: SharedSqlite, statement: Bound, size: int, stop: Stop) -> Iterator[Flow]:
    with open_sqlite(shared, statement, stop) as opened:
        columns = distinct([column[0] for column in opened.cursor.description or []])
        yield Flow(columns, "sql", _batches(opened, size))


_DUCKDB_KINDS = {
    "BOOLEAN": Kind.BOOLEAN,
    "TINYINT": Kind.INTEGER,
    "SMALLINT": Kind.INTEGER,
    "INTEGER": Kind.INTEGER,
    "BIGINT": Kind.INTEGER,
    "UTINYINT": Kind.INTEGER,
    "USMALLINT": Kind.INTEGER,
    "UINTEGER": Kind.INTEGER,
    "HUGEINT": Kind.DECIMAL,
    "UBIGINT": Kind.DECIMAL,
    "FLOAT": Kind.FLOAT,
    "DOUBLE": Kind.FLOAT,
    "DATE": Kind.DATE,
    "TIME": Kind.TIME,
    "TIMESTAMP": Kind.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": Kind.TIMESTAMP_TZ,
    "BLOB": Kind.BYTES,
    "JSON": Kind.JSON,
    "UUID": Kind.UUID,
    "VARCHAR": Kind.TEXT,
}


@contextmanager
def read_duckdb(
    open_cursor: Callable[[Stop], DuckDBPyConnection], statement: Bound, size: int, stop: Stop
) -> Iterator[Flow]:
    import duckdb

    connection = open_cursor(stop)
    forget = stop.on_stop(connection.interrupt)

    def failure(error: Exception) -> ToolFailure:
        return duckdb_tool.failure_of(error, None)

    try:
        args = statement.args if isinstance(statement.args, dict) else None
        types = duckdb_tool.described(statement, args, connection)
        text = duckdb_tool.zone_free(statement, args, connection)
        cursor = connection.execute(text, args) if args else connection.execute(text)
        columns = distinct([name for name, _ in types])
        kinds = {
            name: Kind.DECIMAL if kind.startswith("DECIMAL") else _DUCKDB_KINDS[kind]
            for name, (_, kind) in zip(columns, types, strict=True)
            if kind in _DUCKDB_KINDS or kind.startswith("DECIMAL")
        }
        yield Flow(columns, "sql", _batches(Opened(cursor, (duckdb.Error,), failure), size), kinds)
    except duckdb.Error as error:
        raise failure(error) from None
    finally:
        forget()
        connection.close()
