"""Snowflake as one job run sees it: relations are temporary tables of one session, which Snowflake itself drops when the session
ends, however the run does.

Statements of a run follow one another, because the session has one transaction at most: what writes into a table of the author's
keeps the session until it has committed. A table is made empty and filled by INSERT … SELECT, whose answer is the number of rows.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from penstock.data.database.server import TABLES, Attempt, ServerEngine, ServerSession
from penstock.data.database.snowflake_sql import PLACE, columns_of_table, kept_column, snowflake_query, snowflake_type
from penstock.data.duckdb_engine import DuckDbSession
from penstock.data.fusion import Fusion, Output, Step
from penstock.data.output_hash import plan_hash
from penstock.data.sql_rules import SqlMistake
from penstock.data.statements import quoted
from penstock.ports.rows import Column, OwnQuery, Relation, RowsFailed, Schema, SqlText

_FETCHED = 10_000
"""Rows that are asked for at a time."""
_ROWS, _CHARACTERS = 4_000, 500_000
"""Of one INSERT of rows that come from here. Snowflake takes 16,384 rows, and a text of a megabyte."""


class Link(Protocol):
    """One session of the database, as a driver of DB-API gives it."""

    connection: Any
    errors: tuple[type[Exception], ...]

    def close(self) -> None: ...


class Server(Protocol):
    """Where the tables are, and how it is reached. What it raises is for the author of a job."""

    @property
    def place(self) -> object: ...

    def connect(self) -> Link: ...


_KINDS = {"22": "conversion", "23": "constraint", "42": "sql", "02": "sql", "0A": "sql", "08": "connection"}


def rows_failed(error: Any) -> RowsFailed:
    """What the driver raised, for the author of a job."""
    kind = _KINDS.get(str(getattr(error, "sqlstate", None) or "")[:2], "engine")
    said = getattr(error, "raw_msg", None) or str(error)
    return RowsFailed(kind, f"Snowflake: {' '.join(str(said).split())}", retryable=kind == "connection")


class SnowflakeSession(ServerSession["SnowflakeEngine"]):
    server = "Snowflake"

    @contextmanager
    def running(self) -> Iterator[Link]:
        """The session of the run, for one statement or one transaction at a time."""
        self._check()
        with self._engine.running() as link:
            self._check()
            try:
                yield link
            except SqlMistake as mistake:
                message = f"{mistake.message}; {mistake.hint}" if mistake.hint else mistake.message
                raise RowsFailed("sql", message) from mistake

    def execute(self, text: str) -> Any:
        with self.running():
            return self._engine.execute(text)

    def interrupt(self) -> None:
        """A statement that runs there comes to its end; none follows it."""
        self._is_interrupted = True
        self._near.interrupt()

    # Tables

    def make(self, name: str, schema: Schema, text: str) -> int:
        with self.running():
            self._engine.create(name, schema)
            return int(self._engine.execute(f"INSERT INTO {quoted(name)} {text}").rowcount)

    def take(self, query: OwnQuery) -> Relation:
        """The rows of a query of the author's in the database's own SQL, which stay where they are."""
        known = self._columns(query)
        chosen = ", ".join(f"{_taken(one)} AS {quoted(one.name)}" for one in known)
        with self._making() as name, self.running():
            self._engine.create(name, known)
            rows = int(self._asked(f"INSERT INTO {quoted(name)} SELECT {chosen}, 0", query).rowcount)
        # Nothing but the rows themselves says what they were, and they are not read once more for a hash.
        return Relation(name, known, rows, plan_hash(secrets.token_hex(16), rows), spilled=True)

    def _asked(self, head: str, query: OwnQuery, tail: str = "") -> Any:
        """With values to bind, the driver reads `%` in what is ours as well."""
        head = head.replace("%", "%%") if query.values else head
        with self.running():
            return self._engine.execute(f"{head} FROM (\n{query.text}\n) AS found{tail}", query.values)

    def _columns(self, query: OwnQuery) -> Schema:
        found = self._asked("SELECT *", query, " LIMIT 0").description
        names = [str(one[0]).lower() for one in found]
        if len(set(names)) < len(names):
            raise RowsFailed("columns", "two columns of the query have the same name; hint: `AS` gives another")
        schema = tuple(Column(str(one[0]), _type_of(one)) for one in found)
        wide = [one for one in schema if one.type == _WIDE]
        if not wide:
            return schema
        asked = ", ".join(f"MAX(ABS({quoted(one.name)}))" for one in wide)
        (most,) = self._asked(f"SELECT {asked}", query).fetchall()
        small = {one.name for one, value in zip(wide, most, strict=True) if int(value or 0) < 2**63}
        return tuple(Column(one.name, "BIGINT") if one.name in small else one for one in schema)

    def is_text(self, type: str) -> bool:
        return snowflake_type(type) == "VARCHAR"

    def _fill(self, name: str, near: Relation) -> None:
        """By INSERTs of many rows: each value is a text that DuckDB writes, which the server reads as its type."""
        sent = ", ".join(f"{_as_text(one)} AS {quoted(one.name)}" for one in near.schema)
        casts = ", ".join(_out_of_text(f"column{number}", one) for number, one in enumerate(near.schema, 1))
        into = f"INSERT INTO {quoted(name)} SELECT {casts}, column{len(near.schema) + 1} FROM VALUES "
        with self.running():
            self._engine.create(name, near.schema)
            for rows in _statements(self._near.rows(f'SELECT {sent} FROM "it"', {"it": near}, _ROWS)):
                self._check()
                self._engine.execute(into + ", ".join(rows))

    def _attempt(self, planned: Fusion) -> _Attempt:
        return _Attempt(self, self._engine, planned)


_TYPES = {
    1: "DOUBLE", 2: "VARCHAR", 3: "DATE", 4: "TIMESTAMP", 5: "JSON", 6: "TIMESTAMP WITH TIME ZONE",
    7: "TIMESTAMP WITH TIME ZONE", 8: "TIMESTAMP", 9: "JSON", 10: "JSON", 11: "BLOB", 12: "TIME", 13: "BOOLEAN",
}  # fmt: skip
"""By the driver's own numbers. Semi-structured values are carried as the JSON that they are."""
_NUMBER, _WIDE = 0, "DECIMAL(38,0)"


