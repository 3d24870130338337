"""What a database says, in JSON.

integers                      numbers; beyond 64 bits, text
decimals                      a number when that is exact (`10.50` is 10.5, `3.00` is 3), otherwise text with every digit
NaN and infinities            text: `NaN`, `Infinity`, `-Infinity`
dates and times               ISO 8601 text; durations too (`PT1H30M`)
bytes                         base64 text
json, arrays, structs, maps   lists and mappings
anything else                 the text the driver makes of it
"""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

from penstock.kernel.values import Json

_LEAST, _MOST = -(2**63), 2**63 - 1


def from_decimal(value: Decimal) -> Json:
    if not value.is_finite():
        return "NaN" if value.is_nan() else from_float(float(value))
    # An exponent this large is checked first: making an int of 1E+100000 would take the machine down.
    if value.adjusted() < 19 and value == value.to_integral_value():
        return from_int(int(value))
    number = float(value)
    return number if math.isfinite(number) and Decimal(repr(number)) == value else str(value)


def from_int(value: int) -> Json:
    return value if _LEAST <= value <= _MOST else str(value)


def from_float(value: float) -> Json:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def from_bytes(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(value).decode("ascii")


def from_duration(value: datetime.timedelta) -> str:
    sign, rest = ("-", -value) if value < datetime.timedelta(0) else ("", value)
    minutes, seconds = divmod(rest.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest.microseconds:06d}".rstrip("0") if rest.microseconds else ""
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    clock += f"{seconds}{fraction}S" if seconds or fraction else ""
    days = f"{rest.days}D" if rest.days else ""
    return f"{sign}P{days}" + (f"T{clock}" if clock else "" if days else "T0S")


def to_json(value: Any) -> Json:
    """Any driver's value as JSON can say it."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return from_int(value)
        case float():
            return from_float(value)
        case Decimal():
            return from_decimal(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return from_duration(value)
        case bytes() | bytearray() | memoryview():
            return from_bytes(value)
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case Sequence() | Set():
            return [to_json(item) for item in value]
        case _:
            return str(value)


def parsed(text: Any) -> Json:
    """The value of a JSON column that its driver hands over as text."""
    if not isinstance(text, (str, bytes)):
        return to_json(text)
    try:
        return to_json(json.loads(text))
    except ValueError:
        return to_json(text)


def as_json_text(value: Any) -> str:
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))


def distinct(names: Sequence[str]) -> list[str]:
    """Column names as keys of an object: a name that comes again gets `_2`, `_3` …, so no value is lost."""
    taken = set(names)
    seen: set[str] = set()
    result: list[str] = []
    for name in names:
        chosen, number = name, 2
        while chosen in seen or (chosen != name and chosen in taken):
            chosen, number = f"{name}_{number}", number + 1
        seen.add(chosen)
        result.append(chosen)
    return result
