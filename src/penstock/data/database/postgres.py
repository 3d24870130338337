"""PostgreSQL as one job run sees it: relations are tables in it, and queries over them never bring their rows here.

Tables of a run are unlogged, and named after a token that the run holds an advisory lock on for as long as it lives: what a run
that was killed has left behind is dropped by the next one that begins. DuckDB stands beside the server for what is made or taken
row by row in this process: it finds the columns and types of a query, and holds rows on their way in or out.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from penstock.data import select
from penstock.data.binder import Binder
from penstock.data.database.postgres_sql import (
    columns_of_table,
    is_carried,
    kept_column,
    postgres_query,
    postgres_type,
)
from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession
from penstock.data.fusion import Fusion, Output, Step, fusion
from penstock.data.output_hash import input_hashes, plan_hash, plan_key
from penstock.data.row_texts import csv_line
from penstock.data.sql_rules import SqlMistake
from penstock.data.statements import quoted, uses
from penstock.data.translation import reads_files
from penstock.ports.rows import Column, Copy, OwnQuery, Parts, Relation, RowsFailed, Schema, SqlText, Stage, Staged

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

_AGAIN_AFTER = 0.05
"""Seconds. A cancellation that comes before a statement has begun is lost, so it is repeated while something runs."""
_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
    "SET IntervalStyle = 'postgres'",
    "SET extra_float_digits = 1",
    # Rows without an order come as they were written.
    "SET synchronize_seqscans = off",
    "SET client_min_messages = warning",
)
_PATIENCE, _LAST_PATIENCE = "SET lock_timeout = '100ms'", "SET lock_timeout = '10s'"
"""How long a table is waited for that is to be dropped: during a run, and at its end."""
_TABLES = "penstock_"
_AS_THEY_LIE = "over ()"
"""Of rows that are numbered as they come, no two processes may read parts at the same time."""


class Server(Protocol):
    """Where the tables are, and how it is reached. What it raises is for the author of a job."""

    @property
    def place(self) -> object:
        """Equal to that of another connection to the same database."""
        ...

    def connect(self) -> Connection[Any]:
        """A blocking connection."""
        ...

    def rows(self, statement: str) -> AbstractContextManager[Any]:
        """The rows of a statement as an Arrow stream, which is read once while the block runs."""
        ...


_KINDS = {
    "22": "conversion", "23": "constraint", "42": "sql", "0A": "sql", "53100": "disk", "53200": "memory", "08": "connection",
    "57P": "connection", "28": "connection", "54": "sql",
}  # fmt: skip


def rows_failed(error: Any, *, is_interrupted: bool, is_lost: bool) -> RowsFailed:
    """What the driver raised, for the author of a job."""
    state = error.sqlstate or ("08006" if is_lost else "")
    if is_interrupted or state == "57014":
        return RowsFailed("interrupted", "interrupted")
    kind = next((_KINDS[state[:size]] for size in (5, 3, 2) if state[:size] in _KINDS), "engine")
    said = error.diag.message_primary or " ".join(str(error).split())
    return RowsFailed(kind, f"PostgreSQL: {said}", retryable=kind == "connection")


class PostgresSession:
    is_here = False
    runs_python = False

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._near: DuckDbSession = engine.near.session()
        self._turn = threading.RLock()
        self._guard = threading.Condition()
        self._running: Connection[Any] | None = None
        self._connection: Connection[Any] | None = None
        self._is_interrupted = False
        self._made: set[str] = set()

    @property
    def place(self) -> object:
        return self._engine.server.place

    # What runs, and how it fails

    @contextmanager
    def running(self) -> Iterator[Connection[Any]]:
        """The session's own connection, for one statement at a time; what the driver raises becomes RowsFailed."""
        import psycopg  # Slow to import: only a connection needs it.

        with self._turn:
            self._check()
            if self._connection is None:
                self._connection = self._engine.take()
            connection = self._connection
            with self._guard:
                self._check()
                self._running = connection
            try:
                yield connection
            except psycopg.Error as error:
                raise rows_failed(error, is_interrupted=self._is_interrupted, is_lost=connection.closed) from None
            except SqlMistake as mistake:
                message = f"{mistake.message}; {mistake.hint}" if mistake.hint else mistake.message
                raise RowsFailed("sql", message) from mistake
            finally:
                with self._guard:
                    self._running = None
                    self._guard.notify_all()

    def execute(self, text: str) -> Cursor[Any]:
        with self.running() as connection:
            if _AS_THEY_LIE not in text.lower():
                return connection.execute(text.encode())
            connection.execute(b"SET max_parallel_workers_per_gather = 0")
            try:
                return connection.execute(text.encode())
            finally:
                if not connection.closed:
                    connection.execute(b"RESET max_parallel_workers_per_gather")

    def _check(self) -> None:
        if self._is_interrupted:
            raise RowsFailed("interrupted", "interrupted")

    def interrupt(self) -> None:
        with self._guard:
            already, self._is_interrupted = self._is_interrupted, True
        self._near.interrupt()
        if not already:
            threading.Thread(target=self._cancel_until_quiet, name="interrupt", daemon=True).start()

    def _cancel_until_quiet(self) -> None:
        import psycopg  # Slow to import: only a connection needs it.

        with self._guard:
            while self._running is not None:
                connection = self._running
                # A server that cannot be asked runs nothing for long.
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=5)
                self._guard.wait(_AGAIN_AFTER)

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
        """The rows of a statement in PostgreSQL's own SQL, whose columns are these, as a table."""
        with self._making() as name:
            made = self.execute(f"CREATE UNLOGGED TABLE {self._engine.stored(name)} AS {text}")
        return Relation(name, schema, made.rowcount, plan_hash(key, made.rowcount), spilled=True)

    def take(self, query: OwnQuery) -> Relation:
        """The rows of a query of the author's in the database's own SQL, which stay where they are. Columns of the type `numeric`
        get the scale that their values need."""
        known = self._exact(query.text, query.columns)
        columns = ", ".join(f"c{number}" for number in range(len(known)))
        chosen = [
            f"{kept_column(_printed(f'c{number}', one.name in query.printed), one.type)} AS {quoted(one.name)}"
            for number, one in enumerate(known)
        ]
        text = f"SELECT {', '.join(chosen)} FROM (\n{query.text}\n) AS found ({columns})"
        # Nothing but the rows themselves says what they were, and they are not read once more for a hash.
        return self.keep(text, known, secrets.token_hex(16))

    def _exact(self, statement: str, schema: Schema) -> Schema:
        exact = [number for number, one in enumerate(schema) if one.type == _EXACT]
        if not exact:
            return schema
        columns = ", ".join(f"c{number}" for number in range(len(schema)))
        asked = ", ".join(
            f"max(scale(c{n})), max(length(trunc(abs(c{n}))::text)), bool_or(c{n} IN ('NaN', 'Infinity', '-Infinity'))"
            for n in exact
        )
        (found,) = self.execute(f"SELECT {asked} FROM (\n{statement}\n) AS found ({columns})").fetchall()
        types = {}
        for place, number in enumerate(exact):
            scale, width, is_odd = found[place * 3 : place * 3 + 3]
            fits = not is_odd and (width or 1) + (scale or 0) <= 38
            types[number] = f"DECIMAL(38,{scale or 0})" if fits else "DOUBLE"
        return tuple(Column(one.name, types.get(number, one.type)) for number, one in enumerate(schema))

    def table(self, relation: Relation) -> str:
        """The table that the rows are in, as SQL names it."""
        return self._engine.stored(relation.name)

    def is_text(self, type: str) -> bool:
        return postgres_type(type) == "text"

    def _tables(self, inputs: Mapping[str, Relation]) -> dict[str, tuple[str, Schema]]:
        return {name: (self._engine.stored(one.name), one.schema) for name, one in inputs.items()}

    def run(self, statement: SqlText, inputs: Mapping[str, Relation] | None = None, values: Sequence[Any] = ()) -> int:
        raise RowsFailed("engine", "a statement for DuckDB cannot run in PostgreSQL; run this sub-job on `duckdb`")

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
        """Rows that are here, in a table there: by COPY, each as a line of text that DuckDB writes."""
        try:
            with self._making() as name:
                with self.running() as connection:
                    connection.execute(
                        f"CREATE UNLOGGED TABLE {self._engine.stored(name)} ({columns_of_table(near.schema)})".encode()
                    )
                self._copy_in(near, name)
        finally:
            self._near.forget(near.name)
        return Relation(name, near.schema, near.rows, near.hash, near.bytes, spilled=True)

    def _copy_in(self, near: Relation, name: str) -> None:
        if not near.rows:
            return
        line = csv_line(near.schema, [one.name for one in near.schema if is_carried(one.type)])
        query = select.sql(exp.select(line).from_(select.table("it")))
        into = f"COPY {self._engine.stored(name)} FROM STDIN (FORMAT csv, ENCODING 'UTF8')"
        with self.running() as connection, connection.cursor() as cursor, cursor.copy(into.encode()) as copy:
            for batch in self._near.rows(query, {"it": near}, 2_000):
                copy.write("".join([one for (one,) in batch]).encode())

    # Fused groups

    def fuse(self, stages: Sequence[Stage]) -> dict[str, Staged]:
        read: dict[Output, Relation] = {}
        try:
            rest = [stage for one in stages if (stage := self._without_files(one, read)) is not None]
            staged = _Attempt(self, self._engine, fusion(rest)).run() if rest else {}
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
        """The stage over what has been read; None for one that reads files, which is done now: `read` has its rows."""
        if not stage.inputs and any(map(reads_files, stage.selects.values())):
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
        with self._turn:
            connection, self._connection = self._connection, None
        if connection is not None:
            self._engine.give_back(connection, is_whole=not self._is_interrupted)


