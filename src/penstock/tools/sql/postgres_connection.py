"""Connections to PostgreSQL: how they are described, how values cross them, and the pool an execution keeps of them."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import re
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple, dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from penstock.kernel.values import Json, JsonMap
from penstock.tools.addresses import Addresses
from penstock.tools.base import Call, ToolFailure
from penstock.tools.network import address_refused, allowed_addresses, connect_words
from penstock.tools.sql.connection import MOST_CONNECTIONS, Address, PoolUse, Session, Turns, connect_timeout, pool_of
from penstock.tools.sql.results import (
    RunningCommand,
    Table,
    failure,
    from_bytes,
    from_decimal,
    from_float,
    scrubbed,
    too_large,
)
from penstock.tools.sql.text import Bound, Dialect, Kind, scan

if TYPE_CHECKING:
    import psycopg
    from psycopg import AsyncConnection, Connection
    from psycopg.abc import AdaptContext


# ---- PostgreSQL's errors by SQLSTATE: which kind a rule can test for, and whether trying again may help.

OK: dict[str, JsonMap] = {"pg": {"code": "00000", "sqlstate": "00000"}}

# The longest beginning that fits decides.
_KINDS = {
    "08": "connect", "23": "constraint", "28": "permission", "3D000": "not_found", "3F000": "not_found",
    "40001": "serialization", "40P01": "serialization", "42501": "permission", "42601": "syntax",
    "42703": "not_found", "42704": "not_found", "42883": "not_found", "42P01": "not_found", "53300": "connect",
    "55P03": "timeout", "57014": "timeout", "57P0": "connect",
}  # fmt: skip
_RETRYABLE = ("08", "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03")

# libpq gives no SQLSTATE for a connection that never came to be; the server's words are all there is.
_CONNECT_WORDS = (
    (re.compile(r"password authentication failed|no password supplied|fe_sendauth"), "28P01"),
    (re.compile(r"no pg_hba\.conf entry|authentication failed|role .* does not exist"), "28000"),
    (re.compile(r"database .* does not exist"), "3D000"),
    (re.compile(r"too many (connections|clients)|remaining connection slots"), "53300"),
    (re.compile(r"starting up|shutting down|in recovery mode|not yet accepting"), "57P03"),
)


def kind_of(sqlstate: str) -> str:
    return next((_KINDS[sqlstate[:size]] for size in (5, 4, 2) if sqlstate[:size] in _KINDS), "database")


def is_retryable(sqlstate: str) -> bool:
    return sqlstate.startswith(_RETRYABLE)


def failure_of(error: psycopg.Error, running: RunningCommand | None, *, connection_lost: bool = False) -> ToolFailure:
    diagnosis = error.diag
    state = error.sqlstate or ("08006" if connection_lost else "")
    facts = {
        "code": state or None,
        "sqlstate": state or None,
        "severity": diagnosis.severity,
        "detail": diagnosis.message_detail,
        "hint": diagnosis.message_hint,
        "schema": diagnosis.schema_name,
        "table": diagnosis.table_name,
        "column": diagnosis.column_name,
        "constraint": diagnosis.constraint_name,
    }
    helper: JsonMap = {
        name: value for name, value in facts.items() if value is not None or name in ("code", "sqlstate")
    }
    message = diagnosis.message_primary or str(error)
    for more in (diagnosis.message_detail, diagnosis.message_hint and f"hint: {diagnosis.message_hint}"):
        message += f"; {more}" if more else ""
    if "COPY cannot be used" in message:
        message = "COPY to or from the client does not work as a command; hint: use the parameter `copy`"
    if state == "25001":
        message += "; hint: set `autocommit: true`, the task is a transaction otherwise"
    kind = kind_of(state) if state else "parameters"  # without a SQLSTATE it never got as far as the server
    return failure(kind, message, running, {"pg": helper}, retryable=is_retryable(state))


# Of a connection text that it cannot read, libpq quotes the part it stumbled over: perhaps a piece of the password.
_UNREADABLE = re.compile(r"invalid (integer|port|percent|URI|connection|sslmode)|connection option|missing \"=\"")
_REFUSED = re.compile(r'server at "(?P<host>[^"]+)"(?: \([^)]*\))?, port (?P<port>\d+) failed: Connection refused')
NOT_UNDERSTOOD = (
    "the connection to PostgreSQL is not described in a way it understands; "
    "hint: in a URL, write `@`, `:`, `/` and `%` of a user name or password as `%40`, `%3A`, `%2F`, `%25`"
)


def connect_failure(error: psycopg.Error, secrets: list[str | None]) -> ToolFailure:
    if _UNREADABLE.search(str(error)):
        return ToolFailure("parameters", NOT_UNDERSTOOD)
    words = scrubbed(" ".join(str(error).split()), secrets)
    state = error.sqlstate or next((state for pattern, state in _CONNECT_WORDS if pattern.search(words)), "08001")
    helpers: dict[str, JsonMap] = {"pg": {"code": state, "sqlstate": state}}
    # libpq says it of each address that it tried, with a question of its own behind each.
    if (refused := _REFUSED.search(words)) is not None:
        words = connect_words(ConnectionRefusedError(errno.ECONNREFUSED, ""), refused["host"], refused["port"])
    message = f"no connection to PostgreSQL: {words}"
    return ToolFailure(kind_of(state), message, retryable=is_retryable(state), helpers=helpers)


_DATE_TIME = re.compile(r"(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d(?::\d\d)*)?")
# Kept in the words of the database: Python's own types for them lose something or refuse some values.
_AS_TEXT = ["date", "time", "timetz", "interval", "uuid", "inet", "cidr"]
_AS_TEXT += [
    f"{base}{kind}" for base in ("int4", "int8", "num", "date", "ts", "tstz") for kind in ("range", "multirange")
]


def _keep_quiet() -> None:
    """The driver logs what it ignores, such as the end of a batch in which a row was refused. Without a handler Python prints
    that on the terminal; a program that has handlers of its own gets it as before."""
    driver = logging.getLogger("psycopg")
    if not driver.handlers:
        driver.addHandler(logging.NullHandler())


def conninfo(address: Address, call: Call) -> str:
    """What libpq reads, for one task."""
    return conninfo_within(address, connect_timeout(call))


def conninfo_within(address: Address, seconds: float) -> str:
    """What libpq reads. Its own complaints quote the text they are about, so they are not passed on."""
    import psycopg  # Slow to import: only a connection needs it.
    from psycopg.conninfo import make_conninfo

    _keep_quiet()
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    named: dict[str, Any] = {key: value for key, value in address.options.items() if key in known}
    named |= {"host": address.host, "port": address.port, "user": address.user}
    named |= {"password": address.password, "dbname": address.database}
    url = address.url or ""
    scheme = urlsplit(url).scheme if "://" in url else ""
    if scheme and not scheme.startswith(("postgres", "cockroach")):
        raise ToolFailure("parameters", f"a PostgreSQL URL begins with `postgresql://`, not with `{scheme}://`")
    if scheme:
        url = "postgresql" + url[len(scheme) :]
    # Without keepalives a server that vanished would be waited for for hours.
    defaults = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
    defaults |= {"connect_timeout": str(max(2, round(seconds))), "application_name": "penstock"}
    try:
        given = _keywords(url)
        # An `@` or `/` in a password that is not written as %40 or %2F moves part of it into the host or port.
        ports = str(given.get("port", "")).replace(",", "")
        if scheme and ("@" in str(given.get("host", "")) or not (ports.isdigit() or not ports)):
            raise ToolFailure("parameters", NOT_UNDERSTOOD)
        return make_conninfo("", **{**defaults, **given, **_given(named)})
    except psycopg.Error:
        raise ToolFailure("parameters", NOT_UNDERSTOOD) from None


def reaching(conninfo: str, allowed: Addresses) -> str:
    """The same connection, to addresses that were judged; to be called when it is opened, in a thread. libpq is given them beside
    the names, so that it resolves nothing itself, and TLS still verifies the names."""
    if allowed.is_open:
        return conninfo
    from psycopg.conninfo import make_conninfo  # Slow to import: only a connection needs it.

    keywords = _keywords(conninfo)
    # What is left out, libpq would fill in from these.
    host = str(keywords.get("host") or ("" if keywords.get("hostaddr") else os.environ.get("PGHOST", "")))
    given = str(keywords.get("hostaddr") or ("" if keywords.get("host") else os.environ.get("PGHOSTADDR", "")))
    if keywords.get("service") and not host and not given:
        raise address_refused("a `service` leads to a host that is not named")
    hosts, addresses = host.split(","), given.split(",") if given else []
    if addresses and len(hosts) not in (1, len(addresses)):
        raise ToolFailure("parameters", NOT_UNDERSTOOD)
    hosts = hosts * len(addresses) if len(hosts) == 1 and addresses else hosts
    ports = str(keywords.get("port") or os.environ.get("PGPORT") or "5432").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    if len(ports) != len(hosts):
        raise ToolFailure("parameters", NOT_UNDERSTOOD)
    ends: list[tuple[str, str, str]] = []
    for number, (name, port) in enumerate(zip(hosts, ports, strict=True)):
        if addresses and addresses[number]:
            found = allowed_addresses(addresses[number], int(port or 5432), allowed)
        elif not name or name.startswith(("/", "@")):
            if not allowed.reaches_sockets:
                raise address_refused("without a host, the database is behind a socket of this machine")
            found = [""]
        else:
            found = allowed_addresses(name, int(port or 5432), allowed)
        ends += [(name, address, port) for address in found]
    names, judged, at = (",".join(parts) for parts in zip(*ends, strict=True))
    return make_conninfo(conninfo, host=names, hostaddr=judged, port=at)


def _keywords(url: str) -> dict[str, Any]:
    from psycopg.conninfo import conninfo_to_dict  # Slow to import: only a connection needs it.

    return dict(conninfo_to_dict(url))


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def iso(text: str) -> str:
    """PostgreSQL's timestamp as ISO 8601: a `T` in the middle, minutes in the offset. Other spellings stay as they are."""
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return text
    zone = match[3] or ""
    return f"{match[1]}T{match[2]}{zone}" + (":00" if len(zone) == 3 else "")


