"""`aggregate` and `denormalise`: many rows become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Known, Mistake, PlanCall, UserSql
from penstock.components.transform.base import Parameters, Transform, absent, actual, repeated, unused
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about


class AggregateParams(Parameters):
    by: Annotated[
        list[str] | dict[str, str],
        about("The columns that make groups; or a mapping of name to SQL expression. None: one group of all rows."),
    ] = []  # noqa: RUF012
    measures: Annotated[
        dict[str, str], about("Column name to SQL aggregate: `total: sum(amount)`, `orders: count(*)`.")
    ] = {}  # noqa: RUF012


class Aggregate(Transform[AggregateParams]):
    """One row per group, with sums, counts and other aggregates.

    `by` names the columns that make groups; missing values make a group of their own. What leaves is sorted by them, so that the
    same rows give the same result. Without `measures` the groups themselves are the result; without `by` there is one row, also
    when no row came.
    """

    type = "aggregate"

    def user_sql(self, params: AggregateParams) -> Iterable[UserSql]:
        if isinstance(params.by, dict):
            for name, text in params.by.items():
                yield UserSql(("by", name), text, ("input",))
        for name, text in params.measures.items():
            yield UserSql(("measures", name), text, ("input",), "aggregate")

    def wrong(self, params: AggregateParams, inputs: Known) -> Iterable[Mistake]:
        if not params.by and not params.measures:
            yield Mistake((), "at least one of `by` and `measures` is needed")
        if isinstance(params.by, list):
            for mistake in absent(("by",), params.by, inputs.get("input")):
                expression = "for an expression write `by: {name: expression}`"
                yield mistake if params.by[int(mistake.path[1])].isidentifier() else replace(mistake, hint=expression)
            yield from repeated(("by",), params.by)
        groups = {name.lower() for name in params.by}
        for name in params.measures:
            if name.lower() in groups:
                yield Mistake(
                    ("measures", name), f"`{name}` is one of the columns of `by`: give the measure another name"
                )

    def queries(self, params: AggregateParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        groups: dict[str, exp.Expr] = (
            {name: select.expression(text) for name, text in params.by.items()}
            if isinstance(params.by, dict)
            else {actual(name, schema) or name: select.column(name, "input") for name in params.by}
        )
        measures = [build.called(select.expression(text), name) for name, text in params.measures.items()]
        query = build.picked([*(build.called(tree, name) for name, tree in groups.items()), *measures], "input")
        if groups:
            # By place: a name could as well mean a column of the input.
            places = [select.literal(number + 1) for number in range(len(groups))]
            query = query.group_by(*places).order_by(*(build.ascending(place) for place in places))
        return {"main": query}


class DenormaliseParams(Parameters):
    by: Annotated[list[str], about("The columns that make groups.", min_length=1)]
    column: Annotated[str | None, about("The column to gather.")] = None
    columns: Annotated[list[str] | None, about("The columns to gather, if there are several.")] = None
    separator: Annotated[str, about("The delimiter between the values.")] = ","
    as_list: Annotated[bool, about("Make a list of them instead of one text.")] = False
    distinct: Annotated[bool, about("Each value once.")] = False


class Denormalise(Transform[DenormaliseParams]):
    """Gather the values of several rows in one field.

    One row leaves for each group, with its values joined to one text or, with `as_list`, as a list; groups and values stand in
    the order in which they came. Missing values are left out. `normalise` is the way back.
    """

    type = "denormalise"

    def wrong(self, params: DenormaliseParams, inputs: Known) -> Iterable[Mistake]:
        schema = inputs.get("input")
        if (params.column is None) == (not params.columns):
            yield Mistake((), "exactly one of `column` and `columns` is needed")
        yield from absent(("by",), params.by, schema)
        yield from repeated(("by",), params.by)
        path = ("columns",) if params.columns else ("column",)
        for mistake in absent((), _gathered(params), schema):
            place = (*path, *mistake.path) if params.columns else path
            yield Mistake(place, mistake.message, hint=mistake.hint, offset=0, length=mistake.length, kind="column")
        groups = {name.lower() for name in params.by}
        yield from (
            Mistake(path, f"`{name}` is one of the columns of `by`")
            for name in _gathered(params)
            if name.lower() in groups
        )

    def queries(
        self, params: DenormaliseParams, inputs: Mapping[str, Schema], call: PlanCall
    ) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        position, first = unused(build.POSITION, schema), unused("__first", schema)
        place = select.column(position)
        by = [actual(name, schema) or name for name in params.by]
        values = {actual(name, schema) or name: _values(name, params, place) for name in _gathered(params)}
        opening = build.called(build.function("min", place), first)
        gathered = build.picked(
            [*build.columns(by), *(build.called(tree, name) for name, tree in values.items()), opening],
            build.numbered("input", position),
        ).group_by(*build.columns(by))
        query = build.picked(build.columns([*by, *values]), gathered)
        return {"main": query.order_by(build.ascending(select.column(first)))}


def _gathered(params: DenormaliseParams) -> list[str]:
    return list(params.columns or ([params.column] if params.column is not None else []))


def _values(name: str, params: DenormaliseParams, place: exp.Expr) -> exp.Expr:
    column = select.column(name)
    ordered = exp.Order(this=column, expressions=[build.ascending(place)])
    present = exp.Not(this=exp.Is(this=column, expression=exp.null()))
    listed: exp.Expr = exp.Filter(this=build.function("list", ordered), expression=exp.Where(this=present))
    if params.distinct:
        listed = _distinct(listed)
    if params.as_list:
        return build.function("coalesce", listed, exp.Array(expressions=[]))
    texts = select.cast(listed, "VARCHAR[]")
    return build.function("array_to_string", texts, select.literal(params.separator))


def _distinct(listed: exp.Expr) -> exp.Expr:
    """Each element where it stands first. DuckDB's own `list_distinct` gives them in no particular order."""
    element, number = exp.to_identifier("e"), exp.to_identifier("i")
    is_first = exp.EQ(this=build.function("list_position", listed.copy(), exp.column("e")), expression=exp.column("i"))
    return build.function("list_filter", listed, exp.Lambda(this=is_first, expressions=[element, number]))
