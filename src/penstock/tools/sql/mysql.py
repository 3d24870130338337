"""MySQL and MariaDB, through PyMySQL in threads, with connections that the execution keeps for the next task."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.kernel.values import JsonMap
from penstock.tools.addresses import OPEN, Addresses
from penstock.tools.base import Call, Success, Tool, ToolFailure
from penstock.tools.network import address_refused, allowed_addresses, connect_words
from penstock.tools.parameters import about
from penstock.tools.sql.connection import (
    MOST_CONNECTIONS,
    Address,
    Auth,
    ConnectionName,
    Database,
    Host,
    MysqlUrl,
    Password,
    PoolParam,
    PoolUse,
    Port,
    SslMode,
    Stop,
    TaskSession,
    Turns,
    User,
    address_of,
    connect_timeout,
    in_a_thread,
    interruptible,
    pool_of,
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
from penstock.tools.sql.results import (
    GIVES,
    RunningCommand,
    Table,
    as_json_text,
    failure,
    parsed,
    scrubbed,
    to_json,
)
from penstock.tools.sql.text import Bound, Dialect, insert_into, on_conflict

if TYPE_CHECKING:
    import ssl

    from pymysql.connections import Connection

    from penstock.tools.sql.mysql_rows import RowsConnection


# ---- Connections to MySQL and MariaDB, and what the server's error numbers mean.


@dataclass(frozen=True, slots=True)
class Login:
    """What PyMySQL is told, all but the TLS context, which is made for each connection."""

    arguments: dict[str, Any] = field(repr=False)
    sslmode: str = "prefer"
    ca: str | None = None
    allowed: Addresses = OPEN


_FOUND_ROWS = 2
_SSL_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")


def login_of(address: Address, call: Call) -> Login:
    given: dict[str, Any] = {}
    options = dict(address.options)
    if address.url:
        given, more = _from_url(address.url)
        options = more | options
    own = {"host": address.host, "port": address.port, "user": address.user}
    own |= {"password": address.password, "database": address.database, "unix_socket": options.get("unix_socket")}
    given |= {name: value for name, value in own.items() if value is not None}
    mode = options.get("sslmode", "prefer").lower().replace("_", "-")
    if mode not in _SSL_MODES:
        raise ToolFailure("parameters", f"`{mode}` is not an sslmode; it is one of {', '.join(_SSL_MODES)}")
    # Like every other database, an UPDATE then counts the rows it found, not only those that it made different.
    arguments = {
        "charset": "utf8mb4",
        "client_flag": _FOUND_ROWS,
        "connect_timeout": max(1, round(connect_timeout(call))),
        **given,
    }
    return Login(arguments, mode, options.get("sslrootcert") or options.get("ssl_ca"), address.allowed)


def _from_url(url: str) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolFailure(
            "parameters", "the MySQL URL cannot be read; hint: `mysql://user:password@host:3306/database`"
        ) from None
    if not parts.scheme.startswith(("mysql", "mariadb")):
        raise ToolFailure("parameters", f"a MySQL URL begins with `mysql://`, not with `{parts.scheme}://`")
    given = {
        "host": parts.hostname,
        "port": port,
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
        "database": unquote(parts.path.lstrip("/")) or None,
    }
    return {name: value for name, value in given.items() if value is not None}, dict(parse_qsl(parts.query))


def _tls(login: Login) -> ssl.SSLContext | None:

    if login.sslmode in ("disable", "prefer") and login.ca is None:
        return None
    context = ssl.create_default_context(cafile=login.ca)
    context.check_hostname = login.sslmode == "verify-full"
    if login.sslmode not in ("verify-ca", "verify-full"):
        context.verify_mode = ssl.CERT_NONE
    return context


def connect(login: Login, *, offers_rows: bool = False) -> RowsConnection:
    """`offers_rows`: the server is told that this end may answer LOAD DATA LOCAL."""
    import pymysql  # Slow to import: only a connection needs it.

    from penstock.tools.sql.mysql_rows import RowsConnection

    try:
        is_local = login.sslmode == "prefer" and "unix_socket" in login.arguments
        arguments = {**login.arguments, "ssl": _tls(login), "ssl_disabled": is_local or login.sslmode == "disable"}
        arguments["local_infile"] = offers_rows
        if login.allowed.is_open:
            return RowsConnection(**arguments)
        connection = RowsConnection(**arguments, defer_connect=True)
        connection.connect(_dialled(login))
        return connection
    except (pymysql.MySQLError, OSError) as error:
        number, words = _number_and_message(error)
        if "refused" in words:
            words = connect_words(error, str(login.arguments.get("host")), login.arguments.get("port"))
        words = scrubbed(words, [login.arguments.get("password")])
        kind, retryable = _KINDS.get(number, ("connect", True))
        helpers = {"mysql": _helper(number)}
        raise ToolFailure(kind, f"no connection to MySQL: {words}", retryable=retryable, helpers=helpers) from None


def _dialled(login: Login) -> socket.socket | None:
    """A connection to an address that was judged; TLS still verifies the name. None: a socket in the file system."""
    arguments = login.arguments
    if arguments.get("unix_socket"):
        if not login.allowed.reaches_sockets:
            raise address_refused(f"`{arguments['unix_socket']}` is a socket of this machine")
        return None
    host, port = str(arguments.get("host") or "localhost"), int(arguments.get("port") or 3306)
    seconds = arguments["connect_timeout"]
    addresses = allowed_addresses(host, port, login.allowed)
    for number, address in enumerate(addresses, start=1):
        try:
            dialled = socket.create_connection((address, port), seconds)
        except OSError as error:
            if number == len(addresses):
                raise OSError(2003, f"Can't connect to MySQL server on '{host}' ({error.strerror or error})") from error
        else:
            dialled.settimeout(None)
            return dialled
    raise AssertionError("there is at least one address")


def thread_of(connection: Connection[Any]) -> int:
    """The number under which the server knows the connection."""
    return int(connection.thread_id())  # type: ignore[no-untyped-call]


def kill_query(login: Login, number: int) -> None:
    """Ask the server to give up what connection `number` is running. When that fails, the caller's grace time ends it."""
    import pymysql  # Slow to import: only a connection needs it.

    with suppress(pymysql.MySQLError, OSError, ToolFailure):
        connection = connect(login)
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"KILL QUERY {number:d}")
        finally:
            connection.close()


