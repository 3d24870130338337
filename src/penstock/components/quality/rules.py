"""Checks as conditions on rows.

A row breaks a rule when its condition is true. NULL breaks `not_null` and nothing else, as with constraints in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from penstock.components.quality.checks import Check
from penstock.components.queries import POSITION, ascending, function, row_number
from penstock.components.shape.terms import every_one, is_not, is_not_null, is_null, one_of, some, text
from penstock.components.transform.base import actual
from penstock.data import select
from penstock.ports.rows import Schema


@dataclass(frozen=True, slots=True)
class Rule:
    """A check of single rows, on one column where that is what it is about."""

    code: str
    says: str
    """What is wrong with a row that breaks it."""
    fails: exp.Expr
    columns: tuple[str, ...] = ()
    """Whose values show what is wrong."""
    shows: exp.Expr | None = None
    """What to say of the row itself, when that is more than `says`."""

    def said(self) -> exp.Expr:
        return select.literal(self.says) if self.shows is None else self.shows


def rules(checks: Sequence[Check], schema: Schema) -> list[Rule]:
    """The checks of rows, one rule per column."""
    return [rule for check in checks if check.is_of_rows for rule in _rules(check, schema)]


def missing_value(name: str, code: str) -> Rule:
    return Rule(code, f"`{name}` has no value", is_null(select.column(name)))


def seen_before(keys: Sequence[str], code: str) -> Rule:
    """An earlier row has the same key. The condition needs the rows to have their `POSITION`."""
    found = [select.column(name) for name in keys]
    again = exp.GT(this=row_number(found, [ascending(select.column(POSITION))]), expression=select.literal(1))
    fails = every_one([again, *(is_not_null(key) for key in found)])
    return Rule(code, f"{', '.join(f'`{name}`' for name in keys)} occurred before", fails, tuple(keys))


def no_match(name: str, pattern: str, code: str) -> Rule:
    fails = is_not(function("regexp_full_match", text(select.column(name)), select.literal(pattern)))
    return Rule(code, f"`{name}` does not match `{pattern}`", fails, (name,))


def _rules(check: Check, schema: Schema) -> Iterator[Rule]:
    for name in check.not_null or ():
        yield missing_value(name, check.name or "not_null")
    if check.unique is not None:
        yield seen_before(check.unique, check.name or "unique")
    for name, (low, high) in (check.range or {}).items():
        yield _outside(name, low, high, check.name or "range")
    for name, pattern in (check.regex or {}).items():
        yield no_match(name, pattern, check.name or "regex")
    for name, values in (check.in_ or {}).items():
        yield _none_of(name, values, check.name or "in")
    if check.expression is not None:
        yield _false(check.expression, check.name, schema)


def _outside(name: str, low: Any, high: Any, code: str) -> Rule:
    column = select.column(name)
    outside: list[exp.Expr] = []
    if low is not None:
        outside.append(exp.LT(this=column, expression=select.literal(low)))
    if high is not None:
        outside.append(exp.GT(this=column, expression=select.literal(high)))
    bounds = {
        (True, True): f"between {low} and {high}",
        (True, False): f"at least {low}",
        (False, True): f"at most {high}",
    }
    said = bounds.get((low is not None, high is not None), "in any range")
    return Rule(code, f"`{name}` is not {said}", some(outside), (name,))


def _none_of(name: str, values: Sequence[Any], code: str) -> Rule:
    values = [value for value in values if value is not None]  # `x NOT IN (…, NULL)` is never true in SQL
    shown = ", ".join(f"`{value}`" for value in values[:8]) + (" …" if len(values) > 8 else "")
    return Rule(code, f"`{name}` is not one of {shown}", is_not(one_of(select.column(name), values)), (name,))


def _false(expression: str, name: str | None, schema: Schema) -> Rule:
    node = select.expression(expression)
    mentioned = dict.fromkeys(column.name for column in node.find_all(exp.Column))
    shown = tuple(column for column in mentioned if actual(column, schema) is not None)
    said = f"`{name}`: `{expression.strip()}` is false" if name else f"`{expression.strip()}` is false"
    return Rule(name or "expression", said, is_not(node), shown)
