"""`filter`, `unique`, `sample` and `top`: which rows go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from msgspec import Meta
from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Call, Known, Mistake, PlanCall, Port, UserSql
from penstock.components.queries import gathered, volatile
from penstock.components.transform.base import Parameters, Transform, absent, repeated, unused
from penstock.components.transform.sort import By, ordering, wrong_order
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about

SHARES = 1_000_000_000


class FilterParams(Parameters):
    where: Annotated[str, about("SQL condition over the columns of the row: `amount > 100 AND country = 'DE'`.")]


class Filter(Transform[FilterParams]):
    """Keep the rows for which a condition is true.

    The others leave through `reject`: rows for which the condition is false, and rows for which it cannot be said because a value
    is missing (NULL). Rejected rows carry `error_code` (`FILTER`) and `error_message` beside their own columns. Rows keep their
    order.
    """

    type = "filter"
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="rows for which the condition is true"),
        Port("reject", reject=True, description="the others, with `error_code` and `error_message`"),
    )

    def user_sql(self, params: FilterParams) -> Iterable[UserSql]:
        yield UserSql(("where",), params.where, ("input",), "condition")

    def is_fusable(self, params: FilterParams, connected: frozenset[str]) -> bool:
        # Two queries would throw the dice twice, and a row could be on both ports or on neither.
        return len(connected) < 2 or not volatile(select.expression(params.where))

    def queries(self, params: FilterParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        return _split(select.expression(params.where), params.where, inputs["input"])

    def run(self, params: FilterParams, call: Call) -> None:
        rows = gathered(call, "input")
        passes = unused("__passes", rows.schema)
        condition = build.called(build.is_true(select.expression(params.where)), passes)
        marked = call.engine.select(
            select.sql(build.picked([*build.every(rows.schema), condition], "input")), {"input": rows}
        )
        for port, query in _split(select.column(passes), params.where, rows.schema).items():
            if port in call.connected:
                call.put(port, call.engine.select(select.sql(query), {"input": marked}))


def _split(condition: exp.Expr, text: str, schema: Schema) -> dict[str, exp.Query]:
    refused = build.refused(schema, "FILTER", f"not true: {text}")
    return {
        "main": build.picked(build.every(schema), "input").where(condition),
        "reject": build.picked(refused, "input").where(build.is_not_true(condition)),
    }


class UniqueParams(Parameters):
    by: Annotated[list[str] | None, about("The columns that make rows alike; all of them by default.")] = None


class Unique(Transform[UniqueParams]):
    """Keep one row of those that are alike.

    Rows are alike when they agree in the columns of `by`; missing values agree with each other. The first one in the order of the
    input leaves through `unique`, all others through `duplicate`, both in the order in which they came. A join or an aggregation
    before it leaves no order that means anything: put a `sort` between when it matters which row is the first.
    """

    type = "unique"
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("unique", description="the first row of each kind"),
        Port("duplicate", reject=True, description="all further ones"),
    )

    def wrong(self, params: UniqueParams, inputs: Known) -> Iterable[Mistake]:
        yield from absent(("by",), params.by or (), inputs.get("input"))
        yield from repeated(("by",), params.by or ())

    def queries(self, params: UniqueParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        position, turn = unused(build.POSITION, schema), unused("__turn", schema)
        place = select.column(position)
        alike = build.columns(params.by or build.names(schema))
        turns = build.called(build.row_number(alike, [build.ascending(place)]), turn)
        counted = build.picked([*build.every(schema), place, turns], build.numbered("input", position))
        one = select.literal(1)
        chosen = build.picked(build.every(schema), counted)
        return {
            "unique": chosen.where(exp.EQ(this=select.column(turn), expression=one)).order_by(place),
            "duplicate": chosen.where(exp.GT(this=select.column(turn), expression=one)).order_by(place),
        }


class SampleParams(Parameters):
    count: Annotated[Annotated[int, Meta(ge=0)] | None, about("How many rows to take.")] = None
    fraction: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, about("Which part of the rows to take, from 0 to 1.")
    ] = None
    seed: Annotated[int, about("Another seed gives another sample.")] = 0
    by: Annotated[
        list[str] | None, about("Columns whose values decide, so that rows that agree in them are taken together.")
    ] = None


class Sample(Transform[SampleParams]):
    """Take some of the rows by chance, the same ones each time.

    Give `count` or `fraction`. The same rows in the same order with the same `seed` give the same sample on every machine; with
    `by` the order does not matter, as the values of these columns decide. Rows keep their order; what is not taken leaves through
    `rest`.
    """

    type = "sample"
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the sample"),
        Port("rest", reject=True, description="all other rows"),
    )

    def wrong(self, params: SampleParams, inputs: Known) -> Iterable[Mistake]:
        if (params.count is None) == (params.fraction is None):
            yield Mistake((), "exactly one of `count` and `fraction` is needed")
        if params.count is not None and params.by:
            yield Mistake(("by",), "`by` goes with `fraction`: values that agree may be on more rows than `count`")
        yield from absent(("by",), params.by or (), inputs.get("input"))

    def queries(self, params: SampleParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        position = unused(build.POSITION, schema)
        place = select.column(position)
        subject = build.columns(params.by) if params.by else [place]
        draw = build.function("hash", *subject, select.literal(params.seed))
        taken = (
            _share(draw, params.fraction) if params.fraction is not None else _fewest(draw, place, params.count or 0)
        )
        if params.by:
            taking: exp.Select = build.picked(build.every(schema), "input")
            return {"main": taking.where(taken), "rest": taking.where(build.is_not_true(taken))}
        mark = unused("__taken", schema)
        marked = build.picked(
            [*build.every(schema), place, build.called(taken, mark)], build.numbered("input", position)
        )
        chosen = build.picked(build.every(schema), marked)
        if params.count is not None:  # ranking the draws disturbs the order, comparing each with a number does not
            chosen = chosen.order_by(place)
        return {
            "main": chosen.where(select.column(mark)),
            "rest": chosen.where(build.is_not_true(select.column(mark))),
        }


def _share(draw: exp.Expr, fraction: float | None) -> exp.Expr:
    part = exp.Mod(this=draw, expression=select.literal(SHARES))
    return exp.LT(this=part, expression=select.literal(round((fraction or 0) * SHARES)))


def _fewest(draw: exp.Expr, place: exp.Expr, count: int) -> exp.Expr:
    rank = build.row_number(order=[build.ascending(draw), build.ascending(place)])
    return exp.LTE(this=rank, expression=select.literal(count))


class TopParams(Parameters):
    n: Annotated[int, about("How many rows, of each group if there are groups.", ge=0)]
    by: Annotated[list[By] | None, about("The order, as in `sort`; that of the input by default: `[amount desc]`.")] = (
        None
    )
    per: Annotated[list[str], about("Columns whose values make groups.")] = []  # noqa: RUF012


class Top(Transform[TopParams]):
    """The first rows of an order, of all rows or of each group.

    Without `by` the order is that of the input. Rows that are equal in the order are taken as they came. What leaves is sorted by
    group and order.
    """

    type = "top"

    def wrong(self, params: TopParams, inputs: Known) -> Iterable[Mistake]:
        yield from absent(("per",), params.per, inputs.get("input"))
        yield from repeated(("per",), params.per)

    def unbound(self, params: TopParams, inputs: Mapping[str, Schema]) -> Iterable[Mistake]:
        yield from wrong_order(("by",), params.by or (), inputs["input"])

    def queries(self, params: TopParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        position, rank = unused(build.POSITION, schema), unused("__rank", schema)
        order: list[exp.Expr] = [*ordering(params.by or (), schema), build.ascending(select.column(position))]
        counted = build.numbered("input", position)
        if not params.per:
            return {"main": build.picked(build.every(schema), counted).order_by(*order).limit(params.n)}
        groups = build.columns(params.per)
        ranked = build.picked([*build.every(schema), build.called(build.row_number(groups, order), rank)], counted)
        first = exp.LTE(this=select.column(rank), expression=select.literal(params.n))
        sorted_by = [*(build.ascending(group) for group in groups), build.ascending(select.column(rank))]
        return {"main": build.picked(build.every(schema), ranked).where(first).order_by(*sorted_by)}
