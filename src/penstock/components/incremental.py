"""Readers that go on from where the last run ended: only rows above the watermark, and the highest value as the next one.

Law: the watermark that a run reads from is the one in its first event, so a resume reads from the same. What it has read counts
once the run has completed. Rows whose column is NULL are read while there is no watermark, and never afterwards.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Any

import msgspec
from sqlglot import exp

from penstock.components.base import Call, ComponentFailure, Mistake
from penstock.data import select
from penstock.kernel.kept import WATERMARK, WATERMARK_KEY
from penstock.kernel.values import Json
from penstock.ports.rows import Relation, Schema
from penstock.tools.parameters import about


class Incremental(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    column: Annotated[str, about("The column that grows: a time, a date, a number, or text that sorts.")]
    start: Annotated[
        str | int | float | None,
        about("Where the first run begins: only rows above it. Without it the first run reads all rows."),
    ] = None
    lookback: Annotated[
        str | int | float | None,
        about(
            "How far below the watermark rows are read again, for those that come late: `2h` or `3d` of a time or "
            "date, a number of a number. The writer must then tolerate rows that come twice."
        ),
    ] = None
    key: Annotated[
        str | None, about("In the body of an iterator: whose watermark it is, such as `{{ iteration.item }}`.")
    ] = None


IncrementalParam = Annotated[
    Incremental | None,
    about("Read only the rows above the watermark that the last completed run left: `{column: updated_at}`."),
]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def name_of(asked: Incremental, call: Call) -> str:
    """What the watermark goes by: the component, and in an iteration its key."""
    if asked.key is not None:
        return f"{call.component}/{asked.key}"
    if call.iteration is not None:
        raise ComponentFailure(
            "parameters",
            "`incremental` in the body of an iterator needs a `key`: each element has a watermark of its own; "
            'hint: `key: "{{ iteration.item }}"`',
        )
    return call.component


def mistakes(asked: Incremental, main: Schema | None) -> list[Mistake]:
    """What can be known before the run, of `main` if its columns are known."""
    found = []
    if isinstance(asked.lookback, str) and _seconds(asked.lookback) is None:
        hint = "write a time such as `90m`, `2h` or `3d`, or a number where the column is one"
        found.append(Mistake(("incremental", "lookback"), f"`{asked.lookback}` is not a time", hint=hint))
    names = None if main is None else [column.name for column in main]
    if names is not None and asked.column.casefold() not in {name.casefold() for name in names}:
        near = get_close_matches(asked.column, names, 1)
        label = f"did you mean `{near[0]}`?" if near else ""
        hint = f"its columns are {', '.join(f'`{name}`' for name in names)}"
        message = f"there is no column `{asked.column}` to go on by"
        found.append(Mistake(("incremental", "column"), message, label=label, hint=hint, kind="column"))
    return found


def bound_of(asked: Incremental, call: Call) -> Json:
    """Only rows above this are read; None for all of them."""
    mark = call.watermarks.get(name_of(asked, call))
    if mark is None:
        return asked.start
    return mark if asked.lookback is None else _before(mark, asked.lookback)


def apply(asked: Incremental, call: Call) -> None:
    """Leave out the rows that are not above the watermark, and note the highest value. Blocks."""
    key = name_of(asked, call)
    rows = call.outputs.get("main")
    if rows is None:
        return
    name, kind = _column(asked.column, rows)
    column = select.column(name)
    bound = bound_of(asked, call)
    if bound is not None:
        above = exp.GT(this=column, expression=select.cast(select.literal(str(bound)), kind))
        query = exp.select("*").from_(exp.to_table("rows", quoted=True)).where(above)
        rows = call.engine.select(select.sql(query), {"rows": rows})
        call.outputs["main"] = rows
    highest = exp.select(exp.Max(this=column)).from_(exp.to_table("rows", quoted=True))
    value = next(iter(call.engine.rows(select.sql(highest), {"rows": rows})))[0][0]
    if value is not None:
        call.after[WATERMARK] = encoded(value, asked.column)
        call.after[WATERMARK_KEY] = key


def _column(asked: str, rows: Relation) -> tuple[str, str]:
    known = {column.name: column.type for column in rows.schema}
    folded = {name.casefold(): name for name in known}
    name = asked if asked in known else folded.get(asked.casefold())
    if name is None:
        meant = get_close_matches(asked, list(known), 1)
        hint = f"did you mean `{meant[0]}`?" if meant else f"there are {', '.join(f'`{one}`' for one in known)}"
        raise ComponentFailure("column", f"there is no column `{asked}` to go on by; hint: {hint}")
    return name, known[name]


def encoded(value: Any, column: str) -> Json:
    """A watermark as it is kept: such that later ones are higher, as numbers or as texts."""
    match value:
        case bool():
            pass
        case int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case Decimal():
            if value == value.to_integral_value():
                return int(value)
            if Decimal(repr(float(value))) == value:
                return float(value)
        case datetime():
            at = value.astimezone(UTC) if value.tzinfo is not None else value
            return at.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
    raise ComponentFailure(
        "column",
        f"`{column}` has {value!r}, which cannot be a watermark; hint: use a time, a date, a whole number or a text",
    )


def _before(mark: Json, lookback: str | float) -> Json:
    if isinstance(mark, int | float) and not isinstance(mark, bool):
        if isinstance(lookback, str):
            raise _bad_lookback(mark, lookback, "a number, since the column is one")
        return mark - lookback
    seconds = _seconds(lookback)
    try:
        if seconds is not None and isinstance(mark, str):
            if len(mark) == len("2026-03-29"):
                return (date.fromisoformat(mark) - timedelta(days=math.ceil(seconds / 86400))).isoformat()
            return (datetime.fromisoformat(mark) - timedelta(seconds=seconds)).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):
        pass
    raise _bad_lookback(mark, lookback, "a time such as `2h` or `3d`, of a column of times or dates")


def _seconds(lookback: str | float) -> float | None:
    if not isinstance(lookback, str):
        return float(lookback)
    try:
        return float(lookback[:-1]) * _UNITS[lookback[-1]]
    except (ValueError, KeyError, IndexError):
        return None


def _bad_lookback(mark: Json, lookback: str | float, wanted: str) -> ComponentFailure:
    return ComponentFailure(
        "parameters", f"`lookback: {lookback}` does not go with the watermark {mark!r}: give {wanted}"
    )
