"""MySQL and MariaDB, through PyMySQL in threads, with connections that the execution keeps for the next task."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import msgspec
from msgspec import Meta

from penstock.kernel.values import Json, JsonMap
from penstock.tools.base import Call, Success, Tool, ToolFailure
from penstock.tools.sql.binding import Bound
from penstock.tools.sql.blocking import Stop, in_a_thread, interruptible, run_task
from penstock.tools.sql.connection import (
    Auth,
    Database,
    Host,
    MysqlUrl,
    Password,
    Port,
    SslMode,
    User,
    address_of,
    pool_size,
)
from penstock.tools.sql.effects import Ran, effect_of
from penstock.tools.sql.failures import Place
from penstock.tools.sql.lexer import Dialect
from penstock.tools.sql.mysql_connection import Login, connect, failure_of, kill_query, login_of, thread_of
from penstock.tools.sql.names import insert_into, on_conflict
from penstock.tools.sql.plan import Planner, SqlParams, Upsert, make_plan, off_the_loop, verbs_of
from penstock.tools.sql.results import Table, too_large
from penstock.tools.sql.values import as_json_text, distinct, parsed, to_json

if TYPE_CHECKING:
    from pymysql.connections import Connection

_BATCH = 1000
JSON_TYPE = 245


class MysqlParams(SqlParams, kw_only=True, forbid_unknown_fields=True):
    auth: Auth = None
    url: MysqlUrl = None
    host: Host = None
    port: Port = None
    user: User = None
    password: Password = None
    database: Database = None
    sslmode: SslMode = None
    isolation: Annotated[
        Literal["read uncommitted", "read committed", "repeatable read", "serializable"] | None,
        Meta(description="Isolation level of the task's transaction; the server's default when left out."),
    ] = None
    autocommit: Annotated[
        bool, Meta(description="Each statement commits by itself; otherwise the task is one transaction.")
    ] = False


def bindable(value: Any) -> Any:
    """A list of plain values is a list for `IN`; any other list or mapping goes as JSON text."""
    if isinstance(value, dict):
        return as_json_text(value)
    if isinstance(value, list):
        if any(isinstance(item, (dict, list)) for item in value):
            return as_json_text(value)
        return value or [None]  # `IN ()` is no SQL; `IN (NULL)` is never true, which is what an empty list means
    return value


class MysqlSession:
    def __init__(self, connection: Connection[Any], login: Login, params: MysqlParams) -> None:
        import pymysql

        self.login = login
        self.connection = connection
        self.max_rows = params.max_rows
        self.isolation = params.isolation
        self.errors: tuple[type[Exception], ...] = (pymysql.MySQLError, OSError)

    def begin(self, *, writing: bool) -> None:
        if self.isolation:
            self._send(f"SET TRANSACTION ISOLATION LEVEL {self.isolation}")
        self.connection.begin()

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        with suppress(*self.errors):
            self.connection.rollback()

    def _send(self, text: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)

    def execute(self, statement: Bound) -> Table:
        from pymysql.cursors import SSCursor

        args = [bindable(value) for value in statement.args] if isinstance(statement.args, list) else None
        # An unbuffered cursor reads rows as they come; the driver's usual one would hold all of them first.
        cursor = self.connection.cursor(SSCursor)
        try:
            cursor.execute(statement.text, args)
            if not cursor.description:
                return Table(row_count=max(cursor.rowcount, 0))
            columns = distinct([column[0] for column in cursor.description])
            convert = [parsed if cast("int", column[1]) == JSON_TYPE else to_json for column in cursor.description]
            rows: list[Json] = []
            while batch := cursor.fetchmany(_BATCH):
                if len(rows) + len(batch) > self.max_rows:
                    # Closing the cursor reads what is still to come, so the server is told to send no more.
                    kill_query(self.login, thread_of(self.connection))
                    raise too_large(self.max_rows)
                rows.extend(
                    {name: change(value) for name, change, value in zip(columns, convert, row, strict=True)}
                    for row in batch
                )
            return Table(columns, rows, len(rows), gives_rows=True)
        finally:
            with suppress(*self.errors):
                cursor.close()

    def upsert(self, step: Upsert) -> Table:
        values = ", ".join(["%s"] * len(step.columns))
        head = insert_into(step.table, step.columns, Dialect.MYSQL).replace("%", "%%")
        tail = on_conflict(step.keys, step.update, Dialect.MYSQL).replace("%", "%%")
        with self.connection.cursor() as cursor:
            rows = [
                [as_json_text(value) if isinstance(value, (dict, list)) else value for value in row]
                for row in step.rows
            ]
            cursor.executemany(f"{head} VALUES ({values}) {tail}", rows)
        # The server counts an update as two rows and an unchanged row as none; what was asked for is clearer.
        return Table(row_count=len(step.rows))

    def failure(self, error: Exception, place: Place) -> ToolFailure:
        return failure_of(error, place)


class _Pool:
    """Idle connections of one execution to one server, and the turns that bound how many there are."""

    def __init__(self, login: Login, size: int) -> None:
        self.login = login
        self.turns = asyncio.Semaphore(size)
        self._idle: list[Connection[Any]] = []
        self._closed = False

    def take(self) -> Connection[Any]:
        import pymysql

        while self._idle:
            connection = self._idle.pop()
            try:
                connection.ping(reconnect=False)
            except (pymysql.MySQLError, OSError):
                continue
            return connection
        return connect(self.login)

    def give_back(self, connection: Connection[Any], *, touched: bool) -> None:
        """A connection whose session settings were changed is not used again: PyMySQL cannot reset it."""
        if touched or self._closed or not connection.open:
            if connection.open:
                connection.close()
        else:
            self._idle.append(connection)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            connection = self._idle.pop()
            await asyncio.to_thread(connection.close)


# Statements of these kinds leave nothing behind in the session.
_LEAVES_NO_TRACE = {
    "select",
    "insert",
    "update",
    "delete",
    "replace",
    "with",
    "values",
    "table",
    "truncate",
    "call",
    "show",
}


class MysqlTool(Tool[MysqlParams]):
    """Run SQL in MySQL or MariaDB.

    `auth` names a keychain entry with the connection. The commands of a task are one transaction, as far as MySQL allows:
    it commits by itself before statements such as `CREATE TABLE`. Values in `params` are bound, never pasted: `:name` or
    `%(name)s` with a mapping, `%s` or `?` with a list. A list of plain values is for `IN :ids`; any other list or mapping
    goes as JSON text.
    The result is `{rows, row_count, columns}`; with several commands also `command_0`, `command_1` …
    `upsert` writes rows by their keys (`ON DUPLICATE KEY UPDATE`) and can be run again without harm; so can any commands with
    `idempotency: true`, which commits them once for each element of a loop, also when a shard is tried again.
    `outcome.mysql.code` is the server's error number, such as 1213, and `outcome.mysql.sqlstate` its SQLSTATE.
    """

    kind: ClassVar[str] = "mysql"
    makes_files: ClassVar[bool] = False
    Params: ClassVar[type[msgspec.Struct]] = MysqlParams
    example: ClassVar[str] = """\
