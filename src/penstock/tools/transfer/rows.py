"""Rows on their way, and what is known of their columns' types.

Law: a type the source declares is kept; one it does not is inferred from the first chunk; anything that does not fit one is text.
"""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from itertools import chain, islice
from typing import Any, Literal

from penstock.tools.base import ToolFailure
from penstock.tools.sql.lexer import Dialect
from penstock.tools.sql.plan import columns_of

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
    """What a target is told of the rows: its own names for the columns, and their types."""

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