_EXACT = "numeric"


def _printed(expression: str, is_odd: bool) -> str:
    return f"CASE WHEN num_nulls({expression}) = 0 THEN format('%s', {expression}) END" if is_odd else expression


def _schemas(inputs: Mapping[str, Relation]) -> dict[str, Schema]:
    return {name: one.schema for name, one in inputs.items()}


class _Attempt:
    """One run of a fused group. What is counted on the way is a CTE of its own in the statement that reads it, so that all counts
    are of the same rows, and none is taken twice."""

    def __init__(self, session: PostgresSession, engine: PostgresEngine, planned: Fusion) -> None:
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
            counts = self._session.execute(self._counting(step, marked)).fetchall()[0]
        else:
            counts = self._made(step, marked)
            if step.makes == "file":
                self._write(step)
        for output, number in zip((step.end, *marked), counts, strict=True):
            self._rows[self._planned.agreed[output]] = int(number)

    def _made(self, step: Step, marked: Sequence[Output]) -> Sequence[int]:
        schema, name = self._schema(step.end), self._engine.new_name()
        table = self._engine.stored(name)
        heads, last = self._heads(step, marked), self._body(step.end, step.inner)
        try:
            if marked:
                self._session.execute(f"CREATE UNLOGGED TABLE {table} ({columns_of_table(schema)})")
                counts = ", ".join(f"(SELECT count(*) FROM {self._name(step, one)})" for one in marked)
                inserted = f"made AS (INSERT INTO {table} {last} RETURNING 1)"
                text = f"WITH {', '.join([*heads, inserted])} SELECT (SELECT count(*) FROM made), {counts}"
                found: Sequence[int] = self._session.execute(text).fetchall()[0]
            else:
                text = f"WITH {', '.join(heads)} {last}" if heads else last
                found = (self._session.execute(f"CREATE UNLOGGED TABLE {table} AS {text}").rowcount,)
        except BaseException:
            self._engine.drop_table(name)
            raise
        self._session.made(name)
        rows = found[0]
        self._tables[step.end] = Relation(
            name, schema, rows, plan_hash(self._planned.key(step.end), rows), spilled=True
        )
        return found

    def _counting(self, step: Step, marked: Sequence[Output]) -> str:
        heads, last = self._heads(step, marked), self._body(step.end, step.inner)
        counts = [f"(SELECT count(*) FROM {self._name(step, one)})" for one in marked]
        text = f"SELECT {', '.join([f'(SELECT count(*) FROM ({last}) AS counted)', *counts])}"
        return f"WITH {', '.join(heads)} {text}" if heads else text

    def _write(self, step: Step) -> None:
        copy = self._planned.stages[step.end[0]].copy
        assert copy is not None
        self._session.copy('SELECT * FROM "it"', {"it": self._tables[step.end]}, copy)

    def _name(self, step: Step, output: Output) -> str:
        return quoted(f"#{step.inner.index(output)}")

    def _heads(self, step: Step, marked: Sequence[Output]) -> list[str]:
        return [
            f"{self._name(step, one)} AS {'' if one in marked else 'NOT '}MATERIALIZED (\n{self._body(one, step.inner)}\n)"
            for one in step.inner
        ]

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


