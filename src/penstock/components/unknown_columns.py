"""Rows that never came, from a source whose rows alone say what its columns are: `[]` in a file, an API with nothing new.

Such a relation has one column, whose name says that no others are known; it goes along wherever all columns do. A component that
asks for a column of it is given one without a value, as it would be on a day with rows, and so the job runs through with no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.components.base import Call, ComponentFailure
from penstock.data.types import is_open
from penstock.ports.rows import Relation

# The words in which every message tells of a missing column, of one input or of any.
_MISSING = re.compile(r"(?:`(?P<whose>[^`]+)` has|\bhas|is|lacks) no column `(?P<column>[^`]+)`")
_MOST = 2_000
"""Columns that are given to one relation; a component that asks for more never has enough."""


def widened(call: Call, failure: ComponentFailure) -> Call | None:
    """The call, with the column that the failure misses; None when that is not what is wrong, or no input is open."""
    if not any(is_open(rows.schema) for arrived in call.inputs.values() for rows in arrived):
        return None
    told = _MISSING.search(failure.message)
    if told is None:
        return None
    port, column = _of_port(call.inputs, told["column"], told["whose"])
    for name, arrived in call.inputs.items():
        if port not in (None, name):
            continue
        for index, rows in enumerate(arrived):
            if is_open(rows.schema) and _lacks(rows, column) and len(rows.schema) < _MOST:
                wider = [*arrived[:index], with_columns(rows, [column], call), *arrived[index + 1 :]]
                return replace(call, inputs={**call.inputs, name: wider})
    return None


def _of_port(inputs: Mapping[str, list[Relation]], column: str, whose: str | None) -> tuple[str | None, str]:
    """The input that is meant, None for any, and the column there."""
    first, _, rest = column.partition(".")
    if rest and first in inputs:
        return first, rest
    return whose if whose in inputs else None, column


def with_columns(rows: Relation, names: Iterable[str], call: Call) -> Relation:
    """The rows, with columns of these names where they lack them."""
    from sqlglot import exp

    from penstock.components import queries as build
    from penstock.data import select

    lacking = [name for name in dict.fromkeys(names) if _lacks(rows, name)]
    query = build.picked([exp.Star(), *(build.called(exp.null(), name) for name in lacking)], "input")
    return call.engine.select(select.sql(query), {"input": rows})


def _lacks(rows: Relation, column: str) -> bool:
    return column.lower() not in (known.name.lower() for known in rows.schema)
