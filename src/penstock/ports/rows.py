"""Rows: what travels on data links, and the engine that holds them.

Control walks through the log, rows through the engine; the two meet in a `RowsRef`. An engine is small on purpose: relations in,
a SELECT, a relation out; so that the same components run on DuckDB here, and later on Spark or inside the database that holds the
tables.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap

SqlText: TypeAlias = str
"""One query in DuckDB's dialect. It is made by sqlglot, never by pasting."""

ENGINES: Final = ("duckdb", "spark", "database")
"""The kinds of engines. Rows of one sub-job are all on one of them."""
_WHERE: Final[dict[str, tuple[str, ...]]] = {"spark": ("remote", "master")}
"""Of engines that are elsewhere: the words of which one says where."""
DATABASES: Final = ("postgres", "duckdb")
"""The kinds of connections whose database can run the rows itself."""
DRIVERS: Final = {"snowflake.connector": "snowflake"}
"""Drivers of connections of the kind `dbapi` of which the same is true, and what their database is called."""


def database_of(login: Mapping[str, Any]) -> str | None:
    """Whose SQL runs where this connection leads; None where rows cannot run."""
    kind = login.get("kind")
    if kind == "dbapi":
        return DRIVERS.get(str(login.get("driver")))
    return str(kind) if kind in DATABASES else None


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine runs the rows of a sub-job, and what it is told. Rendered: nothing in it is a template any more."""

    kind: str = "duckdb"
    told: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    """The other words of `engine`, and the limits of `job_config`; sorted, a mapping as its items. Secrets may be in it."""

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> EngineChoice:
        """`words` are those of `engine`; the one for the kind may stand for all of them. Raises Refused."""
        kind = words.get("engine") or words.get("kind") or "duckdb"
        told = {name: value for name, value in words.items() if name not in ("engine", "kind") and value is not None}
        if isinstance(kind, Mapping):
            return cls.of({**told, **kind})
        known = told.pop("connections", None) or {}
        if kind == "database":
            told["login"] = _login(told.get("connection"), known)
            if "schema" in told and told["login"]["kind"] != "postgres":
                raise Refused(
                    "`schema` is only for PostgreSQL: others keep what a run needs where no schema is needed",
                    "leave it out",
                )
        if kind not in ENGINES:
            raise Refused(f"`{kind}` is not an engine", f"it is one of {', '.join(f'`{one}`' for one in ENGINES)}")
        places = _WHERE.get(kind, ())
        if places and sum(name in told for name in places) != 1:
            known = " or ".join(f"`{name}`" for name in places)
            raise Refused(
                f"the engine `{kind}` needs to know where it runs: exactly one of {known}",
                'such as `{kind: spark, remote: "sc://host:15002"}`, or `{kind: spark, master: "local[*]"}`',
            )
        return cls(kind, tuple(sorted((name, _fixed(value)) for name, value in told.items())))

    def get(self, name: str) -> Any:
        return next((value for word, value in self.told if word == name), None)

    @property
    def login(self) -> dict[str, Any]:
        """Of a database: its connection, as the document names it."""
        return dict(self.get("login") or ())

    def within(self, folder: Path) -> EngineChoice:
        """The same for a document in that folder, where the file of a database is looked for."""
        login = self.login
        if self.dialect != "duckdb" or not login:
            return self
        path = Path(str(login.get("path") or login.get("url")).removeprefix("duckdb:///")).expanduser()
        told = {**dict(self.told), "login": _fixed({**login, "path": str(folder / path)})}
        return replace(self, told=tuple(sorted(told.items())))

    @property
    def dialect(self) -> str:
        """Whose SQL a query has to be translated to."""
        return str(database_of(self.login)) if self.kind == "database" else self.kind


def _login(name: Any, known: Mapping[str, Any]) -> Mapping[str, Any]:
    if name is None:
        raise Refused(
            "the engine `database` needs to know in which database it runs: `connection`",
            "such as `{kind: database, connection: warehouse}`, a name of the document's `connections`",
        )
    found = known.get(name)
    if not isinstance(found, Mapping):
        named = ", ".join(f"`{one}`" for one in known) or "none"
        raise Refused(f"there is no connection `{name}` for the engine", f"the document's `connections` are: {named}")
    if database_of(found) is None:
        fitting = ", ".join(f"`{one}`" for one in DATABASES)
        named = ", ".join(f"`{one}`" for one in DRIVERS)
        driver = f" with the driver `{found['driver']}`" if found.get("driver") else ""
        raise Refused(
            f"rows cannot run in `{name}`, a connection of the kind `{found.get('kind')}`{driver}",
            f"one of the kind {fitting}, or `dbapi` with the driver {named}, can; "
            "or run the sub-job on `duckdb`, which reads and writes it",
        )
    return found


def _fixed(value: Any) -> Any:
    """A mapping as its items, which can be compared and hashed."""
    if isinstance(value, Mapping):
        return tuple(sorted((name, _fixed(inner)) for name, inner in value.items()))
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


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


class Parts(Protocol):
    """A file elsewhere that the engine reads in parts, under its URL. Called from threads of the engine."""

    @property
    def url(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def modified(self) -> datetime.datetime | None: ...

    def part(self, start: int, length: int) -> bytes: ...


class EngineSession(Protocol):
    """The engine as one component run sees it. Every call blocks and is made from a worker thread; each raises RowsFailed."""

    is_here: bool
    """Its rows are in this process, where a component may take them apart row by row."""
    runs_python: bool
    """It is a `RemoteSession`."""

    @property
    def place(self) -> object:
        """The database that its rows lie in, which is equal to that of another connection to it; None for rows of its own."""
        ...

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

    def load_arrow(
        self, stream: Any, schema: Schema | None = None, seen: Callable[[int], None] | None = None
    ) -> Relation:
        """Rows from any object with `__arrow_c_stream__` (Arrow, Polars, pandas 2.2+ …), which is read once. `seen` is told how
        many have come so far."""
        ...

    def copy(self, query: SqlText, inputs: Mapping[str, Relation], copy: Copy) -> int:
        """Write the rows of a query into a file; the file appears whole or not at all. The number of rows."""
        ...

    def fuse(self, stages: Sequence[Stage]) -> dict[str, Staged]:
        """Run a group of stages as one query. All or nothing: RowsFailed says only that some stage failed."""
        ...

    def empty(self, schema: Schema) -> Relation: ...

    def mount(self, files: Sequence[Parts]) -> Callable[[], None]:
        """Queries may name these files by their URLs, until what is returned is called."""
        ...

    def interrupt(self) -> None:
        """Called from another thread: whatever runs in this session fails with RowsFailed `interrupted`."""
        ...

    def close(self, handed_over: Collection[Relation] | None = None) -> None:
        """With `handed_over`, drop everything made here except that; without, everything stays until it is dropped."""
        ...


@dataclass(frozen=True, slots=True)
class OwnQuery:
    """A query of the author's, in the own SQL of the database that the rows lie in."""

    text: str
    columns: Schema = ()
    """What it gives, where the database does not say it in DuckDB's words; a type `numeric` has as many digits as it needs."""
    printed: frozenset[str] = frozenset()
    """Columns of types that DuckDB has not: they are what the server prints."""
    values: Mapping[str, Any] | None = None
    folders: str = ""
    """Where files that it names are looked for, with commas between."""


