"""`union` and `replicate`: several inputs into one, one input to several outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Call, Known, Mistake, PlanCall, Port
from penstock.components.queries import gathered
from penstock.components.transform.base import Parameters, Transform, actual
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about


class UnionParams(Parameters):
    distinct: Annotated[bool, about("Rows that are alike in every column leave once.")] = False
    source: Annotated[
        str | None, about("A new column that says where a row came from: `shop` for the port `input_shop`.")
    ] = None


class Union(Transform[UnionParams]):
    """Put the rows of several inputs one after another.

    Any number of links may end here, at ports named `input_…`; their rows follow each other in the alphabetical order of these
    names. Columns are matched by name: one that an input lacks is empty in its rows. Where types differ, the column gets one that
    can hold both, which is text in the end.
    """

    type = "union"
    inputs: ClassVar[tuple[Port, ...]] = (Port("input_*", many=True, description="any number of inputs"),)

    def wrong(self, params: UnionParams, inputs: Known) -> Iterable[Mistake]:
        for port, schema in inputs.items():
            if params.source is not None and schema is not None and actual(params.source, schema) is not None:
                yield Mistake(("source",), f"`{port}` has a column `{params.source}` already")

    def queries(self, params: UnionParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        parts: list[exp.Query] = []
        first_seen: dict[str, str] = {}
        for port in sorted(inputs):
            for name in build.names(inputs[port]):
                first_seen.setdefault(name.lower(), name)
            expressions: list[exp.Expr] = [*build.every(inputs[port])]
            if params.source is not None:
                expressions.append(build.called(select.literal(port.removeprefix("input_")), params.source))
            parts.append(build.picked(expressions, port))
        names = [*first_seen.values(), *([] if params.source is None else [params.source])]
        query = build.together(parts)
        return {"main": _once(query, names) if params.distinct else build.picked(build.columns(names), query)}


def _once(query: exp.Query, names: list[str]) -> exp.Query:
    """Rows that are alike once, where they stand first."""
    counted = build.picked([exp.Star(), build.called(build.row_number(), build.POSITION)], query)
    whole = build.picked(build.columns(names), counted).group_by(*build.columns(names))
    return whole.order_by(build.ascending(build.function("min", select.column(build.POSITION))))


class ReplicateParams(Parameters):
    pass


class Replicate(Transform[ReplicateParams]):
    """Hand the same rows to several readers.

    Any number of links may begin here, at ports named `output_…`. The rows are not copied. A plain output may be read by several
    components as well; this one makes the fork visible in the picture of a job.
    """

    type = "replicate"
    keeps_count: ClassVar[bool] = True
    outputs: ClassVar[tuple[Port, ...]] = (Port("output_*", description="any number of outputs"),)

    def bound_here(self, params: ReplicateParams, inputs: Known, call: PlanCall) -> str | None:
        return None

    def is_fusable(self, params: ReplicateParams, connected: frozenset[str]) -> bool:
        return len(connected) < 2

    def queries(self, params: ReplicateParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        return {port: build.picked(build.every(inputs["input"]), "input") for port in call.connected}

    def run(self, params: ReplicateParams, call: Call) -> None:
        rows = gathered(call, "input")
        for port in sorted(call.connected):
            call.put(port, rows)
