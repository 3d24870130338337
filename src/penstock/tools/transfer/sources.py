"""Rows on their way from the source of a transfer, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from penstock.tools.base import Call, ToolFailure
from penstock.tools.sql.cursors import Opened
from penstock.tools.sql.plan import Planner, columns_of
from penstock.tools.sql.tables import Row
from penstock.tools.sql.text import Bound, Dialect, quote_all, quote_table
from penstock.tools.sql.types import Origin, infer, is_plain
from penstock.tools.transfer.params import DatabaseFileSource, ServerSource

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Flow:
    """What a source gives: batches of rows, all with the same columns."""

    columns: list[str]
    origin: Origin
    batches: Iterator[list[Row]]
    types: Mapping[str, str] = field(default_factory=dict)
    """Types the source declares, by DuckDB's names. JSON is handed over as its text."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The rows as a target sees them: its own names for the columns, and their types."""

    columns: list[str]
    types: list[str]
    origin: Origin


def in_batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    rest = iter(rows)
    while batch := list(islice(rest, size)):
        yield batch


def from_objects(objects: Iterable[Any], size: int, wanted: Sequence[str] | None) -> Flow:
    """JSON objects as rows. The first chunk says which columns there are, unless the author did."""
    rest = iter(objects)
    first = list(islice(rest, size))
    columns = list(wanted) if wanted is not None else columns_of(first, "the source")
    return Flow(columns, "json", in_batches(_as_rows(chain(first, rest), columns, wanted is not None), size))


def _as_rows(objects: Iterable[Any], columns: list[str], chosen: bool) -> Iterator[Row]:
    known = set(columns)
    for index, each in enumerate(objects):
        if not isinstance(each, dict):
            raise ToolFailure("parameters", f"the source: row {index} is not a mapping from column to value")
        if not chosen and not each.keys() <= known:
            strange = next(name for name in each if name not in known)
            raise ToolFailure(
                "columns",
                f"row {index} has the column `{strange}`, which no row of the first chunk has; "
                "hint: name the columns to move in `columns`",
            )
        yield [each.get(column) for column in columns]


def shape_of(flow: Flow, names: Sequence[tuple[str, int]], sample: Sequence[Row]) -> Shape:
    """`names` are the target's columns, each with its place in the source's rows; `sample` has the target's columns."""
    types = [
        flow.types.get(flow.columns[place]) or infer((row[index] for row in sample), flow.origin)
        for index, (_, place) in enumerate(names)
    ]
    return Shape([name for name, _ in names], types, flow.origin)


def statement_of(
    source: ServerSource | DatabaseFileSource, dialect: Dialect, wanted: Sequence[str] | None, call: Call
) -> Bound:
    """The one statement that gives the rows."""
    if (source.table is None) == (source.query is None):
        raise ToolFailure("parameters", "the source has exactly one of `table` and `query`")
    planner = Planner(dialect, call)
    if source.table is not None:
        columns = quote_all(wanted, dialect) if wanted is not None else "*"
        return planner.text(f"SELECT {columns} FROM {quote_table(source.table, dialect)}", None)[0]
    statements = planner.text(source.query or "", source.params)
    if len(statements) != 1:
        raise ToolFailure("parameters", f"`source.query` takes one statement, and this text has {len(statements)}")
    return statements[0]


@contextmanager
def read(opening: AbstractContextManager[Opened], size: int) -> Iterator[Flow]:
    with opening as opened:
        batches = map(list, opened.batches(size, lambda before: "reading"))
        types = {name: type for name, type in opened.columns if is_plain(type)}
        yield Flow([name for name, _ in opened.columns], "sql", batches, types)
