"""DuckDB as one component run sees it.

Statements run one after another on the session's own cursor. Streaming reads and loads have cursors of their own, so that a
component may read and load rows at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from penstock.data.arrow_stream import CountedStream
from penstock.data.atomic_file import AtomicFile
from penstock.data.duckdb_database import Database, Limits, close_cursor, failing_plainly, interrupt, settle
from penstock.data.failures import bound, columns_of, placed_in, rows_failed, type_trouble_at
from penstock.data.fusion import run_fused
from penstock.data.output_hash import (
    CONTENT_UP_TO,
    content_hash,
    content_query,
    input_hashes,
    plan_hash,
    plan_key,
)
from penstock.data.python_rows import Conversion, MappingWriter, TableWriter, batches
from penstock.data.queues import Feed
from penstock.data.statements import columns, copy_statement, export_statement, over, quoted, stored, view_statement
from penstock.data.types import Bound, Stuck, bound_under_some_types, has_untyped
from penstock.ports.rows import Column, Copy, Parts, Relation, RowsFailed, Schema, SqlText, Stage, Staged
from penstock.ports.undoing import unless_done

T = TypeVar("T")
_AGAIN_AFTER = 0.02
"""Seconds. An interrupt that comes before a statement has begun is lost, so it is repeated while something runs."""


class DuckDbSession:
    is_here = True
    runs_python = False

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database = database
        self._limits = limits
        self._own = database.cursor()
        self._turn = threading.RLock()
        self._guard = threading.Condition()
        self._running: dict[int, duckdb.DuckDBPyConnection] = {}
        self._is_interrupted = False
        self._made: set[str] = set()

    @property
    def place(self) -> object:
        return self._database.place

    # What runs, and how it fails

    @contextmanager
    def using(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
        """A statement runs on the cursor; what DuckDB raises becomes RowsFailed."""
        with self._guard:
            self._check()
            self._running[id(cursor)] = cursor
        try:
            yield cursor
        except duckdb.Error as error:
            raise self._database.mounted.cause_of(error) or rows_failed(error) from error
        finally:
            with self._guard:
                self._running.pop(id(cursor), None)
                self._guard.notify_all()

    @contextmanager
    def own(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._turn, self.using(self._own) as cursor:
            yield cursor

    def _check(self) -> None:
        if self._is_interrupted:
            raise RowsFailed("interrupted", "interrupted")

    def interrupt(self) -> None:
        with self._guard:
            already, self._is_interrupted = self._is_interrupted, True
        if not already:
            threading.Thread(target=self._interrupt_until_quiet, name="interrupt", daemon=True).start()

    def _interrupt_until_quiet(self) -> None:
        with self._guard:
            while self._running:
                for cursor in self._running.values():
                    interrupt(cursor)
                self._guard.wait(_AGAIN_AFTER)

    def within_memory(self, run: Callable[[bool], T]) -> T:
        """Run something; if memory ends, once more and frugally."""
        try:
            return run(False)
        except RowsFailed as failed:
            if failed.kind != "memory":
                raise
        with self._database.frugally():
            return run(True)

    # Queries

    def describe(self, query: SqlText, inputs: Mapping[str, Relation]) -> Schema:
        asked = self._over(query, inputs)
        with placed_in(query, asked), self.own() as cursor:
            return tuple(Column(name, type) for name, type in columns_of(cursor, asked))

    def select(self, query: SqlText, inputs: Mapping[str, Relation]) -> Relation:
        asked = self._over(query, inputs)

        def run(is_frugal: bool) -> Relation:
            with self.making() as name:
                statement = f"CREATE TABLE {stored(name)} AS {asked}"
                with placed_in(query, statement), self.own() as cursor:
                    rows = cursor.execute(statement).rowcount
                    return self.relation(cursor, name, rows, key=plan_key(query, input_hashes(inputs)))

        return self.within_memory(run)

    def run(self, statement: SqlText, inputs: Mapping[str, Relation] | None = None, values: Sequence[Any] = ()) -> int:
        given = inputs or {}
        with self.own() as cursor:
            for name, relation in given.items():
                cursor.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS SELECT * FROM {stored(relation.name)}")
            try:
                cursor.execute(statement, list(values) or None)
                return max(0, cursor.rowcount)
            finally:
                for name in given:
                    cursor.execute(f"DROP VIEW IF EXISTS temp.{quoted(name)}")

    def rows(
        self, query: SqlText, inputs: Mapping[str, Relation], size: int = 10_000
    ) -> Iterator[list[tuple[Any, ...]]]:
        asked = self._over(query, inputs)
        with placed_in(query, asked), self.own() as cursor:
            found = bound(cursor, asked)
            conversion = Conversion(found.columns, found.types)
        return self._stream(conversion.query(asked) if conversion.is_needed else asked, size, conversion)

    def _stream(self, query: str, size: int, conversion: Conversion) -> Iterator[list[tuple[Any, ...]]]:
        cursor = self._database.cursor()
        try:
            with self.using(cursor):
                cursor.execute(query)
            source = batches(cursor.fetchmany, size, conversion if conversion.is_needed else None)
            while True:
                with self.using(cursor):
                    batch = next(source, None)
                if batch is None:
                    return
                yield batch
        finally:
            cursor.close()

    def arrow(self, query: SqlText, inputs: Mapping[str, Relation]) -> Any:
        with self.using(self._database.cursor()) as cursor:
            return ArrowRows(cursor.sql(self._over(query, inputs)))

    def copy(self, query: SqlText, inputs: Mapping[str, Relation], copy: Copy) -> int:
        asked = self._over(query, inputs)
        landing = AtomicFile(copy.path)

        def run(is_frugal: bool) -> int:
            statement = copy_statement(asked, copy, str(landing.written), frugal=is_frugal)
            with placed_in(query, statement), self.own() as cursor:
                return cursor.execute(statement).rowcount

        try:
            rows = self.within_memory(run)
            landing.land()
        finally:
            landing.discard()
        return rows

    def fuse(self, stages: Sequence[Stage]) -> dict[str, Staged]:
        for stage in stages:
            for query in stage.selects.values():
                self._database.one_query(query)
        return run_fused(self, stages)

    def _over(self, query: SqlText, inputs: Mapping[str, Relation]) -> str:
        self._database.one_query(query)
        asked = over(query, {name: stored(relation.name) for name, relation in inputs.items()})
        schemas = {name: relation.schema for name, relation in inputs.items()}
        return (self._over_some_types(query, inputs, schemas) or asked) if has_untyped(schemas) else asked

    def _over_some_types(
        self, query: SqlText, inputs: Mapping[str, Relation], schemas: Mapping[str, Schema]
    ) -> str | None:
        def bind(typed: Mapping[str, Schema]) -> Bound[str] | Stuck:
            asked = over(query, {name: _retyped(inputs[name], typed[name]) for name in inputs})
            try:
                bound(cursor, asked)
            except duckdb.Error as error:
                at = type_trouble_at(error, asked)
                # After any other error the types cannot be improved, and the author should see that error.
                return Bound(asked) if at is None else Stuck(at)
            return Bound(asked)

        with self.own() as cursor:
            return bound_under_some_types(query, schemas, bind)

    # Rows that stay

    def empty(self, schema: Schema) -> Relation:
        if not schema:
            raise RowsFailed("schema", "rows need at least one column")
        with self.making() as name, self.own() as cursor:
            cursor.execute(f"CREATE TABLE {stored(name)} ({columns(schema)})")
            return self.relation(cursor, name, 0, declared=schema)

    def load(self, schema: Schema, batches: Iterable[Sequence[Sequence[Any]]]) -> Relation:
        with self._loading() as (cursor, name):
            with self.using(cursor):
                writer = TableWriter(cursor, name, schema)
            self._feed(cursor, writer, batches)
            return self._loaded(cursor, name, writer, schema)

    def load_mappings(self, batches: Iterable[Sequence[Mapping[str, Any]]], schema: Schema | None = None) -> Relation:
        if schema is not None:
            return self.load(schema, _in_order(schema, batches))
        with self._loading() as (cursor, name):
            writer = MappingWriter(cursor, name)
            self._feed(cursor, writer, batches)
            with self.using(cursor):
                finished = writer.finish()
            return self._loaded(cursor, name, finished, None)

    @contextmanager
    def _loading(self) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
        cursor = self._database.cursor()
        try:
            with self.making() as name:
                yield cursor, name
        finally:
            cursor.close()

    def _feed(
        self, cursor: duckdb.DuckDBPyConnection, writer: TableWriter | MappingWriter, batches: Iterable[Any]
    ) -> None:
        def write(batch: Sequence[Any]) -> None:
            with self.using(cursor):
                writer.write(batch)

        with unless_done(writer.abandon):
            Feed(self._limits, self._database.spill).run(batches, write)

    def load_arrow(
        self, stream: Any, schema: Schema | None = None, seen: Callable[[int], None] | None = None
    ) -> Relation:
        if not hasattr(stream, "__arrow_c_stream__"):
            raise RowsFailed(
                "value", f"a `{type(stream).__name__}` is no table of Arrow: it has no `__arrow_c_stream__`"
            )
        counted = stream if seen is None else CountedStream(stream, seen)
        with self.making() as name, closing(self._database.cursor()) as cursor, self.using(cursor):
            source = f"arrow {name}"
            chosen = "*" if schema is None else _cast_to(schema)
            # Given a data frame of a library that it knows, DuckDB would ask for more, and for pyarrow; and it would read the
            # schema from a stream of its own, which a stream that can be read only once does not have.
            cursor.register(source, counted.__arrow_c_stream__())
            made = cursor.execute(f"CREATE TABLE {stored(name)} AS SELECT {chosen} FROM {quoted(source)}")
            return self.relation(cursor, name, made.rowcount, declared=schema)

    def relation(
        self,
        cursor: duckdb.DuckDBPyConnection,
        name: str,
        rows: int,
        *,
        key: str | None = None,
        declared: Schema | None = None,
    ) -> Relation:
        """The description of a table. `key` is the key of its plan; without one only its contents can be hashed."""
        schema = self._database.schema(cursor, name)
        if declared is not None and [column.name for column in declared] == [column.name for column in schema]:
            schema = tuple(
                Column(found.name, found.type, wanted.nullable, wanted.key, wanted.pattern)
                for found, wanted in zip(schema, declared, strict=True)
            )
        if key is not None and rows > CONTENT_UP_TO:
            digest = plan_hash(key, rows)
        else:
            added = cursor.execute(content_query(name, schema)).fetchall()[0][0] if rows else 0
            digest = content_hash(schema, rows, added)
        return Relation(name, schema, rows, digest, rows * _width(schema))

    def _loaded(
        self, cursor: duckdb.DuckDBPyConnection, name: str, writer: TableWriter, schema: Schema | None
    ) -> Relation:
        with self.using(cursor):
            writer.flush()
            return self.relation(cursor, name, writer.rows, declared=schema)

    def mount(self, files: Sequence[Parts]) -> Callable[[], None]:
        return self._database.mount(files)

    # What was made

    @contextmanager
    def making(self) -> Iterator[str]:
        """A name for a table that is being made: it goes again if that fails."""
        name = self._database.new_name()
        with unless_done(lambda: self._database.drop(name)):
            yield name
        self._made.add(name)

    def forget(self, name: str) -> None:
        self._made.discard(name)
        self._database.drop(name)

    def close(self, handed_over: Collection[Relation] | None = None) -> None:
        """If the relations that were handed over are given, all other tables made here are dropped; otherwise they stay until
        they are dropped."""
        if handed_over is not None:
            for name in self._made - {relation.name for relation in handed_over}:
                self._database.drop(name)
        self._made.clear()
        close_cursor(self._own)


class ArrowRows:
    """The rows of a query as an Arrow stream; the query runs when it is consumed."""

    def __init__(self, found: duckdb.DuckDBPyRelation) -> None:
        self._found = found

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        try:
            return self._found.__arrow_c_stream__(requested_schema)
        except duckdb.Error as error:
            raise rows_failed(error) from error


def _in_order(schema: Schema, batches: Iterable[Sequence[Mapping[str, Any]]]) -> Iterator[list[tuple[Any, ...]]]:
    names = [column.name for column in schema]
    for batch in batches:
        for row in batch:
            if not isinstance(row, Mapping):
                raise RowsFailed("data", f"a row is a `{type(row).__name__}`, not a mapping of columns to values")
        yield [tuple(row.get(name) for name in names) for row in batch]


def _retyped(relation: Relation, schema: Schema) -> str:
    """The relation, as a source whose columns have the types of the schema."""
    changed = [new for new, old in zip(schema, relation.schema, strict=True) if new.type != old.type]
    if not changed:
        return stored(relation.name)
    casts = ", ".join(f"CAST({quoted(one.name)} AS {one.type}) AS {quoted(one.name)}" for one in changed)
    return f"(SELECT * REPLACE ({casts}) FROM {stored(relation.name)})"


def _cast_to(schema: Schema) -> str:
    return ", ".join(f"CAST({quoted(column.name)} AS {column.type}) AS {quoted(column.name)}" for column in schema)


_WIDTHS = {
    "BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "FLOAT": 4, "DATE": 4, "HUGEINT": 16, "UUID": 16,
    "INTERVAL": 16,
}  # fmt: skip


def _width(schema: Schema) -> int:
    """Roughly how many bytes a row takes, with an average length for texts."""
    return sum(_WIDTHS.get(column.type, 8 if column.type.startswith(("B", "D", "T", "U")) else 24) for column in schema)


class DuckDbEngine:
    def __init__(
        self,
        folder: Path,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        max_in_flight_rows: int | None = None,
        max_in_flight_bytes: int | None = None,
        max_spill: str | None = None,
        is_offline: bool = False,
    ) -> None:
        self._limits = Limits(memory_limit, threads, max_spill, max_in_flight_rows, max_in_flight_bytes, is_offline)
        self._database = Database(folder, self._limits)

    def session(self) -> DuckDbSession:
        return DuckDbSession(self._database, self._limits)

    def drop(self, relation: Relation) -> None:
        self._database.drop(relation.name)

    def export(self, relation: Relation, path: Path) -> None:
        landing = AtomicFile(path)
        try:
            self._write(relation, landing.written)
            landing.land()
            settle(landing.path)
        finally:
            landing.discard()

    def attach(self, path: Path, schema: Schema, rows: int, hash: str) -> Relation:
        if not path.exists():
            raise RowsFailed("missing_file", f"there is no file `{path}` to read rows from")
        return self._view(path, schema, rows, hash, is_ours=False)

    def spill(self, relation: Relation) -> Relation:
        if relation.spilled:
            return relation
        path = self._database.new_file()
        with unless_done(lambda: path.unlink(missing_ok=True)):
            self._write(relation, path)
            spilled = self._view(path, relation.schema, relation.rows, relation.hash, is_ours=True)
        self._database.drop(relation.name)
        return spilled

    def content_hash(self, relation: Relation) -> str:
        """The hash of the rows themselves, also where the relation has one of its plan."""
        if relation.hash.startswith("rows:"):
            return relation.hash
        with failing_plainly(), closing(self._database.cursor()) as cursor:
            added = cursor.execute(content_query(relation.name, relation.schema)).fetchall()[0][0]
        return content_hash(relation.schema, relation.rows, added)

    def close(self) -> None:
        self._database.close()

    def _write(self, relation: Relation, path: Path) -> None:
        with failing_plainly(), closing(self._database.cursor()) as cursor:
            cursor.execute(export_statement(relation.name, relation.schema, path))
        if not path.is_file():
            raise RowsFailed("io", f"`{path}` was not written")

    def _view(self, path: Path, schema: Schema, rows: int, hash: str, *, is_ours: bool) -> Relation:
        name = self._database.name_file(path, is_ours=is_ours)
        with failing_plainly(), closing(self._database.cursor()) as cursor:
            cursor.execute(view_statement(name, schema, path))
        return Relation(name, schema, rows, hash, path.stat().st_size, spilled=True)