# Server error number -> kind, and whether trying again may help.
_KINDS = {
    1040: ("connect", True),  # too many connections
    1044: ("permission", False),
    1045: ("permission", False),
    1049: ("not_found", False),  # unknown database
    1054: ("not_found", False),  # unknown column
    1064: ("syntax", False),
    1142: ("permission", False),
    1143: ("permission", False),
    1146: ("not_found", False),  # unknown table
    1149: ("syntax", False),
    1203: ("connect", True),
    1205: ("timeout", True),  # lock wait
    1213: ("serialization", True),  # deadlock
    1227: ("permission", False),
    1305: ("not_found", False),  # unknown function or procedure
    1317: ("timeout", True),  # interrupted
    1698: ("permission", False),
    1969: ("timeout", True),  # MariaDB: max_statement_time
    2002: ("connect", True),
    2003: ("connect", True),
    2006: ("connect", True),
    2013: ("connect", True),
    3024: ("timeout", True),  # MySQL: max_execution_time
    4031: ("connect", True),
}
_CONSTRAINTS = {1022, 1048, 1062, 1169, 1216, 1217, 1364, 1451, 1452, 1557, 1761, 1762, 3819, 4025}
_SQLSTATES = {1062: "23000", 1205: "HY000", 1213: "40001", 1064: "42000", 1146: "42S02", 1054: "42S22", 1045: "28000"}


def _number_and_message(error: Exception) -> tuple[int, str]:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    words = str(error.args[1]) if len(error.args) > 1 else str(error)
    return number, words


def _helper(number: int) -> JsonMap:
    state = _SQLSTATES.get(number, "23000" if number in _CONSTRAINTS else "HY000")
    return {"code": number, "sqlstate": state}


def failure_of(error: Exception, running: RunningCommand | None) -> ToolFailure:
    number, words = _number_and_message(error)
    kind, retryable = _KINDS.get(number, ("constraint" if number in _CONSTRAINTS else "database", False))
    if isinstance(error, OSError):
        kind, retryable = "connect", True
    return failure(kind, words, running, {"mysql": _helper(number)}, retryable=retryable)


JSON_TYPE = 245


class MysqlParams(SqlParams, kw_only=True, forbid_unknown_fields=True):
    connection: ConnectionName = None
    auth: Auth = None
    url: MysqlUrl = None
    host: Host = None
    port: Port = None
    user: User = None
    password: Password = None
    database: Database = None
    sslmode: SslMode = None
    pool: PoolParam = None
    isolation: Annotated[
        Literal["read uncommitted", "read committed", "repeatable read", "serializable"] | None,
        about("Isolation level of the task's transaction; the server's default when left out."),
    ] = None
    autocommit: Annotated[bool, about("Each statement commits by itself; otherwise the task is one transaction.")] = (
        False
    )


def bindable(value: Any) -> Any:
    """A list of plain values is a list for `IN`; any other list or mapping goes as JSON text."""
    if isinstance(value, dict):
        return as_json_text(value)
    if isinstance(value, list):
        if any(isinstance(item, (dict, list)) for item in value):
            return as_json_text(value)
        return value or [None]  # `IN ()` is no SQL; `IN (NULL)` is never true, which is what an empty list means
    return value


