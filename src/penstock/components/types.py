"""Families of types by name, and names of types that do not exist."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.components.base import ComponentFailure, Mistake
from penstock.data.types import NOTHING, TypeMistake, duckdb_type

Place = tuple[str | int, ...]

WHOLE = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
)
"""The types that have no place for a fraction."""
_FRACTIONS = ("FLOAT", "DOUBLE", "DECIMAL")


def is_whole(type: str) -> bool:
    return _base(type) in WHOLE


def is_number(type: str) -> bool:
    return _base(type) in (*WHOLE, *_FRACTIONS)


def is_moment(type: str) -> bool:
    return _base(type).startswith(("DATE", "TIME"))


def is_text(type: str) -> bool:
    return _base(type) == "VARCHAR"


def is_nothing(type: str) -> bool:
    """Of a column that has never had a value, and goes with any other."""
    return type == NOTHING


def is_nested(type: str) -> bool:
    return type.endswith("]") or _base(type) in ("STRUCT", "MAP", "UNION", "JSON", "VARIANT")


def sql_type(text: str) -> str:
    """DuckDB's name for a type that an author wrote. Raises ComponentFailure when there is no such type."""
    try:
        return duckdb_type(text)
    except TypeMistake as error:
        raise ComponentFailure("parameters", error.message) from None


def wrong_type(path: Place, text: str) -> Iterable[Mistake]:
    """A mistake if the text names no type."""
    try:
        duckdb_type(text)
    except TypeMistake as error:
        yield Mistake(path, error.message, hint=error.hint, offset=0, length=max(1, len(text)), kind="type")


def _base(type: str) -> str:
    """`DECIMAL(18,3)` is DECIMAL; a list of numbers is no number."""
    return type if type.endswith("]") else type.partition("(")[0].strip().upper()