- name: open_orders
  kind: mysql
  auth: shop
  query: SELECT id, customer FROM orders WHERE status = :status AND id IN :ids
  params: {status: open, ids: [1, 2, 3]}
"""

    async def run(self, params: MysqlParams, call: Call) -> object:
        login = login_of(address_of(params, call), call)
        planner = Planner(Dialect.MYSQL, call, own_transactions=params.autocommit)
        steps = await off_the_loop(params, call, lambda: make_plan(params, planner))
        verbs = verbs_of(steps)
        touched = bool(verbs - _LEAVES_NO_TRACE) or params.autocommit
        effect = effect_of(params, verbs, call, Dialect.MYSQL)
        pool = await pool_for(login, call)

        def work(stop: Stop) -> Ran:
            connection = pool.take()
            number = thread_of(connection)
            forget = stop.on_stop(in_a_thread(lambda: kill_query(login, number)))
            try:
                connection.autocommit(params.autocommit)
                session = MysqlSession(connection, login, params)
                return run_task(session, steps, stop, effect, transaction=not params.autocommit)
            finally:
                forget()
                pool.give_back(connection, touched=touched or stop.is_set)

        async with pool.turns:
            ran = await interruptible(call, work)
        helper: JsonMap = {"code": 0, "sqlstate": "00000", **ran.helper}
        return Success(ran.result, {"mysql": helper})


async def pool_for(login: Login, call: Call) -> _Pool:
    async def make() -> tuple[_Pool, Callable[[], Awaitable[None]]]:
        pool = _Pool(login, pool_size(call))
        return pool, pool.close

    # The key is a digest: keys of shared resources may be shown, passwords may not.
    key = ("mysql", hashlib.sha256(repr(sorted(login.arguments.items(), key=str)).encode()).hexdigest())
    pool: _Pool = await call.resources.get(key, make)
    return pool