class MysqlSession(TaskSession):
    def __init__(self, connection: Connection[Any], login: Login, params: MysqlParams) -> None:
        import pymysql  # Slow to import: only a connection needs it.

        self.login = login
        self.connection = connection
        self.max_rows = params.max_rows
        self.isolation = params.isolation
        self.errors = (pymysql.MySQLError, OSError)

    def begin(self, *, writing: bool) -> None:
        if self.isolation:
            self._send(f"SET TRANSACTION ISOLATION LEVEL {self.isolation}")
        self.connection.begin()

    def _send(self, text: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)

    def execute(self, statement: Bound) -> Table:
        from pymysql.cursors import SSCursor  # Slow to import: only a connection needs it.

        args = [bindable(value) for value in statement.args] if isinstance(statement.args, list) else None
        # An unbuffered cursor reads rows as they come; the driver's usual one would hold all of them first.
        cursor = self.connection.cursor(SSCursor)
        try:
            cursor.execute(statement.text, args)
            if not cursor.description:
                return Table(row_count=max(cursor.rowcount, 0))
            convert = [parsed if cast("int", column[1]) == JSON_TYPE else to_json for column in cursor.description]
            return self.fetched(cursor, convert)
        finally:
            with suppress(*self.errors):
                cursor.close()

    def give_up(self) -> None:
        # Closing the cursor reads what is still to come, so the server is told to send no more.
        kill_query(self.login, thread_of(self.connection))

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

    def failure(self, error: Exception, running: RunningCommand) -> ToolFailure:
        return failure_of(error, running)


class Pool:
    """Idle connections of one execution to one server, and the turns that bound how many there are."""

    def __init__(self, login: Login, size: int, *, keeps: bool = True) -> None:
        self.login = login
        self.turns = Turns(size)
        self._idle: list[Connection[Any]] = []
        self._closed = not keeps

    def take(self) -> Connection[Any]:
        import pymysql  # Slow to import: only a connection needs it.

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
    "select", "insert", "update", "delete", "replace", "with", "values", "table", "truncate", "call", "show",
}  # fmt: skip


class MysqlTool(Tool[MysqlParams]):
    """Run SQL in MySQL or MariaDB.

    `auth` names a keychain entry with the connection. The commands of a task are one transaction, as far as MySQL allows:
    it commits by itself before statements such as `CREATE TABLE`. Values in `params` are bound, never pasted: `:name` or
    `%(name)s` with a mapping, `%s` or `?` with a list. A list of plain values is for `IN :ids`; any other list or mapping
    goes as JSON text.
    The result is `{rows, row_count, columns}`; with several commands also `command_0`, `command_1` … (of a single one
    `command_0` is the result itself).
    `script` is a file of SQL, or a mapping: `{uri: sql/load.sql, source: {type: file}}`, `{source: {type: inline, code}}`, or
    `{source: {type: http, endpoint}}`. It runs as the same text in `command` would: its templates see the names that the
    task's own see, except secrets.
    `upsert` writes rows by their keys (`ON DUPLICATE KEY UPDATE`) and can be run again without harm; so can any commands with
    `idempotency: true`, which commits them once for each element of a loop, also when a shard is tried again.
    `outcome.mysql.code` is the server's error number, such as 1213, and `outcome.mysql.sqlstate` its SQLSTATE.
    """

    kind: ClassVar[str] = "mysql"
    gives: ClassVar[tuple[str, ...]] = GIVES
    family: ClassVar[str] = "mysql"
    makes_files: ClassVar[bool] = False

    async def run(self, params: MysqlParams, call: Call) -> object:
        login = login_of(address_of(params, call), call)
        params = await with_script(params, call)
        planner = Planner(Dialect.MYSQL, call, own_transactions=params.autocommit)
        steps = await off_the_loop(params, call, lambda: make_plan(params, planner))
        verbs = verbs_of(steps)
        touched = bool(verbs - _LEAVES_NO_TRACE) or params.autocommit
        effect = effect_of(params, verbs, call, Dialect.MYSQL)

        def work(stop: Stop, pool: Pool) -> Ran:
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

        async with turn_of(login, call, params.pool) as pool:
            ran = await interruptible(call, lambda stop: work(stop, pool))
        helper: JsonMap = {"code": 0, "sqlstate": "00000", **ran.helper}
        return Success(ran.result, {"mysql": helper})


@asynccontextmanager
async def turn_of(login: Login, call: Call, wanted: bool | PoolUse | None = None) -> AsyncIterator[Pool]:
    """A turn in the pool that the execution has for this server, or in one for this task alone."""
    use = pool_of(wanted, call)
    if use is None:
        yield Pool(login, 1, keeps=False)
        return
    size = use.max_size or MOST_CONNECTIONS

    async def make() -> tuple[Pool, Callable[[], Awaitable[None]]]:
        pool = Pool(login, size)
        return pool, pool.close

    # The key is a digest: keys of shared resources may be shown, passwords may not.
    digest = hashlib.sha256(repr(sorted(login.arguments.items(), key=str)).encode()).hexdigest()
    pool: Pool = await call.resources.get(("mysql", digest, use.name, size), make)
    async with pool.turns.turn(use.timeout):
        yield pool
