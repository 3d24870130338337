"""Reducers: combine the values of many iterations, independently of the order in which they arrive.

`lift` turns one element's value into a part, `combine` merges two parts, `settle` turns a part into the final value. All three
are exact: floats are summed without rounding until the end, and where order matters it is that of the elements. So a loop has
the same result whether it ran in one place or in a hundred, in one piece or in many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from penstock.kernel.values import Json, JsonMap

OPERATIONS = ("sum", "count", "min", "max", "append", "merge")


class ReducerError(ValueError):
    """The reducer does not accept this value."""


def lift(operation: str, value: Json, index: int) -> Json:
    match operation:
        case "sum":
            return _exact(value)
        case "count":
            return 0 if value is None or value is False else 1
        case "min" | "max":
            return [] if value is None else [_comparable(operation, value)]
        case "append":
            return [[index, list(value) if isinstance(value, (list, tuple)) else [value]]]
        case "merge":
            if not isinstance(value, dict):
                raise ReducerError(f"`merge` takes a mapping, not `{value!r}`")
            return {key: [index, inner] for key, inner in value.items()}
    raise ReducerError(f"`{operation}` is not a reducer; there are {', '.join(OPERATIONS)}")


def combine(operation: str, one: Json, other: Json) -> Json:
    return _COMBINE[operation](cast(Any, one), cast(Any, other))


def final_value(operation: str, part: Json) -> Json:
    held = cast(Any, part)
    match operation:
        case "sum":
            return _rounded(held)
        case "min" | "max":
            return cast(Json, held[0]) if held else None
        case "append":
            return [value for _, values in sorted(held, key=_index) for value in values]
        case "merge":
            return {key: value for key, (_, value) in sorted(held.items())}
    return cast(Json, held)


def merged(operations: dict[str, str], into: JsonMap, parts: JsonMap) -> None:
    """Add the parts from a piece of the loop, key by key. Lists and mappings are extended in place, as they may be large."""
    for key, part in parts.items():
        held: Any = into.get(key)
        if key not in into:
            into[key] = part.copy() if isinstance(part, (list, dict)) else part
        elif operations[key] == "append":
            held.extend(part)
        elif operations[key] == "merge":
            _merge_into(held, part)
        else:
            into[key] = combine(operations[key], held, part)


def fold_parts(operations: dict[str, str], into: JsonMap, writes: JsonMap) -> None:
    """Add the parts for reducers that are among the writes of one element."""
    parts = writes.get("shared")
    for key, several in parts.items() if isinstance(parts, dict) else ():
        for part in several if isinstance(several, list) else ():
            merged(operations, into, {key: part})


def final_values(operations: dict[str, str], parts: JsonMap) -> JsonMap:
    """The value of every key, including keys that no element added to."""
    return {
        key: final_value(operation, parts.get(key, _NOTHING[operation]))
        for key, operation in sorted(operations.items())
    }


def with_reduced(writes: JsonMap, reduced: JsonMap) -> JsonMap:
    """Writes to ctx, with the reduced values added."""
    if not reduced:
        return writes
    ctx = writes.get("ctx")
    return {**writes, "ctx": {**(ctx if isinstance(ctx, dict) else {}), **reduced}}


# A float is m * 2**e with integers m and e, and so is a sum of floats: `[m, e]` represents it exactly.


def _exact(value: Json) -> Json:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ReducerError(f"`sum` takes numbers, not `{value!r}`")
    if isinstance(value, int):
        return value
    if value - value != 0:  # Infinite, or not a number.
        raise ReducerError(f"`sum` takes finite numbers, not `{value!r}`")
    numerator, denominator = value.as_integer_ratio()
    return [numerator, 1 - denominator.bit_length()]


def _rounded(part: int | list[int]) -> Json:
    if isinstance(part, int):
        return part
    number, exponent = part
    try:
        return float(number << exponent) if exponent >= 0 else number / (1 << -exponent)
    except OverflowError:  # Too large for a float, and JSON has no infinity: return the integer.
        return number << exponent if exponent >= 0 else number >> -exponent


def _sum(one: Any, other: Any) -> Json:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    m, e = one if isinstance(one, list) else (one, 0)
    n, f = other if isinstance(other, list) else (other, 0)
    low = min(e, f)
    return [(m << (e - low)) + (n << (f - low)), low]


def _comparable(operation: str, value: Json) -> Json:
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        return value
    raise ReducerError(f"`{operation}` takes numbers or texts, not `{value!r}`")


def _least(one: Any, other: Any) -> Json:
    return [min(one[0], other[0], key=_order)] if one and other else one or other


def _greatest(one: Any, other: Any) -> Json:
    return [max(one[0], other[0], key=_order)] if one and other else one or other


def _order(value: Any) -> tuple[bool, Any, bool]:
    """A total order: numbers come before strings, and 1 before 1.0."""
    return isinstance(value, str), value, isinstance(value, float)


def _index(pair: Any) -> int:
    return int(pair[0])


def _merge(one: Any, other: Any) -> Json:
    joined: JsonMap = dict(one)
    _merge_into(joined, other)
    return joined


def _merge_into(joined: Any, other: Any) -> None:
    """If several elements have the same key, the value of the last element wins."""
    for key, pair in other.items():
        if key not in joined or joined[key][0] <= pair[0]:
            joined[key] = pair


_NOTHING: dict[str, Json] = {"sum": 0, "count": 0, "min": [], "max": [], "append": [], "merge": {}}
"""The part of each reducer when no element has added to it."""
_COMBINE: dict[str, Callable[[Any, Any], Json]] = {
    "sum": _sum,
    "count": lambda one, other: one + other,
    "min": _least,
    "max": _greatest,
    "append": lambda one, other: [*one, *other],
    "merge": _merge,
}
