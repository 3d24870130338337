"""SQLite: a file, or a database in memory that all tasks of one execution share."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from penstock.kernel.values import JsonMap
from penstock.ports.meanings import KEYCHAIN_ENTRY, LOCAL_PATH, SCHEMES
from penstock.tools.base import Call, Success, Tool, ToolFailure, local_path
from penstock.tools.parameters import about
from penstock.tools.sql.connection import (
    ConnectionName,
    FilePool,
    Stop,
    TaskSession,
    auth_of,
    entry_of,
    interruptible,
    run_task,
)
from penstock.tools.sql.plan import (
    Planner,
    Ran,
    SqlParams,
    Upsert,
    effect_of,
    make_plan,
    off_the_loop,
    verbs_of,
    with_script,
)
from penstock.tools.sql.results import GIVES, RunningCommand, Table, as_json_text, failure
from penstock.tools.sql.text import Bound, Dialect, insert_into, on_conflict

BUSY_S = 5.0
"""So long SQLite itself waits for a lock."""
MEMORY = ":memory:"


class SqliteParams(SqlParams, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str | None,
        about(
            "The database file, relative to the document's folder; `:memory:` is shared within one execution.",
            schema={**LOCAL_PATH, SCHEMES: ["sqlite"]},
        ),
    ] = None
    connection: ConnectionName = None
    auth: Annotated[
        str | dict[str, Any] | None,
        about("Name of a keychain entry with a `path`, instead of `path`.", schema=KEYCHAIN_ENTRY),
    ] = None
    pool: FilePool = None
    create: Annotated[bool, about("Make the file when it is not there.")] = True
    read_only: Annotated[bool, about("Open the file for reading only.")] = False
    busy_timeout: Annotated[float, about("Seconds to wait for another writer's lock.", ge=0)] = 5.0
    autocommit: Annotated[
        bool, about("Each statement commits by itself, as `VACUUM` needs; otherwise the task is one transaction.")
    ] = False


def path_of(path: str | None, auth: str | dict[str, Any] | None, call: Call) -> str:
    """The file that a task means, absolute; or `:memory:`."""
    if path is None and auth is not None:
        entry = entry_of(auth, call)
        path = next((str(entry[key]) for key in ("path", "database", "url", "value") if entry.get(key)), None)
    if path is None:
        raise ToolFailure("parameters", "no database is named; hint: `path: data.db`, or `path: ':memory:'`")
    path = path.removeprefix("sqlite:///")
    return MEMORY if path == MEMORY else str(local_path(path, call))


def connect(
    path: str, *, create: bool = True, read_only: bool = False, busy_timeout: float = BUSY_S
) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are begun and ended by name."""
    target, uri = path, False
    if path != MEMORY:
        mode = "ro" if read_only else "rwc" if create else "rw"
        target, uri = f"file:{quote(path)}?mode={mode}", True
    try:
        connection = sqlite3.connect(
            target, timeout=busy_timeout, isolation_level=None, check_same_thread=False, uri=uri
        )
    except sqlite3.Error as error:
        raise _not_opened(path, error) from None
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.Error as error:
        connection.close()
        raise _not_opened(path, error) from None
    return connection


def _not_opened(path: str, error: sqlite3.Error) -> ToolFailure:
    code = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
    busy = code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
    helpers: dict[str, JsonMap] = {"sqlite": {"code": code}}
    return ToolFailure("connect", f"`{path}` cannot be opened: {error}", retryable=busy, helpers=helpers)


_KINDS = (
    ("SQLITE_CONSTRAINT", "constraint", False),
    ("SQLITE_BUSY_SNAPSHOT", "serialization", True),
    ("SQLITE_BUSY", "timeout", True),
    ("SQLITE_LOCKED", "timeout", True),
    ("SQLITE_READONLY", "permission", False),
    ("SQLITE_AUTH", "permission", False),
    ("SQLITE_PERM", "permission", False),
    ("SQLITE_CANTOPEN", "connect", False),
    ("SQLITE_NOTADB", "connect", False),
    ("SQLITE_INTERRUPT", "timeout", True),
)


def failure_of(error: Exception, running: RunningCommand | None) -> ToolFailure:
    code = getattr(error, "sqlite_errorname", "SQLITE_MISUSE")
    message = str(error)
    helpers: dict[str, JsonMap] = {"sqlite": {"code": code}}
    for start, kind, retryable in _KINDS:
        if code.startswith(start):
            return failure(kind, message, running, helpers, retryable=retryable)
    if message.startswith(("no such table", "no such column", "no such function")):
        return failure("not_found", message, running, helpers)
    if "within a transaction" in message:
        message += "; hint: set `autocommit: true`, the task is a transaction otherwise"
    syntax = "syntax error" in message or "incomplete input" in message or "unrecognized token" in message
    return failure("syntax" if syntax else "database", message, running, helpers)


def bindable(value: Any) -> Any:
    """What SQLite can keep: lists and mappings go as JSON text, for `json_each` and friends."""
    if isinstance(value, (dict, list)):
        return as_json_text(value)
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


