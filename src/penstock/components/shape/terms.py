"""Small pieces of SQL, as trees, that the components of this package and of `quality` are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from penstock.components.queries import called, function
from penstock.data import select
from penstock.ports.rows import Schema


def text(value: exp.Expr) -> exp.Expr:
    return select.cast(value, "VARCHAR")


def tried(value: exp.Expr, type: str) -> exp.Expr:
    """The value in another type, NULL where it is not one."""
    return exp.TryCast(this=value, to=select.data_type(type))


def case(branches: Iterable[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr | None = None) -> exp.Expr:
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    if not ifs:
        return otherwise or exp.null()
    return exp.Case(ifs=ifs, default=otherwise)


def is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value, expression=exp.null())


def is_not_null(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=is_null(value))


def is_not(condition: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Paren(this=condition))


def every_one(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return exp.and_(*conditions) if conditions else exp.true()


def some(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return exp.or_(*conditions) if conditions else exp.false()


def same(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Equal, and NULL is equal to NULL."""
    return exp.NullSafeEQ(this=left, expression=right)


def differ(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.NullSafeNEQ(this=left, expression=right)


def joined(separator: str, pieces: Sequence[exp.Expr]) -> exp.Expr:
    """The pieces that are not NULL, as one text."""
    return function("concat_ws", select.literal(separator), *pieces)


def one_of(value: exp.Expr, values: Iterable[object]) -> exp.Expr:
    return exp.In(this=value, expressions=[select.literal(each) for each in values])


def changed(schema: Schema, values: Mapping[str, exp.Expr]) -> list[exp.Expr]:
    """The columns of a schema in their order, some of them with another value; new ones follow."""
    left = dict(values)
    made: list[exp.Expr] = [
        called(left.pop(column.name), column.name) if column.name in left else select.column(column.name)
        for column in schema
    ]
    return [*made, *(called(value, name) for name, value in left.items())]
