"""The steps of `replace` as one expression."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlglot import exp

from penstock.components.queries import function
from penstock.components.shape.replace import Replacement
from penstock.components.shape.terms import case, text
from penstock.components.types import is_number, is_text
from penstock.data import select

_TRIMS = {True: "trim", "left": "ltrim", "right": "rtrim"}
_BLANKS = " \t\r\n"


def replaced(name: str, type: str, how: Replacement) -> exp.Expr:
    """The column with all its steps."""
    value: exp.Expr = select.column(name)
    if _changes_text(how):
        value, type = _as_text(text(value) if not is_text(type) else value, how), "VARCHAR"
    new = [] if how.otherwise is msgspec.UNSET else [how.otherwise]
    if not _fits(type, [*how.values.values(), *new, how.missing]):
        value, type = text(value), "VARCHAR"
    if how.values or new:
        written = value if is_text(type) else text(value)
        branches = [
            (exp.EQ(this=written, expression=select.literal(old)), _new(to, type)) for old, to in how.values.items()
        ]
        value = case(branches, _new(new[0], type) if new else value)
    return value if how.missing is None else function("coalesce", value, _new(how.missing, type))


def _changes_text(how: Replacement) -> bool:
    return bool(how.trim or how.spaces or how.case or how.regex or how.empty_as_null)


def _as_text(value: exp.Expr, how: Replacement) -> exp.Expr:
    if how.trim:
        value = function(_TRIMS[how.trim], value, select.literal(_BLANKS))
    if how.spaces:
        value = _substituted(value, r"\s+", " ")
    if how.case is not None:
        value = _title(value) if how.case == "title" else function(how.case, value)
    for pattern, to in how.regex.items():
        value = _substituted(value, pattern, to)
    return function("nullif", value, select.literal("")) if how.empty_as_null else value


def _substituted(value: exp.Expr, pattern: str, to: str) -> exp.Expr:
    return function("regexp_replace", value, select.literal(pattern), select.literal(to), select.literal("g"))


def _title(value: exp.Expr) -> exp.Expr:
    """The first letter of each word large, the others small. Words are what stands between blanks, hyphens and apostrophes;
    the `'s` of a genitive belongs to its word."""
    words = function("regexp_extract_all", value, select.literal(r"[^\s'-]+(?:'[sS]\b)?|[\s'-]+"))
    word = exp.Identifier(this="word")
    one = exp.Column(this=word)
    first = function("upper", function("left", one, select.literal(1)))
    rest = function("lower", function("substr", one, select.literal(2)))
    each = exp.Lambda(this=exp.DPipe(this=first, expression=rest), expressions=[word], colon=True)
    return function("array_to_string", function("list_transform", words, each), select.literal(""))


def _fits(type: str, new: list[Any]) -> bool:
    """Can the new values stand in a column of this type?"""
    given = [value for value in new if value is not None]
    if is_number(type):
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in given)
    if type == "BOOLEAN":
        return all(isinstance(value, bool) for value in given)
    return is_text(type) or not given


def _new(value: Any, type: str) -> exp.Expr:
    if value is None:
        return exp.null()
    if is_text(type):
        return select.literal(str(value).lower() if isinstance(value, bool) else str(value))
    return select.literal(value)
