"""`join`: two inputs side by side, by the values of columns that both have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta
from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Known, Mistake, ParamPath, PlanCall, Port
from penstock.components.transform.base import (
    Parameters,
    Transform,
    actual,
    family,
    missing,
    type_of,
    unused,
)
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about

Match = Literal["unique", "first", "last", "all"]
On = Annotated[list[str], Meta(min_length=1)] | Annotated[dict[str, str], Meta(min_length=1)]

MATCH_WORDS = (
    "Which rows of the lookup are meant when several match: `all` of them, the `first`, the `last`; `unique` says that one is "
    "expected, and takes the last if there are more."
)


def pairs(on: On) -> list[tuple[str, str]]:
    """(column of the main side, column of the lookup) for each part of the key."""
    return list(on.items()) if isinstance(on, dict) else [(name, name) for name in on]


def wrong_pairs(
    path: ParamPath, on: On, main: Schema | None, lookup: Schema | None, sides: tuple[str, str]
) -> Iterable[Mistake]:
    """Columns that are not there, or that cannot be compared."""
    for index, (left, right) in enumerate(pairs(on)):
        where = (*path, left) if isinstance(on, dict) else (*path, index)
        found = [*missing(where, left, main, sides[0]), *missing(where, right, lookup, sides[1])]
        yield from found
        if not found and main is not None and lookup is not None:
            yield from uncomparable(
                where, (left, type_of(left, main), sides[0]), (right, type_of(right, lookup), sides[1])
            )


def uncomparable(path: ParamPath, one: tuple[str, str, str], other: tuple[str, str, str]) -> Iterable[Mistake]:
    """A mistake if two (column, type, whose) can never be equal."""
    known = {"number", "text", "date"}
    families = {family(one[1]), family(other[1])}
    if len(families) == 2 and families <= known:
        message = f"`{one[0]}` of `{one[2]}` is {one[1]}, and `{other[0]}` of `{other[2]}` is {other[1]}"
        hint = "convert one of them first, with `convert_types` or `derive`"
        yield Mistake(path, message, hint=hint, kind="type")


def chosen(table: str | exp.Query, keys: Sequence[str], match: Match, schema: Schema) -> exp.Expr:
    """The lookup, reduced to the one row of each key that is meant. A table stays a table when all rows are meant."""
    source = select.table(table) if isinstance(table, str) else build.named(table, "lookup")
    if match == "all":
        return source
    position = unused(build.POSITION, schema)
    counted = exp.Select(
        expressions=[exp.Star(), build.called(build.row_number(), position)], from_=exp.From(this=source)
    )
    order = exp.Ordered(this=select.column(position), desc=match != "first", nulls_first=False)
    first = exp.EQ(this=build.row_number(build.columns(keys), [order]), expression=select.literal(1))
    return build.picked(build.every(schema), counted, "counted").qualify(first)


def beside(taken: Iterable[str], schema: Schema, keys: Iterable[str], suffix: str) -> dict[str, str]:
    """New name -> column, for the columns of a lookup that stand beside others: keys left out, clashes renamed."""
    used = {name.lower() for name in taken}
    dropped = {key.lower() for key in keys}
    found: dict[str, str] = {}
    for column in schema:
        if column.name.lower() in dropped:
            continue
        name = column.name
        while name.lower() in used:
            name += suffix or "_"
        used.add(name.lower())
        found[name] = column.name
    return found


def spelled(names: Iterable[str], schema: Schema) -> list[str]:
    return [actual(name, schema) or name for name in names]


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
        return build.all_of(
            [
                exp.EQ(this=select.column(left, self.main), expression=select.column(right, "lookup"))
                for left, right in self.on
            ]
        )


def joined(sides: Sides) -> exp.Query:
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
    key = ", ".join(f"`{left}`" for left, _ in sides.on)
    reason = f"no row of the lookup matches by {key}"
    query = build.picked(build.refused(sides.main_schema, "NO_MATCH", reason, sides.main), sides.main)
    if sides.how in ("left", "full"):
        return query.where(exp.false())
    source = sides.lookup if isinstance(sides.lookup, str) else sides.lookup.copy()
    matching = build.picked([select.literal(1)], source, "lookup").where(sides.condition())
    return query.where(exp.Not(this=exp.Exists(this=matching)))


class JoinParams(Parameters):
    on: Annotated[
        On,
        about(
            "The columns that must be equal: a list of names that both sides have, or a mapping of a column of "
            "`main` to one of `lookup`."
        ),
    ]
    how: Annotated[
        How,
        about(
            "`inner`: rows that match. `left`: also rows of `main` that do not. `right`: also those of `lookup`. "
            "`full`: both."
        ),
    ] = "inner"
    match: Annotated[Match, about(MATCH_WORDS)] = "all"
    suffix: Annotated[str, about("What is added to a column of `lookup` whose name `main` has, too.", min_length=1)] = (
        "_lookup"
    )
    keep_order: Annotated[
        bool, about("Give the rows in the order of `main`, at the cost of sorting them. Otherwise any order.")
    ] = False


class Join(Transform[JoinParams]):
    """Join the rows of two inputs.

    The result has the columns of `main` and then those of `lookup`, without the columns of `on` a second time; a name that both
    have gets the suffix on the side of `lookup`. Rows of `main` that an `inner` or `right` join drops because nothing matches
    leave through `reject`, with `error_code` (`NO_MATCH`) and `error_message`. Missing values match nothing.

    As in SQL, rows leave in no particular order unless `keep_order` is set.
    """

    type = "join"
    inputs: ClassVar[tuple[Port, ...]] = (Port("main"), Port("lookup"))
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the joined rows"),
        Port("reject", reject=True, description="rows of `main` without a match that the join drops"),
    )

    def wrong(self, params: JoinParams, inputs: Known) -> Iterable[Mistake]:
        main, lookup = inputs.get("main"), inputs.get("lookup")
        yield from wrong_pairs(("on",), params.on, main, lookup, ("main", "lookup"))
        if params.keep_order and params.how in ("right", "full"):
            yield Mistake(
                ("keep_order",), f"a `{params.how}` join has rows that are not in `main`: use `sort` behind it"
            )

    def queries(self, params: JoinParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        main, lookup = inputs["main"], inputs["lookup"]
        on = pairs(params.on)
        names = beside([column.name for column in main], lookup, [right for _, right in on], params.suffix)
        sides = Sides(
            main="main",
            main_schema=main,
            lookup="lookup",
            lookup_schema=lookup,
            on=on,
            names=names,
            how=params.how,
            match=params.match,
            keep_order=params.keep_order,
        )
        return {"main": joined(sides), "reject": unmatched(sides)}
