"""Types of columns, from a database to DuckDB and from DuckDB to a database."""

from __future__ import annotations

import re
from typing import Any

from penstock.data.types import NOTHING
from penstock.tools.sql.text import Dialect

EXACT = "numeric"
"""A number with as many digits as it needs: its type is inferred from all values."""

_POSTGRES = {
    16: "BOOLEAN",
    17: "BLOB",
    20: "BIGINT",
    21: "SMALLINT",
    23: "INTEGER",
    26: "BIGINT",
    114: "JSON",
    700: "FLOAT",
    701: "DOUBLE",
    1082: "DATE",
    1083: "TIME",
    1114: "TIMESTAMP",
    1184: "TIMESTAMP WITH TIME ZONE",
    2950: "UUID",
    3802: "JSON",
    1000: "BOOLEAN[]",
    1005: "SMALLINT[]",
    1007: "INTEGER[]",
    1009: "VARCHAR[]",
    1015: "VARCHAR[]",
    1016: "BIGINT[]",
    1021: "FLOAT[]",
    1022: "DOUBLE[]",
    1115: "TIMESTAMP[]",
    1182: "DATE[]",
    1231: "DOUBLE[]",
    2951: "UUID[]",
}


def from_postgres(column: Any) -> str:
    """Of a column that psycopg describes."""
    if column.type_code != 1700:
        return _POSTGRES.get(column.type_code, "VARCHAR")
    if column.precision is None or not 0 < column.precision <= 38 or not 0 <= (column.scale or 0) <= column.precision:
        return EXACT
    return f"DECIMAL({column.precision},{column.scale or 0})"


_MYSQL = {
    1: "SMALLINT",
    2: "INTEGER",
    3: "INTEGER",
    4: "FLOAT",
    5: "DOUBLE",
    7: "TIMESTAMP",
    8: "BIGINT",
    9: "INTEGER",
    10: "DATE",
    11: "INTERVAL",
    12: "TIMESTAMP",
    13: "INTEGER",
    16: "BLOB",
    245: "JSON",
    255: "BLOB",
}
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
}
_ORDER = (Dialect.POSTGRES, Dialect.MYSQL, Dialect.SQLITE)


def to_database(type: str, dialect: Dialect, *, key: bool = False) -> str:
    """The type of a column that is to hold values of a DuckDB type."""
    if type == NOTHING:
        type = "VARCHAR"  # in a table that stays, a column has to take the values of a better day
    if dialect is Dialect.DUCKDB:
        return type
    if type.startswith("DECIMAL"):
        return type if dialect is Dialect.SQLITE else type.lower()
    if key and dialect is Dialect.MYSQL and type == "VARCHAR":
        return "varchar(255)"  # MySQL cannot make a key of a text without a length
    nested = type.endswith("]") or type.startswith(("STRUCT", "MAP", "UNION"))
    found = _TARGETS.get("JSON" if nested else type, _TARGETS["VARCHAR"])
    return found[_ORDER.index(dialect)]
