"""`sort`: rows in an order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components import inference
from penstock.components import queries as build
from penstock.components.base import Known, Mistake, ParamPath, PlanCall
from penstock.components.transform.base import Parameters, Transform, actual, missing, unused
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about


class SortKey(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    column: Annotated[str, about("A column, or an SQL expression.")]
    order: Annotated[Literal["asc", "desc"], about("The direction.")] = "asc"
    nulls: Annotated[Literal["first", "last"], about("Where missing values go.")] = "last"


By = str | SortKey
_DIRECTION = re.compile(r"\s+(asc|desc)\s*$", re.IGNORECASE)
_NULLS = re.compile(r"\s+nulls\s+(first|last)\s*$", re.IGNORECASE)


def sort_key(by: By) -> SortKey:
    if isinstance(by, SortKey):
        return by
    text, order, nulls = by, "asc", "last"
    if found := _NULLS.search(text):
        text, nulls = text[: found.start()], found[1].lower()
    if found := _DIRECTION.search(text):
        text, order = text[: found.start()], found[1].lower()
    return msgspec.convert({"column": text.strip(), "order": order, "nulls": nulls}, SortKey)


def ordering(by: Iterable[By], schema: Schema) -> list[exp.Ordered]:
    """The order over columns of the schema, in SQL. Raises SqlMistake for what is neither a column nor an expression."""
    return [_ordered(sort_key(one), schema) for one in by]


def _ordered(key: SortKey, schema: Schema) -> exp.Ordered:
    column = actual(key.column, schema)
    subject = select.column(column) if column is not None else select.expression(key.column)
    return exp.Ordered(this=subject, desc=key.order == "desc", nulls_first=key.nulls == "first")


def wrong_order(path: ParamPath, by: Sequence[By], schema: Schema) -> Iterable[Mistake]:
    """Mistakes in an order, for the check before the run."""
    for index, one in enumerate(by):
        key = sort_key(one)
        where = (*path, index) if isinstance(one, str) else (*path, index, "column")
        if actual(key.column, schema) is not None:
            continue
        if key.column.isidentifier():
            yield from missing(where, key.column, schema)
            continue
        problem = inference.check(key.column, "value", {"input": schema}).mistake
        if problem is not None:
            yield inference.mistake_of(problem, where)


class SortParams(Parameters):
    by: Annotated[
        list[By],
        about(
            "What to sort by, first things first: `amount`, `amount desc`, `amount desc nulls first`, an SQL "
            "expression, or `{column: amount, order: desc, nulls: first}`.",
            min_length=1,
        ),
    ]


class Sort(Transform[SortParams]):
    """Sort the rows.

    Rows that are equal in everything `by` names stay in the order in which they came. Missing values come last, in both
    directions, by default.
    """

    type = "sort"
    keeps_count: ClassVar[bool] = True

    def unbound(self, params: SortParams, inputs: Mapping[str, Schema]) -> Iterable[Mistake]:
        return wrong_order(("by",), params.by, inputs["input"])

    def wrong(self, params: SortParams, inputs: Known) -> Iterable[Mistake]:
        for index, by in enumerate(params.by):
            if isinstance(by, str) and not by.strip():
                yield Mistake(("by", index), "a column is needed here")

    def queries(self, params: SortParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        position = unused(build.POSITION, schema)
        order = [*ordering(params.by, schema), build.ascending(select.column(position))]
        return {"main": build.picked(build.every(schema), build.numbered("input", position)).order_by(*order)}
