"""`merge_changes`: what has changed between two states of the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta
from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Known, Mistake, PlanCall, Port
from penstock.components.transform.base import Parameters, Transform, absent, actual, repeated
from penstock.data import select
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


TURN = "__turn"


def last_of_each(table: str, keys: Sequence[str], schema: Schema) -> exp.Select:
    """One row per key, the last, and its place in the table."""
    place = select.column(build.POSITION)
    latest = exp.Ordered(this=place, desc=True, nulls_first=False)
    turns = build.called(build.row_number([select.column(key) for key in keys], [latest]), TURN)
    counted = build.picked([*build.every(schema), place, turns], build.numbered(table))
    return build.picked([*build.every(schema), place], counted).where(
        exp.EQ(this=select.column(TURN), expression=select.literal(1))
    )


def compared(keys: Sequence[str], columns: Sequence[str], before: Schema, after: Schema) -> dict[str, exp.Query]:
    differences = [(name, build.differ(select.column(name, "old"), select.column(name, "new"))) for name in columns]
    changed = build.some([condition for _, condition in differences])
    status = build.joined(
        ", ", [build.case([(condition, select.literal(name))]) for name, condition in differences] or [exp.null()]
    )
    sides = {"old": last_of_each("before", keys, before), "new": last_of_each("after", keys, after)}
    matched = build.every_one([build.same(select.column(key, "old"), select.column(key, "new")) for key in keys])

    def joined_to(one: str, other: str, wanted: Sequence[exp.Expr], how: str) -> exp.Select:
        query = build.picked(wanted, sides[one], one)
        return query.join(build.named(sides[other], other), on=matched, join_type=how).order_by(
            build.ascending(select.column(build.POSITION, one))
        )

    new, old = build.every(after, "new"), build.every(before, "old")
    both = joined_to("new", "old", new, "inner")
    return {
        "inserted": joined_to("new", "old", new, "left").where(build.is_null(select.column(build.POSITION, "old"))),
        "deleted": joined_to("old", "new", old, "left").where(build.is_null(select.column(build.POSITION, "new"))),
        "changed": joined_to("new", "old", [*new, build.called(status, "changed_columns")], "inner").where(changed),
        "same": both.where(build.is_not(changed)),
    }