def _type_of(described: Sequence[Any]) -> str:
    name, code, _, _, precision, scale, *_ = described
    if code == _NUMBER:
        if scale:
            return f"DECIMAL({precision},{scale})"
        return "BIGINT" if precision is not None and precision <= 18 else _WIDE
    if code not in _TYPES:
        raise RowsFailed("type", f"the column `{name}` has a type that cannot be read; hint: select it as VARCHAR")
    return _TYPES[code]


def _taken(column: Column) -> str:
    name = quoted(column.name)
    return f"TO_JSON({name})" if column.type == "JSON" else kept_column(name, column.type)


def _as_text(column: Column) -> str:
    """A value as DuckDB writes it for `_out_of_text`."""
    name, wanted = quoted(column.name), snowflake_type(column.type)
    if wanted == "BINARY":
        return f"hex({name})"
    if wanted.startswith("TIMESTAMP"):
        zone = "+00:00" if wanted.startswith("TIMESTAMP_TZ") else ""
        moment = f"timezone('UTC', {name})" if zone else f"CAST({name} AS TIMESTAMP)"
        return f"strftime({moment}, '%Y-%m-%dT%H:%M:%S.%f{zone}')"
    return f"CAST({name} AS VARCHAR)"


def _out_of_text(text: str, column: Column) -> str:
    wanted = snowflake_type(column.type)
    return f"TO_BINARY({text}, 'HEX')" if wanted == "BINARY" else f"CAST({text} AS {wanted})"


def _statements(batches: Iterator[list[tuple[Any, ...]]]) -> Iterator[list[str]]:
    """Rows as the lists of values of INSERTs, none of which is too long."""
    rows: list[str] = []
    size = 0
    for place, row in enumerate((row for batch in batches for row in batch), 1):
        written = f"({', '.join([*map(_literal, row), str(place)])})"
        if rows and (len(rows) == _ROWS or size + len(written) > _CHARACTERS):
            yield rows
            rows, size = [], 0
        rows.append(written)
        size += len(written)
    if rows:
        yield rows


def _literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


class _Attempt(Attempt[SnowflakeSession]):
    """What is counted on the way is a table of its own, whose INSERT says how many rows it has."""

    def _made(self, step: Step, marked: Sequence[Output]) -> Sequence[int]:
        inside = self._marked(step, marked)
        return self._make(step.end, step), *inside

    def _counted(self, step: Step, marked: Sequence[Output]) -> Sequence[int]:
        inside = self._marked(step, marked)
        text = f"SELECT count(*) FROM (\n{self._text(step.end, step)}\n) AS counted"
        return int(self._session.execute(text).fetchall()[0][0]), *inside

    def _marked(self, step: Step, marked: Sequence[Output]) -> list[int]:
        return [self._make(output, step) for output in marked]

    def _make(self, output: Output, step: Step) -> int:
        name = self._engine.new_name()
        try:
            rows = self._session.make(name, self._schema(output), self._text(output, step))
        except BaseException:
            self._engine.drop_table(name)
            raise
        self._kept(output, name, rows)
        return rows

    def _text(self, output: Output, step: Step) -> str:
        """The statement of an output, over what comes before it in the step and is no table yet."""
        before = step.inner[: step.inner.index(output)] if output in step.inner else step.inner
        heads = [
            f"{self._name(step, one)} AS (\n{self._body(one, step.inner)}\n)"
            for one in before
            if one not in self._tables
        ]
        last = self._body(output, step.inner)
        return f"WITH {', '.join(heads)} {last}" if heads else last


