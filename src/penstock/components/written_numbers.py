"""Numbers as people write them, turned into numbers as SQL writes them.

Law: a mark that means nothing in the notation is no part of a number. Where the decimal mark is a comma, `1.250` is not a number
unless the full stop separates thousands; where it does, `9.95` is none, because no group of thousands has two digits. A number
with a fraction is no whole number: DuckDB would round it, and say nothing.
"""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.data import select


def plain_number(text: exp.Expr, decimal: str = ".", thousands: str | None = None) -> exp.Expr:
    """The text as SQL writes numbers; NULL where its marks are not those of the notation."""
    wrong: list[exp.Expr] = []
    if decimal != "." and thousands != ".":
        wrong.append(_function("contains", text, "."))
    plain = text
    if thousands is not None:
        # The last group has three digits; those before it may have two, as in India.
        mark, point = re.escape(thousands), re.escape(decimal)
        grouped = rf"[-+]?[0-9]{{1,3}}({mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}({point}[0-9]*)?([eE][-+]?[0-9]+)?"
        is_grouped = _function("regexp_full_match", text, grouped)
        wrong.append(exp.and_(_function("contains", text, thousands), is_grouped.not_()))
        plain = _function("replace", plain, thousands, "")
    if decimal != ".":
        plain = _function("replace", plain, decimal, ".")
    return exp.case().when(exp.or_(*wrong), exp.null()).else_(plain) if wrong else plain


WHOLE = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
)
"""The types that have no place for a fraction."""


def is_whole(text: exp.Expr) -> exp.Expr:
    """Is the number that is written there a whole one, as in `7`, `7.0` and `7e3`? NULL where it is no number."""
    number = exp.TryCast(this=text.copy(), to=select.data_type("DOUBLE"))
    written_out = _function("regexp_full_match", text, r"\s*[-+]?[0-9]+(\.0*)?\s*")
    return exp.or_(written_out, number.eq(_function("trunc", number)))


def checked_whole(text: exp.Expr) -> exp.Expr:
    """The text, to be cast to a whole number; where it has a fraction, a text that cannot be."""
    has_fraction = exp.and_(_function("contains", text, "."), _function("coalesce", is_whole(text), exp.false()).not_())
    return exp.case().when(has_fraction, _function("concat", text, " is not whole")).else_(text.copy())


def _function(name: str, *arguments: exp.Expr | str) -> exp.Anonymous:
    given = [select.literal(each) if isinstance(each, str) else each.copy() for each in arguments]
    return exp.Anonymous(this=name, expressions=given)