class PostgresEngine:
    def __init__(
        self, folder: Path, server: Server, schema: str | None = None, *, memory_limit: str | None = None
    ) -> None:
        """`memory_limit` is that of DuckDB, where rows are on their way in or out."""
        self.server = server
        self.near = DuckDbEngine(folder / "near", memory_limit=memory_limit)
        self._binder = Binder()
        self._wanted_schema = schema
        self._schema = ""
        self._token = secrets.token_hex(8)
        self._numbers = count(1)
        self._lock = threading.RLock()
        self._keeper: Connection[Any] | None = None
        self._idle: list[Connection[Any]] = []
        self._is_closed = False

    def session(self) -> PostgresSession:
        return PostgresSession(self)

    def columns_of(self, query: SqlText, inputs: Mapping[str, Schema]) -> Schema:
        return self._binder.schema(query, inputs)

    def stated(self, query: SqlText, sources: Mapping[str, tuple[str, Schema]]) -> tuple[str, Schema]:
        """The query in PostgreSQL's SQL over these sources, and its columns. Raises SqlMistake."""
        schemas = {name: schema for name, (_, schema) in sources.items()}
        found = self.columns_of(query, schemas)
        body = postgres_query(query, schemas, lambda part: self.columns_of(part, schemas))
        self._begin()
        heads = [
            f"{quoted(name.lower())} ({', '.join(quoted(one.name.lower()) for one in schema)}) AS NOT MATERIALIZED "
            f"(SELECT {', '.join(quoted(one.name) for one in schema)} FROM {text})"
            for name, (text, schema) in sources.items()
            if uses(query, name)
        ]
        places = ", ".join(f"c{number}" for number in range(len(found)))
        chosen = ", ".join(
            f"{kept_column(f'c{number}', one.type)} AS {quoted(one.name)}" for number, one in enumerate(found)
        )
        columns_of_table(found)
        whole = f"SELECT {chosen} FROM (\n{body}\n) AS found ({places})"
        return (f"WITH {', '.join(heads)} {whole}" if heads else whole), found

    def fetch(self, text: str, schema: Schema, near: DuckDbSession) -> Relation:
        """The rows of a statement, brought here."""
        sent = ", ".join(_sent(one) for one in schema)
        wire = tuple(Column(one.name, _wire_type(one.type)) for one in schema)
        with self.server.rows(f"SELECT {sent} FROM (\n{text}\n) AS sent") as stream:
            found = near.load_arrow(stream, wire)
        if wire == tuple(Column(one.name, one.type) for one in schema):
            return found
        try:
            casts = ", ".join(f"{_read_back(one)} AS {quoted(one.name)}" for one in schema)
            return near.select(f'SELECT {casts} FROM "it"', {"it": found})
        finally:
            near.forget(found.name)

    # Connections

    def _begin(self) -> None:
        """Before the first table: find where they go, and drop what runs that were killed have left there."""
        import psycopg  # Slow to import: only a connection needs it.

        with self._lock:
            if self._is_closed:
                raise RowsFailed("interrupted", "the run has ended")
            if self._keeper is not None:
                return
            keeper = self._opened()
            try:
                row = keeper.execute(b"SELECT current_schema()").fetchone()
                self._schema = self._wanted_schema or (row[0] if row else None) or "public"
                keeper.execute(_PATIENCE.encode())
                keeper.execute(b"SELECT pg_advisory_lock($1)", [_lock_of(self._token)])
                _drop_leftovers(keeper, self._schema)
            except psycopg.Error as error:
                keeper.close()
                raise rows_failed(error, is_interrupted=False, is_lost=keeper.closed) from None
            self._keeper = keeper

    def _opened(self) -> Connection[Any]:
        connection = self.server.connect()
        connection.autocommit = True
        for setting in _SETTINGS:
            connection.execute(setting.encode())
        return connection

    def take(self) -> Connection[Any]:
        self._begin()
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        return self._opened()

    def give_back(self, connection: Connection[Any], *, is_whole: bool) -> None:
        with self._lock:
            if is_whole and not self._is_closed and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()

    # Tables

    def new_name(self) -> str:
        self._begin()
        return f"{_TABLES}{self._token}_{next(self._numbers)}"

    def stored(self, name: str) -> str:
        self._begin()
        return f"{quoted(self._schema)}.{quoted(name)}"

    def drop_table(self, name: str) -> None:
        import psycopg  # Slow to import: only a connection needs it.

        with self._lock:
            if self._keeper is None or self._keeper.closed or not name.startswith(f"{_TABLES}{self._token}_"):
                return
            # One that an open transaction has read goes at the end of the run: to wait for it here could wait for ever, as what
            # would end that transaction may wait for this. A server that is gone is asked by the next run.
            with suppress(psycopg.Error):
                self._keeper.execute(f"DROP TABLE IF EXISTS {self.stored(name)}".encode())

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
        import psycopg  # Slow to import: only a connection needs it.

        with self._lock:
            self._is_closed = True
            keeper, self._keeper = self._keeper, None
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        if keeper is not None:
            with suppress(psycopg.Error):
                keeper.execute(_LAST_PATIENCE.encode())
                _drop_tables(keeper, self._schema, self._token)
            keeper.close()
        self._binder.close()
        self.near.close()


