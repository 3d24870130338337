"""Two tables compared by key."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.components import queries as build
from penstock.data import select
from penstock.ports.rows import Schema

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
    told = build.joined(
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
        "changed": joined_to("new", "old", [*new, build.called(told, "changed_columns")], "inner").where(changed),
        "same": both.where(build.is_not(changed)),
    }
