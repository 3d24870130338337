"""Types of columns: from a database or from values to DuckDB's names for them, and from those to a database's own.

Law: a type that the source declares is kept; one that it does not is inferred from values; what fits no other is text.
"""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Literal

from penstock.tools.sql.text import Dialect

EXACT = "numeric"
"""A number with as many digits as it needs."""

_POSTGRES = {
    16: "BOOLEAN", 17: "BLOB", 18: "VARCHAR", 19: "VARCHAR", 20: "BIGINT", 21: "SMALLINT", 23: "INTEGER",
    25: "VARCHAR", 26: "BIGINT", 114: "JSON", 700: "FLOAT", 701: "DOUBLE", 1042: "VARCHAR", 1043: "VARCHAR",
    1082: "DATE", 1083: "TIME", 1114: "TIMESTAMP", 1184: "TIMESTAMP WITH TIME ZONE", 2950: "UUID", 3802: "JSON",
    1000: "BOOLEAN[]", 1005: "SMALLINT[]", 1007: "INTEGER[]", 1009: "VARCHAR[]", 1014: "VARCHAR[]", 1015: "VARCHAR[]",
    1016: "BIGINT[]", 1021: "FLOAT[]", 1022: "DOUBLE[]", 1115: "TIMESTAMP[]", 1182: "DATE[]", 1183: "TIME[]",
    1185: "TIMESTAMP WITH TIME ZONE[]", 2951: "UUID[]",
}  # fmt: skip
_NUMERIC, _NUMERICS = 1700, 1231


def from_postgres(column: Any) -> str:
    """Of a column that psycopg describes; `""` of one that DuckDB has no type for."""
    if column.type_code not in (_NUMERIC, _NUMERICS):
        return _POSTGRES.get(column.type_code, "")
    is_list = column.type_code == _NUMERICS
    if column.precision is None or not 0 < column.precision <= 38 or not 0 <= (column.scale or 0) <= column.precision:
        # There is no exact number of any width, so of many they are texts.
        return "VARCHAR[]" if is_list else EXACT
    return f"DECIMAL({column.precision},{column.scale or 0}){'[]' if is_list else ''}"


_MYSQL = {
    1: "SMALLINT", 2: "INTEGER", 3: "INTEGER", 4: "FLOAT", 5: "DOUBLE", 7: "TIMESTAMP", 8: "BIGINT", 9: "INTEGER",
    10: "DATE", 11: "INTERVAL", 12: "TIMESTAMP", 13: "INTEGER", 16: "BLOB", 245: "JSON", 255: "BLOB",
}  # fmt: skip
_MYSQL_TEXTS = {249, 250, 251, 252, 253, 254, 15}
_MYSQL_DECIMALS = {0, 246}
_BINARY_CHARSET = 63
_UNSIGNED = 32


def from_mysql(field: Any) -> str:
    """Of a field as PyMySQL reads it from the server."""
    if field.type_code in _MYSQL_TEXTS:
        return "BLOB" if field.charsetnr == _BINARY_CHARSET else "VARCHAR"
    if field.type_code in _MYSQL_DECIMALS:
        # The length counts the sign and the point; one digit too many does no harm.
        width = max(field.length - (1 if field.scale else 0), 1)
        return f"DECIMAL({width},{field.scale})" if width <= 38 and field.scale <= width else EXACT
    type = _MYSQL.get(field.type_code, "VARCHAR")
    if field.flags & _UNSIGNED:
        return {"INTEGER": "BIGINT", "BIGINT": "UBIGINT"}.get(type, type)
    return type


_SQLITE = (
    (re.compile(r"BOOL"), "BOOLEAN"),
    (re.compile(r"INT"), "BIGINT"),
    (re.compile(r"CHAR|CLOB|TEXT|STRING"), "VARCHAR"),
    (re.compile(r"BLOB|BINARY"), "BLOB"),
    (re.compile(r"REAL|FLOA|DOUB"), "DOUBLE"),
    (re.compile(r"DATETIME|TIMESTAMP"), "TIMESTAMP"),
    (re.compile(r"DATE"), "DATE"),
    (re.compile(r"TIME"), "TIME"),
    (re.compile(r"JSON"), "JSON"),
    (re.compile(r"UUID"), "UUID"),
)
_DECIMAL = re.compile(r"(?:NUMERIC|DECIMAL)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


def from_sqlite(declared: str) -> str | None:
    """What a declared type says in SQLite, where any value may stand in any column; None when it says nothing."""
    text = declared.upper()
    decimal = _DECIMAL.search(text)
    if decimal is not None and 0 < int(decimal[1]) <= 38:
        return f"DECIMAL({decimal[1]},{decimal[2] or 0})"
    return next((type for pattern, type in _SQLITE if pattern.search(text)), None)


Origin = Literal["sql", "text", "json"]
"""What values mean: a database's own, text that a column gives a type, or JSON values."""

_BY_TYPE: dict[type, str] = {
    bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", Decimal: EXACT, datetime.date: "DATE", datetime.time: "TIME",
    bytes: "BLOB", bytearray: "BLOB", memoryview: "BLOB", dict: "JSON", list: "JSON", uuid.UUID: "UUID",
}  # fmt: skip
# Only what comes back the same when it is written again: `007` is no number, and `1e5` may be an article.
_BY_TEXT = (
    (re.compile(r"0|-?[1-9]\d{0,17}"), "BIGINT"),
    (re.compile(r"-?(0|[1-9]\d*)\.\d+"), EXACT),
    (re.compile(r"true|false", re.IGNORECASE), "BOOLEAN"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DATE"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"), "TIMESTAMP"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)"), "TIMESTAMP WITH TIME ZONE"),
)
_WIDER = {
    frozenset({"BIGINT", EXACT}): EXACT,
    frozenset({"BIGINT", "DOUBLE"}): "DOUBLE",
    frozenset({EXACT, "DOUBLE"}): "DOUBLE",
    frozenset({"BIGINT", EXACT, "DOUBLE"}): "DOUBLE",
    frozenset({"DATE", "TIMESTAMP"}): "TIMESTAMP",
}


