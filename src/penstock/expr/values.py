"""What the operators mean for JSON values and for read-only views of them.

Item access never reads Python attributes: a value is a mapping, a list or a text, or it is opaque; an opaque value may have
fields, which its `__part__` gives. Undefined passes through arithmetic and look-ups as undefined; comparing it for order is
false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from penstock.expr.budget import (
    HEADER,
    MAX_BITS,
    SLOT,
    Frame,
    check_items,
    check_nesting,
    check_text,
    cost_of,
    search_cost,
)
from penstock.expr.errors import Misuse
from penstock.expr.result_views import viewed


class Missing:
    """What an expression calls undefined: false, equal to nothing but itself, and MISSING again when looked into."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

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
    if type(value) is str:
        value = value[:100]
    try:
        text = repr(value) if type(value) in _SCALARS else kind(value)
    except ValueError:
        return "a number of very many digits"
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
            return viewed(value, key, MISSING)
        except TypeError:
            raise Misuse(f"{kind(key)} cannot be a key") from None
    if type(key) is int and isinstance(value, Sequence):
        try:
            return value[key]
        except IndexError:
            return MISSING
    if type(key) is str and isinstance(value, Sequence):
        # A view of a list may have more than its elements: the properties of its class.
        offered = getattr(type(value), key, None) if not key.startswith("_") else None
        return offered.__get__(value) if isinstance(offered, property) else MISSING
    part = getattr(type(value), "__part__", None) if type(key) is str else None
    found = None if part is None else part(value, key)
    return MISSING if found is None else found


def sliced(frame: Frame, value: Any, first: Any, last: Any, step: Any) -> Any:
    if value is MISSING or first is MISSING or last is MISSING or step is MISSING:
        return MISSING
    if not isinstance(value, Sequence):
        raise Misuse(f"{kind(value)} cannot be sliced")
    for bound in (first, last, step):
        if bound is not None and type(bound) is not int:
            raise Misuse(f"a slice takes whole numbers, not {kind(bound)}")
    if step == 0:
        raise Misuse("the step of a slice cannot be 0")
    if type(value) is range:
        frame.spend(1)
        return value[first:last:step]
    length = len(range(*slice(first, last, step).indices(len(value))))
    if isinstance(value, str):
        frame.text(length, value)
        return value[first:last:step]
    frame.items(length)
    part = value[first:last:step]
    return part if isinstance(part, list) else list(part)


def elements(frame: Frame, value: Any) -> Sequence[Any]:
    """What a loop or a word walks over. What has to be made for that is paid for; walking is paid for by who walks."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (str, Mapping)):
        frame.items(len(value), SLOT + HEADER if isinstance(value, str) and not value.isascii() else SLOT)
        return list(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        check_items(len(value))
        return value
    raise Misuse(f"{kind(value)} has no elements to go through")


def to_text(frame: Frame, value: Any) -> str:
    """How a value is written inside a text. An opaque object writes itself."""
    if type(value) is str:
        return value
    if value is None or type(value) in _NUMBERS:
        frame.numbers(value)
        return scalar_text(value)
    if isinstance(value, Mapping) or is_sequence(value):
        written: list[str] = []
        _Writing(frame).write(value, written)
        frame.text(sum(map(len, written)), *written[:1000])
        return "".join(written)
    return str(value)


def scalar_text(value: Any) -> str:
    try:
        return str(value)
    except ValueError:
        raise Misuse("the number has too many digits to be written") from None


class _Writing:
    """Python's way of writing lists and mappings, except that opaque objects inside write themselves as they do outside."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.size = 0

    def write(self, value: Any, written: list[str], depth: int = 0) -> None:
        check_nesting(depth)
        if isinstance(value, Mapping):
            self._pay(len(value))
            separator = "{"
            for key, inner in value.items():
                self._add(f"{separator}{self._quoted(key)}: ", written)
                self.write(inner, written, depth + 1)
                separator = ", "
            self._add("}" if separator == ", " else "{}", written)
        elif is_sequence(value):
            check_items(len(value))
            self._pay(len(value))
            separator = "["
            for inner in value:
                written.append(separator)
                self.write(inner, written, depth + 1)
                separator = ", "
            self._add("]" if separator == ", " else "[]", written)
        else:
            self._add(self._quoted(value), written)

    def _quoted(self, value: Any) -> str:
        if not isinstance(value, str):
            return to_text(self.frame, value)
        # Quoting looks at each character, and may write ten for one.
        self.frame.spend(len(value) >> 4)
        self.frame.hold(len(value) * (1 if value.isascii() else 4))
        return repr(value)

    def _pay(self, count: int) -> None:
        self.frame.spend(1 + 4 * count)
        self.frame.hold(count * (SLOT + HEADER))

    def _add(self, text: str, written: list[str]) -> None:
        written.append(text)
        self.size += len(text) + 2
        check_text(self.size)