@cache
def json_adapters() -> Any:
    """Adapters under which rows come out as JSON can say them, and mappings go in as jsonb."""
    from psycopg import adapters  # Slow to import: only a connection needs it.
    from psycopg.adapt import AdaptersMap, Buffer, Loader
    from psycopg.types.json import JsonbDumper
    from psycopg.types.string import ByteaLoader, TextLoader

    class Timestamp(Loader):
        def load(self, data: Buffer) -> str:
            return iso(bytes(data).decode())

    class Number(Loader):
        def load(self, data: Buffer) -> Json:
            return from_decimal(Decimal(bytes(data).decode()))

    class Float(Loader):
        def load(self, data: Buffer) -> Json:
            return from_float(float(bytes(data)))

    class Bytes(ByteaLoader):
        def load(self, data: Buffer) -> Any:
            return from_bytes(super().load(bytes(data)))

    made = AdaptersMap(adapters)
    for name in _AS_TEXT:
        made.register_loader(name, TextLoader)
    made.register_loader("timestamp", Timestamp)
    made.register_loader("timestamptz", Timestamp)
    made.register_loader("numeric", Number)
    made.register_loader("float4", Float)
    made.register_loader("float8", Float)
    made.register_loader("bytea", Bytes)
    made.register_dumper(dict, JsonbDumper)
    return made


