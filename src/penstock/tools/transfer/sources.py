"""Databases at the reading end of a transfer: each is read through a cursor that holds no more than a batch."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

from penstock.tools.base import Call, ToolFailure
from penstock.tools.sql import duckdb as duckdb_tool
from penstock.tools.sql.connection import Address, Stop
from penstock.tools.sql.mysql import Login
from penstock.tools.sql.plan import Planner, columns_of
from penstock.tools.sql.reading import Opened, open_mysql, open_postgres, open_sqlite
from penstock.tools.sql.results import distinct
from penstock.tools.sql.sqlite import SharedSqlite
from penstock.tools.sql.text import Bound, Dialect, quote_all, quote_table
from penstock.tools.transfer.params import DatabaseFileSource, ServerSource

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# ---- Rows on their way, and what is known of their columns' types.
# Law: a type the source declares is kept; one it does not is inferred from the first chunk; anything that does not fit one
# is text.

Row = Sequence[Any]
Origin = Literal["sql", "text", "json"]
"""What values mean: a database's own, text that a column gives a type, or JSON values."""


class Kind(Enum):
    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMP_TZ = "timestamptz"
    BYTES = "bytes"
    JSON = "json"
    UUID = "uuid"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Flow:
    """What a source gives: batches of rows, all with the same columns."""

    columns: list[str]
    origin: Origin
    batches: Iterator[list[Row]]
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """Types the source declares. JSON is handed over as its text."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The rows as a target sees them: its own names for the columns, and their types."""

    columns: list[str]
    kinds: list[Kind]
    origin: Origin


def in_batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    rest = iter(rows)
    while batch := list(islice(rest, size)):
        yield batch


def from_objects(objects: Iterable[Any], size: int, wanted: Sequence[str] | None) -> Flow:
    """JSON objects as rows. The first chunk says which columns there are, unless the author did."""
    rest = iter(objects)
    first = list(islice(rest, size))
    columns = list(wanted) if wanted is not None else columns_of(first, "the source")
    return Flow(columns, "json", in_batches(_as_rows(chain(first, rest), columns, wanted is not None), size))


def _as_rows(objects: Iterable[Any], columns: list[str], chosen: bool) -> Iterator[Row]:
    known = set(columns)
    for index, each in enumerate(objects):
        if not isinstance(each, dict):
            raise ToolFailure("parameters", f"the source: row {index} is not a mapping from column to value")
        if not chosen and not each.keys() <= known:
            strange = next(name for name in each if name not in known)
            raise ToolFailure(
                "columns",
                f"row {index} has the column `{strange}`, which no row of the first chunk has; "
                "hint: name the columns to move in `columns`",
            )
        yield [each.get(column) for column in columns]


_BY_TYPE: dict[type, Kind] = {
    bool: Kind.BOOLEAN,
    int: Kind.INTEGER,
    float: Kind.FLOAT,
    Decimal: Kind.DECIMAL,
    datetime.date: Kind.DATE,
    datetime.time: Kind.TIME,
    bytes: Kind.BYTES,
    bytearray: Kind.BYTES,
    memoryview: Kind.BYTES,
    dict: Kind.JSON,
    list: Kind.JSON,
    uuid.UUID: Kind.UUID,
}
# Only what comes back the same when it is written again: `007` is no number, and `1e5` may be an article.
_BY_TEXT = (
    (re.compile(r"0|-?[1-9]\d{0,17}"), Kind.INTEGER),
    (re.compile(r"-?(0|[1-9]\d*)\.\d+"), Kind.DECIMAL),
    (re.compile(r"true|false", re.IGNORECASE), Kind.BOOLEAN),
    (re.compile(r"\d{4}-\d\d-\d\d"), Kind.DATE),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"), Kind.TIMESTAMP),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)"), Kind.TIMESTAMP_TZ),
)
_WIDER = {
    frozenset({Kind.INTEGER, Kind.DECIMAL}): Kind.DECIMAL,
    frozenset({Kind.INTEGER, Kind.FLOAT}): Kind.FLOAT,
    frozenset({Kind.DECIMAL, Kind.FLOAT}): Kind.FLOAT,
    frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT}): Kind.FLOAT,
    frozenset({Kind.DATE, Kind.TIMESTAMP}): Kind.TIMESTAMP,
}


def kind_of(value: Any, origin: Origin) -> Kind:
    if isinstance(value, str):
        found = (kind for pattern, kind in _BY_TEXT if origin == "text" and pattern.fullmatch(value))
        return next(found, Kind.TEXT)
    if isinstance(value, datetime.datetime):
        return Kind.TIMESTAMP if value.tzinfo is None else Kind.TIMESTAMP_TZ
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return Kind.DECIMAL
    return _BY_TYPE.get(type(value), Kind.TEXT)


def infer(values: Iterable[Any], origin: Origin) -> Kind:
    kinds = frozenset(kind_of(value, origin) for value in values if value is not None)
    if len(kinds) == 1:
        return next(iter(kinds))
    return _WIDER.get(kinds, Kind.TEXT)


def shape_of(flow: Flow, names: Sequence[tuple[str, int]], sample: Sequence[Row]) -> Shape:
    """`names` are the target's columns, each with its place in the source's rows; `sample` has the target's columns."""
    kinds = [
        flow.kinds.get(flow.columns[place]) or infer((row[index] for row in sample), flow.origin)
        for index, (_, place) in enumerate(names)
    ]
    return Shape([name for name, _ in names], kinds, flow.origin)


_SQL_TYPES: dict[Kind, tuple[str, str, str, str]] = {
    Kind.BOOLEAN: ("boolean", "boolean", "INTEGER", "BOOLEAN"),
    Kind.INTEGER: ("bigint", "bigint", "INTEGER", "BIGINT"),
    Kind.FLOAT: ("double precision", "double", "REAL", "DOUBLE"),
    Kind.DECIMAL: ("numeric", "decimal(65,20)", "NUMERIC", "DECIMAL(38,12)"),
    Kind.DATE: ("date", "date", "TEXT", "DATE"),
    Kind.TIME: ("time", "time(6)", "TEXT", "TIME"),
    Kind.TIMESTAMP: ("timestamp", "datetime(6)", "TEXT", "TIMESTAMP"),
    Kind.TIMESTAMP_TZ: ("timestamptz", "datetime(6)", "TEXT", "TIMESTAMPTZ"),
    Kind.BYTES: ("bytea", "longblob", "BLOB", "BLOB"),
    Kind.JSON: ("jsonb", "json", "TEXT", "JSON"),
    Kind.UUID: ("uuid", "char(36)", "TEXT", "UUID"),
    Kind.TEXT: ("text", "longtext", "TEXT", "VARCHAR"),
}
_ORDER = (Dialect.POSTGRES, Dialect.MYSQL, Dialect.SQLITE, Dialect.DUCKDB)


def sql_type(kind: Kind, dialect: Dialect, *, key: bool = False) -> str:
    if key and dialect is Dialect.MYSQL and kind is Kind.TEXT:
        return "varchar(255)"  # MySQL cannot make a key of a text without a length
    return _SQL_TYPES[kind][_ORDER.index(dialect)]


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
