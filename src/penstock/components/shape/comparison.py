"""Two tables compared by key."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.components.queries import (
    POSITION,
    ascending,
    called,
    case,
    differ,
    every,
    every_one,
    is_not,
    is_null,
    joined,
    named,
    numbered,
    picked,
    row_number,
    same,
    some,
)
from penstock.data import select
from penstock.ports.rows import Schema

TURN = "__turn"


def last_of_each(table: str, keys: Sequence[str], schema: Schema) -> exp.Select:
    """One row per key, the last, and its place in the table."""
    place = select.column(POSITION)
    latest = exp.Ordered(this=place, desc=True, nulls_first=False)
    turns = called(row_number([select.column(key) for key in keys], [latest]), TURN)
    counted = picked([*every(schema), place, turns], numbered(table))
    return picked([*every(schema), place], counted).where(
        exp.EQ(this=select.column(TURN), expression=select.literal(1))
    )


def compared(keys: Sequence[str], columns: Sequence[str], before: Schema, after: Schema) -> dict[str, exp.Query]:
    differences = [(name, differ(select.column(name, "old"), select.column(name, "new"))) for name in columns]
    changed = some([condition for _, condition in differences])
    told = joined(", ", [case([(condition, select.literal(name))]) for name, condition in differences] or [exp.null()])
    sides = {"old": last_of_each("before", keys, before), "new": last_of_each("after", keys, after)}
    matched = every_one([same(select.column(key, "old"), select.column(key, "new")) for key in keys])

    def joined_to(one: str, other: str, wanted: Sequence[exp.Expr], how: str) -> exp.Select:
        query = picked(wanted, sides[one], one)
        return query.join(named(sides[other], other), on=matched, join_type=how).order_by(
            ascending(select.column(POSITION, one))
        )

    new, old = every(after, "new"), every(before, "old")
    both = joined_to("new", "old", new, "inner")
    return {
        "inserted": joined_to("new", "old", new, "left").where(is_null(select.column(POSITION, "old"))),
        "deleted": joined_to("old", "new", old, "left").where(is_null(select.column(POSITION, "new"))),
        "changed": joined_to("new", "old", [*new, called(told, "changed_columns")], "inner").where(changed),
        "same": both.where(is_not(changed)),
    }