def equal(frame: Frame, value: Any, other: Any) -> bool:
    """Lists and mappings are compared part by part, so a view equals what it shows; each pair of parts is paid for."""
    if type(value) in _SCALARS or type(other) in _SCALARS:
        return _scalars_equal(frame, value, other)
    pairs = [(value, other)]
    while pairs:
        left, right = pairs.pop()
        if left is right:
            continue
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            if len(left) != len(right):
                return False
            frame.spend(2 + 2 * len(left))
            inner = [(left[key], right.get(key, MISSING)) for key in left]
        elif is_sequence(left) and is_sequence(right):
            if len(left) != len(right):
                return False
            frame.spend(2 + 2 * len(left))
            inner = list(zip(left, right, strict=True))
        elif left == right:
            continue
        else:
            return False
        for pair in inner:
            if type(pair[0]) in _SCALARS or type(pair[1]) in _SCALARS:
                if pair[0] is not pair[1] and not _scalars_equal(frame, *pair):
                    return False
            else:
                pairs.append(pair)
    return True


def _scalars_equal(frame: Frame, value: Any, other: Any) -> bool:
    if type(value) is str and type(other) is str and len(value) == len(other):
        frame.spend(len(value) >> 7)
    return bool(value == other)


def not_equal(frame: Frame, value: Any, other: Any) -> bool:
    return not equal(frame, value, other)


def contained(frame: Frame, value: Any, container: Any) -> bool:
    if container is MISSING or value is MISSING or container is None:
        return False
    if isinstance(container, str):
        if value is None:
            return False
        if not isinstance(value, str):
            raise Misuse(f"`in` looks for text in text, not for {kind(value)}")
        frame.spend(search_cost(container, value))
        return value in container
    if isinstance(container, Mapping):
        return type(value) in _SCALARS and (value in container or viewed(container, value, MISSING) is not MISSING)
    if is_sequence(container):
        return position(frame, value, container) is not None
    raise Misuse(f"`in` needs a list, a mapping or text on its right, not {kind(container)}")


def position(frame: Frame, value: Any, container: Sequence[Any]) -> int | None:
    """Where a value first is in a list, or None."""
    if type(value) in _SCALARS and type(container) in (list, tuple, range):
        if type(container) is range:
            # Python looks for a whole number by calculating, and for anything else by going through all of the range.
            if type(value) not in _NUMBERS or value != value // 1:
                return None
            value = int(value)
        else:
            # Sixteen short values are compared in one step; a long one is compared with each element as far as they agree.
            frame.spend(2 + (len(container) >> 4) + len(container) * cost_of(value))
        try:
            return container.index(value)
        except ValueError:
            return None
    for index, element in enumerate(container):
        frame.spend(1)
        if equal(frame, value, element):
            return index
    return None


def not_contained(frame: Frame, value: Any, container: Any) -> bool:
    return not contained(frame, value, container)


class Unordered(Misuse):
    """Two values of which none comes before the other."""


