"""A value as text in a layout, as an expression."""

from __future__ import annotations

from sqlglot import exp

from penstock.components.queries import function
from penstock.components.shape.format_columns import Layout
from penstock.components.shape.terms import case, text, tried
from penstock.components.types import is_moment, is_number
from penstock.data import select
from penstock.ports.rows import Column


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
