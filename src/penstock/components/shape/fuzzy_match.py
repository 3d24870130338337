"""`fuzzy_match`: rows that belong together although they are not written the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from penstock.components.base import Mistake, PlanCall, Port
from penstock.components.transform.base import Known, Parameters, Transform, absent, actual, missing
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp

Pairs = list[str] | dict[str, str]


class FuzzyMatchParams(Parameters, kw_only=True):
    on: Annotated[
        Pairs,
        Meta(description="The columns to compare: names in both inputs, or main column -> lookup column."),
    ]
    method: Annotated[
        Literal["jaro_winkler", "levenshtein", "damerau"],
        Meta(
            description="How alike two texts are: `jaro_winkler` suits names, `levenshtein` counts changed letters, `damerau` "
            "also letters that changed places."
        ),
    ] = "jaro_winkler"
    threshold: Annotated[
        float, Meta(ge=0, le=1, description="How alike they must be: 1 is equal, 0 is nothing alike.")
    ] = 0.85
    match: Annotated[
        Literal["best", "all"],
        Meta(description="The most similar row of the lookup, the first of several; or all of them."),
    ] = "best"
    within: Annotated[
        Pairs,
        Meta(description="Columns that must be equal, as in `on`: only such rows are compared. For many rows."),
    ] = []  # noqa: RUF012
    ignore_case: Annotated[
        bool, Meta(description="Take large and small letters for the same, and leave outer blanks away.")
    ] = True
    columns: Annotated[list[str] | None, Meta(description="The lookup's columns to add; all when left out.")] = None
    suffix: Annotated[str, Meta(min_length=1, description="Added to a lookup column whose name is taken.")] = "_lookup"
    score: Annotated[str, Meta(min_length=1, description="The new column with the similarity.")] = "score"


class FuzzyMatch(Transform[FuzzyMatchParams]):
    """Look rows up by texts that are similar.

    Every row of `main` is compared with every row of `lookup`, or with those that agree in the columns of `within`: ten thousand
    by ten thousand rows are a hundred million comparisons. With several columns in `on` the similarity is their mean. Rows
    without a value are similar to none. What is matched leaves through `main` with the lookup's columns and the `score`; rows
    without a match leave through `reject` with `error_code` `NO_MATCH`. Rows keep their order.
    """

    type = "fuzzy_match"
    Params = FuzzyMatchParams
    inputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows to find a partner for"),
        Port("lookup", description="the rows to find it in"),
    )
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="rows with their partners"),
        Port("reject", reject=True, description="rows without one"),
    )
    example = """\
components:
  - name: entries
    type: fixed_rows
    params:
      columns: [id, company]
      rows: [[1, Acme Corp.], [2, Globexx], [3, Soylent]]
  - name: known
    type: fixed_rows
    params:
      columns: [code, company]
      rows: [[A, ACME Corp], [G, Globex]]
  - name: found
    type: fuzzy_match
    params: { on: [company], threshold: 0.9 }
  - name: show
    type: log_rows
  - name: unknown
    type: log_rows
connections:
  data:
    - entries.main -> found.main
    - known.main -> found.lookup
    - found.main -> show.input
    - found.reject -> unknown.input
"""

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
        from penstock.components.shape.matching import Matching

        lookup = inputs["lookup"]
        added = [each for name in params.columns or () if (each := actual(name, lookup)) is not None]
        if params.columns is None:
            added = [column.name for column in lookup]
        return Matching(params, inputs["main"], added).queries()


def pairs(given: Pairs) -> list[tuple[str, str]]:
    """Main column, lookup column."""
    return list(given.items()) if isinstance(given, dict) else [(name, name) for name in given]
