"""Rows as Python values.

DuckDB turns a TIMESTAMP WITH TIME ZONE into a Python value only where pytz is installed. So such columns are read as the
UTC time they are, and given their zone here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from duckdb.sqltypes import DuckDBPyType

from penstock.data.statements import quoted

Convert = Callable[[Any], Any]
_ZONED = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")


class Conversion:
    """How the rows of one query become Python values."""

    def __init__(self, names: Sequence[str], types: Sequence[DuckDBPyType]) -> None:
        self._names = names
        self._types = [str(type) for type in types]
        self._converts: list[Convert | None] = [
            _converter(type) if _is_zoned(text) else None for type, text in zip(types, self._types, strict=True)
        ]

    @property
    def is_needed(self) -> bool:
        return any(self._converts)

    def query(self, query: str) -> str:
        """The query, with columns as DuckDB can hand them over."""
        chosen = ", ".join(_unzoned(name, type) for name, type in zip(self._names, self._types, strict=True))
        return f"SELECT {chosen} FROM (\n{query}\n)"

    def rows(self, batch: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        columns = [list(column) for column in zip(*batch, strict=True)]
        for at, convert in enumerate(self._converts):
            if convert is not None:
                columns[at] = [None if value is None else convert(value) for value in columns[at]]
        return list(zip(*columns, strict=True))


def _is_zoned(type: str) -> bool:
    return any(name in type for name in _ZONED)


def _unzoned(name: str, type: str) -> str:
    if not _is_zoned(type):
        return quoted(name)
    plain = type
    for zoned in _ZONED:
        plain = plain.replace(zoned, "TIMESTAMP")
    return f"CAST({quoted(name)} AS {plain}) AS {quoted(name)}"


def _converter(type: Any) -> Convert | None:
    """Of a DuckDBPyType; its children are types, but for the size of an array."""
    match type.id:
        case "timestamp with time zone" | "timestamptz_ns":
            return _in_utc
        case "list" | "array":
            return _each(_converter(dict(type.children)["child"]))
        case "struct":
            return _fields({name: _converter(child) for name, child in type.children})
        case "map":
            parts = dict(type.children)
            return _entries(_converter(parts["key"]), _converter(parts["value"]))
        case _:
            return None


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)


def _apply(convert: Convert | None, value: Any) -> Any:
    return value if value is None or convert is None else convert(value)


def _each(convert: Convert | None) -> Convert:
    return lambda values: [_apply(convert, value) for value in values]


def _fields(converts: dict[str, Convert | None]) -> Convert:
    return lambda value: {name: _apply(converts.get(name), part) for name, part in value.items()}


def _entries(key: Convert | None, value: Convert | None) -> Convert:
    return lambda entries: {_apply(key, one): _apply(value, other) for one, other in entries.items()}


def batches(fetch: Callable[[int], list[tuple[Any, ...]]], size: int, conversion: Conversion | None) -> Iterator[Any]:
    while batch := fetch(size):
        yield conversion.rows(batch) if conversion is not None else batch
