"""What every database server that runs rows has in common: relations are tables in it, made by statements in its own SQL, and
DuckDB stands beside it for what is made or taken row by row in this process: it finds the columns and types of a query, and holds
rows on their way in or out.

A server is a subclass of each of the three: how it makes a table and counts its rows, how rows come and go, how it is stopped.
"""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

from penstock.data.binder import Binder
from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession
from penstock.data.fusion import Fusion, Output, Step, fusion
from penstock.data.output_hash import input_hashes, plan_hash, plan_key
from penstock.data.sql_rules import SqlMistake
from penstock.data.statements import quoted, uses
from penstock.data.translation import reads_files
from penstock.ports.rows import Copy, OwnQuery, Parts, Relation, RowsFailed, Schema, SqlText, Stage, Staged

TABLES = "penstock_"
"""What the names of tables of a run begin with."""
E = TypeVar("E", bound="ServerEngine")


class ServerSession(ABC, Generic[E]):
    is_here = False
    runs_python = False
    server: str
    """What the database is called."""

    def __init__(self, engine: E) -> None:
        self._engine = engine
        self._near: DuckDbSession = engine.near.session()
        self._turn = threading.RLock()
        self._is_interrupted = False
        self._made: set[str] = set()

    @property
    def place(self) -> object:
        return self._engine.place

    # What every server does in its own way

    @abstractmethod
    def execute(self, text: str) -> Any:
        """A cursor that has run the statement. Raises RowsFailed."""

    @abstractmethod
    def make(self, name: str, schema: Schema, text: str) -> int:
        """A table with the rows of a statement, and how many they are."""

    @abstractmethod
    def take(self, query: OwnQuery) -> Relation: ...

    @abstractmethod
    def is_text(self, type: str) -> bool: ...

    @abstractmethod
    def _fill(self, name: str, near: Relation) -> None:
        """A table with rows that are here."""

    @abstractmethod
    def _attempt(self, planned: Fusion) -> Attempt[Any]: ...

    @abstractmethod
    def interrupt(self) -> None: ...

    def _check(self) -> None:
        if self._is_interrupted:
            raise RowsFailed("interrupted", "interrupted")

    # Queries

    def describe(self, query: SqlText, inputs: Mapping[str, Relation]) -> Schema:
        return self._engine.columns_of(query, _schemas(inputs))

    def select(self, query: SqlText, inputs: Mapping[str, Relation]) -> Relation:
        try:
            text, schema = self._engine.stated(query, self._tables(inputs))
        except SqlMistake:
            # Before the run nobody could see this query: it is made here, and its rows go there.
            with self._nearby(inputs) as near:
                return self._taken(self._near.select(query, near))
        return self.keep(text, schema, plan_key(query, input_hashes(inputs)))

    def keep(self, text: str, schema: Schema, key: str) -> Relation:
        """The rows of a statement in the server's own SQL, whose columns are these, as a table."""
        with self._making() as name:
            rows = self.make(name, schema, text)
        return Relation(name, schema, rows, plan_hash(key, rows), spilled=True)

    def table(self, relation: Relation) -> str:
        """The table that the rows are in, as SQL names it."""
        return self._engine.stored(relation.name)

    def _tables(self, inputs: Mapping[str, Relation]) -> dict[str, tuple[str, Schema]]:
        return {name: (self._engine.stored(one.name), one.schema) for name, one in inputs.items()}

    def run(self, statement: SqlText, inputs: Mapping[str, Relation] | None = None, values: Sequence[Any] = ()) -> int:
        raise RowsFailed("engine", f"a statement for DuckDB cannot run in {self.server}; run this sub-job on `duckdb`")

    def rows(
        self, query: SqlText, inputs: Mapping[str, Relation], size: int = 10_000
    ) -> Iterator[list[tuple[Any, ...]]]:
        with self._brought(query, inputs) as near:
            yield from self._near.rows('SELECT * FROM "it"', {"it": near}, size)

    def arrow(self, query: SqlText, inputs: Mapping[str, Relation]) -> Any:
        # It is read while the session is open, at whose end what came with it is dropped.
        return self._near.arrow('SELECT * FROM "it"', {"it": self._bring(query, inputs)})

    def copy(self, query: SqlText, inputs: Mapping[str, Relation], copy: Copy) -> int:
        with self._brought(query, inputs) as near:
            return self._near.copy('SELECT * FROM "it"', {"it": near}, copy)

    # Rows on their way here and back

    @contextmanager
    def _brought(self, query: SqlText, inputs: Mapping[str, Relation]) -> Iterator[Relation]:
        near = self._bring(query, inputs)
        try:
            yield near
        finally:
            self._near.forget(near.name)

    def _bring(self, query: SqlText, inputs: Mapping[str, Relation]) -> Relation:
        self._check()
        try:
            text, schema = self._engine.stated(query, self._tables(inputs))
        except SqlMistake:
            with self._nearby(inputs) as near:
                return self._near.select(query, near)
        return self._engine.fetch(text, schema, self._near)

    @contextmanager
    def _nearby(self, inputs: Mapping[str, Relation]) -> Iterator[dict[str, Relation]]:
        everything = 'SELECT * FROM "it"'
        near = {name: self._bring(everything, {"it": one}) for name, one in inputs.items()}
        try:
            yield near
        finally:
            for one in near.values():
                self._near.forget(one.name)

    def _taken(self, near: Relation) -> Relation:
        """Rows that are here, in a table there."""
        try:
            with self._making() as name:
                self._fill(name, near)
        finally:
            self._near.forget(near.name)
        return Relation(name, near.schema, near.rows, near.hash, near.bytes, spilled=True)

    # Fused groups

    def fuse(self, stages: Sequence[Stage]) -> dict[str, Staged]:
        read: dict[Output, Relation] = {}
        try:
            rest = [stage for one in stages if (stage := self._without_files(one, read)) is not None]
            staged = self._attempt(fusion(rest)).run() if rest else {}
        except BaseException:
            for relation in read.values():
                self.forget(relation.name)
            raise
        for stage in (one for one in stages if one.name not in staged):
            ports = {port: read[stage.name, port] for port in stage.selects}
            staged[stage.name] = Staged(
                {port: one.rows for port, one in ports.items()},
                {port: one for port, one in ports.items() if port in stage.wanted},
            )
            for port in ports.keys() - stage.wanted:
                self.forget(ports[port].name)
        return staged

    def _without_files(self, stage: Stage, read: dict[Output, Relation]) -> Stage | None:
        """The stage over what has been read; None for one whose rows are made here, which is done now: `read` has them."""
        if not stage.inputs and any(map(self._engine.is_made_here, stage.selects.values())):
            for port, query in stage.selects.items():
                read[stage.name, port] = self._taken(self._near.select(query, {}))
            return None
        inputs = {
            name: source if isinstance(source, Relation) else read.get(source, source)
            for name, source in stage.inputs.items()
        }
        return replace(stage, inputs=inputs)

    # Rows that components make

    def empty(self, schema: Schema) -> Relation:
        return self._taken(self._near.empty(schema))

    def load(self, schema: Schema, batches: Iterable[Sequence[Sequence[Any]]]) -> Relation:
        return self._taken(self._near.load(schema, batches))

    def load_mappings(self, batches: Iterable[Sequence[Mapping[str, Any]]], schema: Schema | None = None) -> Relation:
        return self._taken(self._near.load_mappings(batches, schema))

    def load_arrow(
        self, stream: Any, schema: Schema | None = None, seen: Callable[[int], None] | None = None
    ) -> Relation:
        return self._taken(self._near.load_arrow(stream, schema, seen))

    def load_near(self, near: Relation) -> Relation:
        return self._taken(near)

    def mount(self, files: Sequence[Parts]) -> Callable[[], None]:
        return self._near.mount(files)

    # What was made

    @contextmanager
    def _making(self) -> Iterator[str]:
        name = self._engine.new_name()
        try:
            yield name
        except BaseException:
            self._engine.drop_table(name)
            raise
        self._made.add(name)

    def made(self, name: str) -> None:
        self._made.add(name)

    def forget(self, name: str) -> None:
        self._made.discard(name)
        self._engine.drop_table(name)

    def close(self, handed_over: Collection[Relation] | None = None) -> None:
        if handed_over is not None:
            for name in self._made - {relation.name for relation in handed_over}:
                self._engine.drop_table(name)
        self._made.clear()
        self._near.close(())


