"""Expressions that see each other's results: as few nested SELECTs as that takes.

An expression goes into the layer of the one above it unless it reads, or replaces, a column that layer makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp

Layer: TypeAlias = "dict[str, exp.Expr]"


def layers(columns: Mapping[str, str]) -> list[Layer]:
    """The expressions, parsed, in groups that do not depend on each other. Raises SqlMistake."""
    from penstock.data import select

    made: list[Layer] = [{}]
    for name, text in columns.items():
        tree = select.expression(text)
        fresh = {one.lower() for one in made[-1]}
        if reads(tree) & fresh or name.lower() in fresh:
            made.append({})
        made[-1][name] = tree
    return made


def reads(tree: exp.Expr) -> set[str]:
    """The names an expression may be reading: of `a.b.c` each part may be the column."""
    from sqlglot import exp

    return {part.name.lower() for column in tree.find_all(exp.Column) for part in column.parts}


def free_of(columns: Mapping[str, str]) -> list[tuple[str, str]]:
    """The expressions that read none of the names above them; unreadable ones are among them, to be complained of."""
    from penstock.data import select

    above: set[str] = set()
    found: list[tuple[str, str]] = []
    for name, text in columns.items():
        try:
            names = reads(select.expression(text))
        except select.SqlMistake:
            names = set()
        if not names & above:
            found.append((name, text))
        above.add(name.lower())
    return found


def stacked_layers(parts: list[Layer], schema: Schema) -> exp.Query:
    """The input's columns with those of the layers: replaced in their place, or added at the end."""
    from penstock.components import queries as build
    from penstock.data import select

    query: exp.Query | str = "input"
    names = [column.name for column in schema]
    for layer in parts:
        fresh = {name.lower(): (name, tree) for name, tree in layer.items()}
        expressions: list[exp.Expr] = []
        for name in names:
            replaced = fresh.pop(name.lower(), None)
            expressions.append(select.column(name) if replaced is None else build.called(replaced[1], name))
        expressions += [build.called(tree, name) for name, tree in fresh.values()]
        names += [name for name, _ in fresh.values()]
        query = build.picked(expressions, query)
    assert not isinstance(query, str)
    return query
