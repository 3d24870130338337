"""Column lineage: which columns a column is made of.

The query is qualified first: stars are spelled out and every name says whose it is. Then each output column is followed through
CTEs, subqueries and unions down to the inputs. Only what a value is made of counts, not what decided that its row is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

from penstock.data.select import DIALECT, read
from penstock.ports.rows import Schema, SqlText

Source = tuple[str, str]


def lineage(
    query: SqlText, inputs: Mapping[str, Schema], columns: Sequence[str] | None = None
) -> dict[str, tuple[Source, ...]]:
    """Output column -> the (input, column) pairs it is made of. `columns` are the names of the output, where they are known."""
    try:
        tree = qualify(
            read(query),
            schema={name: {column.name: column.type for column in schema} for name, schema in inputs.items()} or None,
            dialect=DIALECT,
            validate_qualify_columns=False,
            quote_identifiers=False,
            identify=False,
        )
        scope = build_scope(tree)
    except (SqlglotError, RecursionError):
        scope = None
    if scope is None or any(select.find(exp.Columns) for select in _selects(scope)):
        return _by_name(columns or (), inputs)
    tracer = _Tracer(inputs)
    names = [select.alias_or_name for select in _selects(scope)]
    if columns is not None and len(columns) != len(names):
        return _by_name(columns, inputs)
    traced = [tracer.column(scope, at) for at in range(len(names))]
    outputs = columns if columns is not None else [tracer.spelling(query, name) for name in names]
    return {name: tuple(sources) for name, sources in zip(outputs, traced, strict=True) if name != "*"}


def _by_name(columns: Sequence[str], inputs: Mapping[str, Schema]) -> dict[str, tuple[Source, ...]]:
    """If a query cannot be analysed, a column is taken to be made of those with its name."""
    return {
        name: tuple(
            (table, column.name)
            for table, schema in inputs.items()
            for column in schema
            if column.name.lower() == name.lower()
        )
        for name in columns
    }


def _selects(scope: Scope) -> list[exp.Expr]:
    found = scope.expression
    return list(found.selects) if isinstance(found, exp.Query) else []


class _Tracer:
    def __init__(self, inputs: Mapping[str, Schema]) -> None:
        self._tables = {name.lower(): name for name in inputs}
        self._columns = {
            (name.lower(), column.name.lower()): (name, column.name)
            for name, schema in inputs.items()
            for column in schema
        }

    def column(self, scope: Scope, at: int) -> list[Source]:
        """What the column at an index of a query is made of, in order and each once."""
        if scope.set_operation_scopes:
            return _once(source for part, there in self._parts(scope, at) for source in self.column(part, there))
        selects = _selects(scope)
        if at >= len(selects):
            return []
        return _once(self._inside(scope, selects[at]))

    def _parts(self, scope: Scope, at: int) -> Iterator[tuple[Scope, int]]:
        """The queries of a union, and where the column stands in each of them."""
        name = _selects(scope)[at].alias_or_name
        for part in scope.set_operation_scopes:
            names = [select.alias_or_name for select in _selects(part)]
            if not scope.expression.args.get("by_name"):
                yield part, at
            elif name in names:
                yield part, names.index(name)

    def _inside(self, scope: Scope, expression: exp.Expr) -> Iterator[Source]:
        within = {id(node) for query in expression.find_all(exp.Query) for node in query.walk()}
        for node in expression.find_all(exp.Column):
            if id(node) not in within:
                yield from self._named(scope, node.table, node.name)
        for inner in scope.subquery_scopes:
            if id(inner.expression) in within:
                yield from self.column(inner, 0)

    def _named(self, scope: Scope, table: str, name: str) -> Iterator[Source]:
        source = scope.sources.get(table)
        if isinstance(source, Scope):
            names = [select.alias_or_name.lower() for select in _selects(source)]
            if name.lower() in names:
                yield from self.column(source, names.index(name.lower()))
        elif isinstance(source, exp.Table):
            yield from self._of_table(source, name)
        else:
            yield from self._of_pivot(scope, name)

    def _of_table(self, table: exp.Table, name: str) -> Iterator[Source]:
        found = self._columns.get((table.name.lower(), name.lower()))
        if found is not None:
            yield found

    def _of_pivot(self, scope: Scope, name: str) -> Iterator[Source]:
        """A column of a pivot: one that it let pass, or one that its aggregates made."""
        tables = [source for source in scope.sources.values() if isinstance(source, exp.Table)]
        passed = [source for table in tables for source in self._of_table(table, name)]
        if passed:
            yield from passed
            return
        for pivot in scope.expression.find_all(exp.Pivot):
            for node in (node for made in pivot.expressions for node in made.find_all(exp.Column)):
                for table in tables:
                    yield from self._of_table(table, node.name)

    def spelling(self, query: SqlText, name: str) -> str:
        """A name as its author wrote it: qualifying lowers its case."""
        for _, column in self._columns.values():
            if column.lower() == name:
                return column
        at = query.lower().find(name)
        return query[at : at + len(name)] if at >= 0 else name


def _once(sources: Iterator[Source]) -> list[Source]:
    return list(dict.fromkeys(sources))
