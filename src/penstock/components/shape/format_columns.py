"""`format_columns`: numbers and dates as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta

from penstock.components.base import Mistake, PlanCall
from penstock.components.transform.base import Known, Parameters, Transform, actual, missing, type_of
from penstock.ports.rows import Column, Schema

if TYPE_CHECKING:
    from sqlglot import exp


Digits = Annotated[int, Meta(ge=0, le=20)]
Width = Annotated[int, Meta(ge=1)]


class Layout(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    format: Annotated[
        str | None, Meta(description="For dates and times, such as `%d.%m.%Y %H:%M`; `2024-12-31` when left out.")
    ] = None
    decimals: Annotated[Digits | None, Meta(description="For numbers: digits after the decimal mark.")] = None
    decimal: Annotated[str, Meta(min_length=1, max_length=1, description="The decimal mark.")] = "."
    thousands: Annotated[str, Meta(max_length=1, description="The separator of thousands; none by default.")] = ""
    width: Annotated[Width | None, Meta(description="At least so many characters; filled on the left for numbers.")] = (
        None
    )
    fill: Annotated[str, Meta(min_length=1, max_length=1, description="What to fill with.")] = " "
    prefix: Annotated[str, Meta(description="Put before the value.")] = ""
    suffix: Annotated[str, Meta(description="Put behind the value.")] = ""


class FormatColumnsParams(Parameters):
    columns: Annotated[dict[str, Layout], Meta(min_length=1, description="Column -> how to write its values.")]


class FormatColumns(Transform[FormatColumnsParams]):
    """Write numbers, dates and texts the way a report needs them.

    The columns are text afterwards; missing values stay missing. Numbers are rounded to `decimals`, half away from zero.
    """

    type = "format_columns"
    Params = FormatColumnsParams
    keeps_count: ClassVar[bool] = True
    example = """\
components:
  - name: sales
    type: generate_rows
    params:
      count: 3
      columns: { id: i, amount: i * 12345.678, day: "DATE '2026-01-01' + i::INTEGER" }
  - name: report
    type: format_columns
    params:
      columns:
        id: { width: 6, fill: '0' }
        amount: { decimals: 2, decimal: ',', thousands: '.', suffix: ' €' }
        day: { format: '%d.%m.%Y' }
  - name: show
    type: log_rows
connections:
  data:
    - sales.main -> report.input
    - report.main -> show.input
"""

    def wrong(self, params: FormatColumnsParams, inputs: Known) -> Iterable[Mistake]:
        from penstock.components.shape.patterns import wrong_time_format
        from penstock.components.types import is_moment, is_nothing, is_number

        schema = inputs.get("input")
        for name, how in params.columns.items():
            yield from missing(("columns", name), name, schema)
            if how.format is not None:
                yield from wrong_time_format(("columns", name, "format"), how.format)
            type = type_of(name, schema) if schema is not None else ""
            if is_nothing(type):
                continue
            if type and how.format is not None and not is_moment(type):
                yield Mistake(("columns", name, "format"), f"`{name}` is {type}, and no date or time", kind="type")
            if type and how.decimals is not None and not is_number(type):
                yield Mistake(("columns", name, "decimals"), f"`{name}` is {type}, and no number", kind="type")

    def queries(
        self, params: FormatColumnsParams, inputs: Mapping[str, Schema], call: PlanCall
    ) -> dict[str, exp.Query]:
        from penstock.components.queries import picked
        from penstock.components.shape.formatting import written
        from penstock.components.shape.terms import changed

        schema = inputs["input"]
        values = {
            there: written(Column(there, type_of(there, schema)), how)
            for name, how in params.columns.items()
            if (there := actual(name, schema)) is not None
        }
        return {"main": picked(changed(schema, values), "input")}
