"""PostgreSQL: one task, one transaction, on a connection that the execution keeps for the next one."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar, Literal
from typing import Literal as OneOf

import msgspec
from msgspec import Meta

from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef, is_ref
from penstock.ports.meanings import READS_FILE
from penstock.tools.base import Call, Success, Tool, ToolFailure, local_path, os_failure, require_regular
from penstock.tools.parameters import about
from penstock.tools.sql import plan
from penstock.tools.sql.connection import (
    Auth,
    ConnectionName,
    Database,
    Host,
    Password,
    PoolParam,
    Port,
    PostgresUrl,
    SslMode,
    User,
    address_of,
)
from penstock.tools.sql.postgres_connection import OK, Lease, argument, arguments, failure_of, lease_of, with_literals
from penstock.tools.sql.results import (
    GIVES,
    MADE_MEANWHILE,
    RunningCommand,
    Table,
    code_of,
    distinct,
    to_json,
    too_large,
    whole,
)
from penstock.tools.sql.text import Bound, Dialect, insert_into, on_conflict, quote_all, quote_table

if TYPE_CHECKING:
    from psycopg import AsyncConnection, AsyncCursor, Column
    from psycopg.errors import Diagnostic


# ---- COPY: the fast way of rows into and out of PostgreSQL, to and from files, the result store, or rows at hand.

_CHUNK = 256 * 1024
_MEDIA = {"csv": "text/csv", "text": "text/tab-separated-values", "binary": "application/octet-stream"}


class CopyData(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """COPY in (`table` and `from`) or out (`table` or `query`, and `to`)."""

    table: Annotated[str | None, about("The table, spelled as the database keeps it.")] = None
    query: Annotated[str | None, about("Copy out what this query gives, instead of a table.")] = None
    source: Annotated[
        str | list[Any] | dict[str, Any] | None,
        about("Copy in: a file's path, or a list of rows, each a mapping or a list of values.", schema=READS_FILE),
    ] = msgspec.field(default=None, name="from")
    to: Annotated[
        str | None,
        about("Copy out: a file's path, `blob` for the result store (the default), or `rows` for the result."),
    ] = None
    columns: Annotated[list[str] | None, about("Columns, in the order of the data.")] = None
    format: Annotated[OneOf["csv", "text", "binary"], about("Format of the file.")] = "csv"
    header: Annotated[
        bool, about("csv: the first line names the columns; when reading, it decides which column is which.")
    ] = True
    delimiter: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1)] | None, about("csv and text: the character between values.")
    ] = None
    null: Annotated[str | None, about("csv and text: how a missing value is written.")] = None


@dataclass(frozen=True, slots=True)
class CopyIn(plan.Step):
    table: str
    rows: list[Any] | None
    path: Path | None
    wanted: CopyData

    @property
    def excerpt(self) -> str:
        return f"COPY {self.table} FROM STDIN"


@dataclass(frozen=True, slots=True)
class CopyOut(plan.Step):
    what: Bound | str
    """A query, or the quoted name of a table with its columns."""
    path: Path | None
    wanted: CopyData

    @property
    def excerpt(self) -> str:
        return f"COPY {self.what if isinstance(self.what, str) else f'({self.what.excerpt})'} TO STDOUT"


def copy_step(wanted: CopyData, params: plan.Bindings, planner: plan.Planner) -> plan.Step:
    if wanted.source is not None:
        return _copy_in(wanted, planner.call)
    if (wanted.table is None) == (wanted.query is None):
        raise ToolFailure(
            "parameters", "`copy` out takes exactly one of `table` and `query`; `copy` in takes `table` and `from`"
        )
    if wanted.table is not None:
        columns = f" ({quote_all(wanted.columns, Dialect.POSTGRES)})" if wanted.columns else ""
        name = quote_table(wanted.table, Dialect.POSTGRES)
        if wanted.to == "rows":
            listed = quote_all(wanted.columns, Dialect.POSTGRES) if wanted.columns else "*"
            return planner.item(f"SELECT {listed} FROM {name}", None)
        return CopyOut(name + columns, _target(wanted, planner.call), wanted)
    if wanted.to == "rows":
        return planner.item(wanted.query or "", params)
    statements = planner.text(wanted.query or "", params)
    if len(statements) != 1:
        raise ToolFailure("parameters", f"`copy.query` takes one statement, and this text has {len(statements)}")
    return CopyOut(statements[0], _target(wanted, planner.call), wanted)


def _copy_in(wanted: CopyData, call: Call) -> CopyIn:
    if wanted.table is None or wanted.query is not None or wanted.to is not None:
        raise ToolFailure("parameters", "`copy` in takes `table` and `from`, without `query` or `to`")
    if isinstance(wanted.source, str):
        return CopyIn(wanted.table, None, local_path(wanted.source, call), wanted)
    if isinstance(wanted.source, dict) and is_ref(wanted.source) and wanted.source.get("media") != "application/json":
        return CopyIn(wanted.table, None, Path(call.blobs.path(ResultRef.from_json(wanted.source))), wanted)
    return CopyIn(wanted.table, plan.rows_of(wanted.source, call, "`copy.from`"), None, wanted)


def _target(wanted: CopyData, call: Call) -> Path | None:
    return None if wanted.to in (None, "blob") else local_path(wanted.to or "", call)


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _options(wanted: CopyData) -> str:
    options = [f"FORMAT {wanted.format}"]
    if wanted.format == "csv":
        options.append(f"HEADER {'true' if wanted.header else 'false'}")
    if wanted.format != "binary":
        options += [f"DELIMITER {_literal(wanted.delimiter)}"] if wanted.delimiter is not None else []
        options += [f"NULL {_literal(wanted.null)}"] if wanted.null is not None else []
    return f"WITH ({', '.join(options)})"


async def copy_in(step: CopyIn, connection: AsyncConnection[Any], call: Call) -> Table:
    if step.rows is not None:
        return await _rows_in(step, step.rows, connection)
    path = step.path or Path()
    try:
        file, columns = await call.threads.run(_open_source, path, step.wanted)
    except OSError as error:
        raise os_failure(error, path) from error
    except UnicodeError as error:
        raise ToolFailure("decode", f"`{path}` is not UTF-8 text: {error}") from error
    with file:
        listed = f" ({quote_all(columns, Dialect.POSTGRES)})" if columns else ""
        text = f"COPY {quote_table(step.table, Dialect.POSTGRES)}{listed} FROM STDIN {_options(step.wanted)}"
        async with connection.cursor() as cursor:
            async with cursor.copy(text.encode()) as copy:
                while chunk := await call.threads.run(file.read, _CHUNK):
                    await copy.write(chunk)
            return Table(row_count=max(cursor.rowcount, 0), more={"file": str(path)})


def _open_source(path: Path, wanted: CopyData) -> tuple[IO[bytes], list[str]]:
    require_regular(path)
    columns = list(wanted.columns or [])
    if not columns and wanted.format == "csv" and wanted.header:
        with path.open(encoding="utf-8-sig", newline="") as text:
            columns = next(csv.reader(text, delimiter=wanted.delimiter or ","), [])
    return path.open("rb"), columns


async def _rows_in(step: CopyIn, rows: list[Any], connection: AsyncConnection[Any]) -> Table:
    columns = list(step.wanted.columns or [])
    by_name = bool(rows) and isinstance(rows[0], dict)
    if by_name:
        columns = columns or plan.columns_of(rows, "`copy.from`")
    listed = f" ({quote_all(columns, Dialect.POSTGRES)})" if columns else ""
    text = f"COPY {quote_table(step.table, Dialect.POSTGRES)}{listed} FROM STDIN"
    async with connection.cursor() as cursor:
        async with cursor.copy(text.encode()) as copy:
            for index, row in enumerate(rows):
                await copy.write_row([argument(value) for value in _values(row, index, columns, by_name=by_name)])
        return Table(row_count=max(cursor.rowcount, 0))


def _values(row: Any, index: int, columns: list[str], *, by_name: bool) -> list[Any]:
    if by_name and isinstance(row, dict):
        return [row.get(column) for column in columns]
    if not by_name and isinstance(row, list):
        return row
    raise ToolFailure(
        "parameters", f"`copy.from`: row {index} is not like the first; rows are all mappings or all lists"
    )


async def copy_out(step: CopyOut, connection: AsyncConnection[Any], call: Call) -> Table:
    what = step.what if isinstance(step.what, str) else f"({with_literals(step.what, connection)})"
    text = f"COPY {what} TO STDOUT {_options(step.wanted)}".encode()
    folder = step.path.parent if step.path else None
    try:
        handle, temporary = await call.threads.run(_temporary, folder)
    except OSError as error:
        raise os_failure(error, step.path or Path(tempfile.gettempdir())) from error
    try:
        with os.fdopen(handle, "wb") as file:
            columns, count = await _receive(text, connection, call, file, step.wanted)
        more = await call.threads.run(_keep, Path(temporary), step, call)
    except OSError as error:
        raise os_failure(error, step.path or Path(temporary)) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return Table(columns or list(step.wanted.columns or []), [], count, more)


def _temporary(folder: Path | None) -> tuple[int, str]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return tempfile.mkstemp(prefix=".copy-", dir=folder)


async def _receive(
    text: bytes, connection: AsyncConnection[Any], call: Call, file: BinaryIO, wanted: CopyData
) -> tuple[list[str], int]:
    columns: list[str] = []
    waiting: list[bytes] = []
    size = 0
    async with connection.cursor() as cursor:
        async with cursor.copy(text) as copy:
            async for data in copy:
                piece = bytes(data)
                if not waiting and not columns and wanted.format == "csv" and wanted.header:
                    columns = next(csv.reader([piece.decode()], delimiter=wanted.delimiter or ","))
                waiting.append(piece)
                size += len(piece)
                if size >= _CHUNK:
                    await call.threads.run(file.write, b"".join(waiting))
                    waiting, size = [], 0
        await call.threads.run(file.write, b"".join(waiting))
        return columns, max(cursor.rowcount, 0)


def _keep(temporary: Path, step: CopyOut, call: Call) -> JsonMap:
    size = temporary.stat().st_size
    if step.path is not None:
        temporary.chmod(0o644)
        temporary.replace(step.path)
        return {"file": str(step.path), "bytes": size}
    with temporary.open("rb") as file:
        chunks: Iterator[bytes] = iter(lambda: file.read(_CHUNK), b"")
        ref = call.blobs.put(chunks, _MEDIA[step.wanted.format])
    return {"blob": ref.as_json(), "bytes": size}


_BATCH = 1000
_EFFECT = RunningCommand(0, 1, "the name of the effect")

_RECORDS = {2249, 2287}


class PostgresItem(plan.CommandItem, kw_only=True, forbid_unknown_fields=True):
    """One entry of `commands`."""

    copy: Annotated[CopyData | None, about("COPY in or out instead of a command.")] = None


class PostgresParams(plan.CommonParams, kw_only=True, forbid_unknown_fields=True):
    commands: Annotated[
        list[str | PostgresItem] | str | None,
        about(
            "Several commands in one transaction: a list of SQL texts, `{command, params}`, `{upsert}` and `{copy}`, or a text "
            "as in `command`."
        ),
    ] = None
    copy: Annotated[CopyData | None, about("COPY rows in or out.")] = None
    connection: ConnectionName = None
    auth: Auth = None
    url: PostgresUrl = None
    host: Host = None
    port: Port = None
    user: User = None
    password: Password = None
    database: Database = None
    sslmode: SslMode = None
    pool: PoolParam = None
    isolation: Annotated[
        Literal["read committed", "repeatable read", "serializable"] | None,
        about("Isolation level of the task's transaction; the database's default when left out."),
    ] = None
    autocommit: Annotated[
        bool, about("Each statement commits by itself, as `VACUUM` needs; otherwise the task is one transaction.")
    ] = False


class PostgresPlanner(plan.Planner):
    def item(self, item: str | plan.CommandItem, params: plan.Bindings) -> plan.Step:
        if not isinstance(item, PostgresItem) or item.copy is None:
            return super().item(item, params)
        if item.command is not None or item.upsert is not None:
            raise ToolFailure("parameters", "an entry of `commands` has exactly one of `command`, `upsert` and `copy`")
        return copy_step(item.copy, params if item.params is None else item.params, self)


WORDS = (*plan.WORDS, "copy")


def make_plan(params: PostgresParams, planner: plan.Planner) -> list[plan.Step]:
    plan.exactly_one(params, WORDS)
    if params.copy is not None:
        return [copy_step(params.copy, plan.values_of(params), planner)]
    return planner.plan(params, params.commands)


# Statements of these kinds leave nothing behind in the session; after any other it is reset before it is used again.
_LEAVES_NO_TRACE = {"select", "insert", "update", "delete", "with", "merge", "values", "table", "explain", "truncate"}


def touches_session(step: plan.Step) -> bool:
    return isinstance(step, plan.Command) and any(
        statement.verb not in _LEAVES_NO_TRACE for statement in step.statements
    )


def is_streamed(statement: Bound) -> bool:
    """Does it surely give rows? Then they are read as they come, and reading stops at the limit."""
    plain = statement.verb in {"select", "values", "table"} and "into" not in statement.words
    return plain or (statement.verb == "with" and not {"insert", "update", "delete", "merge"} & statement.words)


def stands_alone(steps: Sequence[plan.Step]) -> bool:
    """Is it one statement that is a transaction by itself, with no rows for us to object to once it is done?"""
    if len(steps) != 1 or not isinstance(steps[0], plan.Command) or len(steps[0].statements) != 1:
        return False
    (statement,) = steps[0].statements
    return is_streamed(statement) or "returning" not in statement.words


class PostgresRun:
    """The steps of one task on one connection."""

    def __init__(self, lease: Lease, params: PostgresParams, call: Call) -> None:
        self.lease = lease
        self.connection = lease.connection
        self.params = params
        self.call = call

    async def run(self, steps: Sequence[plan.Step]) -> list[Table]:
        self.lease.touched = any(touches_session(step) for step in steps)
        async with self._transaction(steps):
            return await self._all(steps)

    async def run_once(self, steps: Sequence[plan.Step], effect: plan.Effect) -> plan.Ran:
        """All steps, in the transaction that keeps the name of their effect."""
        for _ in range(plan.TRIES):
            try:
                return plan.Ran(await self._claimed(steps, effect), {"repeated": False})
            except plan.NoTable:
                await self._make_table(effect)
            except plan.Happened:
                async with self._failures(_EFFECT):
                    found = effect.found(await self._execute(effect.look()))
                if found is not None:
                    return plan.Ran(found, {"repeated": True})
        raise effect.unsettled()

    async def _claimed(self, steps: Sequence[plan.Step], effect: plan.Effect) -> JsonMap:
        self.lease.touched = any(touches_session(step) for step in steps)
        async with self._transaction(steps, alone=False):
            try:
                async with self._failures(_EFFECT):
                    claimed = await self._execute(effect.claim())
            except ToolFailure as failure:
                if failure.kind == "not_found":
                    raise plan.NoTable from failure
                raise
            if not claimed.row_count:
                raise plan.Happened
            result = whole(await self._all(steps))
            async with self._failures(_EFFECT):
                await self._execute(effect.keep(result))
        return result

    async def _make_table(self, effect: plan.Effect) -> None:
        """Two that make it at once get in each other's way in the catalog: who came second finds it made."""
        try:
            async with self._failures(_EFFECT):
                await self._execute(effect.create())
        except ToolFailure as failure:
            if code_of(failure) not in MADE_MEANWHILE:
                raise

    async def _all(self, steps: Sequence[plan.Step]) -> list[Table]:
        total = len(steps)
        return [await self._step(step, RunningCommand(index, total)) for index, step in enumerate(steps)]

    @asynccontextmanager
    async def _transaction(self, steps: Sequence[plan.Step], *, alone: bool = True) -> AsyncIterator[None]:
        """`alone`: a statement that is a transaction by itself needs no other."""
        total = len(steps)
        before = self._before(steps, alone=alone)
        if before:
            async with self._failures(RunningCommand(0, total, before)):
                await self.connection.execute(before.encode())
        if not before.startswith("BEGIN"):
            yield
            return
        try:
            yield
            async with self._failures(RunningCommand(total - 1, total, "COMMIT")):
                ended = await self.connection.execute("COMMIT")
        except (ToolFailure, plan.NoTable, plan.Happened):
            # Whatever else ends the block ends the connection with it, and so the transaction: nothing is waited for.
            if not self.connection.closed:
                async with self._failures(RunningCommand(total - 1, total, "ROLLBACK")):
                    await self.connection.execute("ROLLBACK")
            raise
        if ended.statusmessage != "COMMIT":  # how the server says that it rolled back a transaction in error
            raise ToolFailure("database", "the transaction could not be committed, and nothing was changed")

    def _before(self, steps: Sequence[plan.Step], *, alone: bool) -> str:
        """What is sent first, in one trip: nothing at all for a statement that is a transaction by itself."""
        limit = self.call.timeout()
        timeout = "" if limit is None else f"statement_timeout = {max(1, round(limit * 1000))}"
        if self.params.autocommit:
            self.lease.touched = self.lease.touched or bool(timeout)
            return f"SET {timeout}" if timeout else ""
        if alone and stands_alone(steps) and not timeout and not self.params.isolation:
            return ""
        level = f" ISOLATION LEVEL {self.params.isolation}" if self.params.isolation else ""
        return f"BEGIN{level}" + (f"; SET LOCAL {timeout}" if timeout else "")

    @asynccontextmanager
    async def _failures(self, running: RunningCommand) -> AsyncIterator[None]:
        import psycopg  # Slow to import: only a connection needs it.

        try:
            yield
        except psycopg.Error as error:
            raise failure_of(error, running, connection_lost=self.connection.closed) from None

    async def _step(self, step: plan.Step, running: RunningCommand) -> Table:
        match step:
            case plan.Upsert():
                async with self._failures(running.at(step.excerpt)):
                    return await self._upsert(step)
            case CopyIn():
                async with self._failures(running.at(step.excerpt)):
                    return await copy_in(step, self.connection, self.call)
            case CopyOut():
                async with self._failures(running.at(step.excerpt)):
                    return await copy_out(step, self.connection, self.call)
            case plan.Command():
                table = Table()
                for statement in step.statements:
                    async with self._failures(running.at(statement.excerpt)):
                        table = await self._execute(statement)
                return table
            case _:
                raise TypeError(f"unknown step {step!r}")

    async def _execute(self, statement: Bound) -> Table:
        args = arguments(statement)
        async with self.connection.cursor() as cursor:
            if is_streamed(statement):
                return await self._stream(cursor, statement.text.encode(), args)
            await cursor.execute(statement.text.encode(), args)
            if cursor.description is None:
                return Table(row_count=max(cursor.rowcount, 0))
            if cursor.rowcount > self.params.max_rows:
                raise too_large(self.params.max_rows)
            return _table(cursor.description, await cursor.fetchall())

    async def _stream(self, cursor: AsyncCursor[Any], text: bytes, args: list[Any] | None) -> Table:
        from psycopg import capabilities  # Slow to import: only a connection needs it.

        rows: list[Any] = []
        stream = cursor.stream(text, args, size=_BATCH if capabilities.has_stream_chunked() else 1)
        try:
            async for row in stream:
                if len(rows) == self.params.max_rows:
                    raise too_large(self.params.max_rows)
                rows.append(row)
        finally:
            await stream.aclose()  # type: ignore[attr-defined]
        if rows:
            return _table(cursor.description or [], rows)
        return Table(await self.call.threads.run(self._columns, text, args or []))

    def _columns(self, text: bytes, args: list[Any]) -> list[str]:
        """The columns of a query that gave no rows: those come with the first row only, so they are asked for."""
        from psycopg.adapt import PyFormat, Transformer  # Slow to import: only a connection needs it.
        from psycopg.pq import ExecStatus

        transformer = Transformer(self.connection)
        transformer.dump_sequence(args, [PyFormat.AUTO] * len(args))
        # With the types it ran with a moment ago it cannot fail to parse, which would spoil the transaction.
        prepared = self.connection.pgconn.prepare(b"", text, transformer.types or [])
        if prepared.status != ExecStatus.COMMAND_OK:
            return []
        described = self.connection.pgconn.describe_prepared(b"")
        return distinct([(described.fname(index) or b"").decode() for index in range(described.nfields)])

    async def _upsert(self, step: plan.Upsert) -> Table:
        if not step.rows:
            return Table()
        values = ", ".join(f"${index + 1}" for index in range(len(step.columns)))
        head = insert_into(step.table, step.columns, Dialect.POSTGRES)
        tail = on_conflict(step.keys, step.update, Dialect.POSTGRES)
        async with self.connection.cursor() as cursor:
            rows = ([argument(value) for value in row] for row in step.rows)
            await cursor.executemany(f"{head} VALUES ({values}) {tail}".encode(), rows)
            return Table(row_count=max(cursor.rowcount, 0))


