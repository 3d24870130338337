"""`merge_changes`: what has changed between two states of the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from penstock.components.base import Known, Mistake, PlanCall, Port
from penstock.components.shape.comparison import compared
from penstock.components.transform.base import Parameters, Transform, absent, actual, repeated
from penstock.ports.rows import Schema
from penstock.tools.parameters import about

if TYPE_CHECKING:
    from sqlglot import exp


Some = Annotated[list[str], Meta(min_length=1)]


class MergeChangesParams(Parameters):
    on: Annotated[list[str], about("The columns that tell which rows belong together.", min_length=1)]
    compare: Annotated[Some | None, about("The columns to compare; all that both inputs have when left out.")] = None


class MergeChanges(Transform[MergeChangesParams]):
    """Compare two inputs by key.

    `inserted` has the rows of `after` whose key is new, `deleted` those of `before` whose key is gone. `changed` has the rows of
    `after` in which a compared column differs, with the names of these columns in `changed_columns`; `same` has the others. Two
    missing values are the same. A key should occur once in each input: of several rows with one key the last counts.
    """

    type = "merge_changes"
    inputs: ClassVar[tuple[Port, ...]] = (
        Port("before", description="the rows as they were"),
        Port("after", description="the rows as they are"),
    )
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("inserted", reject=True, description="rows whose key is new"),
        Port("deleted", reject=True, description="rows whose key is gone"),
        Port("changed", reject=True, description="rows that differ, with `changed_columns`"),
        Port("same", reject=True, description="rows that do not"),
    )

    @classmethod
    def passes(cls, params: Mapping[str, object]) -> None:
        return None

    def wrong(self, params: MergeChangesParams, inputs: Known) -> Iterable[Mistake]:
        yield from repeated(("on",), params.on)
        for port in ("before", "after"):
            schema = inputs.get(port)
            yield from absent(("on",), params.on, schema, port)
            yield from absent(("compare",), params.compare or (), schema, port)

    def queries(self, params: MergeChangesParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        keys = {name.lower() for name in params.on}
        both = [column.name for column in inputs["after"] if actual(column.name, inputs["before"]) is not None]
        columns = params.compare or [name for name in both if name.lower() not in keys]
        return compared(params.on, columns, inputs["before"], inputs["after"])
