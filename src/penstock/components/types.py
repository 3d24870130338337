"""Families of types by name, names of types that do not exist, and values converted to another type.

DuckDB reads `1.5` as the integer 2; here that is a value that does not convert. Blank text is no value: it is NULL in every type
but text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import ComponentFailure, Mistake, ParamPath
from penstock.data import select
from penstock.data.types import NOTHING, TypeMistake, duckdb_type

WHOLE = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
)
"""The types that cannot hold a fraction."""
_FRACTIONS = ("FLOAT", "DOUBLE", "DECIMAL")


def is_whole(type: str) -> bool:
    return _base(type) in WHOLE


def is_number(type: str) -> bool:
    return _base(type) in (*WHOLE, *_FRACTIONS)


def is_moment(type: str) -> bool:
    return _base(type).startswith(("DATE", "TIME"))


def is_text(type: str) -> bool:
    return _base(type) == "VARCHAR"


def is_nothing(type: str) -> bool:
    """Of a column that has never had a value, and goes with any other."""
    return type == NOTHING


def is_nested(type: str) -> bool:
    return type.endswith("]") or _base(type) in ("STRUCT", "MAP", "UNION", "JSON", "VARIANT")


def sql_type(text: str) -> str:
    """DuckDB's name for a type that an author wrote. Raises ComponentFailure when there is no such type."""
    try:
        return duckdb_type(text)
    except TypeMistake as error:
        raise ComponentFailure("parameters", error.message) from None


def wrong_type(path: ParamPath, text: str) -> Iterable[Mistake]:
    """A mistake if the text names no type."""
    try:
        duckdb_type(text)
    except TypeMistake as error:
        yield Mistake(path, error.message, hint=error.hint, offset=0, length=max(1, len(text)), kind="type")


def _base(type: str) -> str:
    """`DECIMAL(18,3)` is DECIMAL; a list of numbers is no number."""
    return type if type.endswith("]") else type.partition("(")[0].strip().upper()


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


def is_written_whole(text: exp.Expr) -> exp.Expr:
    """Is the number that is written there a whole one, as in `7`, `7.0` and `7e3`? NULL where it is no number."""
    number = exp.TryCast(this=text.copy(), to=select.data_type("DOUBLE"))
    written_out = _function("regexp_full_match", text, r"\s*[-+]?[0-9]+(\.0*)?\s*")
    return exp.or_(written_out, number.eq(_function("trunc", number)))


def checked_whole(text: exp.Expr) -> exp.Expr:
    """The text, to be cast to a whole number; where it has a fraction, a text that cannot be."""
    has_fraction = exp.and_(
        _function("contains", text, "."), _function("coalesce", is_written_whole(text), exp.false()).not_()
    )
    return exp.case().when(has_fraction, _function("concat", text, " is not whole")).else_(text.copy())


def _function(name: str, *arguments: exp.Expr | str) -> exp.Anonymous:
    given = [select.literal(each) if isinstance(each, str) else each.copy() for each in arguments]
    return exp.Anonymous(this=name, expressions=given)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a column is to become, and how it is written where it is text."""

    type: str
    format: str | None = None
    decimal: str = "."
    thousands: str | None = None
    true_values: tuple[str, ...] = ()
    false_values: tuple[str, ...] = ()

    def value(self, column: exp.Expr, source: str) -> exp.Expr:
        """The column, which is of type `source`, in the new type; NULL where that cannot be."""
        if is_text(self.type) and self.format is not None and is_moment(source):
            return build.function("strftime", column, select.literal(self.format))
        if not is_text(source) or is_text(self.type):
            return build.tried(column, self.type)
        return self._read(build.function("trim", column))

    def loses(self, column: exp.Expr, source: str) -> exp.Expr:
        """True where there is a value and the new type has no place for it."""
        plain = build.function("trim", column) if is_text(source) else column
        return is_lost(plain, self.value(column, source), self.type, self._plain(plain))

    def _read(self, value: exp.Expr) -> exp.Expr:
        if self.format is not None and is_moment(self.type):
            return build.tried(build.function("try_strptime", value, select.literal(self.format)), self.type)
        if self.true_values or self.false_values:
            lowered = build.function("lower", value)
            yes = build.one_of(lowered, [each.lower() for each in self.true_values])
            no = build.one_of(lowered, [each.lower() for each in self.false_values])
            known = [(yes, exp.true())] if self.true_values else []
            known += [(no, exp.false())] if self.false_values else []
            return build.case(known)
        return build.tried(self._plain(value), self.type)

    def _plain(self, value: exp.Expr) -> exp.Expr:
        """A number as SQL writes it."""
        if not is_number(self.type):
            return value
        return plain_number(value, self.decimal, self.thousands)


def is_lost(value: exp.Expr, converted: exp.Expr, type: str, number: exp.Expr | None = None) -> exp.Expr:
    """Is there a value, and none, or another, after the conversion? `number` is the value as a plain number where it is text."""
    lost = build.is_null(converted)
    if is_whole(type):
        rounded = build.differ(
            build.tried(number if number is not None else value, "DOUBLE"), build.tried(converted, "DOUBLE")
        )
        lost = build.some([lost, rounded])
    there = [build.is_not_null(value)]
    if not is_text(type):
        there.append(exp.NEQ(this=build.text(value), expression=select.literal("")))
    return build.every_one([*there, lost])


def not_that(column: exp.Expr, name: str, type: str) -> exp.Expr:
    """A sentence about a value that did not convert."""
    shown = build.function("left", build.text(column), select.literal(60))
    return build.function("concat", select.literal(f"`{name}`: `"), shown, select.literal(f"` is not {type}"))
