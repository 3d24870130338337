"""`pivot`: values of one column become columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Call, ComponentFailure, Known, Mistake, PlanCall
from penstock.components.queries import gathered
from penstock.components.transform.base import (
    Parameters,
    Transform,
    absent,
    missing,
    refuse,
    repeated,
    unused,
)
from penstock.components.transform.join import spelled
from penstock.data import select
from penstock.ports.rows import Schema, SqlText
from penstock.tools.parameters import about

MOST_COLUMNS = 1_000
Gathering = Literal["sum", "count", "min", "max", "avg", "first", "last", "list"]


class PivotParams(Parameters):
    column: Annotated[str, about("The column whose values become columns.")]
    value: Annotated[str, about("The column whose values go into them.")]
    by: Annotated[list[str] | None, about("The columns that make groups, one row each; all others by default.")] = None
    aggregate: Annotated[Gathering, about("What is made of several values for one field.")] = "sum"
    values: Annotated[
        list[str | int | float | bool] | None,
        about("The values that become columns, in this order. Unless told, those that occur, sorted."),
    ] = None
    prefix: Annotated[str, about("What stands before the value in the name of its column.")] = ""


class Pivot(Transform[PivotParams]):
    """Turn the values of a column into columns: one row per group, one column per value.

    With `values` the columns are known before the run, so that what comes after is checked against them, and other values are
    left out. Without it, the columns are the values that occur. Groups keep the order in which they came.
    """

    type = "pivot"

    def wrong(self, params: PivotParams, inputs: Known) -> Iterable[Mistake]:
        schema = inputs.get("input")
        yield from missing(("column",), params.column, schema)
        yield from missing(("value",), params.value, schema)
        yield from absent(("by",), params.by or (), schema)
        yield from repeated(("by",), params.by or ())
        for index, name in enumerate(params.by or ()):
            if name.lower() in (params.column.lower(), params.value.lower()):
                yield Mistake(("by", index), f"`{name}` is folded away by the pivot: it cannot make groups, too")
        if params.values is not None:
            yield from repeated(("values",), [_text(value) for value in params.values])
            if schema is not None:
                yield from _clashes(params, schema, [_text(value) for value in params.values])

    def is_fusable(self, params: PivotParams, connected: frozenset[str]) -> bool:
        return params.values is not None

    def selects(self, params: PivotParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        return {} if params.values is None else super().selects(params, inputs, call)

    def queries(self, params: PivotParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        return {"main": _pivoted(params, inputs["input"], [_text(value) for value in params.values or ()])}

    def run(self, params: PivotParams, call: Call) -> None:
        rows = gathered(call, "input")
        refuse(self.wrong(params, {"input": rows.schema}))
        found = [row[0] for batch in call.engine.rows(_occurring(params), {"input": rows}) for row in batch]
        if len(found) > MOST_COLUMNS:
            message = f"`{params.column}` has more than {MOST_COLUMNS:,} values, too many for columns"
            raise ComponentFailure("parameters", f"{message}; name those you want in `values`")
        refuse(_clashes(params, rows.schema, found))
        call.put("main", call.engine.select(select.sql(_pivoted(params, rows.schema, found)), {"input": rows}))


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _groups(params: PivotParams, schema: Schema) -> list[str]:
    if params.by is not None:
        return spelled(params.by, schema)
    folded = {params.column.lower(), params.value.lower()}
    return [column.name for column in schema if column.name.lower() not in folded]


def _clashes(params: PivotParams, schema: Schema, values: list[str]) -> Iterable[Mistake]:
    groups = _groups(params, schema)
    taken = {name.lower() for name in groups}
    for value in values:
        if (params.prefix + value).lower() in taken:
            yield Mistake(
                ("column",), f"the value `{value}` would be a second column of that name", hint="give a `prefix`"
            )
        taken.add((params.prefix + value).lower())
    if not values and not groups:
        yield Mistake((), "there is no group and no value, so there would be no column")


def _occurring(params: PivotParams) -> SqlText:
    """The values of the column as text, in their own order; one more than is allowed."""
    column = select.column(params.column)
    there = exp.Not(this=exp.Is(this=column, expression=exp.null()))
    query = build.picked([build.called(select.cast(column, "VARCHAR"), "text")], "input").where(there)
    query = query.group_by(column).order_by(build.ascending(column)).limit(MOST_COLUMNS + 1)
    return select.sql(query)


def _pivoted(params: PivotParams, schema: Schema, values: list[str]) -> exp.Query:
    position = unused(build.POSITION, schema)
    place = select.column(position)
    groups = _groups(params, schema)
    subject: exp.Expr = select.column(params.value)
    if params.aggregate in ("first", "last", "list"):
        subject = exp.Order(this=subject, expressions=[build.ascending(place)])
    made: list[exp.Expr] = [*build.columns(groups)]
    for value in values:
        as_text = select.cast(select.column(params.column), "VARCHAR")
        only = exp.Where(this=exp.EQ(this=as_text, expression=select.literal(value)))
        gathered = exp.Filter(this=build.function(params.aggregate, subject.copy()), expression=only)
        made.append(build.called(gathered, params.prefix + value))
    query = build.picked(made, build.numbered("input", position))
    if groups:
        query = query.group_by(*build.columns(groups)).order_by(build.ascending(build.function("min", place)))
    return query