def argument(value: Any, *, as_json: bool = False) -> Any:
    """A parameter as psycopg takes it: a list of like things is an array, any other list or mapping is jsonb."""
    from psycopg.types.json import Jsonb  # Slow to import: only a connection needs it.

    if as_json and value is not None and not isinstance(value, str):
        return Jsonb(value)
    if isinstance(value, dict):
        return Jsonb(value)
    if isinstance(value, list):
        kinds = {type(item) for item in value if item is not None}
        if kinds <= {int, float} and len(kinds) == 2:
            return [None if item is None else float(item) for item in value]
        return value if len(kinds) <= 1 and not kinds & {dict, list} else Jsonb(value)
    return value


def arguments(statement: Bound) -> list[Any] | None:
    if not isinstance(statement.args, dict):
        return None
    return [argument(value, as_json=name in statement.as_json) for name, value in statement.args.items()]


def with_literals(query: Bound, connection: AsyncConnection[Any] | Connection[Any]) -> str:
    """COPY takes no bound values, so the driver writes them as literals, quoted by its own rules."""
    from psycopg.sql import Literal  # Slow to import: only a connection needs it.

    literals = [Literal(value).as_string(connection) for value in arguments(query) or []]
    if not literals:
        return query.text
    pieces = scan(query.text, Dialect.POSTGRES)
    return "".join(literals[int(piece.name) - 1] if piece.kind is Kind.NUMBERED else piece.text for piece in pieces)


