"""What the operators mean for JSON values and for read-only views of them.

Item access never reads Python attributes: a value is a mapping, a list or a text, or it is opaque. Undefined passes through
arithmetic and look-ups as undefined; comparing it for order is false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from penstock.expr.budget import MAX_BITS, MAX_ITEMS, check_items, check_text, deep_size
from penstock.expr.errors import Misuse
from penstock.expr.scope import MISSING, Missing

_SCALARS = frozenset({str, int, float, bool, type(None), Missing})
_NUMBERS = frozenset({int, float, bool})


def kind(value: Any) -> str:
    """What a value is, in the words of a message."""
    match value:
        case Missing():
            return "an undefined value"
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "a mapping"
        case Sequence() if not isinstance(value, (bytes, bytearray)):
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def shown(value: Any) -> str:
    """A short value for a message."""
    text = repr(value) if type(value) in _SCALARS else kind(value)
    return text if len(text) <= 40 else text[:37] + "…" + text[-1:]


def is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, Sequence) and not isinstance(value, (str, bytes)))


def item(value: Any, key: Any) -> Any:
    """`value[key]`, or MISSING."""
    if type(value) is list and type(key) is int:
        return value[key] if -len(value) <= key < len(value) else MISSING
    if isinstance(value, Mapping):
        try:
            return value[key]
        except KeyError:
            return MISSING
        except TypeError:
            raise Misuse(f"{kind(key)} cannot be a key") from None
    if type(key) is int and isinstance(value, Sequence):
        try:
            return value[key]
        except IndexError:
            return MISSING
    if type(key) is str and isinstance(value, Sequence):
        # A view of a list may offer more than its elements, and says so with properties of its class.
        offered = getattr(type(value), key, None) if not key.startswith("_") else None
        return offered.__get__(value) if isinstance(offered, property) else MISSING
    return MISSING


def sliced(value: Any, first: Any, last: Any, step: Any) -> Any:
    if value is MISSING or first is MISSING or last is MISSING or step is MISSING:
        return MISSING
    if not isinstance(value, Sequence):
        raise Misuse(f"{kind(value)} cannot be sliced")
    for bound in (first, last, step):
        if bound is not None and type(bound) is not int:
            raise Misuse(f"a slice takes whole numbers, not {kind(bound)}")
    if step == 0:
        raise Misuse("the step of a slice cannot be 0")
    part = value[first:last:step]
    return part if isinstance(part, (str, list, range)) else list(part)


def elements(value: Any) -> Sequence[Any]:
    """What a loop or a word walks over."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (str, Mapping)):
        return list(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        check_items(len(value))
        return value
    raise Misuse(f"{kind(value)} has no elements to go through")


def to_text(value: Any) -> str:
    """How a value is written inside a text. An opaque object writes itself."""
    if type(value) is str:
        return value
    if value is None or type(value) in _NUMBERS:
        return _scalar(value)
    if isinstance(value, Mapping) or is_sequence(value):
        written: list[str] = []
        _write(value, written, [0])
        return "".join(written)
    return str(value)


def _scalar(value: Any) -> str:
    try:
        return str(value)
    except ValueError:
        raise Misuse("the number has too many digits to be written") from None


def _write(value: Any, written: list[str], size: list[int]) -> None:
    """Python's way of writing lists and mappings, except that opaque objects inside write themselves as they do outside."""
    if isinstance(value, Mapping):
        separator = "{"
        for key, inner in value.items():
            written.append(f"{separator}{key!r}: ")
            _write(inner, written, size)
            separator = ", "
        written.append("}" if separator == ", " else "{}")
    elif is_sequence(value):
        check_items(len(value))
        separator = "["
        for inner in value:
            written.append(separator)
            _write(inner, written, size)
            separator = ", "
        written.append("]" if separator == ", " else "[]")
    else:
        written.append(repr(value) if isinstance(value, str) else to_text(value))
    size[0] += len(written[-1]) + 2
    check_text(size[0])
    if len(written) > MAX_ITEMS:
        raise Misuse("the value is too large to be written as text")


def equal(value: Any, other: Any) -> bool:
    if value == other:
        return True
    if type(value) in _SCALARS or type(other) in _SCALARS:
        return False
    # A view does not compare equal to the list or mapping it shows, so views are compared part by part.
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return len(value) == len(other) and all(key in other and equal(value[key], other[key]) for key in value)
    if is_sequence(value) and is_sequence(other):
        return len(value) == len(other) and all(map(equal, value, other))
    return False


def not_equal(value: Any, other: Any) -> bool:
    return not equal(value, other)


def contained(value: Any, container: Any) -> bool:
    if container is MISSING or value is MISSING or container is None:
        return False
    if isinstance(container, str):
        if value is None:
            return False
        if not isinstance(value, str):
            raise Misuse(f"`in` looks for text in text, not for {kind(value)}")
        return value in container
    if isinstance(container, Mapping):
        return type(value) in _SCALARS and value in container
    if type(container) is list and type(value) in _SCALARS:
        return value in container
    if is_sequence(container):
        return value in container or (
            type(value) not in _SCALARS and any(equal(value, element) for element in container)
        )
    raise Misuse(f"`in` needs a list, a mapping or text on its right, not {kind(container)}")


def not_contained(value: Any, container: Any) -> bool:
    return not contained(value, container)


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def ordered(value: Any, other: Any) -> bool:
        try:
            return bool(compare(value, other))
        except TypeError:
            # Nothing is known about the order of what is not there.
            if value is None or other is None or value is MISSING or other is MISSING:
                return False
            hint = "; convert one with `| int`, `| float` or `| string`" if str in (type(value), type(other)) else ""
            raise Misuse(f"{kind(value)} cannot be compared with {kind(other)}{hint}") from None

    return ordered


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": equal,
    "!=": not_equal,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": contained,
    "not in": not_contained,
}


