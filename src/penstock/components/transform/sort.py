"""Rows in an order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from penstock.components.base import Mistake, PlanCall
from penstock.components.transform.base import Known, Parameters, Transform, unused
from penstock.components.transform.orders import By, ordering, wrong_order
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp


class SortParams(Parameters):
    by: Annotated[
        list[By],
        Meta(
            min_length=1,
            description="What to sort by, first things first: `amount`, `amount desc`, `amount desc nulls first`, an SQL "
            "expression, or `{column: amount, order: desc, nulls: first}`.",
        ),
    ]


class Sort(Transform[SortParams]):
    """Sort the rows.

    Rows that are equal in everything `by` names stay in the order in which they came. Missing values come last, in both
    directions, by default.
    """

    type = "sort"
    Params = SortParams
    keeps_count: ClassVar[bool] = True
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: { name: sort_example }
components:
  - name: people
    type: fixed_rows
    params:
      columns: [name, born]
      rows: [[Ada, 1815], [Grace, 1906], [Alan, 1912]]
  - name: youngest_first
    type: sort
    params: { by: [born desc, name] }
  - name: show
    type: log_rows
connections:
  data: |
    people.main -> youngest_first.input
    youngest_first.main -> show.input
"""

    def unbound(self, params: SortParams, inputs: Mapping[str, Schema]) -> Iterable[Mistake]:
        return wrong_order(("by",), params.by, inputs["input"])

    def wrong(self, params: SortParams, inputs: Known) -> Iterable[Mistake]:
        for index, by in enumerate(params.by):
            if isinstance(by, str) and not by.strip():
                yield Mistake(("by", index), "a column is needed here")

    def queries(self, params: SortParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        from penstock.components import queries as build
        from penstock.data import select

        schema = inputs["input"]
        position = unused(build.POSITION, schema)
        order = [*ordering(params.by, schema), build.ascending(select.column(position))]
        return {"main": build.picked(build.every(schema), build.numbered("input", position)).order_by(*order)}
