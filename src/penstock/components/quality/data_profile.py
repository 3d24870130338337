"""`data_profile`: statistics of the columns, one row for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from msgspec import Meta
from sqlglot import exp

from penstock.components.base import Known, Mistake, PlanCall
from penstock.components.queries import called, function, picked, text
from penstock.components.transform.base import Parameters, Transform, absent, actual
from penstock.components.types import is_nested, is_number, is_text
from penstock.data import select
from penstock.ports.rows import Column, Schema
from penstock.tools.parameters import about

_TYPES = {
    "column": "VARCHAR", "type": "VARCHAR", "rows": "BIGINT", "nulls": "BIGINT", "distinct": "BIGINT",
    "min": "VARCHAR", "max": "VARCHAR", "mean": "DOUBLE", "min_length": "BIGINT", "max_length": "BIGINT",
}  # fmt: skip


def profile(seen: Sequence[Column], approximate: bool) -> exp.Query:
    measured = [_measures(column, approximate) for column in seen]
    flat = [
        called(value, f"{number}_{name}")
        for number, measures in enumerate(measured)
        for name, value in measures.items()
    ]
    row = picked([called(exp.Count(this=exp.Star()), "rows"), *flat], "input")
    structs = [_row(column, number, measured[number]) for number, column in enumerate(seen)]
    unrolled = picked([called(function("unnest", exp.Array(expressions=structs)), "it")], row)
    fields = [called(exp.Dot(this=select.column("it"), expression=select.name(name)), name) for name in _TYPES]
    return picked(fields, unrolled)


def _measures(column: Column, approximate: bool) -> dict[str, exp.Expr]:
    value = select.column(column.name)
    comparable = text(value) if is_nested(column.type) else value
    distinct = function("approx_count_distinct", comparable)
    found: dict[str, exp.Expr] = {
        "nulls": exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Count(this=value)),
        "distinct": distinct if approximate else exp.Count(this=exp.Distinct(expressions=[comparable])),
        "min": text(exp.Min(this=comparable)),
        "max": text(exp.Max(this=comparable)),
    }
    if is_number(column.type):
        found["mean"] = exp.Avg(this=value)
    if is_text(column.type):
        length = function("length", value)
        found |= {"min_length": exp.Min(this=length), "max_length": exp.Max(this=length)}
    return found


def _row(column: Column, number: int, measures: dict[str, exp.Expr]) -> exp.Expr:
    figures: dict[str, exp.Expr] = {
        "column": select.literal(column.name),
        "type": select.literal(column.type),
        "rows": select.column("rows"),
    }
    figures |= {name: select.column(f"{number}_{name}") for name in measures}
    fields = [
        exp.PropertyEQ(this=select.name(name), expression=select.cast(figures.get(name) or exp.null(), type))
        for name, type in _TYPES.items()
    ]
    return exp.Struct(expressions=fields)


Some = Annotated[list[str], Meta(min_length=1)]


class DataProfileParams(Parameters):
    columns: Annotated[Some | None, about("The columns to look at; all when left out.")] = None
    approximate: Annotated[
        bool, about("Estimate `distinct`, within a few per cent, instead of counting; much faster on many rows.")
    ] = False


class DataProfile(Transform[DataProfileParams]):
    """Say what is in the columns.

    Gives one row per column of the input: `column`, `type`, `rows`, `nulls`, `distinct` (different values, NULL not counted),
    `min` and `max` as text, `mean` of numbers, `min_length` and `max_length` of texts. Together with `filter` or
    `assert_rows` behind it, a profile is a gate; written to a table each day, it is a history.
    """

    type = "data_profile"
    family = "quality"

    def wrong(self, params: DataProfileParams, inputs: Known) -> Iterable[Mistake]:
        return absent(("columns",), params.columns or (), inputs.get("input"))

    def queries(self, params: DataProfileParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:

        schema = inputs["input"]
        wanted = {actual(name, schema) for name in params.columns or ()}
        return {
            "main": profile([column for column in schema if column.name in wanted or not wanted], params.approximate)
        }
