"""`format_columns`: numbers and dates as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta
from sqlglot import exp

from penstock.components.base import Known, Mistake, PlanCall
from penstock.components.queries import case, changed, function, picked, text, tried
from penstock.components.shape.patterns import wrong_time_format
from penstock.components.transform.base import Parameters, Transform, actual, missing, type_of
from penstock.components.types import is_moment, is_nothing, is_number
from penstock.data import select
from penstock.ports.rows import Column, Schema
from penstock.tools.parameters import about

Digits = Annotated[int, Meta(ge=0, le=20)]
Width = Annotated[int, Meta(ge=1)]


class Layout(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    format: Annotated[
        str | None, about("For dates and times, such as `%d.%m.%Y %H:%M`; `2024-12-31` when left out.")
    ] = None
    decimals: Annotated[Digits | None, about("For numbers: digits after the decimal mark.")] = None
    decimal: Annotated[str, about("The decimal mark.", min_length=1, max_length=1)] = "."
    thousands: Annotated[str, about("The separator of thousands; none by default.", max_length=1)] = ""
    width: Annotated[Width | None, about("At least so many characters; filled on the left for numbers.")] = None
    fill: Annotated[str, about("What to fill with.", min_length=1, max_length=1)] = " "
    prefix: Annotated[str, about("Put before the value.")] = ""
    suffix: Annotated[str, about("Put behind the value.")] = ""


class FormatColumnsParams(Parameters):
    columns: Annotated[dict[str, Layout], about("Column -> how to write its values.", min_length=1)]


class FormatColumns(Transform[FormatColumnsParams]):
    """Write numbers, dates and texts the way a report needs them.

    The columns are text afterwards; missing values stay missing. Numbers are rounded to `decimals`, half away from zero.
    """

    type = "format_columns"
    keeps_count: ClassVar[bool] = True

    def wrong(self, params: FormatColumnsParams, inputs: Known) -> Iterable[Mistake]:
        schema = inputs.get("input")
        for name, how in params.columns.items():
            yield from missing(("columns", name), name, schema)
            if how.format is not None:
                yield from wrong_time_format(("columns", name, "format"), how.format)
            type = type_of(name, schema) if schema is not None else ""
            if is_nothing(type):
                continue
            if type and how.format is not None and not is_moment(type):
                yield Mistake(("columns", name, "format"), f"`{name}` is {type}, and no date or time", kind="type")
            if type and how.decimals is not None and not is_number(type):
                yield Mistake(("columns", name, "decimals"), f"`{name}` is {type}, and no number", kind="type")

    def queries(
        self, params: FormatColumnsParams, inputs: Mapping[str, Schema], call: PlanCall
    ) -> dict[str, exp.Query]:
        schema = inputs["input"]
        values = {
            there: written(Column(there, type_of(there, schema)), how)
            for name, how in params.columns.items()
            if (there := actual(name, schema)) is not None
        }
        return {"main": picked(changed(schema, values), "input")}


def written(column: Column, how: Layout) -> exp.Expr:
    value: exp.Expr = select.column(column.name)
    if is_number(column.type):
        value = _number(value, how)
    elif is_moment(column.type) and how.format is not None:
        value = function("strftime", value, select.literal(how.format))
    else:
        value = text(value)
    if how.prefix:
        value = exp.DPipe(this=select.literal(how.prefix), expression=value)
    if how.suffix:
        value = exp.DPipe(this=value, expression=select.literal(how.suffix))
    return _filled(value, column.type, how)


def _number(value: exp.Expr, how: Layout) -> exp.Expr:
    made = text(value)
    if how.decimals is not None:
        # Through DECIMAL and not through a format of floats, which has no more than 15 digits.
        made = function("coalesce", text(tried(value, f"DECIMAL(38,{how.decimals})")), made)
    if not how.thousands:
        return (
            made if how.decimal == "." else function("replace", made, select.literal("."), select.literal(how.decimal))
        )
    point = select.literal(".")
    whole, rest = (function("split_part", made, point, select.literal(part)) for part in (1, 2))
    ending = exp.DPipe(this=select.literal(how.decimal), expression=rest)
    fraction = case([(exp.EQ(this=rest, expression=select.literal("")), select.literal(""))], ending)
    return exp.DPipe(this=_grouped(whole, how.thousands), expression=fraction)


def _grouped(digits: exp.Expr, mark: str) -> exp.Expr:
    """A mark before every third digit from the end: RE2 cannot look ahead, so the digits are turned round and back."""
    thirds = select.literal(r"(\d{3})"), select.literal(rf"\1{mark}" if mark != "\\" else r"\1\\"), select.literal("g")
    turned = function("reverse", function("regexp_replace", function("reverse", digits), *thirds))
    return function("regexp_replace", turned, select.literal(rf"^(-?)\Q{mark}\E"), select.literal(r"\1"))


def _filled(value: exp.Expr, type: str, how: Layout) -> exp.Expr:
    if how.width is None:
        return value
    longer = select.cast(function("greatest", function("length", value), select.literal(how.width)), "INTEGER")
    side = "lpad" if is_number(type) else "rpad"
    return function(side, value, longer, select.literal(how.fill))