class SnowflakeEngine(ServerEngine):
    own_columns = (PLACE,)

    def __init__(self, folder: Path, server: Server, *, memory_limit: str | None = None) -> None:
        """`memory_limit` is that of DuckDB, where rows are on their way in or out."""
        super().__init__(folder, server.place, memory_limit)
        self.server = server
        self._turn = threading.RLock()
        self._link: Link | None = None

    def session(self) -> SnowflakeSession:
        return SnowflakeSession(self)

    @contextmanager
    def running(self) -> Iterator[Link]:
        with self._turn:
            self.begin()
            assert self._link is not None
            try:
                yield self._link
            except self._link.errors as error:
                raise rows_failed(error) from None

    def execute(self, text: str, values: Mapping[str, Any] | None = None) -> Any:
        with self.running() as link:
            cursor = link.connection.cursor()
            cursor.execute(text, dict(values)) if values else cursor.execute(text)
            return cursor

    def is_made_here(self, query: SqlText) -> bool:
        return True

    def translated(self, query: SqlText, inputs: Mapping[str, Schema]) -> str:
        return snowflake_query(query, inputs, lambda part: self.columns_of(part, inputs))

    def kept_column(self, expression: str, type: str) -> str:
        return kept_column(expression, type)

    def columns_of_table(self, schema: Schema) -> str:
        return columns_of_table(schema)

    def fetch(self, text: str, schema: Schema, near: DuckDbSession) -> Relation:
        """Moments come as microseconds, other values as the driver gives them."""
        sent = ", ".join(f"{_sent(one)} AS {quoted(one.name)}" for one in schema)
        wire = tuple(Column(one.name, _wire_type(one.type)) for one in schema)
        with self._turn:
            cursor = self.execute(f"SELECT {sent} FROM (\n{text}\n) AS sent ORDER BY {quoted(PLACE)}")
            found = near.load(wire, self._batches(cursor))
        if wire == tuple(Column(one.name, one.type) for one in schema):
            return found
        try:
            casts = ", ".join(f"{_read_back(one)} AS {quoted(one.name)}" for one in schema)
            return near.select(f'SELECT {casts} FROM "it"', {"it": found})
        finally:
            near.forget(found.name)

    def _batches(self, cursor: Any) -> Iterator[list[Sequence[Any]]]:
        while True:
            with self.running():
                rows = cursor.fetchmany(_FETCHED)
            if not rows:
                return
            yield [[bytes(value) if isinstance(value, bytearray) else value for value in row] for row in rows]

    # The session

    def begin(self) -> None:
        with self._turn:
            if self._is_closed:
                raise RowsFailed("interrupted", "the run has ended")
            if self._link is None:
                self._link = self.server.connect()

    def stored(self, name: str) -> str:
        return quoted(name)

    def create(self, name: str, schema: Schema) -> None:
        columns = f"{columns_of_table(schema)}, {quoted(PLACE)} NUMBER(38,0)"
        self.execute(f"CREATE TEMPORARY TABLE {quoted(name)} ({columns})")

    def drop_table(self, name: str) -> None:
        with self._turn:
            if self._link is None or self._is_closed or not name.startswith(f"{TABLES}{self._token}_"):
                return
            # A session that is gone has taken its tables with it.
            with suppress(RowsFailed):
                self.execute(f"DROP TABLE IF EXISTS {quoted(name)}")

    def close(self) -> None:
        with self._turn:
            self._is_closed = True
            link, self._link = self._link, None
        if link is not None:
            link.close()
        super().close()


def _sent(column: Column) -> str:
    name = quoted(column.name)
    return f"DATE_PART('EPOCH_MICROSECOND', {name})" if _is_moment(column.type) else name


def _is_moment(type: str) -> bool:
    return snowflake_type(type).startswith("TIMESTAMP")


def _wire_type(type: str) -> str:
    if _is_moment(type):
        return "BIGINT"
    return "VARCHAR" if snowflake_type(type) == "VARCHAR" else type


def _read_back(column: Column) -> str:
    name = quoted(column.name)
    moment = f"timezone('UTC', make_timestamp({name}))" if "ZONE" in column.type else f"make_timestamp({name})"
    return f"CAST({moment if _is_moment(column.type) else name} AS {column.type})"
