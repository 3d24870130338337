"""`data_profile`: what stands in the columns, as one row for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from penstock.components.base import Mistake, PlanCall
from penstock.components.transform.base import Known, Parameters, Transform, absent, actual
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp


Some = Annotated[list[str], Meta(min_length=1)]


class DataProfileParams(Parameters):
    columns: Annotated[Some | None, Meta(description="The columns to look at; all when left out.")] = None
    approximate: Annotated[
        bool,
        Meta(description="Estimate `distinct`, within a few per cent, instead of counting; much faster on many rows."),
    ] = False


class DataProfile(Transform[DataProfileParams]):
    """Say what is in the columns.

    Gives one row per column of the input: `column`, `type`, `rows`, `nulls`, `distinct` (different values, NULL not counted),
    `min` and `max` as text, `mean` of numbers, `min_length` and `max_length` of texts. Together with `filter` or
    `assert_rows` behind it, a profile is a gate; written to a table each day, it is a history.
    """

    type = "data_profile"
    family = "quality"
    Params = DataProfileParams
    example = """\
components:
  - name: people
    type: fixed_rows
    params:
      columns: [name, age]
      rows: [[Ann, 34], [Bob, null], [Cyd, 51], [Ann, 34]]
  - name: profile
    type: data_profile
  - name: show
    type: log_rows
connections:
  data:
    - people.main -> profile.input
    - profile.main -> show.input
"""

    def wrong(self, params: DataProfileParams, inputs: Known) -> Iterable[Mistake]:
        return absent(("columns",), params.columns or (), inputs.get("input"))

    def queries(self, params: DataProfileParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        from penstock.components.quality.profiling import profile

        schema = inputs["input"]
        wanted = {actual(name, schema) for name in params.columns or ()}
        return {
            "main": profile([column for column in schema if column.name in wanted or not wanted], params.approximate)
        }
