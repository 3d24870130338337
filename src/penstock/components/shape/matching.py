"""Each row of one table with those rows of another that are similar to it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.components.queries import (
    POSITION,
    ascending,
    called,
    columns,
    every,
    function,
    named,
    numbered,
    picked,
    refused,
    row_number,
)
from penstock.components.shape.fuzzy_match import FuzzyMatchParams, pairs
from penstock.components.shape.terms import case, every_one, is_null, text
from penstock.data import select
from penstock.ports.rows import Schema

_CANDIDATE, _RANK = "__candidate", "__rank"
_DISTANCES = {"levenshtein": "levenshtein", "damerau": "damerau_levenshtein"}
_CODES = "".join(map(chr, range(1, 2001)))


class Matching:
    def __init__(self, params: FuzzyMatchParams, main: Schema, added: Sequence[str]) -> None:
        self._params = params
        self._main = main
        taken = {column.name.lower() for column in main}
        self._added = {name: f"{name}{params.suffix}" if name.lower() in taken else name for name in added}

    def queries(self) -> dict[str, exp.Query]:
        mine = [*(column.name for column in self._main), *self._added.values(), self._params.score]
        matched = self._matched()
        found = picked(columns(mine), matched).order_by(
            ascending(select.column(POSITION)), ascending(select.column(_RANK))
        )
        alone = picked(
            refused(self._main, "NO_MATCH", "no row of `lookup` is similar enough", "main"),
            numbered("main"),
            "main",
        ).join(
            named(picked([select.column(POSITION)], matched).distinct(), "found"),
            on=exp.EQ(this=select.column(POSITION, "main"), expression=select.column(POSITION, "found")),
            join_type="left",
        )
        lonely = alone.where(is_null(select.column(POSITION, "found"))).order_by(
            ascending(select.column(POSITION, "main"))
        )
        return {"main": found, "reject": lonely}

    def _matched(self) -> exp.Select:
        """Pairs that are similar enough; with `match: best` one for each row."""
        score, place = select.column(self._params.score), select.column(POSITION)
        enough = exp.GTE(this=score, expression=select.literal(self._params.threshold))
        best = [exp.Ordered(this=score, desc=True, nulls_first=False), ascending(select.column(_CANDIDATE))]
        mine = [column.name for column in self._main] + [*self._added.values(), self._params.score, POSITION]
        ranked = picked([*columns(mine), called(row_number([place], best), _RANK)], self._compared()).where(enough)
        chosen = picked(columns([*mine, _RANK]), ranked)
        if self._params.match == "all":
            return chosen
        return chosen.where(exp.EQ(this=select.column(_RANK), expression=select.literal(1)))

    def _compared(self) -> exp.Select:
        added = [called(select.column(name, "lookup"), alias) for name, alias in self._added.items()]
        wanted = [
            *every(self._main, "main"),
            select.column(POSITION, "main"),
            *added,
            called(select.column(POSITION, "lookup"), _CANDIDATE),
            called(self._score(), self._params.score),
        ]
        near = [
            exp.EQ(this=select.column(left, "main"), expression=select.column(right, "lookup"))
            for left, right in pairs(self._params.within)
        ]
        query = picked(wanted, numbered("main"), "main")
        if not near:
            return query.join(named(numbered("lookup"), "lookup"), join_type="cross")
        return query.join(named(numbered("lookup"), "lookup"), on=every_one(near))

    def _score(self) -> exp.Expr:
        scores = [
            self._similarity(self._plain(left, "main"), self._plain(right, "lookup"))
            for left, right in pairs(self._params.on)
        ]
        total = scores[0]
        for score in scores[1:]:
            total = exp.Add(this=total, expression=score)
        return (
            total
            if len(scores) == 1
            else exp.Div(this=exp.Paren(this=total), expression=select.literal(float(len(scores))))
        )

    def _plain(self, column: str, table: str) -> exp.Expr:
        value = text(select.column(column, table))
        return function("lower", function("trim", value)) if self._params.ignore_case else value

    def _similarity(self, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        if self._params.method == "jaro_winkler":
            return _by_letters("jaro_winkler_similarity", left, right)
        distance = select.cast(_by_letters(_DISTANCES[self._params.method], left, right), "DOUBLE")
        longest = function("greatest", function("length", left), function("length", right), select.literal(1))
        return exp.Paren(this=exp.Sub(this=select.literal(1.0), expression=exp.Div(this=distance, expression=longest)))


def _by_letters(name: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """DuckDB compares bytes, and `ü` has two: where there are such letters, each becomes the code of its first place."""
    both = exp.DPipe(this=left, expression=right)
    one_byte_each = exp.EQ(this=function("strlen", both), expression=function("length", both))
    coded = [function("translate", each, both, select.literal(_CODES)) for each in (left, right)]
    return case([(one_byte_each, function(name, left, right))], function(name, *coded))
