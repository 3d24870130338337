"""Words that make and measure numbers. What is no number is an error, unless a default is given."""

from __future__ import annotations

from math import ceil, floor, isfinite
from typing import Any

from penstock.expr.budget import Frame
from penstock.expr.errors import Misuse
from penstock.expr.scope import MISSING
from penstock.expr.values import add, elements, kind, shown


def number_of(word: str, value: Any) -> Any:
    if type(value) not in (int, float, bool):
        raise Misuse(f"`{word}` takes a number, not {kind(value)}")
    return value


def int_(frame: Frame, value: Any, default: Any = MISSING, base: Any = 10) -> Any:
    try:
        if isinstance(value, str):
            return _int_of_text(frame, value.strip(), base)
        if isinstance(value, (int, float)):
            return int(value)
    except (ValueError, OverflowError):
        pass
    if default is not MISSING:
        return default
    raise Misuse(f"{shown(value)} is not a whole number; `int(0)` would take 0 instead")


def _int_of_text(frame: Frame, text: str, base: Any) -> int:
    if len(text) > 1000:
        raise ValueError
    frame.spend(len(text) * len(text) >> 14)
    try:
        return int(text, base if type(base) is int and (base == 0 or 2 <= base <= 36) else 10)
    except ValueError:
        if base != 10:
            raise
        return int(float(text))


def float_(value: Any, default: Any = MISSING) -> Any:
    try:
        number = float(value) if isinstance(value, (str, int, float)) else None
    except (ValueError, OverflowError):
        number = None
    if number is not None and isfinite(number):
        return number
    if default is not MISSING:
        return default
    raise Misuse(f"{shown(value)} is not a number; `float(0)` would take 0 instead")


_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", ""})


_LONGEST_WORD = 5


def bool_(value: Any) -> bool:
    """Texts such as `yes` and `off` are read as people mean them; everything else is true when it is not empty or zero."""
    if isinstance(value, str):
        word = value.strip()[: _LONGEST_WORD + 1].lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise Misuse(f"{shown(value)} is neither true nor false")
    return bool(value)


def abs_(value: Any) -> Any:
    return abs(number_of("abs", value))


def round_(value: Any, precision: Any = 0, method: Any = "common") -> Any:
    number, digits = number_of("round", value), number_of("round", precision)
    if type(digits) is not int or abs(digits) > 300:
        raise Misuse("`round` takes a precision from -300 to 300")
    if method == "common":
        try:
            return round(number, digits)
        except (OverflowError, ValueError):
            raise Misuse(f"{shown(value)} cannot be rounded to this precision") from None
    if method not in ("ceil", "floor"):
        raise Misuse("`round` knows the methods `common`, `ceil` and `floor`")
    try:
        scale = 10.0**digits
        return (ceil if method == "ceil" else floor)(number * scale) / scale
    except (OverflowError, ValueError, ZeroDivisionError):
        raise Misuse(f"{shown(value)} cannot be rounded to this precision") from None


def round_function(value: Any, precision: Any = None) -> Any:
    """As in Python: to a whole number, unless a precision is given."""
    number = number_of("round", value)
    if precision is not None:
        return round_(number, precision)
    if isinstance(number, float) and not isfinite(number):
        raise Misuse(f"{shown(value)} cannot be rounded")
    return round(number)


def sum_(frame: Frame, value: Any, start: Any = 0) -> Any:
    total = number_of("sum", start)
    found = elements(frame, value)
    frame.spend(2 * len(found))
    for element in found:
        total = add(frame, total, number_of("sum", element))
    return total


def divisible(value: Any, number: Any) -> bool:
    if number_of("divisibleby", number) == 0:
        raise Misuse("`divisibleby` cannot divide by 0")
    try:
        return bool(number_of("divisibleby", value) % number == 0)
    except OverflowError:
        raise Misuse("the number is too large to be divided by a number with a fraction") from None
