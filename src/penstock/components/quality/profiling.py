"""A table measured in one scan, and the one row of measures turned into a row for each column."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.components.queries import called, function, picked
from penstock.components.shape.terms import text
from penstock.components.types import is_nested, is_number, is_text
from penstock.data import select
from penstock.ports.rows import Column

_TYPES = {
    "column": "VARCHAR",
    "type": "VARCHAR",
    "rows": "BIGINT",
    "nulls": "BIGINT",
    "distinct": "BIGINT",
    "min": "VARCHAR",
    "max": "VARCHAR",
    "mean": "DOUBLE",
    "min_length": "BIGINT",
    "max_length": "BIGINT",
}


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
    told: dict[str, exp.Expr] = {
        "column": select.literal(column.name),
        "type": select.literal(column.type),
        "rows": select.column("rows"),
    }
    told |= {name: select.column(f"{number}_{name}") for name in measures}
    fields = [
        exp.PropertyEQ(this=select.name(name), expression=select.cast(told.get(name) or exp.null(), type))
        for name, type in _TYPES.items()
    ]
    return exp.Struct(expressions=fields)