def _schemas(inputs: Mapping[str, Relation]) -> dict[str, Schema]:
    return {name: one.schema for name, one in inputs.items()}


S = TypeVar("S", bound="ServerSession[Any]")


class Attempt(ABC, Generic[S]):
    """One run of a fused group."""

    def __init__(self, session: S, engine: ServerEngine, planned: Fusion) -> None:
        self._session = session
        self._engine = engine
        self._planned = planned
        self._tables: dict[Output, Relation] = {}
        self._rows: dict[Output, int] = planned.known()
        self._schemas: dict[Output, Schema] = {}

    def run(self) -> dict[str, Staged]:
        try:
            for step in self._planned.steps:
                self._run_step(step)
        except SqlMistake as mistake:
            self._forget(lambda output: True)
            raise RowsFailed("sql", mistake.message) from mistake
        except BaseException:
            self._forget(lambda output: True)
            raise
        staged = {
            stage.name: Staged(
                {port: self._rows[self._planned.agreed[stage.name, port]] for port in stage.selects or ("",)},
                {port: self._tables[stage.name, port] for port in stage.selects if port in stage.wanted},
            )
            for stage in self._planned.stages.values()
        }
        self._forget(lambda output: output[1] not in self._planned.stages[output[0]].wanted)
        return staged

    def _forget(self, is_unwanted: Callable[[Output], bool]) -> None:
        for output, table in self._tables.items():
            if is_unwanted(output):
                self._session.forget(table.name)

    def _run_step(self, step: Step) -> None:
        marked = [output for output in step.inner if output in self._planned.marks]
        if step.makes == "count":
            counts = self._counted(step, marked)
        else:
            counts = self._made(step, marked)
            if step.makes == "file":
                self._write(step)
        for output, number in zip((step.end, *marked), counts, strict=True):
            self._rows[self._planned.agreed[output]] = int(number)

    @abstractmethod
    def _made(self, step: Step, marked: Sequence[Output]) -> Sequence[int]:
        """A table of the rows of a step; how many they are, and how many each marked output within it has."""

    def _kept(self, output: Output, name: str, rows: int) -> None:
        self._session.made(name)
        self._tables[output] = Relation(
            name, self._schema(output), rows, plan_hash(self._planned.key(output), rows), spilled=True
        )

    def _counted(self, step: Step, marked: Sequence[Output]) -> Sequence[int]:
        """The same without a table."""
        heads, last = self._heads(step, marked), self._body(step.end, step.inner)
        counts = [f"(SELECT count(*) FROM {self._name(step, one)})" for one in marked]
        text = f"SELECT {', '.join([f'(SELECT count(*) FROM ({last}) AS counted)', *counts])}"
        found: Sequence[int] = self._session.execute(f"WITH {', '.join(heads)} {text}" if heads else text).fetchall()[0]
        return found

    def _write(self, step: Step) -> None:
        copy = self._planned.stages[step.end[0]].copy
        assert copy is not None
        self._session.copy('SELECT * FROM "it"', {"it": self._tables[step.end]}, copy)

    def _name(self, step: Step, output: Output) -> str:
        return quoted(f"#{step.inner.index(output)}")

    def _heads(self, step: Step, marked: Sequence[Output]) -> list[str]:
        return [
            f"{self._name(step, one)} AS {self._how(one in marked)}(\n{self._body(one, step.inner)}\n)"
            for one in step.inner
        ]

    def _how(self, is_marked: bool) -> str:
        """What a CTE says of itself; `is_marked` when it is counted."""
        return ""

    def _body(self, output: Output, inner: Sequence[Output]) -> str:
        stage = self._planned.stages[output[0]]
        sources = {name: self._source(source, inner) for name, source in stage.inputs.items()}
        if not output[1]:
            source, _ = next(iter(sources.values()))
            return f"SELECT * FROM {source}"
        return self._engine.stated(stage.selects[output[1]], sources)[0]

    def _source(self, source: Output | Relation, inner: Sequence[Output]) -> tuple[str, Schema]:
        if isinstance(source, Relation):
            return self._engine.stored(source.name), source.schema
        if source in self._tables:
            return self._engine.stored(self._tables[source].name), self._schema(source)
        return quoted(f"#{list(inner).index(source)}") if source in inner else "", self._schema(source)

    def _schema(self, output: Output) -> Schema:
        if output not in self._schemas:
            stage = self._planned.stages[output[0]]
            inputs = {
                name: source.schema if isinstance(source, Relation) else self._schema(source)
                for name, source in stage.inputs.items()
            }
            self._schemas[output] = (
                self._engine.columns_of(stage.selects[output[1]], inputs) if output[1] else next(iter(inputs.values()))
            )
        return self._schemas[output]