class SqliteSession(TaskSession):
    errors: tuple[type[Exception], ...] = (sqlite3.Error, OverflowError)

    def __init__(self, connection: sqlite3.Connection, max_rows: int) -> None:
        self.connection = connection
        self.max_rows = max_rows

    def begin(self, *, writing: bool) -> None:
        # A writer asks for its lock at once: a reader that becomes a writer later is refused without any waiting.
        self.connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def execute(self, statement: Bound) -> Table:
        args = (
            {name: bindable(value) for name, value in statement.args.items()}
            if isinstance(statement.args, dict)
            else {}
        )
        cursor = self.connection.execute(statement.text, args)
        try:
            if cursor.description is None:
                return Table(row_count=max(cursor.rowcount, 0))
            return self.fetched(cursor)
        finally:
            cursor.close()

    def upsert(self, step: Upsert) -> Table:
        values = ", ".join("?" * len(step.columns))
        tail = on_conflict(step.keys, step.update, Dialect.SQLITE)
        text = f"{insert_into(step.table, step.columns, Dialect.SQLITE)} VALUES ({values}) {tail}"
        cursor = self.connection.executemany(text, ([bindable(value) for value in row] for row in step.rows))
        return Table(row_count=max(cursor.rowcount, 0))

    def failure(self, error: Exception, running: RunningCommand) -> ToolFailure:
        return failure_of(error, running)


class SharedSqlite:
    """What an execution keeps of one database: idle connections of a file, or the only one to a database in memory."""

    def __init__(
        self, open_one: Callable[[], sqlite3.Connection], turn: asyncio.Lock | None, *, keeps: bool = True
    ) -> None:
        self.turn = turn
        self._open_one = open_one
        self._idle: list[sqlite3.Connection] = []
        self._closed = not keeps

    def take(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._open_one()

    def give_back(self, connection: sqlite3.Connection) -> None:
        connection.rollback()
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class SqliteTool(Tool[SqliteParams]):
    """Run SQL in a SQLite database.

    The commands of a task are one transaction: all of them count or none does. Values in `params` are bound, never pasted:
    `:name` with a mapping, `?` with a list; a list or mapping among them goes as JSON text.
    The result is `{rows, row_count, columns}`; with several commands also `command_0`, `command_1` … (of a single one
    `command_0` is the result itself).
    `script` is a file of SQL, or a mapping: `{uri: sql/load.sql, source: {type: file}}`, `{source: {type: inline, code}}`, or
    `{source: {type: http, endpoint}}`. It runs as the same text in `command` would: its templates see the names that the
    task's own see, except secrets.
    `upsert` writes rows by their keys and can be run again without harm; so can any commands with `idempotency: true`, which
    commits them once for each element of a loop, also when a shard is tried again.
    `path: ':memory:'` is one database for all tasks of an execution, gone when it ends.
    On an error `outcome.sqlite.code` has SQLite's name for it, such as `SQLITE_CONSTRAINT_UNIQUE`.
    """

    kind: ClassVar[str] = "sqlite"
    gives: ClassVar[tuple[str, ...]] = GIVES
    family: ClassVar[str] = "sqlite"

    async def run(self, params: SqliteParams, call: Call) -> object:
        path = path_of(params.path, auth_of(params), call)
        params = await with_script(params, call)
        planner = Planner(Dialect.SQLITE, call, own_transactions=params.autocommit)
        steps = await off_the_loop(params, call, lambda: make_plan(params, planner))
        shared = await shared_database(
            path,
            call,
            create=params.create,
            read_only=params.read_only,
            busy_timeout=params.busy_timeout,
            keeps=params.pool is not False,
        )

        effect = effect_of(params, verbs_of(steps), call, Dialect.SQLITE)

        def work(stop: Stop) -> Ran:
            connection = shared.take()
            forget = stop.on_stop(connection.interrupt)
            try:
                session = SqliteSession(connection, params.max_rows)
                return run_task(session, steps, stop, effect, transaction=not params.autocommit)
            finally:
                forget()
                shared.give_back(connection)

        async with shared.turn or nullcontext():
            ran = await interruptible(call, work)
        return Success(ran.result, {"sqlite": {"code": "SQLITE_OK", **ran.helper}})


async def shared_database(
    path: str,
    call: Call,
    *,
    create: bool = True,
    read_only: bool = False,
    busy_timeout: float | None = None,
    keeps: bool = True,
) -> SharedSqlite:
    """`keeps`: is a connection to a file kept for the next task? A database in memory is there as long as its only one."""
    wait_s = BUSY_S if busy_timeout is None else busy_timeout

    def open_one() -> sqlite3.Connection:
        return connect(path, create=create, read_only=read_only, busy_timeout=wait_s)

    if not keeps and path != MEMORY:
        return SharedSqlite(open_one, None, keeps=False)

    async def make() -> tuple[SharedSqlite, Callable[[], Awaitable[None]]]:
        shared = SharedSqlite(open_one, asyncio.Lock() if path == MEMORY else None)
        return shared, shared.close

    how = () if path == MEMORY else (read_only, create, wait_s)
    shared: SharedSqlite = await call.resources.get(("sqlite", path, *how), make)
    return shared
