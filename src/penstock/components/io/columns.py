"""The columns that an author asks for, with their types, against those that a file has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.components.base import ComponentFailure, Mistake
from penstock.components.io.words import NamedColumn
from penstock.data.untyped import NOTHING
from penstock.ports.rows import Schema
from penstock.tools.parameters import similar

if TYPE_CHECKING:
    from sqlglot import exp

Place = tuple[str | int, ...]


def sql_type(text: str) -> str:
    """DuckDB's name for a type. Raises ComponentFailure when there is no such type."""
    from penstock.data.types import TypeMistake, duckdb_type

    try:
        return duckdb_type(text)
    except TypeMistake as mistake:
        said = f"{mistake.message}; {mistake.hint}" if mistake.hint else mistake.message
        raise ComponentFailure("parameters", said) from None


def named(columns: Sequence[str | NamedColumn], declared: Schema | None) -> dict[str, str | None]:
    """Name -> type or None, in the author's order: from `columns`, else from the schema that the document declares."""
    if not columns and declared:
        return {column.name: column.type for column in declared}
    return {
        (each if isinstance(each, str) else each.name): (
            None if isinstance(each, str) or each.type is None else sql_type(each.type)
        )
        for each in columns
    }


def type_mistakes(columns: Sequence[str | NamedColumn], types: Mapping[str, str]) -> list[Mistake]:
    """Types that are none, and columns that are named twice."""
    found: list[Mistake] = []
    seen: set[str] = set()
    for index, each in enumerate(columns):
        name = each if isinstance(each, str) else each.name
        if name.lower() in seen:
            found.append(Mistake(("columns", index), f"`{name}` is named twice"))
        seen.add(name.lower())
        if isinstance(each, NamedColumn) and each.type is not None:
            found += _type_mistake(each.type, ("columns", index, "type"))
    for name, type in types.items():
        found += _type_mistake(type, ("types", name))
    return found


def _type_mistake(type: str, path: Place) -> list[Mistake]:
    try:
        sql_type(type)
    except ComponentFailure as failure:
        return [Mistake(path, failure.message, kind="type")]
    return []


def missing(wanted: Sequence[str], present: Sequence[str], where: str) -> str | None:
    """What to say of the first column that is asked for and not there; None when all are."""
    for name in wanted:
        if name not in present:
            known = ", ".join(f"`{each}`" for each in present) or "none"
            return f"{where} has no column `{name}`{similar(name, present)}; it has {known}"
    return None


def missing_value(name: str, type: str) -> exp.Expr:
    """NULL under a name, in a type."""
    from sqlglot import exp

    from penstock.data import select

    # A bare NULL is of that type, and the only one: nothing can be cast to it.
    value = exp.null() if type == NOTHING else select.cast(exp.null(), type)
    return exp.alias_(value, select.name(name))


def no_rows(schema: Schema) -> exp.Select:
    from sqlglot import exp

    return exp.select(*(missing_value(column.name, column.type) for column in schema)).where(exp.false())