def add(left: Any, right: Any) -> Any:
    if type(left) in _NUMBERS and type(right) in _NUMBERS:
        return _number(left + right)
    if left is MISSING or right is MISSING:
        return MISSING
    if isinstance(left, str) and isinstance(right, str):
        check_text(len(left) + len(right))
        return left + right
    if is_sequence(left) and is_sequence(right):
        check_items(len(left) + len(right))
        return [*left, *right]
    hint = "; to join text, use `~`" if str in (type(left), type(right)) else ""
    raise Misuse(f"{kind(left)} and {kind(right)} cannot be added{hint}")


def multiply(left: Any, right: Any) -> Any:
    if type(left) in _NUMBERS and type(right) in _NUMBERS:
        return _number(left * right)
    if left is MISSING or right is MISSING:
        return MISSING
    if type(left) is int:
        left, right = right, left
    if type(right) is int and isinstance(left, str):
        check_text(len(left) * max(right, 0))
        return left * right
    if type(right) is int and is_sequence(left):
        check_items(len(left) * max(right, 0))
        check_items(deep_size(left, 10**6) * max(right, 0))
        return list(left) * right
    raise Misuse(f"{kind(left)} and {kind(right)} cannot be multiplied")


def power(left: Any, right: Any) -> Any:
    if left is MISSING or right is MISSING:
        return MISSING
    _both_numbers("**", left, right)
    whole = type(left) is not float and type(right) is not float
    if whole and abs(left) > 1 and int(left).bit_length() * abs(right) > MAX_BITS:
        raise Misuse("the number would be too large")
    result = _calculated(operator.pow, left, right)
    if isinstance(result, complex):
        raise Misuse("a negative number has no such power")
    return result


def _arithmetic(sign: str, calculate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def arithmetic(left: Any, right: Any) -> Any:
        if left is MISSING or right is MISSING:
            return MISSING
        _both_numbers(sign, left, right)
        return _calculated(calculate, left, right)

    return arithmetic


def _both_numbers(sign: str, left: Any, right: Any) -> None:
    for side in (left, right):
        if type(side) not in _NUMBERS:
            hint = "; convert it with `| int` or `| float`" if isinstance(side, str) else ""
            raise Misuse(f"`{sign}` takes numbers, not {kind(side)}{hint}")


def _calculated(calculate: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    try:
        return _number(calculate(left, right))
    except ZeroDivisionError:
        raise Misuse("division by zero") from None
    except OverflowError:
        raise Misuse("the number would be too large") from None


def _number(result: Any) -> Any:
    if (type(result) is int and result.bit_length() > MAX_BITS) or (type(result) is float and not isfinite(result)):
        raise Misuse("the number would be too large")
    return result


def negative(value: Any) -> Any:
    if value is MISSING:
        return MISSING
    _both_numbers("-", value, 0)
    return -value


def positive(value: Any) -> Any:
    if value is MISSING:
        return MISSING
    _both_numbers("+", value, 0)
    return +value


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": _arithmetic("-", operator.sub),
    "*": multiply,
    "/": _arithmetic("/", operator.truediv),
    "//": _arithmetic("//", operator.floordiv),
    "%": _arithmetic("%", operator.mod),
    "**": power,
}