def _lock_of(token: str) -> int:
    return int(token, 16) - (1 << 63)


_OURS = rf"^{_TABLES}[0-9a-f]{{16}}_[0-9]+$"


def _tables_of(keeper: Connection[Any], schema: str, token: str | None = None) -> list[str]:
    asked = "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tableowner = current_user AND tablename ~ $2"
    pattern = _OURS if token is None else f"^{_TABLES}{token}_[0-9]+$"
    return [str(name) for (name,) in keeper.execute(asked.encode(), [schema, pattern]).fetchall()]


def _drop_tables(keeper: Connection[Any], schema: str, token: str) -> None:
    from psycopg.errors import LockNotAvailable  # Slow to import: only a connection needs it.

    for name in _tables_of(keeper, schema, token):
        # Of a run that was killed, a statement may go on for a while: what it reads is dropped by a later run.
        with suppress(LockNotAvailable):
            keeper.execute(f"DROP TABLE IF EXISTS {quoted(schema)}.{quoted(name)}".encode())


def _drop_leftovers(keeper: Connection[Any], schema: str) -> None:
    """Tables whose run no longer holds its lock: it is gone."""
    for token in sorted({name.split("_")[1] for name in _tables_of(keeper, schema)}):
        row = keeper.execute(b"SELECT pg_try_advisory_lock($1)", [_lock_of(token)]).fetchone()
        if row is not None and row[0]:
            _drop_tables(keeper, schema, token)
            keeper.execute(b"SELECT pg_advisory_unlock($1)", [_lock_of(token)])


def _sent(column: Column) -> str:
    """A column as the driver of ADBC reads it without loss."""
    name = quoted(column.name)
    wanted = postgres_type(column.type)
    if wanted.endswith("[]"):
        return f"CAST(array_to_json({name}) AS text) AS {name}"
    return f"CAST({name} AS text) AS {name}" if wanted == "interval" else name


def _wire_type(type: str) -> str:
    wanted = postgres_type(type)
    if wanted.endswith("[]") or wanted == "interval" or is_carried(type):
        return "VARCHAR"
    return type


def _read_back(column: Column) -> str:
    name = quoted(column.name)
    if postgres_type(column.type).endswith("[]") or is_carried(column.type):
        return f"CAST(CAST({name} AS JSON) AS {column.type})"
    return f"CAST({name} AS {column.type})"