class DatabaseSession(EngineSession, Protocol):
    """A session whose rows lie in a database of the author's: its `place` is not None."""

    def take(self, query: OwnQuery) -> Relation:
        """The rows of a query, which stay in the database."""
        ...

    def table(self, relation: Relation) -> str:
        """The table that the rows are in, as another connection to the database names it."""
        ...

    def is_text(self, type: str) -> bool:
        """Are values of this type of DuckDB's kept as texts?"""
        ...


class SharedDatabaseSession(DatabaseSession, Protocol):
    """One whose tables can be seen in a single session of the database."""

    def running(self) -> AbstractContextManager[Any]:
        """That session, with `connection`, `errors`, `execute` and `failure`. While the block runs, nobody else's statements
        are in it."""
        ...


@dataclass(frozen=True, slots=True)
class Program:
    """Python that makes rows of rows where they are, without anything of ours being installed there."""

    texts: Mapping[str, str]
    """Modules by name, as text. They need the standard library and pyarrow."""
    main: str
    """The module whose `program(told, schema, **the other modules)` gives a function from Arrow's record batches to such."""
    told: str


class RemoteSession(EngineSession, Protocol):
    """A session of an engine whose rows are elsewhere, and which runs Python there."""

    def run_program(self, program: Program, rows: Relation, schema: Schema) -> Relation:
        """The rows that a program makes, with the columns of the schema. RowsFailed of kind `program` has the text of what it
        raised as `penstock-failure:<base64>;`."""
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


class Engines(Protocol):
    """Makes the engine that was chosen for the sub-jobs of one job run."""

    def __call__(self, choice: EngineChoice, folder: Path, *, is_offline: bool) -> Engine: ...
