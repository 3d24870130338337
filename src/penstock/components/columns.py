"""Columns that are declared, and columns that nobody knows.

Law: a port that a document declares columns for has these columns, in this order and of these types, or its component fails.

Types are brought about by a cast. That a value is there, matches its pattern and is the only one of its key is counted once the
rows are made; rows that should rather leave through a port of their own are the business of `check_schema`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Call, ComponentFailure
from penstock.components.queries import called, picked
from penstock.data import select
from penstock.data.types import MissingColumn, is_open
from penstock.ports.rows import Relation, Schema


def is_counted(declared: Mapping[str, Schema]) -> bool:
    """Is there anything to count? Then the rows have to be at hand, and cannot just pass through a larger query."""
    return any(column.key or not column.nullable or column.pattern for schema in declared.values() for column in schema)


def agrees(found: Schema, declared: Schema) -> bool:
    return [(column.name, column.type) for column in found] == [(column.name, column.type) for column in declared]


def hold(call: Call) -> None:
    """Bring the outputs into their declared shape. Raises ComponentFailure and RowsFailed."""
    for port, schema in call.declared.items():
        rows = call.outputs.get(port)
        if rows is None or not schema:
            continue
        if not agrees(rows.schema, schema):
            rows = _shaped(call, port, rows, schema)
            call.outputs[port] = rows
        _count(call, port, rows, schema)


def _shaped(call: Call, port: str, rows: Relation, schema: Schema) -> Relation:
    known = {column.name.casefold(): column.name for column in rows.schema}
    missing = [f"`{column.name}`" for column in schema if column.name.casefold() not in known]
    if missing and not is_open(rows.schema):
        there = ", ".join(f"`{column.name}`" for column in rows.schema)
        raise ComponentFailure(
            "schema", f"`{port}` lacks {', '.join(missing)}, which its schema declares; it has {there}"
        )
    taken = [
        called(select.cast(_column(known.get(column.name.casefold())), column.type), column.name) for column in schema
    ]
    return call.engine.select(select.sql(picked(taken, "rows")), {"rows": rows})


def _column(name: str | None) -> exp.Expr:
    """The column, or its absence from rows that never came."""
    return exp.null() if name is None else select.column(name)


def _count(call: Call, port: str, rows: Relation, schema: Schema) -> None:
    checks = _checks(schema)
    if not checks:
        return
    query = select.sql(picked([counted for _, counted in checks], "rows"))
    ((counts,),) = call.engine.rows(query, {"rows": rows})
    failed = [f"{rule}: {count} of {rows.rows} rows" for (rule, _), count in zip(checks, counts, strict=True) if count]
    if failed:
        hint = "`check_schema` sends such rows to a port of their own"
        raise ComponentFailure("schema", f"`{port}` is not as its schema says: {'; '.join(failed)}; hint: {hint}")


def _checks(schema: Schema) -> list[tuple[str, exp.Expr]]:
    """What is wrong, and an aggregate that says how often."""
    from penstock.components.quality.rules import missing_value, no_match  # Few schemas say so much of their columns.

    rules = [missing_value(column.name, "") for column in schema if column.key or not column.nullable]
    rules += [no_match(column.name, column.pattern, "") for column in schema if column.pattern]
    found: list[tuple[str, exp.Expr]] = [
        (rule.says, exp.Anonymous(this="count_if", expressions=[rule.fails])) for rule in rules
    ]
    keys = [select.column(column.name) for column in schema if column.key]
    if keys:
        # A key that lacks a value is counted above; here all rows beyond the first of each key.
        whole = exp.Anonymous(this="row", expressions=keys)
        again = exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Count(this=exp.Distinct(expressions=[whole])))
        names = ", ".join(f"`{column.name}`" for column in schema if column.key)
        found.append((f"the key {names} occurred before", again))
    return found


_MOST = 2_000
"""Columns that are given to one relation; a component that asks for more never has enough."""


def widened(call: Call, error: BaseException) -> Call | None:
    """The call, with the column that the error misses; None when that is not what is wrong, or no input is open."""
    missing = _missing(error)
    if missing is None:
        return None
    port = missing.table if missing.table in call.inputs else None
    for name, arrived in call.inputs.items():
        if port not in (None, name):
            continue
        for index, rows in enumerate(arrived):
            if is_open(rows.schema) and _lacks(rows, missing.column) and len(rows.schema) < _MOST:
                wider = [*arrived[:index], with_columns(rows, [missing.column], call), *arrived[index + 1 :]]
                return replace(call, inputs={**call.inputs, name: wider})
    return None


def _missing(error: BaseException | None) -> MissingColumn | None:
    """The column that the error misses, or one of those that it was raised from: a ComponentFailure, a SqlMistake or a
    NoSuchColumn of the engine."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # A failure that is raised from itself is its own cause.
        found = getattr(error, "missing", None)
        if isinstance(found, MissingColumn):
            return found
        seen.add(id(error))
        error = error.__cause__
    return None


def with_columns(rows: Relation, names: Iterable[str], call: Call) -> Relation:
    """The rows, with columns of these names where they lack them."""
    lacking = [name for name in dict.fromkeys(names) if _lacks(rows, name)]
    query = build.picked([exp.Star(), *(build.called(exp.null(), name) for name in lacking)], "input")
    return call.engine.select(select.sql(query), {"input": rows})


def _lacks(rows: Relation, column: str) -> bool:
    return column.lower() not in (known.name.lower() for known in rows.schema)
