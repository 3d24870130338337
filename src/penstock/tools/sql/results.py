"""The one shape of a SQL task's result (D48): `{rows, row_count, columns}`, and each command's own when there are several."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from penstock.kernel.values import Json, JsonMap
from penstock.tools.base import ToolFailure

GIVES = ("rows", "row_count", "columns", "command_0")
"""The fields that every result has; with several commands there are `command_1` and so on."""


@dataclass(slots=True)
class Table:
    """What one command gave back: rows, or only how many rows it touched."""

    columns: list[str] = field(default_factory=list)
    rows: list[Json] = field(default_factory=list)
    row_count: int = 0
    more: JsonMap = field(default_factory=dict)

    def as_json(self) -> JsonMap:
        columns: list[Json] = list(self.columns)
        return {"rows": self.rows, "row_count": self.row_count, "columns": columns, **self.more}


def whole(tables: Sequence[Table]) -> JsonMap:
    """The last command's result; with several, all of them as `command_0`, `command_1` … beside it."""
    result = tables[-1].as_json() if tables else Table().as_json()
    if len(tables) > 1:
        result.update({f"command_{index}": table.as_json() for index, table in enumerate(tables)})
    return result


def too_large(max_rows: int) -> ToolFailure:
    return ToolFailure(
        "too_large",
        f"the query gives more than `max_rows` ({max_rows}) rows; "
        "hint: move them with the `transfer` tool or to a file, ask for fewer, or raise `max_rows`",
        max_rows=max_rows,
    )


# ---- How a database's complaint becomes an error outcome: what went wrong, in which command, and never with a password in
# it.

MADE_MEANWHILE = ("23505", "42P07", "42710")
"""How PostgreSQL says that another transaction has made the table since this one looked."""


@dataclass(frozen=True, slots=True)
class RunningCommand:
    """Which command of a task is running."""

    index: int
    total: int
    excerpt: str = ""

    def at(self, excerpt: str) -> RunningCommand:
        return replace(self, excerpt=excerpt)

    def describe(self) -> str:
        which = f"command {self.index} of {self.total}, counted from 0" if self.total > 1 else "the command"
        return f"in {which}: `{self.excerpt}`" if self.excerpt else f"in {which}"


def scrubbed(text: str, secrets: Iterable[str | None]) -> str:
    """Drivers quote connection texts in their errors; what is secret in them is taken out again."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text


def prefixed(failed: ToolFailure, words: str, hint: str = "") -> ToolFailure:
    """The same failure, said with what was being done."""
    message = f"{words}: {failed.message}{hint}"
    return ToolFailure(failed.kind, message, retryable=failed.retryable, helpers=failed.helpers, **failed.detail)


def failure(
    kind: str, message: str, running: RunningCommand | None, helpers: dict[str, JsonMap], *, retryable: bool = False
) -> ToolFailure:
    """An error outcome that says where it happened."""
    message = message.strip() or "the database gave no reason"
    if running is None:
        return ToolFailure(kind, message, retryable=retryable, helpers=helpers)
    return ToolFailure(
        kind,
        f"{message} ({running.describe()})",
        retryable=retryable,
        helpers=helpers,
        command=running.index,
        statement=running.excerpt,
    )


def code_of(failure: ToolFailure) -> str:
    """The database's own code of an error."""
    helper: JsonMap = next(iter(failure.helpers.values()), {})
    return str(helper.get("code") or failure.kind)


# ---- What a database says, in JSON.
# integers numbers; beyond 64 bits, text decimals a number when that is exact (`10.50` is 10.5, `3.00` is 3), otherwise text
# with every digit NaN and infinities text: `NaN`, `Infinity`, `-Infinity` dates and times ISO 8601 text; durations too
# (`PT1H30M`) bytes base64 text json, arrays, structs, maps lists and mappings anything else the text the driver makes of it

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