def _table(description: Sequence[Column], rows: Sequence[Sequence[Any]]) -> Table:
    columns = distinct([column.name for column in description])
    # Records are the only values that the adapters cannot put into JSON's words by themselves.
    if any(column.type_code in _RECORDS for column in description):
        rows = [[to_json(value) for value in row] for row in rows]
    objects: list[Json] = [dict(zip(columns, row, strict=True)) for row in rows]
    return Table(columns, objects, len(objects))


@asynccontextmanager
async def _notices(lease: Lease, call: Call) -> AsyncIterator[None]:
    """What the server remarks, `RAISE NOTICE` above all, belongs to the run's log."""

    def say(diagnosis: Diagnostic) -> None:
        call.say(f"{diagnosis.severity or 'NOTICE'}: {diagnosis.message_primary or ''}")

    lease.connection.add_notice_handler(say)
    try:
        yield
    finally:
        lease.connection.remove_notice_handler(say)


class PostgresTool(Tool[PostgresParams]):
    """Run SQL in PostgreSQL.

    `auth` names a keychain entry with the connection. The commands of a task are one transaction: all of them count or none
    does; `autocommit: true` is for statements that cannot be in one. Values in `params` are bound, never pasted: `:name` or
    `%(name)s` with a mapping, `%s` or `$1` with a list. A list of like values is an array (`= ANY(:ids)`), any other list or
    mapping is jsonb; `:value::jsonb` makes jsonb of whatever it is. Inside quotes and comments nothing is replaced.
    The result is `{rows, row_count, columns}`; with several commands also `command_0`, `command_1` … (of a single one
    `command_0` is the result itself). Numbers of type numeric are numbers when that is exact and text otherwise, times are
    ISO 8601, bytea is base64.
    `script` is a file of SQL, or a mapping: `{uri: sql/load.sql, source: {type: file}}`, `{source: {type: inline, code}}`, or
    `{source: {type: http, endpoint}}`. It runs as the same text in `command` would: its templates see the names that the
    task's own see, except secrets.
    `upsert` writes rows by their keys and can be run again without harm; so can any commands with `idempotency: true`, which
    commits them once for each element of a loop, also when a shard is tried again (`outcome.pg.repeated` is true then).
    `copy` moves rows to and from files with COPY.
    `outcome.pg.code` (and `sqlstate`) is `00000` or says what went wrong: `40001` and `40P01` are worth a retry.
    The task's time limit (`spec.timeout`) is also the server's `statement_timeout`; `pool` bounds connections.
    """

    kind: ClassVar[str] = "postgres"
    gives: ClassVar[tuple[str, ...]] = GIVES
    family: ClassVar[str] = "pg"

    async def run(self, params: PostgresParams, call: Call) -> object:
        params = await plan.with_script(params, call, WORDS)
        planner = PostgresPlanner(Dialect.POSTGRES, call, own_transactions=params.autocommit)
        steps = await plan.off_the_loop(params, call, lambda: make_plan(params, planner))
        effect = plan.effect_of(params, plan.verbs_of(steps), call, Dialect.POSTGRES)
        async with lease_of(address_of(params, call), call, params.pool) as lease, _notices(lease, call):
            run = PostgresRun(lease, params, call)
            ran = plan.Ran(whole(await run.run(steps))) if effect is None else await run.run_once(steps, effect)
        return Success(ran.result, {"pg": {**OK["pg"], **ran.helper}})
