"""Words for numbers, dates and times. A value that is not a number is an error, unless a default is given."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from math import ceil, floor, isfinite
from typing import Any

from penstock.expr.budget import Frame
from penstock.expr.errors import Misuse
from penstock.expr.values import MISSING, add, elements, kind, shown
from penstock.expr.words.text import text_of


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


# ---- Dates and times. Words read ISO 8601 text (or seconds since 1970) and give text or numbers, never the present time.
# A time without a zone counts as UTC.


_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_KNOWN = frozenset("aAwdbBmyYHIpMSfzZjUWGuV%")
_LONGEST = 200
_PATTERNS = "formats that were read"
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_TRUNCATIONS = ("year", "month", "day", "hour", "minute", "second")


def _moment(word: str, value: Any) -> datetime:
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.strip()[:_LONGEST])
        if isinstance(value, datetime):
            return value
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day)
        if type(value) in (int, float):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        raise Misuse(f"`{word}` cannot read {shown(value)} as a time; write it as `2025-01-31T13:45:00Z`") from None
    raise Misuse(f"`{word}` takes a time written as text, not {kind(value)}")


def _zoned(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _iso(moment: datetime) -> str:
    text = moment.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def _format(frame: Frame, word: str, value: Any) -> str:
    text = text_of(word, value)
    if len(text) > _LONGEST:
        raise Misuse(f"a date format may have at most {_LONGEST} characters")
    frame.spend(10 * len(text))
    for directive in _DIRECTIVE.finditer(text):
        if not directive.group(1) or directive.group(1) not in _KNOWN:
            raise Misuse(f"`{directive.group()}` is not a date format this language knows, such as `%Y-%m-%d`")
    return text


def to_datetime(frame: Frame, value: Any, format: Any = None) -> str:
    """ISO text of a time that is written in another way."""
    if format is None:
        return _iso(_moment("to_datetime", value))
    text, pattern = text_of("to_datetime", value), _format(frame, "to_datetime", format)
    # Python makes a pattern of the format. It has each directive at most once, so the ways to read a text are few, but not one.
    frame.spend(200 + len(text))
    _pay_pattern(frame, pattern)
    try:
        return _iso(datetime.strptime(text, pattern))
    except (ValueError, OverflowError, re.error):
        raise Misuse(f"{shown(value)} does not fit the date format {shown(format)}") from None


def _pay_pattern(frame: Frame, pattern: str) -> None:
    """Python keeps the patterns of a handful of formats; any other is compiled again."""
    recent: tuple[str, ...] = frame.patterns.get(_PATTERNS, ())
    if pattern not in recent:
        frame.spend(1000 + 500 * pattern.count("%"))
        frame.patterns = {**frame.patterns, _PATTERNS: (*recent[-3:], pattern)}


def strftime(frame: Frame, value: Any, format: Any = "%Y-%m-%dT%H:%M:%SZ") -> str:
    moment = _moment("strftime", value)
    try:
        return moment.strftime(_format(frame, "strftime", format))
    except (ValueError, UnicodeError, OverflowError):
        raise Misuse(f"{shown(value)} cannot be written as {shown(format)}") from None


def timestamp(value: Any) -> int | float:
    seconds = (_zoned(_moment("timestamp", value)) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def date_add(value: Any, weeks: Any = 0, days: Any = 0, hours: Any = 0, minutes: Any = 0, seconds: Any = 0) -> str:
    moment = _moment("date_add", value)
    amounts = [number_of("date_add", amount) for amount in (weeks, days, hours, minutes, seconds)]
    try:
        moved = moment + timedelta(
            weeks=amounts[0], days=amounts[1], hours=amounts[2], minutes=amounts[3], seconds=amounts[4]
        )
    except (OverflowError, ValueError):
        raise Misuse("the date would be outside of the calendar") from None
    date_only = isinstance(value, str) and len(value.strip()) == 10 and not any(amounts[2:])
    return moved.date().isoformat() if date_only else _iso(moved)


def date_diff(value: Any, other: Any, unit: Any = "seconds") -> float:
    if not isinstance(unit, str) or unit not in _UNITS:
        raise Misuse(f"`date_diff` counts in {', '.join(f'`{name}`' for name in _UNITS)}, not {shown(unit)}")
    difference = _zoned(_moment("date_diff", value)) - _zoned(_moment("date_diff", other))
    return difference.total_seconds() / _UNITS[unit]


def date_trunc(value: Any, unit: Any = "day") -> str:
    if not isinstance(unit, str) or unit not in _TRUNCATIONS:
        raise Misuse(f"`date_trunc` knows {', '.join(f'`{name}`' for name in _TRUNCATIONS)}, not {shown(unit)}")
    moment = _moment("date_trunc", value)
    smallest = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
    for kept in _TRUNCATIONS[: _TRUNCATIONS.index(unit) + 1]:
        smallest.pop(kept, None)
    return _iso(moment.replace(microsecond=0).replace(**smallest))  # type: ignore[arg-type]
