"""From what Python code returns to what JSON can say.

Conversions are those a reader would expect without looking them up (a tuple is a list, a data class a mapping, a date its
ISO text); anything else is refused with its type and its place. The result shares nothing with the value it was made from.
Standard library only: this also runs in the interpreter of an isolated task.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MAX_DEPTH = 200
MAX_INT_BITS = 14_000
"""Python itself refuses to print integers of more than 4,300 digits."""
MAX_DRAWN = 5_000_000
"""A generator that never ends would otherwise take the engine's memory with it."""


class NotFriendly(Exception):
    """`reason` continues the sentence "`result.rows[3].when` …"."""

    def __init__(self, reason: str, type_name: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.type_name = type_name
        self.steps: list[str] = []

    def place(self, root: str) -> str:
        path = root + "".join(reversed(self.steps))
        return path if len(path) <= 200 else path[:120] + "…" + path[-60:]


def to_json_friendly(value: object) -> Any:
    """The value as new lists, mappings, texts, numbers, booleans and None. Raises NotFriendly."""
    return _walk(value, 0, set())


def _walk(value: Any, depth: int, above: set[int]) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is int:
        if value.bit_length() > MAX_INT_BITS:
            raise NotFriendly("is an integer of more than 4,000 digits", "int")
        return value
    if kind is bool or value is None:
        return value
    if kind is float:
        return _number(value)
    if depth >= MAX_DEPTH:
        raise NotFriendly(f"is nested more than {MAX_DEPTH} levels deep", kind.__name__)
    if id(value) in above:
        raise NotFriendly("contains itself", kind.__name__)
    above.add(id(value))
    try:
        if kind is list or kind is tuple:
            return _list(value, depth, above)
        if kind is dict:
            return _mapping(value, depth, above)
        return _other(value, depth, above)
    finally:
        above.discard(id(value))


def _list(values: Iterable[Any], depth: int, above: set[int]) -> list[Any]:
    made: list[Any] = []
    for item in values:
        try:
            made.append(_walk(item, depth + 1, above))
        except NotFriendly as problem:
            problem.steps.append(f"[{len(made)}]")
            raise
    return made


def _mapping(values: Any, depth: int, above: set[int]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in values.items():
        name = key if type(key) is str and key.isascii() else _key(key)
        if name in made:
            raise NotFriendly(f"has two keys that both become `{name}`", type(values).__name__)
        try:
            made[name] = _walk(item, depth + 1, above)
        except NotFriendly as problem:
            problem.steps.append(f".{name}" if name.isidentifier() else f"[{name!r}]")
            raise
    return made


def _key(key: Any) -> str:
    friendly = key if isinstance(key, (tuple, frozenset)) else _walk(key, MAX_DEPTH - 1, set())
    if isinstance(friendly, str):
        return friendly
    if friendly is None or isinstance(friendly, bool):
        return {None: "null", True: "true", False: "false"}[friendly]
    if isinstance(friendly, (int, float)):
        return str(friendly)
    raise NotFriendly(f"has a key of type `{type(key).__name__}`, and keys must be text", type(key).__name__)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotFriendly("is text that is not valid Unicode", "str") from None
    return str(value)


def _number(value: float) -> float | None:
    """NaN is how numeric libraries spell a missing value, and null is how JSON does."""
    if value != value:
        return None
    if value in (float("inf"), float("-inf")):
        raise NotFriendly("is an infinite number", type(value).__name__)
    return float(value)


def _other(value: Any, depth: int, above: set[int]) -> Any:
    for convert in (_subclass, _standard, _foreign, _collection):
        made = convert(value)
        if made is not _NO:
            if type(made) is _Sorted:
                return _sorted(_list(made, depth, above))
            if made is value and convert is _collection:
                return _list(_drawn(value), depth, above)
            # A conversion that gives back its own kind would go round for ever; the depth limit ends it.
            return _walk(made, depth + 1, above)
    name = type(value).__name__
    raise NotFriendly(f"is of type `{name}`, which JSON cannot say", name)


class _Sorted(tuple[Any, ...]):
    """The elements of a set, still to be put in order."""


_NO: Any = object()


def _subclass(value: Any) -> Any:
    """Text, numbers, lists and mappings of a class of their own, enumerations included."""
    if isinstance(value, str | int | float):
        enumeration = sys.modules.get("enum")
        if enumeration is not None and isinstance(value, enumeration.Enum):
            return value.value
        for plain in (str, int, float):
            if isinstance(value, plain):
                return plain.__str__(value) if plain is str else plain(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list | tuple):
        return list(value)
    return _NO


def _standard(value: Any) -> Any:
    """Values of the standard library. Whose module was never imported cannot have made the value."""
    for module, names, convert in _STANDARD:
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names)):
            return convert(value)
    if isinstance(value, bytes | bytearray | memoryview):
        import base64

        return base64.b64encode(value).decode()
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields if hasattr(value, name)}
    return _NO