def _type_of(value: Any, origin: Origin) -> str:
    if isinstance(value, str):
        found = (type for pattern, type in _BY_TEXT if origin == "text" and pattern.fullmatch(value))
        return next(found, "VARCHAR")
    if isinstance(value, datetime.datetime):
        return "TIMESTAMP" if value.tzinfo is None else "TIMESTAMP WITH TIME ZONE"
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return EXACT
    return _BY_TYPE.get(type(value), "VARCHAR")


def infer(values: Iterable[Any], origin: Origin) -> str:
    """The type that all these values fit."""
    types = frozenset(_type_of(value, origin) for value in values if value is not None)
    return next(iter(types)) if len(types) == 1 else _WIDER.get(types, "VARCHAR")


# DuckDB's type -> PostgreSQL, MySQL, SQLite.
_TARGETS: dict[str, tuple[str, str, str]] = {
    "BOOLEAN": ("boolean", "boolean", "BOOLEAN"),
    "TINYINT": ("smallint", "tinyint", "INTEGER"),
    "SMALLINT": ("smallint", "smallint", "INTEGER"),
    "INTEGER": ("integer", "int", "INTEGER"),
    "BIGINT": ("bigint", "bigint", "INTEGER"),
    "UTINYINT": ("smallint", "tinyint unsigned", "INTEGER"),
    "USMALLINT": ("integer", "smallint unsigned", "INTEGER"),
    "UINTEGER": ("bigint", "int unsigned", "INTEGER"),
    "UBIGINT": ("numeric(20)", "bigint unsigned", "NUMERIC(20)"),
    "HUGEINT": ("numeric(39)", "decimal(39)", "NUMERIC(38)"),
    "UHUGEINT": ("numeric(39)", "decimal(39)", "NUMERIC(38)"),
    "FLOAT": ("real", "float", "REAL"),
    "DOUBLE": ("double precision", "double", "REAL"),
    "DATE": ("date", "date", "DATE"),
    "TIME": ("time", "time(6)", "TIME"),
    "TIMESTAMP": ("timestamp", "datetime(6)", "TIMESTAMP"),
    "TIMESTAMP_S": ("timestamp", "datetime", "TIMESTAMP"),
    "TIMESTAMP_MS": ("timestamp", "datetime(3)", "TIMESTAMP"),
    "TIMESTAMP_NS": ("timestamp", "datetime(6)", "TIMESTAMP"),
    "TIMESTAMP WITH TIME ZONE": ("timestamptz", "datetime(6)", "TIMESTAMP"),
    "INTERVAL": ("interval", "varchar(64)", "TEXT"),
    "BLOB": ("bytea", "longblob", "BLOB"),
    "UUID": ("uuid", "char(36)", "TEXT"),
    "JSON": ("jsonb", "json", "TEXT"),
    "VARCHAR": ("text", "longtext", "TEXT"),
    EXACT: ("numeric", "decimal(65,20)", "NUMERIC"),
}
_ORDER = (Dialect.POSTGRES, Dialect.MYSQL, Dialect.SQLITE)


def is_plain(type: str) -> bool:
    """Has every database a type for it, so that values of it need not be looked at?"""
    return (type in _TARGETS and type != "INTERVAL") or (type.startswith("DECIMAL") and not type.endswith("]"))


def to_database(type: str, dialect: Dialect, *, key: bool = False) -> str:
    """The type of a column that is to hold values of a DuckDB type."""
    if dialect is Dialect.DUCKDB:
        return "DECIMAL(38,12)" if type == EXACT else type
    element = type.removesuffix("[]")
    if dialect is Dialect.POSTGRES and element != type and (is_plain(element) or element == "INTERVAL"):
        return f"{to_database(element, dialect)}[]"
    if element == type and type.startswith("DECIMAL"):
        return type if dialect is Dialect.SQLITE else type.lower()
    if key and dialect is Dialect.MYSQL and type == "VARCHAR":
        return "varchar(255)"  # MySQL cannot make a key of a text without a length
    nested = type.endswith("]") or type.startswith(("STRUCT", "MAP", "UNION"))
    found = _TARGETS.get("JSON" if nested else type, _TARGETS["VARCHAR"])
    return found[_ORDER.index(dialect)]
