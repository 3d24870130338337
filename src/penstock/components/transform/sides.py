"""Two sides of a join, and the two queries it comes to: what matches, and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.components.transform.base import unused
from penstock.components.transform.matching import Match, chosen
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp

How = Literal["inner", "left", "right", "full"]


@dataclass(frozen=True, slots=True)
class Sides:
    main: str
    """The table on the main side; it is the one whose rows are kept or refused."""
    main_schema: Schema
    lookup: str | exp.Query
    """A table called `lookup`, or a query that will go by that name."""
    lookup_schema: Schema
    on: list[tuple[str, str]]
    names: Mapping[str, str]
    """New name -> column of the lookup, for those that are taken."""
    how: How = "inner"
    match: Match = "all"
    keep_order: bool = False

    def condition(self) -> exp.Expr:
        from sqlglot import exp

        from penstock.components import queries as build
        from penstock.data import select

        return build.all_of(
            [
                exp.EQ(this=select.column(left, self.main), expression=select.column(right, "lookup"))
                for left, right in self.on
            ]
        )


def joined(sides: Sides) -> exp.Query:
    from sqlglot import exp

    from penstock.components import queries as build
    from penstock.data import select

    rows = chosen(sides.lookup, [right for _, right in sides.on], sides.match, sides.lookup_schema)
    source = build.named(rows, "lookup") if isinstance(rows, exp.Select) else rows
    others = [build.called(select.column(old, "lookup"), new) for new, old in sides.names.items()]
    join = exp.Join(this=source, kind=sides.how.upper(), on=sides.condition())
    position = unused(build.POSITION, sides.main_schema)
    main: exp.Expr = select.table(sides.main)
    if sides.keep_order:
        main = build.named(build.numbered(sides.main, position), sides.main)
    query = exp.Select(expressions=[*_own(sides), *others], from_=exp.From(this=main), joins=[join])
    return query.order_by(build.ascending(select.column(position, sides.main))) if sides.keep_order else query


def _own(sides: Sides) -> list[exp.Expr]:
    """The columns of the main side. Rows of the lookup alone have their key on their own side only, so both are asked."""
    from penstock.components import queries as build
    from penstock.data import select

    keys = {left.lower(): right for left, right in sides.on} if sides.how in ("right", "full") else {}
    own: list[exp.Expr] = []
    for column in sides.main_schema:
        mine = select.column(column.name, sides.main)
        key = keys.get(column.name.lower())
        both = None if key is None else build.function("coalesce", mine, select.column(key, "lookup"))
        own.append(mine if both is None else build.called(both, column.name))
    return own


def unmatched(sides: Sides) -> exp.Query:
    """The rows of the main side that the join drops, with the reason."""
    from sqlglot import exp

    from penstock.components import queries as build
    from penstock.data import select

    key = ", ".join(f"`{left}`" for left, _ in sides.on)
    reason = f"no row of the lookup matches by {key}"
    query = build.picked(build.refused(sides.main_schema, "NO_MATCH", reason, sides.main), sides.main)
    if sides.how in ("left", "full"):
        return query.where(exp.false())
    source = sides.lookup if isinstance(sides.lookup, str) else sides.lookup.copy()
    matching = build.picked([select.literal(1)], source, "lookup").where(sides.condition())
    return query.where(exp.Not(this=exp.Exists(this=matching)))
