"""`sequence`, `fill_down` and `window`: columns computed from neighbouring rows. Rows leave in the order in which they came."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from sqlglot import exp

from penstock.components import inference
from penstock.components import queries as build
from penstock.components.base import ComponentFailure, Known, Mistake, PlanCall
from penstock.components.transform.base import Parameters, Transform, absent, actual, repeated, unused
from penstock.components.transform.sort import By, ordering, wrong_order
from penstock.data import select
from penstock.data.select import SqlMistake
from penstock.ports.rows import Schema
from penstock.tools.parameters import about


class SequenceParams(Parameters):
    name: Annotated[str, about("The new column; an existing one of that name is replaced.", min_length=1)] = "id"
    start: Annotated[int, about("The number of the first row.")] = 1
    step: Annotated[int, about("What is added from row to row.")] = 1
    by: Annotated[list[str], about("Count anew for each combination of these columns.")] = []  # noqa: RUF012


class Sequence(Transform[SequenceParams]):
    """Number the rows in the order in which they come.

    With `by` each group has numbers of its own. A join or an aggregation before it leaves no order that means anything: put a
    `sort` between.
    """

    type = "sequence"
    keeps_count: ClassVar[bool] = True

    def wrong(self, params: SequenceParams, inputs: Known) -> Iterable[Mistake]:
        yield from absent(("by",), params.by, inputs.get("input"))
        if params.name.lower() in {one.lower() for one in params.by}:
            yield Mistake(("name",), f"`{params.name}` is one of the columns of `by`, and cannot be replaced")

    def queries(self, params: SequenceParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        position = unused(build.POSITION, schema)
        place = select.column(position)
        turn: exp.Expr = build.row_number(build.columns(params.by), [build.ascending(place)]) if params.by else place
        before = exp.Paren(this=exp.Sub(this=turn, expression=select.literal(1)))
        gone = exp.Mul(this=before, expression=select.literal(params.step))
        number = exp.Add(this=select.literal(params.start), expression=gone)
        in_order = _in_order if params.by else _in_place
        return {"main": in_order({params.name: number}, schema, position)}


class FillDownParams(Parameters):
    columns: Annotated[list[str], about("The columns to fill.", min_length=1)]
    by: Annotated[list[str], about("Nothing is carried from one of these groups into another.")] = []  # noqa: RUF012
    empty_text: Annotated[bool, about("Fill empty text, too, and not only what is missing (NULL).")] = False


class FillDown(Transform[FillDownParams]):
    """Give a row that lacks a value the last one above it.

    As in reports and spreadsheets that print a value only where it changes. Rows above the first value stay empty.
    """

    type = "fill_down"
    keeps_count: ClassVar[bool] = True

    def wrong(self, params: FillDownParams, inputs: Known) -> Iterable[Mistake]:
        yield from absent(("columns",), params.columns, inputs.get("input"))
        yield from absent(("by",), params.by, inputs.get("input"))
        yield from repeated(("columns",), params.columns)
        for index, name in enumerate(params.columns):
            if name.lower() in {one.lower() for one in params.by}:
                yield Mistake(("columns", index), f"`{name}` is one of the columns of `by`, and cannot be filled")

    def queries(self, params: FillDownParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        position = unused(build.POSITION, schema)
        order = [build.ascending(select.column(position))]
        above = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
        filled: dict[str, exp.Expr] = {}
        for name in params.columns:
            column: exp.Expr = select.column(name)
            if params.empty_text and _is_text(name, schema):
                column = build.function("nullif", column, select.literal(""))
            last = build.function("last_value", exp.IgnoreNulls(this=column))
            filled[actual(name, schema) or name] = build.over(last, build.columns(params.by), order, above)
        return {"main": _in_order(filled, schema, position)}


def _is_text(name: str, schema: Schema) -> bool:
    return any(column.name.lower() == name.lower() and column.type.upper() == "VARCHAR" for column in schema)


class WindowParams(Parameters):
    columns: Annotated[
        dict[str, str],
        about(
            "Column name to window function: `sum(amount)` with `partition_by` and `order_by` below, or with an "
            "`OVER (…)` of its own.",
            min_length=1,
        ),
    ]
    partition_by: Annotated[list[str], about("Columns whose values make groups.")] = []  # noqa: RUF012
    order_by: Annotated[list[By], about("The order in a group, as in `sort`.")] = []  # noqa: RUF012
    frame: Annotated[str | None, about("Which rows around are meant: `rows between 6 preceding and current row`.")] = (
        None
    )


class Window(Transform[WindowParams]):
    """Compute columns over the rows around: running totals, ranks, the value of the row before, moving averages.

    A function without `OVER` is taken over `partition_by`, `order_by` and `frame`; one that has its own keeps it. In a larger
    expression each function needs its own `OVER`.
    """

    type = "window"
    keeps_count: ClassVar[bool] = True

    def wrong(self, params: WindowParams, inputs: Known) -> Iterable[Mistake]:
        yield from absent(("partition_by",), params.partition_by, inputs.get("input"))
        if params.frame is not None and _frame(params.frame) is None:
            hint = "for example `rows between 6 preceding and current row`"
            yield Mistake(("frame",), f"`{params.frame}` is not a window frame", hint=hint, kind="syntax")
        yield from self._unreadable(params)

    def _unreadable(self, params: WindowParams) -> Iterable[Mistake]:
        for name, text in params.columns.items():
            try:
                if _windowed(text, [], [], None) is None:
                    yield Mistake(
                        ("columns", name),
                        "there is no window function here",
                        hint="write `sum(amount)`, or `OVER (…)` behind each function of a larger expression",
                        offset=0,
                        length=len(text),
                        kind="syntax",
                    )
            except select.SqlMistake as problem:
                yield inference.mistake_of(problem, ("columns", name))

    def unbound(self, params: WindowParams, inputs: Mapping[str, Schema]) -> Iterable[Mistake]:
        disorder = list(wrong_order(("order_by",), params.order_by, inputs["input"]))
        yield from disorder
        for name, text in params.columns.items() if not disorder else ():
            whole = select.sql(_windowed(text, *self._around(params, inputs["input"])) or select.expression(text))
            problem = inference.check(whole, "value", inputs).mistake
            if problem is not None:
                yield inference.mistake_of(_moved(problem, whole, text), ("columns", name))

    def _around(
        self, params: WindowParams, schema: Schema
    ) -> tuple[list[exp.Column], list[exp.Ordered], exp.Expr | None]:
        return (
            build.columns(params.partition_by),
            ordering(params.order_by, schema),
            None if params.frame is None else _frame(params.frame),
        )

    def queries(self, params: WindowParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        made: dict[str, exp.Expr] = {}
        for name, text in params.columns.items():
            tree = _windowed(text, *self._around(params, schema))
            if tree is None:
                raise ComponentFailure("parameters", f"`columns.{name}`: there is no window function here")
            made[name] = tree
        return {"main": _in_order(made, schema, unused(build.POSITION, schema))}


_FRAME = re.compile(r"\s*(rows|range|groups)\b[\w\s',.]*\Z", re.IGNORECASE)


def _frame(text: str) -> exp.Expr | None:
    """A frame as a tree; only words, numbers and quoted text can stand in one, so the text cannot be anything else."""
    if not _FRAME.match(text):
        return None
    try:
        tree = select.expression(f"count(*) OVER (ORDER BY 1 {text})")
    except select.SqlMistake:
        return None
    spec = tree.args.get("spec") if isinstance(tree, exp.Window) else None
    return spec if isinstance(spec, exp.WindowSpec) else None


def _windowed(
    text: str, partition: list[exp.Column], order: list[exp.Ordered], frame: exp.Expr | None
) -> exp.Expr | None:
    """The author's expression with an OVER; None when there is no function that could take one."""
    tree = select.expression(text)
    if tree.find(exp.Window) is not None:
        return tree
    if isinstance(tree, (exp.Func, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        return build.over(tree, partition, order, frame)
    return None


def _moved(problem: SqlMistake, whole: str, text: str) -> SqlMistake:
    """The same mistake, placed in the author's text instead of the whole that was made of it."""
    word = "" if problem.offset is None else whole[problem.offset : problem.offset + problem.length]
    at = text.find(word) if word else -1
    offset = at if at >= 0 else None
    return SqlMistake(problem.message, offset, problem.length, problem.hint, problem.kind, missing=problem.missing)


def _in_order(columns: Mapping[str, exp.Expr], schema: Schema, position: str) -> exp.Query:
    """As `_in_place`, and back in the order of the input, which window functions disturb."""
    return _in_place(columns, schema, position).order_by(build.ascending(select.column(position)))


def _in_place(columns: Mapping[str, exp.Expr], schema: Schema, position: str) -> exp.Select:
    """The rows with new columns; an existing column is replaced where it stands."""
    numbered = build.numbered("input", position)
    made = {name.lower(): (name, tree) for name, tree in columns.items()}
    expressions: list[exp.Expr] = []
    for column in schema:
        replaced = made.pop(column.name.lower(), None)
        expressions.append(select.column(column.name) if replaced is None else build.called(replaced[1], column.name))
    expressions += [build.called(tree, name) for name, tree in made.values()]
    return build.picked(expressions, numbered)
