"""Rows: what travels on data links, and the engine that holds them.

Control walks through the log, rows through the engine; the two meet in a `RowsRef`. An engine is small on purpose: relations in,
a SELECT, a relation out; so that the same components run on DuckDB here, and later on Spark or inside the database that holds the
tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from penstock.kernel.values import Json, JsonMap

SqlText: TypeAlias = str
"""One query in DuckDB's dialect. It is made by sqlglot, never by pasting."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    """A type of DuckDB's: `VARCHAR`, `BIGINT`, `DECIMAL(18,3)`, `STRUCT(a INTEGER)` …"""
    nullable: bool = True
    key: bool = False
    pattern: str | None = None

    def as_json(self) -> JsonMap:
        more: JsonMap = {}
        if not self.nullable:
            more["nullable"] = False
        if self.key:
            more["key"] = True
        if self.pattern is not None:
            more["pattern"] = self.pattern
        return {"name": self.name, "type": self.type, **more}


Schema: TypeAlias = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows on a port (PipelineData): where they are, their columns, how many."""

    name: str
    """The engine's own name for them: a table, a view or a file it can read."""
    schema: Schema
    rows: int
    hash: str = ""
    """Independent of row order. `rows:…` is of the contents, `plan:…` of the query and what it was given."""
    bytes: int = 0
    spilled: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """Write the rows of a query into one file."""

    path: Path
    format: Literal["csv", "parquet", "json"]
    options: Mapping[str, Json] = field(default_factory=dict)
    """Options of DuckDB's COPY: `header`, `delimiter`, `compression` …"""


@dataclass(frozen=True, slots=True)
class Stage:
    """One component of a fused group."""

    name: str
    selects: Mapping[str, SqlText]
    """Output port -> a query that names its inputs as tables. Empty for a sink."""
    inputs: Mapping[str, tuple[str, str] | Relation] = field(default_factory=dict)
    """Table name in the query -> (earlier stage, its port), or existing rows."""
    wanted: frozenset[str] = frozenset()
    """Ports whose rows must exist afterwards, because something outside the group reads them."""
    keeps_count: bool = False
    """Every output has as many rows as the (first) input, so nothing needs counting."""
    copy: Copy | None = None
    """A sink writes the rows of its one input here."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The result of one stage. `rows` per output port; for a sink, under the port `""`. `relations` holds the wanted ones."""

    rows: Mapping[str, int]
    relations: Mapping[str, Relation] = field(default_factory=dict)


class RowsFailed(Exception):
    """The engine failed. `kind`: `sql`, `conversion`, `constraint`, `memory`, `disk`, `missing_file`, `format`,
    `interrupted` …; `position` is an offset into the query's text, if the engine names one."""

    def __init__(self, kind: str, message: str, *, position: int | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.position = position
        self.retryable = retryable


class EngineSession(Protocol):
    """The engine as one component run sees it. Every call blocks and is made from a worker thread; each raises RowsFailed."""

    def describe(self, query: SqlText, inputs: Mapping[str, Relation]) -> Schema:
        """The columns of a query, without running it."""
        ...

    def select(self, query: SqlText, inputs: Mapping[str, Relation]) -> Relation:
        """Run a query and keep its rows."""
        ...

    def run(self, statement: SqlText, inputs: Mapping[str, Relation] | None = None, values: Sequence[Any] = ()) -> int:
        """Run a statement for its effect inside the engine (attach, install, set …). The number of rows it touched."""
        ...

    def rows(
        self, query: SqlText, inputs: Mapping[str, Relation], size: int = 10_000
    ) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query as Python values, in batches of at most `size`."""
        ...

    def arrow(self, query: SqlText, inputs: Mapping[str, Relation]) -> Any:
        """The rows of a query as an object with `__arrow_c_stream__`."""
        ...

    def load(self, schema: Schema, batches: Iterable[Sequence[Sequence[Any]]]) -> Relation:
        """Rows from Python values, batch by batch, into columns of the given types."""
        ...

    def load_mappings(self, batches: Iterable[Sequence[Mapping[str, Any]]], schema: Schema | None = None) -> Relation:
        """Rows from mappings. Without a schema the columns and types are those of the rows, which may differ from each other;
        columns stand in the order in which they were first seen."""
        ...

    def load_arrow(self, stream: Any, schema: Schema | None = None) -> Relation:
        """Rows from any object with `__arrow_c_stream__` (Arrow, Polars, pandas 2.2+ …)."""
        ...

    def copy(self, query: SqlText, inputs: Mapping[str, Relation], copy: Copy) -> int:
        """Write the rows of a query into a file; the file appears whole or not at all. The number of rows."""
        ...

    def fuse(self, stages: Sequence[Stage]) -> dict[str, Staged]:
        """Run a group of stages as one query. All or nothing: RowsFailed says only that some stage failed."""
        ...

    def empty(self, schema: Schema) -> Relation: ...

    def interrupt(self) -> None:
        """Called from another thread: whatever runs in this session fails with RowsFailed `interrupted`."""
        ...

    def close(self, handed_over: Collection[Relation] | None = None) -> None:
        """With `handed_over`, drop everything made here except that; without, everything stays until it is dropped."""
        ...


class Engine(Protocol):
    """The rows of one job run."""

    def session(self) -> EngineSession: ...

    def drop(self, relation: Relation) -> None:
        """Nobody will read these rows any more."""
        ...

    def export(self, relation: Relation, path: Path) -> None:
        """Write the rows as Parquet, with their schema; durable when it returns."""
        ...

    def attach(self, path: Path, schema: Schema, rows: int, hash: str) -> Relation:
        """Rows that were exported, in this run or an earlier one. Nothing is read before it is needed."""
        ...

    def spill(self, relation: Relation) -> Relation:
        """The same rows on disk and no longer in memory."""
        ...

    def close(self) -> None: ...