class ServerEngine(ABC):
    inlined = ""
    """What a CTE says that is to be part of the statement that reads it."""
    own_columns: tuple[str, ...] = ()
    """Of every table and every translated query, behind the others: columns that no query of an author's sees."""

    def __init__(self, folder: Path, place: object, memory_limit: str | None) -> None:
        self.place = place
        """Equal to that of another connection to the same database."""
        self.near = DuckDbEngine(folder / "near", memory_limit=memory_limit)
        self._binder = Binder()
        self._token = secrets.token_hex(8)
        self._numbers = count(1)
        self._lock = threading.RLock()
        self._is_closed = False

    @abstractmethod
    def session(self) -> ServerSession[Any]: ...

    # What every server does in its own way

    @abstractmethod
    def translated(self, query: SqlText, inputs: Mapping[str, Schema]) -> str:
        """The query in the server's SQL, over tables named like its inputs in lower case. Raises SqlMistake."""

    @abstractmethod
    def kept_column(self, expression: str, type: str) -> str:
        """An expression as a column of that type of DuckDB's is kept."""

    @abstractmethod
    def columns_of_table(self, schema: Schema) -> str:
        """The columns of a table that is made. Raises SqlMistake for one that cannot be."""

    @abstractmethod
    def begin(self) -> None:
        """Before the first table."""

    @abstractmethod
    def stored(self, name: str) -> str:
        """A table of the run, as statements name it."""

    @abstractmethod
    def drop_table(self, name: str) -> None: ...

    @abstractmethod
    def fetch(self, text: str, schema: Schema, near: DuckDbSession) -> Relation:
        """The rows of a statement, brought here."""

    # Queries

    def is_made_here(self, query: SqlText) -> bool:
        """Of a query that reads no tables: are its rows made here, to go there?"""
        return reads_files(query)

    def columns_of(self, query: SqlText, inputs: Mapping[str, Schema]) -> Schema:
        return self._binder.schema(query, inputs)

    def stated(self, query: SqlText, sources: Mapping[str, tuple[str, Schema]]) -> tuple[str, Schema]:
        """The query in the server's SQL over these sources, and its columns. Raises SqlMistake."""
        schemas = {name: schema for name, (_, schema) in sources.items()}
        found = self.columns_of(query, schemas)
        body = self.translated(query, schemas)
        self.begin()
        own = [quoted(name) for name in self.own_columns]
        heads = [
            f"{quoted(name.lower())} ({', '.join([*(quoted(one.name.lower()) for one in schema), *own])}) AS {self.inlined}"
            f"(SELECT {', '.join([*(quoted(one.name) for one in schema), *own])} FROM {text})"
            for name, (text, schema) in sources.items()
            if uses(query, name)
        ]
        places = ", ".join([*(quoted(f"c{number}") for number in range(len(found))), *own])
        kept = [
            f"{self.kept_column(quoted(f'c{number}'), one.type)} AS {quoted(one.name)}"
            for number, one in enumerate(found)
        ]
        chosen = ", ".join([*kept, *own])
        self.columns_of_table(found)
        heads.append(f"{_FOUND} ({places}) AS {self.inlined}(\n{body}\n)")
        return f"WITH {', '.join(heads)} SELECT {chosen} FROM {_FOUND}", found

    # Tables

    def new_name(self) -> str:
        self.begin()
        return f"{TABLES}{self._token}_{next(self._numbers)}"

    def drop(self, relation: Relation) -> None:
        self.drop_table(relation.name)

    def export(self, relation: Relation, path: Path) -> None:
        session = self.near.session()
        try:
            text, schema = self.stated('SELECT * FROM "it"', {"it": (self.stored(relation.name), relation.schema)})
            near = self.fetch(text, schema, session)
            self.near.export(Relation(near.name, relation.schema, relation.rows, relation.hash), path)
        finally:
            session.close(())

    def attach(self, path: Path, schema: Schema, rows: int, hash: str) -> Relation:
        session = self.session()
        try:
            near = self.near.attach(path, schema, rows, hash)
            made = session.load_near(near)
        except BaseException:
            session.close(())
            raise
        session.close([made])
        return made

    def spill(self, relation: Relation) -> Relation:
        return relation

    def close(self) -> None:
        self._binder.close()
        self.near.close()


_FOUND = '"#found"'
"""The rows that a query gives, whose columns are named by their places: two may have the same name."""
