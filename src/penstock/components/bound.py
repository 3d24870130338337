"""The author's SQL held against the columns it will meet, before a row is read. One small database serves all components."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from penstock.ports.components import Mistake
from penstock.ports.rows import Schema, SqlText

if TYPE_CHECKING:
    from penstock.data.binder import Binder, BoundSql
    from penstock.data.select import SqlMistake


def check(text: str, form: str, inputs: Mapping[str, Schema]) -> BoundSql:
    return _binder().check(text, form, inputs)


def schema(query: SqlText, inputs: Mapping[str, Schema]) -> Schema:
    """Raises RowsFailed."""
    return _binder().schema(query, inputs)


def mistake_of(problem: SqlMistake, path: tuple[str | int, ...]) -> Mistake:
    """A mistake in a piece of SQL as one in the parameter that holds it."""
    return Mistake(
        path, problem.message, hint=problem.hint, offset=problem.offset, length=problem.length, kind=problem.kind
    )


@cache
def _binder() -> Binder:
    from penstock.data.binder import Binder

    return Binder()
