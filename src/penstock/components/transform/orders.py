"""Orders as authors write them: `amount`, `amount desc`, `amount desc nulls first`, or `{column: amount, order: desc}`.

What stands before the direction is a column if there is one of that name, and an SQL expression otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Mistake
from penstock.components.transform.base import Place, actual, missing
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp


class SortKey(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    column: Annotated[str, Meta(description="A column, or an SQL expression.")]
    order: Annotated[Literal["asc", "desc"], Meta(description="The direction.")] = "asc"
    nulls: Annotated[Literal["first", "last"], Meta(description="Where missing values go.")] = "last"


By = str | SortKey
_DIRECTION = re.compile(r"\s+(asc|desc)\s*$", re.IGNORECASE)
_NULLS = re.compile(r"\s+nulls\s+(first|last)\s*$", re.IGNORECASE)


def sort_key(by: By) -> SortKey:
    if isinstance(by, SortKey):
        return by
    text, order, nulls = by, "asc", "last"
    if found := _NULLS.search(text):
        text, nulls = text[: found.start()], found[1].lower()
    if found := _DIRECTION.search(text):
        text, order = text[: found.start()], found[1].lower()
    return msgspec.convert({"column": text.strip(), "order": order, "nulls": nulls}, SortKey)


def ordering(by: Iterable[By], schema: Schema) -> list[exp.Ordered]:
    """The order over columns of the schema, in SQL. Raises SqlMistake for what is neither a column nor an expression."""
    return [_ordered(sort_key(one), schema) for one in by]


def _ordered(key: SortKey, schema: Schema) -> exp.Ordered:
    from sqlglot import exp

    from penstock.data import select

    column = actual(key.column, schema)
    subject = select.column(column) if column is not None else select.expression(key.column)
    return exp.Ordered(this=subject, desc=key.order == "desc", nulls_first=key.nulls == "first")


def wrong_order(path: Place, by: Sequence[By], schema: Schema) -> Iterable[Mistake]:
    """Mistakes in an order, for the check before the run."""
    from penstock.components import bound

    for index, one in enumerate(by):
        key = sort_key(one)
        where = (*path, index) if isinstance(one, str) else (*path, index, "column")
        if actual(key.column, schema) is not None:
            continue
        if key.column.isidentifier():
            yield from missing(where, key.column, schema)
            continue
        problem = bound.check(key.column, "value", {"input": schema}).mistake
        if problem is not None:
            yield bound.mistake_of(problem, where)
