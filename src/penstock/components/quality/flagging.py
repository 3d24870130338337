"""Rows with a flag for each rule they may break: all that is asked about them is a query over these."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.components.quality.rules import Rule
from penstock.components.queries import (
    POSITION,
    ascending,
    called,
    columns,
    every,
    function,
    is_true,
    names,
    numbered,
    picked,
)
from penstock.components.shape.terms import case, is_not, joined, some, text
from penstock.data import select
from penstock.ports.rows import Schema


class Flagged:
    """`beside` are columns of `source` that rules and conversions may look at, and that are not the rows' own."""

    def __init__(
        self, schema: Schema, rules: Sequence[Rule], source: exp.Query | None = None, beside: Sequence[str] = ()
    ) -> None:
        self.rules = list(rules)
        self._schema = schema
        self._source = source
        self._beside = beside
        self._looks_around = any(rule.fails.find(exp.Window) for rule in self.rules)

    def passed(self, converted: Sequence[exp.Expr] = ()) -> exp.Select:
        """The rows that break no rule, or `converted` of them."""
        wanted = converted or every(self._schema)
        if not self.rules:
            return picked(wanted, "input")
        return self._in_order(self._select(wanted).where(is_not(some(self._flags()))))

    def failed(self) -> exp.Select:
        """The rows that break one or more: the first is their `error_code`, all are in their `error_message`."""
        branches = list(zip(self._flags(), self.rules, strict=True))
        code = text(case([(flag, select.literal(rule.code)) for flag, rule in branches]))
        said = joined("; ", [case([(flag, rule.said())]) for flag, rule in branches] or [select.literal("")])
        own = [name for name in names(self._schema) if name.lower() not in ("error_code", "error_message")]
        wanted = [*columns(own), called(code, "error_code"), called(said, "error_message")]
        return self._in_order(self._select(wanted).where(some(self._flags())))

    def first(self) -> exp.Select:
        """Of the first row that breaks one: the number of the rule, what it says, and all columns."""
        branches = list(zip(self._flags(), self.rules, strict=True))
        number = case([(flag, select.literal(place)) for place, flag in enumerate(self._flags())])
        said = case([(flag, rule.said()) for flag, rule in branches])
        own = [text(column) for column in every(self._schema)]
        return self._in_order(self._select([number, said, *own]).where(some(self._flags()))).limit(1)

    def names(self) -> list[str]:
        return names(self._schema)

    def counts(self) -> exp.Select:
        """How many rows there are, and how many break each rule."""
        counted = [function("count_if", flag) for flag in self._flags()]
        return self._select([exp.Count(this=exp.Star()), *counted])

    def sample(self, number: int, size: int) -> exp.Select | None:
        """Some values that break a rule; None when it is about a value that is not there."""
        rule = self.rules[number]
        if not rule.columns:
            return None
        return self._in_order(self._select(columns(rule.columns)).where(self._flags()[number])).limit(size)

    def _flags(self) -> list[exp.Expr]:
        return [select.column(f"__flag_{number}") for number in range(len(self.rules))]

    def _select(self, wanted: Sequence[exp.Expr]) -> exp.Select:
        marked = [called(is_true(rule.fails), f"__flag_{number}") for number, rule in enumerate(self.rules)]
        place = [POSITION] if self._looks_around else []
        source = numbered("input") if self._looks_around else self._source or "input"
        return picked(wanted, picked([*every(self._schema), *columns([*place, *self._beside]), *marked], source))

    def _in_order(self, query: exp.Select) -> exp.Select:
        """Windows disturb the order of rows."""
        return query.order_by(ascending(select.column(POSITION))) if self._looks_around else query
