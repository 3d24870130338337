"""PostgreSQL as one job run sees it: relations are tables in it, and queries over them never bring their rows here.

Tables of a run are unlogged, and named after a token that the run holds an advisory lock on for as long as it lives: what a run
that was killed has left behind is dropped by the next one that begins.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from penstock.data import select
from penstock.data.database.postgres_sql import (
    columns_of_table,
    is_carried,
    kept_column,
    postgres_query,
    postgres_type,
)
from penstock.data.database.server import TABLES, Attempt, ServerEngine, ServerSession
from penstock.data.duckdb_engine import DuckDbSession
from penstock.data.fusion import Fusion, Output, Step
from penstock.data.row_texts import csv_line
from penstock.data.sql_rules import SqlMistake
from penstock.data.statements import quoted
from penstock.ports.rows import Column, OwnQuery, Relation, RowsFailed, Schema, SqlText

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


class PostgresSession(ServerSession["PostgresEngine"]):
    server = "PostgreSQL"

    def __init__(self, engine: PostgresEngine) -> None:
        super().__init__(engine)
        self._guard = threading.Condition()
        self._running: Connection[Any] | None = None
        self._connection: Connection[Any] | None = None

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

    # Tables

    def make(self, name: str, schema: Schema, text: str) -> int:
        return self.execute(f"CREATE UNLOGGED TABLE {self._engine.stored(name)} AS {text}").rowcount

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

    def is_text(self, type: str) -> bool:
        return postgres_type(type) == "text"

    def _fill(self, name: str, near: Relation) -> None:
        """By COPY, each row as a line of text that DuckDB writes."""
        self.execute(
            f"CREATE UNLOGGED TABLE {self._engine.stored(name)} ({self._engine.columns_of_table(near.schema)})"
        )
        self._copy_in(near, name)

    def _copy_in(self, near: Relation, name: str) -> None:
        if not near.rows:
            return
        line = csv_line(near.schema, [one.name for one in near.schema if is_carried(one.type)])
        query = select.sql(exp.select(line).from_(select.table("it")))
        into = f"COPY {self._engine.stored(name)} FROM STDIN (FORMAT csv, ENCODING 'UTF8')"
        with self.running() as connection, connection.cursor() as cursor, cursor.copy(into.encode()) as copy:
            for batch in self._near.rows(query, {"it": near}, 2_000):
                copy.write("".join([one for (one,) in batch]).encode())

    def _attempt(self, planned: Fusion) -> _Attempt:
        return _Attempt(self, self._engine, planned)

    def close(self, handed_over: Collection[Relation] | None = None) -> None:
        super().close(handed_over)
        with self._turn:
            connection, self._connection = self._connection, None
        if connection is not None:
            self._engine.give_back(connection, is_whole=not self._is_interrupted)


_EXACT = "numeric"


def _printed(expression: str, is_odd: bool) -> str:
    return f"CASE WHEN num_nulls({expression}) = 0 THEN format('%s', {expression}) END" if is_odd else expression


class _Attempt(Attempt[PostgresSession]):
    """What is counted on the way is a CTE of its own in the statement that reads it, so that all counts are of the same rows, and
    none is taken twice."""

    def _made(self, step: Step, marked: Sequence[Output]) -> Sequence[int]:
        schema, name = self._schema(step.end), self._engine.new_name()
        table = self._engine.stored(name)
        heads, last = self._heads(step, marked), self._body(step.end, step.inner)
        try:
            if marked:
                self._session.execute(f"CREATE UNLOGGED TABLE {table} ({self._engine.columns_of_table(schema)})")
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
        self._kept(step.end, name, found[0])
        return found

    def _how(self, is_marked: bool) -> str:
        return "MATERIALIZED " if is_marked else "NOT MATERIALIZED "


class PostgresEngine(ServerEngine):
    inlined = "NOT MATERIALIZED "

    def __init__(
        self, folder: Path, server: Server, schema: str | None = None, *, memory_limit: str | None = None
    ) -> None:
        """`memory_limit` is that of DuckDB, where rows are on their way in or out."""
        super().__init__(folder, server.place, memory_limit)
        self.server = server
        self._wanted_schema = schema
        self._schema = ""
        self._keeper: Connection[Any] | None = None
        self._idle: list[Connection[Any]] = []

    def session(self) -> PostgresSession:
        return PostgresSession(self)

    def translated(self, query: SqlText, inputs: Mapping[str, Schema]) -> str:
        return postgres_query(query, inputs, lambda part: self.columns_of(part, inputs))

    def kept_column(self, expression: str, type: str) -> str:
        return kept_column(expression, type)

    def columns_of_table(self, schema: Schema) -> str:
        return columns_of_table(schema)

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

    def begin(self) -> None:
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
        self.begin()
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

    def stored(self, name: str) -> str:
        self.begin()
        return f"{quoted(self._schema)}.{quoted(name)}"

    def drop_table(self, name: str) -> None:
        import psycopg  # Slow to import: only a connection needs it.

        with self._lock:
            if self._keeper is None or self._keeper.closed or not name.startswith(f"{TABLES}{self._token}_"):
                return
            # One that an open transaction has read goes at the end of the run: to wait for it here could wait for ever, as what
            # would end that transaction may wait for this. A server that is gone is asked by the next run.
            with suppress(psycopg.Error):
                self._keeper.execute(f"DROP TABLE IF EXISTS {self.stored(name)}".encode())

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
        super().close()


def _lock_of(token: str) -> int:
    return int(token, 16) - (1 << 63)


_OURS = rf"^{TABLES}[0-9a-f]{{16}}_[0-9]+$"


def _tables_of(keeper: Connection[Any], schema: str, token: str | None = None) -> list[str]:
    asked = "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tableowner = current_user AND tablename ~ $2"
    pattern = _OURS if token is None else f"^{TABLES}{token}_[0-9]+$"
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
