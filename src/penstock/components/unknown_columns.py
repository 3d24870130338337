"""Rows that never came, from a source whose rows alone say what its columns are: `[]` in a file, an API with nothing new.

Such a relation has one column, whose name says that no others are known; it goes along wherever all columns do. A component that
asks for a column of it is given one without a value, as it would be on a day with rows, and so the job runs through with no rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Call
from penstock.data import select
from penstock.data.types import MissingColumn, is_open
from penstock.ports.rows import Relation

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