def before(frame: Frame, value: Any, other: Any, compare: Callable[[Any, Any], Any] = operator.lt) -> bool:
    """Whether `compare` holds; lists are compared by their first parts that differ."""
    while is_sequence(value) and is_sequence(other):
        frame.spend(1 + min(len(value), len(other)))
        for left, right in zip(value, other, strict=False):
            if left is not right and not equal(frame, left, right):
                value, other = left, right
                break
        else:
            value, other = len(value), len(other)
    if type(value) is str and type(other) is str:
        frame.spend(min(len(value), len(other)) >> 7)
    try:
        return bool(compare(value, other))
    except TypeError:
        hint = "; convert one with `| int`, `| float` or `| string`" if str in (type(value), type(other)) else ""
        raise Unordered(f"{kind(value)} cannot be compared with {kind(other)}{hint}") from None


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Frame, Any, Any], bool]:
    def ordered(frame: Frame, value: Any, other: Any) -> bool:
        # Nothing is known about the order of what is not there.
        if value is None or other is None or value is MISSING or other is MISSING:
            return False
        return before(frame, value, other, compare)

    return ordered


COMPARISONS: dict[str, Callable[[Frame, Any, Any], bool]] = {
    "==": equal,
    "!=": not_equal,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": contained,
    "not in": not_contained,
}


def add(frame: Frame, left: Any, right: Any) -> Any:
    if type(left) in _NUMBERS and type(right) in _NUMBERS:
        return _calculated(frame, operator.add, left, right)
    if left is MISSING or right is MISSING:
        return MISSING
    if isinstance(left, str) and isinstance(right, str):
        frame.text(len(left) + len(right), left, right)
        return left + right
    if is_sequence(left) and is_sequence(right):
        frame.items(len(left) + len(right))
        return [*left, *right]
    hint = "; to join text, use `~`" if str in (type(left), type(right)) else ""
    raise Misuse(f"{kind(left)} and {kind(right)} cannot be added{hint}")


def multiply(frame: Frame, left: Any, right: Any) -> Any:
    if type(left) in _NUMBERS and type(right) in _NUMBERS:
        return _calculated(frame, operator.mul, left, right)
    if left is MISSING or right is MISSING:
        return MISSING
    if type(left) is int:
        left, right = right, left
    if type(right) is int and (isinstance(left, str) or is_sequence(left)):
        length = len(left) * max(right, 0)
        if isinstance(left, str):
            frame.text(length, left)
            return left * right if length else ""
        frame.items(length)
        if not length:
            return []
        frame.copies(left, right)
        return list(left) * right
    raise Misuse(f"{kind(left)} and {kind(right)} cannot be multiplied")


# A power of whole numbers is limited in what it can become, and so in what it costs.
_POWER = 20


def power(frame: Frame, left: Any, right: Any) -> Any:
    if left is MISSING or right is MISSING:
        return MISSING
    _both_numbers("**", left, right)
    whole = type(left) is not float and type(right) is not float
    if whole and abs(left) > 1 and int(left).bit_length() * abs(right) > MAX_BITS:
        raise Misuse("the number would be too large")
    frame.spend(_POWER)
    result = _calculated(frame, operator.pow, left, right)
    if isinstance(result, complex):
        raise Misuse("a negative number has no such power")
    return result


def _arithmetic(sign: str, calculate: Callable[[Any, Any], Any]) -> Callable[[Frame, Any, Any], Any]:
    def arithmetic(frame: Frame, left: Any, right: Any) -> Any:
        if left is MISSING or right is MISSING:
            return MISSING
        _both_numbers(sign, left, right)
        return _calculated(frame, calculate, left, right)

    return arithmetic


def _both_numbers(sign: str, left: Any, right: Any) -> None:
    for side in (left, right):
        if type(side) not in _NUMBERS:
            hint = "; convert it with `| int` or `| float`" if isinstance(side, str) else ""
            raise Misuse(f"`{sign}` takes numbers, not {kind(side)}{hint}")


def _calculated(frame: Frame, calculate: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    frame.numbers(left, right)
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


ARITHMETIC: dict[str, Callable[[Frame, Any, Any], Any]] = {
    "+": add,
    "-": _arithmetic("-", operator.sub),
    "*": multiply,
    "/": _arithmetic("/", operator.truediv),
    "//": _arithmetic("//", operator.floordiv),
    "%": _arithmetic("%", operator.mod),
    "**": power,
}
