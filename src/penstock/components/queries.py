"""Queries that several components are made of. Built with sqlglot; names are always quoted.

Rows have an order as long as nothing gives them another: the engine keeps it through filters and expressions. Where the order
means something (the first of several, filling down, numbering), `numbered` makes it a column before anything can disturb it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from penstock.components.base import Call
from penstock.data import select
from penstock.ports.rows import Relation, Schema

POSITION = "__position"
"""The place of a row in its input."""

_VOLATILE = frozenset({
    "current_localtime", "current_localtimestamp", "current_time", "current_timestamp", "gen_random_uuid",
    "get_current_timestamp", "localtime", "localtimestamp", "now", "random", "setseed", "transaction_timestamp",
    "uuid", "uuidv4", "uuidv7",
})  # fmt: skip


def everything(table: str) -> exp.Select:
    return exp.select(exp.Star()).from_(select.table(table))


def picked(expressions: Iterable[exp.Expr], source: str | exp.Query, alias: str = "input") -> exp.Select:
    """A SELECT of these expressions from a table, or from a query that goes by the name `alias`."""
    origin = select.table(source) if isinstance(source, str) else named(source, alias)
    return exp.Select(expressions=list(expressions), from_=exp.From(this=origin))


def row(expressions: Iterable[exp.Expr]) -> exp.Select:
    """One row out of nothing."""
    return exp.Select(expressions=list(expressions))


def named(query: exp.Query, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=select.name(alias)))


def called(expression: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=expression, alias=select.name(name))


def columns(names: Iterable[str], table: str | None = None) -> list[exp.Column]:
    return [select.column(name, table) for name in names]


def names(schema: Schema) -> list[str]:
    return [column.name for column in schema]


def every(schema: Schema, table: str | None = None) -> list[exp.Column]:
    return columns(names(schema), table)


def stacked(tables: Iterable[str]) -> exp.Query:
    """The rows of several tables one after another, columns matched by name."""
    return together([everything(table) for table in tables])


def together(queries: Sequence[exp.Query]) -> exp.Query:
    query, *others = queries
    for other in others:
        query = exp.Union(this=query, expression=other, distinct=False, by_name=True)
    return query


def over(
    function: exp.Expr, partition: Sequence[exp.Expr] = (), order: Sequence[exp.Expr] = (), spec: exp.Expr | None = None
) -> exp.Window:
    ordering = exp.Order(expressions=list(order)) if order else None
    return exp.Window(this=function, partition_by=list(partition), order=ordering, spec=spec)


def row_number(partition: Sequence[exp.Expr] = (), order: Sequence[exp.Expr] = ()) -> exp.Window:
    return over(exp.RowNumber(), partition, order)


def numbered(table: str, position: str = POSITION) -> exp.Select:
    """The table with the place of each row in it, counted from 1."""
    return picked([exp.Star(), called(row_number(), position)], table)


def ascending(expression: exp.Expr) -> exp.Ordered:
    return exp.Ordered(this=expression, desc=False, nulls_first=False)


def is_true(condition: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.Paren(this=condition), expression=exp.true())


def is_not_true(condition: exp.Expr) -> exp.Expr:
    """False or unknown: what a WHERE leaves out."""
    return exp.Not(this=is_true(condition))


def function(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def all_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return exp.and_(*conditions, copy=False)


def refused(schema: Schema, code: str, message: str | exp.Expr, table: str | None = None) -> list[exp.Expr]:
    """The columns of a refused row: its own and the two that say why. Those of an earlier refusal give way."""
    own = [name for name in names(schema) if name.lower() not in ("error_code", "error_message")]
    shown = select.literal(message) if isinstance(message, str) else message
    return [*columns(own, table), called(select.literal(code), "error_code"), called(shown, "error_message")]


def volatile(tree: exp.Expr) -> bool:
    """Does it give another value each time it is evaluated?"""
    for node in tree.find_all(exp.Func):
        called_as = str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()
        if called_as.lower() in _VOLATILE:
            return True
    return False


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


def gathered(call: Call, port: str) -> Relation:
    """The rows on a port as one relation: those of several links one after another, columns matched by name."""
    arrived = call.inputs.get(port, [])
    if len(arrived) == 1 or not arrived:
        return call.input(port)
    tables = {f"{port}_{number}": rows for number, rows in enumerate(arrived)}
    return call.engine.select(select.sql(stacked(tables)), tables)