@dataclass(slots=True)
class Lease:
    """A connection for the time of one task."""

    connection: AsyncConnection[Any]
    touched: bool = False
    """Did the task change the session itself, beyond the rows of tables?"""


class Pool:
    """Connections of one execution to one database: opened when needed, at most `size`, kept for the next task.

    The first error of a connection attempt is the one the task shows; a pool that tries again by itself would hide it.
    """

    def __init__(self, conninfo: str, size: int, address: Address, *, keeps: bool = True) -> None:
        self._conninfo = conninfo
        self._address = address
        self._turns = Turns(size)
        self._idle: list[AsyncConnection[Any]] = []
        self._closed = not keeps

    @asynccontextmanager
    async def lease(self, wait_s: float | None = None) -> AsyncIterator[Lease]:
        """A connection in autocommit mode. It goes back only if the work ended well or with an orderly failure."""
        async with self._turns.turn(wait_s):
            lease = Lease(await self._take())
            kept = False
            try:
                try:
                    yield lease
                except ToolFailure:
                    kept = await _is_fresh(lease)
                    raise
                kept = await _is_fresh(lease)
            finally:
                if kept and not self._closed:
                    self._idle.append(lease.connection)
                else:
                    await lease.connection.close()

    async def _take(self) -> AsyncConnection[Any]:
        while self._idle:
            connection = self._idle.pop()
            if not _has_news(connection):
                return connection
            await connection.close()
        return await self._connect()

    async def _connect(self) -> AsyncConnection[Any]:
        import psycopg  # Slow to import: only a connection needs it.

        context: AdaptContext = _Context(json_adapters())
        reached = await asyncio.to_thread(reaching, self._conninfo, self._address.allowed)
        try:
            return await psycopg.AsyncConnection.connect(
                reached, autocommit=True, context=context, cursor_factory=psycopg.AsyncRawCursor
            )
        except psycopg.Error as error:
            raise connect_failure(error, self._address.secrets) from None

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().close()


@cache
def plain_adapters() -> Any:
    """Adapters under which rows can be handed on to another database: Python's types, and text where those fail."""
    from psycopg import adapters  # Slow to import: only a connection needs it.
    from psycopg.adapt import AdaptersMap, Buffer
    from psycopg.errors import DataError
    from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
    from psycopg.types.json import JsonbDumper
    from psycopg.types.string import TextLoader

    made = AdaptersMap(adapters)
    for name in (*(name for name in _AS_TEXT if name not in ("date", "time", "uuid")), "json", "jsonb"):
        made.register_loader(name, TextLoader)
    for name, loader in {"date": DateLoader, "timestamp": TimestampLoader, "timestamptz": TimestamptzLoader}.items():

        def load(self: Any, data: Buffer, base: Any = loader) -> Any:
            try:
                return base.load(self, data)
            except DataError:  # `infinity`, and years that Python does not have
                return bytes(data).decode()

        made.register_loader(name, type(loader.__name__, (loader,), {"load": load}))
    made.register_dumper(dict, JsonbDumper)
    return made


