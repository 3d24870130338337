"""What joins have in common: which row of the lookup is meant when several match, and how columns of both sides are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from penstock.components.base import Mistake
from penstock.components.transform.base import Place, actual, family, missing, type_of, unused
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp

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
    path: Place, on: On, main: Schema | None, lookup: Schema | None, sides: tuple[str, str]
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


def uncomparable(path: Place, one: tuple[str, str, str], other: tuple[str, str, str]) -> Iterable[Mistake]:
    """A mistake if two (column, type, whose) can never be equal."""
    known = {"number", "text", "date"}
    families = {family(one[1]), family(other[1])}
    if len(families) == 2 and families <= known:
        message = f"`{one[0]}` of `{one[2]}` is {one[1]}, and `{other[0]}` of `{other[2]}` is {other[1]}"
        hint = "convert one of them first, with `convert_types` or `derive`"
        yield Mistake(path, message, hint=hint, kind="type")


def chosen(table: str | exp.Query, keys: Sequence[str], match: Match, schema: Schema) -> exp.Expr:
    """The lookup, reduced to the one row of each key that is meant. A table stays a table when all rows are meant."""
    from sqlglot import exp

    from penstock.components import queries as build
    from penstock.data import select

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
