"""Two inputs side by side, by the values of columns that both have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from penstock.components.base import Mistake, PlanCall, Port
from penstock.components.transform.base import Known, Parameters, Transform
from penstock.components.transform.matching import MATCH_WORDS, Match, On, beside, pairs, wrong_pairs
from penstock.components.transform.sides import How, Sides, joined, unmatched
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp


class JoinParams(Parameters):
    on: Annotated[
        On,
        Meta(
            description="The columns that must be equal: a list of names that both sides have, or a mapping of a column of "
            "`main` to one of `lookup`.",
        ),
    ]
    how: Annotated[
        How,
        Meta(
            description="`inner`: rows that match. `left`: also rows of `main` that do not. `right`: also those of `lookup`. "
            "`full`: both."
        ),
    ] = "inner"
    match: Annotated[Match, Meta(description=MATCH_WORDS)] = "all"
    suffix: Annotated[
        str, Meta(min_length=1, description="What is added to a column of `lookup` whose name `main` has, too.")
    ] = "_lookup"
    keep_order: Annotated[
        bool,
        Meta(description="Give the rows in the order of `main`, at the cost of sorting them. Otherwise any order."),
    ] = False


class Join(Transform[JoinParams]):
    """Join the rows of two inputs.

    The result has the columns of `main` and then those of `lookup`, without the columns of `on` a second time; a name that both
    have gets the suffix on the side of `lookup`. Rows of `main` that an `inner` or `right` join drops because nothing matches
    leave through `reject`, with `error_code` (`NO_MATCH`) and `error_message`. Missing values match nothing.

    As in SQL, rows leave in no particular order unless `keep_order` is set.
    """

    type = "join"
    Params = JoinParams
    inputs: ClassVar[tuple[Port, ...]] = (Port("main"), Port("lookup"))
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the joined rows"),
        Port("reject", reject=True, description="rows of `main` without a match that the join drops"),
    )
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: { name: join_example }
components:
  - name: orders
    type: fixed_rows
    params:
      columns: [id, customer, amount]
      rows: [[1, 7, 250], [2, 8, 40], [3, 9, 10]]
  - name: customers
    type: fixed_rows
    params:
      columns: [id, name]
      rows: [[7, Ada], [8, Bob]]
  - name: named
    type: join
    params: { on: { customer: id }, how: inner, match: unique }
  - name: show
    type: log_rows
  - name: strangers
    type: log_rows
connections:
  data: |
    orders.main -> named.main
    customers.main -> named.lookup
    named.main -> show.input
    named.reject -> strangers.input
"""

    def wrong(self, params: JoinParams, inputs: Known) -> Iterable[Mistake]:
        main, lookup = inputs.get("main"), inputs.get("lookup")
        yield from wrong_pairs(("on",), params.on, main, lookup, ("main", "lookup"))
        if params.keep_order and params.how in ("right", "full"):
            yield Mistake(
                ("keep_order",), f"a `{params.how}` join has rows that are not in `main`: use `sort` behind it"
            )

    def queries(self, params: JoinParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        main, lookup = inputs["main"], inputs["lookup"]
        on = pairs(params.on)
        names = beside([column.name for column in main], lookup, [right for _, right in on], params.suffix)
        sides = Sides("main", main, "lookup", lookup, on, names, params.how, params.match, params.keep_order)
        return {"main": joined(sides), "reject": unmatched(sides)}
