"""`fuzzy_match`: rows that belong together although they are spelled differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Known, Mistake, PlanCall, Port
from penstock.components.transform.base import Parameters, Transform, absent, actual, missing
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about

Pairs = list[str] | dict[str, str]


class FuzzyMatchParams(Parameters, kw_only=True):
    on: Annotated[Pairs, about("The columns to compare: names in both inputs, or main column -> lookup column.")]
    method: Annotated[
        Literal["jaro_winkler", "levenshtein", "damerau"],
        about(
            "How alike two texts are: `jaro_winkler` suits names, `levenshtein` counts changed letters, `damerau` "
            "also letters that changed places."
        ),
    ] = "jaro_winkler"
    threshold: Annotated[float, about("How alike they must be: 1 is equal, 0 is nothing alike.", ge=0, le=1)] = 0.85
    match: Annotated[
        Literal["best", "all"], about("The most similar row of the lookup, the first of several; or all of them.")
    ] = "best"
    within: Annotated[
        Pairs, about("Columns that must be equal, as in `on`: only such rows are compared. For many rows.")
    ] = []  # noqa: RUF012
    ignore_case: Annotated[bool, about("Take large and small letters for the same, and leave outer blanks away.")] = (
        True
    )
    columns: Annotated[list[str] | None, about("The lookup's columns to add; all when left out.")] = None
    suffix: Annotated[str, about("Added to a lookup column whose name is taken.", min_length=1)] = "_lookup"
    score: Annotated[str, about("The new column with the similarity.", min_length=1)] = "score"


class FuzzyMatch(Transform[FuzzyMatchParams]):
    """Look rows up by texts that are similar.

    Every row of `main` is compared with every row of `lookup`, or with those that agree in the columns of `within`: ten thousand
    by ten thousand rows are a hundred million comparisons. With several columns in `on` the similarity is their mean. Rows
    without a value are similar to none. What is matched leaves through `main` with the lookup's columns and the `score`; rows
    without a match leave through `reject` with `error_code` `NO_MATCH`. Rows keep their order.
    """

    type = "fuzzy_match"
    inputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows to find a partner for"),
        Port("lookup", description="the rows to find it in"),
    )
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="rows with their partners"),
        Port("reject", reject=True, description="rows without one"),
    )

    def wrong(self, params: FuzzyMatchParams, inputs: Known) -> Iterable[Mistake]:
        main, lookup = inputs.get("main"), inputs.get("lookup")
        if not params.on:
            yield Mistake(("on",), "there is nothing to compare: at least one column is needed")
        for parameter in ("on", "within"):
            pairs = getattr(params, parameter)
            if isinstance(pairs, dict):
                for left, right in pairs.items():
                    yield from missing((parameter, left), left, main, "main")
                    yield from missing((parameter, left), right, lookup, "lookup")
            else:
                yield from absent((parameter,), pairs, main, "main")
                yield from absent((parameter,), pairs, lookup, "lookup")
        yield from absent(("columns",), params.columns or (), lookup, "lookup")
        if main is not None and actual(params.score, main) is not None:
            yield Mistake(("score",), f"`{params.score}` is a column already", hint="choose another name")

    def queries(self, params: FuzzyMatchParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:

        lookup = inputs["lookup"]
        added = [each for name in params.columns or () if (each := actual(name, lookup)) is not None]
        if params.columns is None:
            added = [column.name for column in lookup]
        return Matching(params, inputs["main"], added).queries()


def pairs(given: Pairs) -> list[tuple[str, str]]:
    """Main column, lookup column."""
    return list(given.items()) if isinstance(given, dict) else [(name, name) for name in given]


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
        found = build.picked(build.columns(mine), matched).order_by(
            build.ascending(select.column(build.POSITION)), build.ascending(select.column(_RANK))
        )
        alone = build.picked(
            build.refused(self._main, "NO_MATCH", "no row of `lookup` is similar enough", "main"),
            build.numbered("main"),
            "main",
        ).join(
            build.named(build.picked([select.column(build.POSITION)], matched).distinct(), "found"),
            on=exp.EQ(this=select.column(build.POSITION, "main"), expression=select.column(build.POSITION, "found")),
            join_type="left",
        )
        lonely = alone.where(build.is_null(select.column(build.POSITION, "found"))).order_by(
            build.ascending(select.column(build.POSITION, "main"))
        )
        return {"main": found, "reject": lonely}

    def _matched(self) -> exp.Select:
        """Pairs that are similar enough; with `match: best` one for each row."""
        score, place = select.column(self._params.score), select.column(build.POSITION)
        enough = exp.GTE(this=score, expression=select.literal(self._params.threshold))
        best = [exp.Ordered(this=score, desc=True, nulls_first=False), build.ascending(select.column(_CANDIDATE))]
        mine = [column.name for column in self._main] + [*self._added.values(), self._params.score, build.POSITION]
        ranked = build.picked(
            [*build.columns(mine), build.called(build.row_number([place], best), _RANK)], self._compared()
        ).where(enough)
        chosen = build.picked(build.columns([*mine, _RANK]), ranked)
        if self._params.match == "all":
            return chosen
        return chosen.where(exp.EQ(this=select.column(_RANK), expression=select.literal(1)))

    def _compared(self) -> exp.Select:
        added = [build.called(select.column(name, "lookup"), alias) for name, alias in self._added.items()]
        wanted = [
            *build.every(self._main, "main"),
            select.column(build.POSITION, "main"),
            *added,
            build.called(select.column(build.POSITION, "lookup"), _CANDIDATE),
            build.called(self._score(), self._params.score),
        ]
        near = [
            exp.EQ(this=select.column(left, "main"), expression=select.column(right, "lookup"))
            for left, right in pairs(self._params.within)
        ]
        query = build.picked(wanted, build.numbered("main"), "main")
        if not near:
            return query.join(build.named(build.numbered("lookup"), "lookup"), join_type="cross")
        return query.join(build.named(build.numbered("lookup"), "lookup"), on=build.every_one(near))

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
        value = build.text(select.column(column, table))
        return build.function("lower", build.function("trim", value)) if self._params.ignore_case else value

    def _similarity(self, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        if self._params.method == "jaro_winkler":
            return _by_letters("jaro_winkler_similarity", left, right)
        distance = select.cast(_by_letters(_DISTANCES[self._params.method], left, right), "DOUBLE")
        longest = build.function(
            "greatest", build.function("length", left), build.function("length", right), select.literal(1)
        )
        return exp.Paren(this=exp.Sub(this=select.literal(1.0), expression=exp.Div(this=distance, expression=longest)))


def _by_letters(name: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """DuckDB compares bytes, and `ü` has two: where there are such letters, each becomes the code of its first place."""
    both = exp.DPipe(this=left, expression=right)
    one_byte_each = exp.EQ(this=build.function("strlen", both), expression=build.function("length", both))
    coded = [build.function("translate", each, both, select.literal(_CODES)) for each in (left, right)]
    return build.case([(one_byte_each, build.function(name, left, right))], build.function(name, *coded))