def _moment(value: Any) -> Any:
    # pandas' NaT is a datetime that is not equal to itself.
    return value.isoformat() if value == value else None


def _decimal(value: Any) -> Any:
    """An integer or a float where that loses nothing, otherwise text."""
    if value.is_nan():
        return None
    if value.is_infinite():
        return float(value)
    if value.as_tuple().exponent >= 0 and value.adjusted() < 400:
        return int(value)
    as_float = float(value)
    return as_float if type(value)(repr(as_float)) == value else str(value)


_STANDARD: tuple[tuple[str, tuple[str, ...], Callable[[Any], Any]], ...] = (
    ("datetime", ("date", "time"), _moment),
    ("datetime", ("timedelta",), lambda value: value.total_seconds()),
    ("decimal", ("Decimal",), _decimal),
    ("enum", ("Enum",), lambda value: value.value),
    ("uuid", ("UUID",), str),
    ("pathlib", ("PurePath",), str),
    ("ipaddress", ("_IPAddressBase",), str),
)


def _foreign(value: Any) -> Any:
    """Values of libraries we do not import: known by the methods they have."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.astype(str).tolist() if getattr(value.dtype, "kind", "") in ("m", "M") else value.tolist()
    if hasattr(value, "columns") and hasattr(value, "to_dict") and not hasattr(value, "to_dicts"):
        return value.to_dict(orient="records")
    for method in ("to_dicts", "to_pylist", "to_list", "model_dump"):
        if callable(getattr(value, method, None)) and not isinstance(value, type):
            return getattr(value, method)()
    names = getattr(type(value), "__struct_fields__", None) or [
        field.name for field in getattr(type(value), "__attrs_attrs__", ())
    ]
    return {name: getattr(value, name) for name in names} if names else _NO


def _collection(value: Any) -> Any:
    import collections
    from collections import abc

    if isinstance(value, abc.Set) and not isinstance(value, abc.MappingView):
        return _Sorted(value)
    if isinstance(value, abc.Mapping):
        return dict(value)
    if hasattr(value, "keys") and hasattr(value, "__getitem__") and not isinstance(value, type):
        return {key: value[key] for key in value.keys()}  # noqa: SIM118  a database row iterates over its values
    is_file = hasattr(value, "read") or hasattr(value, "fileno")
    if isinstance(value, abc.Iterator) and not is_file:
        return value  # Drawn one by one: `list` would not let itself be stopped when the time is over.
    ordered: Any = (abc.Sequence, abc.MappingView, collections.deque)
    return list(value) if isinstance(value, ordered) and not is_file else _NO


def _drawn(values: Iterator[Any]) -> Iterator[Any]:
    for count, item in enumerate(values):
        if count >= MAX_DRAWN:
            raise NotFriendly(f"gives more than {MAX_DRAWN:,} values, perhaps without end", type(values).__name__)
        yield item


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        import json

        return sorted(values, key=lambda value: (type(value).__name__, json.dumps(value, sort_keys=True)))
