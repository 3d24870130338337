"""No row is lost in silence: one that is refused leaves through `reject`, or ends the component in ERROR, or is counted.

Which of them it is has to be known once all rows have been looked at. Where nobody reads `reject`, such a component is therefore
no part of a larger query, in which a filter or a limit further on could hide the row that was wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from msgspec import Meta

from penstock.components.base import Call, ComponentFailure, PlanCall
from penstock.components.runner import gathered
from penstock.components.transform.base import Parameters, Transform, refuse
from penstock.data import select
from penstock.ports.rows import Relation, Schema

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.components.quality.rules import Flagged

_SHOWN = 60

OnError = Annotated[
    Literal["fail", "skip"],
    Meta(
        description="What a row that is refused does when the `reject` port is not connected: `fail` ends the component in ERROR "
        "and names the value, `skip` leaves the row out and counts it."
    ),
]


class RefusingParams(Parameters, kw_only=True):
    on_error: OnError = "fail"


R = TypeVar("R", bound=RefusingParams)


class Refusing(Transform[R]):
    """A transform that takes most rows and refuses some, each for itself."""

    refuses: ClassVar[bool] = True

    def parted(self, params: R, schema: Schema) -> tuple[Flagged, Sequence[exp.Expr]]:
        """The rules that a row may break, and the columns of one that breaks none."""
        raise NotImplementedError

    def queries(self, params: R, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        flagged, made = self.parted(params, inputs["input"])
        return {"main": flagged.passed(made), "reject": flagged.failed()}

    def is_fusable(self, params: R, connected: frozenset[str]) -> bool:
        return "reject" in connected

    def advice(self, params: R) -> str:
        """What an author may do who does not want the component to fail."""
        return "connect the `reject` port, or set `on_error: skip`"

    def run(self, params: R, call: Call) -> None:
        rows = gathered(call, "input")
        refuse(self.wrong(params, {"input": rows.schema}))
        flagged, made = self.parted(params, rows.schema)
        passed = call.engine.select(select.sql(flagged.passed(made)), {"input": rows})
        count = rows.rows - passed.rows
        call.after["NB_LINE_REJECTED"] = count
        if "reject" in call.connected:
            call.put("reject", call.engine.select(select.sql(flagged.failed()), {"input": rows}))
        elif count:
            code, said, value = _first(flagged, rows, call)
            if params.on_error == "fail":
                told = f"{count:,} of {rows.rows:,} rows {_were(count)} refused; the first: {said}"
                said = f"{told}; hint: {self.advice(params)}"
                raise ComponentFailure(code.lower(), said, refused=count, rows=rows.rows, value=value)
            call.say(f"{count:,} of {rows.rows:,} rows {_were(count)} left out; the first: {said}")
        if "main" in call.connected:
            call.put("main", passed)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _first(flagged: Flagged, rows: Relation, call: Call) -> tuple[str, str, str | None]:
    """The first row that was refused: the code of the rule it broke, a sentence that has the value in it, and the value."""
    found: tuple[Any, ...] = next(iter(call.engine.rows(select.sql(flagged.first()), {"input": rows})))[0]
    number, said, *values = found
    rule = flagged.rules[number]
    named = dict(zip(flagged.names(), values, strict=True))
    shown = [str(named[name])[:_SHOWN] for name in rule.columns if named.get(name) is not None]
    value = ", ".join(shown) if shown else None
    is_in_there = rule.shows is not None or value is None
    return rule.code, said if is_in_there else f"{said}: `{value}`", value
