"""Rows as Parquet, and back as they were.

Parquet has no column for some of DuckDB's types and would bring them back as something else: a HUGEINT, which is what a sum
of whole numbers is, as a DOUBLE with its last digits gone. Those lie in the file as text and are cast back when they are
read.
"""

from __future__ import annotations

import re
from pathlib import Path

from penstock.data.statements import quoted, stored, text
from penstock.ports.rows import Schema

# A type ends where its list or field ends; the name of a field is followed by its type.
_LOSSY = re.compile(
    r"\b(?:U?HUGEINT|BIGNUM|BIT|INTERVAL|TIME WITH TIME ZONE|TIMESTAMP_S|TIMESTAMP_MS)(?=\s*(?:[,)\[]|\Z))"
)
_QUOTED = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')""")


def portable(type: str) -> str:
    """The type that a column has inside the file."""
    # Names of fields and values of enums stand in quotes, and are not types.
    parts = _QUOTED.split(type)
    return "".join(part if at % 2 else _LOSSY.sub("VARCHAR", part) for at, part in enumerate(parts))


def export_statement(name: str, schema: Schema, path: Path) -> str:
    chosen = ", ".join(_as(column.name, column.type, portable(column.type)) for column in schema)
    return f"COPY (SELECT {chosen} FROM {stored(name)}) TO {text(str(path))} (FORMAT parquet, COMPRESSION zstd)"


def view_statement(name: str, schema: Schema, path: Path) -> str:
    chosen = ", ".join(f"CAST({quoted(column.name)} AS {column.type}) AS {quoted(column.name)}" for column in schema)
    source = f"read_parquet({text(_literally(path))}, hive_partitioning = false)"
    return f"CREATE VIEW {stored(name)} AS SELECT {chosen} FROM {source}"


def _as(name: str, type: str, wanted: str) -> str:
    return quoted(name) if type == wanted else f"CAST({quoted(name)} AS {wanted}) AS {quoted(name)}"


def _literally(path: Path) -> str:
    """The path with what would be a pattern in it put into brackets."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))