def connect_blocking(conninfo: str, address: Address) -> Connection[Any]:
    """A connection for the threads of a transfer, outside the pool: it holds two of them at once, and for long."""
    import psycopg  # Slow to import: only a connection needs it.

    context: AdaptContext = _Context(plain_adapters())
    try:
        return psycopg.connect(reaching(conninfo, address.allowed), context=context, cursor_factory=psycopg.RawCursor)
    except psycopg.Error as error:
        raise connect_failure(error, address.secrets) from None


def cancel(connection: Connection[Any]) -> None:
    """Stop what it is running; when nothing is, or the server cannot be asked, that is as good."""
    import psycopg  # Slow to import: only a connection needs it.

    with suppress(psycopg.Error):
        connection.cancel()


class _Context:
    """Lends its adapters to a connection."""

    connection = None

    def __init__(self, adapters: Any) -> None:
        self.adapters = adapters


async def _is_fresh(lease: Lease) -> bool:
    """Is the connection as good as new? Settings and temporary tables of one task must not show up in another."""
    import psycopg  # Slow to import: only a connection needs it.
    from psycopg.pq import TransactionStatus

    connection = lease.connection
    if connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
        return False
    if not lease.touched:
        return True
    try:
        await connection.execute("DISCARD ALL")
    except psycopg.Error:
        return False
    return True


def _has_news(connection: AsyncConnection[Any]) -> bool:
    """An idle server says nothing, unless it is hanging up: something to read means the connection is stale."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


@asynccontextmanager
async def lease_of(address: Address, call: Call, wanted: bool | PoolUse | None = None) -> AsyncIterator[Lease]:
    """A connection of the pool that the execution has for this address, or one that is closed when the task is done."""
    use = pool_of(wanted, call)
    if use is None:
        async with Pool(conninfo(address, call), 1, address, keeps=False).lease() as lease:
            yield lease
        return
    size = use.max_size or MOST_CONNECTIONS

    async def make() -> tuple[Pool, Any]:
        pool = Pool(conninfo(address, call), size, address)
        return pool, pool.close

    # The key is a digest: keys of shared resources may be shown, passwords may not.
    key = ("postgres", hashlib.sha256(repr(astuple(address)).encode()).hexdigest(), use.name, size)
    pool: Pool = await call.resources.get(key, make)
    async with pool.lease(use.timeout) as lease:
        yield lease


# ---- A blocking connection to PostgreSQL for statements of a transaction that lasts longer than one task.

_BATCH = 1000


class PostgresSession(Session):
    def __init__(self, connection: Connection[Any], max_rows: int) -> None:
        import psycopg  # Slow to import: only a connection needs it.

        self.connection = connection
        self.max_rows = max_rows
        self.errors = (psycopg.Error,)

    def begin(self, *, writing: bool) -> None:
        """The driver begins a transaction with the first statement."""

    def commit(self) -> None:
        from psycopg.pq import TransactionStatus  # Slow to import: only a connection needs it.

        if self.connection.info.transaction_status == TransactionStatus.INERROR:
            # The server would answer COMMIT with a rollback, and the driver would call that a success.
            raise ToolFailure("database", "the transaction could not be committed, and nothing was changed")
        self.connection.commit()

    def execute(self, statement: Bound) -> Table:
        with self.connection.cursor() as cursor:
            cursor.execute(statement.text.encode(), arguments(statement))
            if cursor.description is None:
                return Table(row_count=max(cursor.rowcount, 0))
            if cursor.rowcount > self.max_rows:
                raise too_large(self.max_rows)
            return self.fetched(cursor)

    def failure(self, error: Exception, running: RunningCommand) -> ToolFailure:
        return failure_of(cast("psycopg.Error", error), running, connection_lost=self.connection.closed)
