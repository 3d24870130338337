"""What type a column has, by the Python values in it.

Values of different types share a column if one type can hold them all: whole numbers become DOUBLE beside a float, DATE
becomes TIMESTAMP beside a time of day, anything scalar becomes text beside a text. Lists and mappings that are alike become
LIST and STRUCT; where they differ from row to row, the column is JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from os import PathLike, fspath
from typing import Any
from uuid import UUID

import msgspec

from penstock.data.statements import quoted
from penstock.ports.rows import RowsFailed


@dataclass(frozen=True, slots=True)
class Kind:
    """A type while it is being inferred. `digits` and `scale` are of decimals, `digits` also of whole numbers."""

    name: str
    digits: int = 0
    scale: int = 0
    parts: tuple[tuple[str, Kind], ...] = ()
    """Of a struct its fields; of a list its one element, under the name `""`."""

    @property
    def type(self) -> str:
        match self.name:
            case "int":
                return "BIGINT" if self.digits <= 18 else "HUGEINT"
            case "decimal":
                return f"DECIMAL({max(1, self.digits + self.scale)},{self.scale})"
            case "list":
                return f"{self.parts[0][1].type}[]"
            case "struct":
                return f"STRUCT({', '.join(f'{quoted(name)} {part.type}' for name, part in self.parts)})"
            case _:
                return _TYPES[self.name]

    @property
    def is_nested(self) -> bool:
        return self.name in ("list", "struct", "json")


_TYPES = {
    "null": "VARCHAR", "bool": "BOOLEAN", "float": "DOUBLE", "text": "VARCHAR", "bytes": "BLOB", "date": "DATE",
    "time": "TIME", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "interval": "INTERVAL", "uuid": "UUID",
    "json": "JSON",
}  # fmt: skip
NULL, TEXT, FLOAT, JSON = Kind("null"), Kind("text"), Kind("float"), Kind("json")
_SCALARS = {
    type(None): NULL,
    bool: Kind("bool"),
    float: FLOAT,
    str: TEXT,
    bytes: Kind("bytes"),
    date: Kind("date"),
    time: Kind("time"),
    timedelta: Kind("interval"),
    UUID: Kind("uuid"),
}
NATIVE = frozenset({*_SCALARS, int, Decimal, datetime, list, dict})
_MOST_DIGITS = 38


def kind_of_column(values: Sequence[Any], found: set[type]) -> Kind:
    """`found` are the types of the values, all of them native."""
    kind = NULL
    for one in found:
        if one in _SCALARS:
            kind = unify(kind, _SCALARS[one])
        elif one is int:
            kind = unify(kind, _whole([value for value in values if type(value) is int] if len(found) > 1 else values))
        elif one is Decimal:
            kind = unify(kind, _decimals([value for value in values if type(value) is Decimal]))
        elif one is datetime:
            for has_zone in {value.tzinfo is not None for value in values if type(value) is datetime}:
                kind = unify(kind, Kind("timestamptz" if has_zone else "timestamp"))
        else:
            for value in values:
                if type(value) is one:
                    kind = unify(kind, _kind_of(value))
    return kind


def _whole(values: Sequence[int]) -> Kind:
    least, most = min(values), max(values)
    if least >= -(2**63) and most < 2**63:
        return Kind("int", digits=18)
    return Kind("int", digits=_MOST_DIGITS) if least >= -(2**127) and most < 2**127 else TEXT


def _kind_of(value: Any) -> Kind:
    match value:
        case bool():
            return _SCALARS[bool]
        case int():
            return _whole((value,))
        case Decimal():
            return _decimal(value)
        case datetime():
            return Kind("timestamptz" if value.tzinfo else "timestamp")
        case list():
            return _settled(Kind("list", parts=(("", _together(_kind_of(element) for element in value)),)))
        case dict():
            return _struct(value)
        case _:
            return _SCALARS[type(value)]


def _decimal(value: Decimal) -> Kind:
    if not value.is_finite():
        return FLOAT
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    whole = max(0, len(digits) + int(exponent))
    return Kind("decimal", digits=whole, scale=scale) if whole + scale <= _MOST_DIGITS else FLOAT


def _decimals(values: Sequence[Decimal]) -> Kind:
    """For a whole column at once: value by value it would cost more than the rest of loading."""
    if not all(map(Decimal.is_finite, values)):
        return FLOAT
    scale = max(0, -min(int(value.as_tuple()[2]) for value in values))
    whole = max(0, max(map(Decimal.adjusted, values)) + 1)
    return Kind("decimal", digits=whole, scale=scale) if whole + scale <= _MOST_DIGITS else FLOAT


def _struct(value: Mapping[str, Any]) -> Kind:
    if not value:
        return JSON
    return _settled(Kind("struct", parts=tuple((name, _kind_of(part)) for name, part in value.items())))


def _together(kinds: Iterable[Kind]) -> Kind:
    found = NULL
    for kind in kinds:
        found = unify(found, kind)
    return found


def unify(one: Kind, other: Kind) -> Kind:
    """The narrowest kind that holds both."""
    if one == other or other.name == "null":
        return one
    if one.name == "null":
        return other
    if one.is_nested or other.is_nested:
        return _nested(one, other)
    names = {one.name, other.name}
    if names <= {"bool", "int", "float", "decimal"}:
        return _number(one, other)
    if names <= {"date", "timestamp", "timestamptz"}:
        return Kind("timestamptz" if "timestamptz" in names else "timestamp")
    return TEXT


def _number(one: Kind, other: Kind) -> Kind:
    names = {one.name, other.name}
    if "float" in names:
        return FLOAT
    if "decimal" not in names:
        return Kind("int", digits=max(one.digits, other.digits, 18))
    # A whole number of 64 bits has up to 19 digits, though a column of small ones is far more usual.
    digits = max(19 if kind.name == "int" else kind.digits for kind in (one, other))
    scale = max(one.scale, other.scale)
    return Kind("decimal", digits=digits, scale=scale) if digits + scale <= _MOST_DIGITS else FLOAT


def _nested(one: Kind, other: Kind) -> Kind:
    if "text" in (one.name, other.name):
        return TEXT
    theirs = dict(other.parts)
    if one.name != other.name or {name for name, _ in one.parts} != theirs.keys():
        return JSON
    parts = tuple((name, unify(part, theirs[name])) for name, part in one.parts)
    return _settled(replace(one, parts=parts))


def _settled(kind: Kind) -> Kind:
    """JSON inside a list or a struct makes the whole of it JSON: its values are written as one text."""
    return JSON if any(part.name == "json" for _, part in kind.parts) else kind


def native(value: Any) -> Any:
    """The value as one of the types DuckDB takes, from what a library may have made of it."""
    if type(value) in NATIVE:
        return _native_inside(value)
    match value:
        case Enum():
            return native(value.value)
        case int() | float() | str() | bytes() | Decimal():
            return _base(value)
        case datetime():
            # A missing time of pandas is a datetime that is not equal to itself.
            return _instant(value) if value == value else None
        case date():
            return date(value.year, value.month, value.day)
        case Mapping():
            return {str(key): native(part) for key, part in value.items()}
        case bytearray() | memoryview():
            return bytes(value)
        case Sequence() | set() | frozenset():
            return [native(element) for element in value]
        case PathLike():
            return fspath(value)
    unboxed = getattr(value, "item", None)
    if callable(unboxed) and not isinstance(value, type):
        return native(unboxed())
    raise RowsFailed("value", f"a value of type `{type(value).__name__}` cannot stand in a row")


def _native_inside(value: Any) -> Any:
    if type(value) is dict:
        return {str(key): native(part) for key, part in value.items()}
    if type(value) is list:
        return [native(element) for element in value]
    return value


def _base(value: Any) -> Any:
    bases: tuple[Any, ...] = (int, float, str, bytes, Decimal)
    return next(base(value) for base in bases if isinstance(value, base))


def _instant(value: datetime) -> datetime:
    """The same moment as a plain `datetime`, of a subclass such as pandas' Timestamp."""
    day, clock = (value.year, value.month, value.day), (value.hour, value.minute, value.second, value.microsecond)
    return datetime(*day, *clock, tzinfo=value.tzinfo)


_ENCODER = msgspec.json.Encoder(decimal_format="number", enc_hook=str)


def json_text(value: Any) -> str:
    return _ENCODER.encode(value).decode()
