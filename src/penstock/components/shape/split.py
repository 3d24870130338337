"""`split`: rows to the ports whose conditions they meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from penstock.components import queries as build
from penstock.components.base import Call, Known, Mistake, PlanCall, Port, Ports, UserSql
from penstock.components.queries import volatile
from penstock.components.transform.base import Parameters, Transform, unused
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about

if TYPE_CHECKING:
    from sqlglot import exp

REST = "rest"


class SplitParams(Parameters):
    conditions: Annotated[
        dict[str, str], about("Output port -> condition in SQL; a port's name begins with `output_`.", min_length=1)
    ]
    mode: Annotated[
        Literal["first", "all"], about("A row goes to the `first` port whose condition is true, or to `all` of them.")
    ] = "first"


class Split(Transform[SplitParams]):
    """Send rows to different outputs.

    Each entry of `conditions` makes an output port. With `mode: first` the conditions are tried in the order in which they are
    written, and a row leaves through one port only. Rows for which no condition is true leave through `rest`. Columns and order
    stay as they are.
    """

    type = "split"
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("output_*", description="rows that meet the condition of that name"),
        Port(REST, reject=True, description="rows that meet none"),
    )

    @classmethod
    def ports(cls, params: Mapping[str, Any]) -> Ports:
        conditions = params.get("conditions")
        if not isinstance(conditions, Mapping):
            return Ports(cls.inputs, cls.outputs)
        named = tuple(Port(str(name)) for name in conditions if str(name) != REST)
        return Ports(cls.inputs, (*named, cls.outputs[1]))

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> None:
        return None  # which of the ports would the rows take?

    def user_sql(self, params: SplitParams) -> Iterable[UserSql]:
        for port, condition in params.conditions.items():
            yield UserSql(("conditions", port), condition, ("input",), "condition")

    def wrong(self, params: SplitParams, inputs: Known) -> Iterable[Mistake]:
        for port in params.conditions:
            if not port.startswith("output_"):
                hint = f"call it `output_{port}`"
                yield Mistake(("conditions", port), f"`{port}` cannot be the name of an output port", hint=hint)

    def is_fusable(self, params: SplitParams, connected: frozenset[str]) -> bool:
        # One query per port would throw the dice anew for each.
        return not any(volatile(select.expression(condition)) for condition in params.conditions.values())

    def queries(self, params: SplitParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        met = {port: select.expression(condition) for port, condition in params.conditions.items()}
        return _routed(met, params.mode, inputs["input"])

    def run(self, params: SplitParams, call: Call) -> None:
        rows = call.input()
        met = {port: unused(f"__{port}", rows.schema) for port in params.conditions}
        flags = [build.called(select.expression(params.conditions[port]), name) for port, name in met.items()]
        marked = call.engine.select(
            select.sql(build.picked([*build.every(rows.schema), *flags], "input")), {"input": rows}
        )
        routed = _routed({port: select.column(name) for port, name in met.items()}, params.mode, rows.schema)
        for port in sorted(call.connected & routed.keys()):
            call.put(port, call.engine.select(select.sql(routed[port]), {"input": marked}))


def _routed(met: Mapping[str, exp.Expr], mode: str, schema: Schema) -> dict[str, exp.Query]:
    made: dict[str, exp.Query] = {}
    before: list[exp.Expr] = []
    for port, condition in met.items():
        wanted = [*before, build.is_true(condition)] if mode == "first" else [build.is_true(condition)]
        made[port] = build.picked(build.every(schema), "input").where(*wanted)
        before.append(build.is_not_true(condition))
    return {**made, REST: build.picked(build.every(schema), "input").where(*before)}
