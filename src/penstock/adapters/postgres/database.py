"""One PostgreSQL schema: brought to what this program knows, and lent out as connections.

Law: whoever gets a connection gets it with durable commits, the tables of this program and a bound on every wait, or an
`Unavailable` that says what is wrong with the database. What fails because the world shook is tried again until the
patience is at an end, so a job may be run more than once and has to know its own work.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from penstock.adapters.files.folders import SAFE
from penstock.adapters.sql_files import queries, schema_files
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.undoing import unless_done

# ---- What PostgreSQL says, told to people: what is wrong, with which database, and what can be done.
# Law: an error is `unfit` (the values are at fault, for ever), passing (trying again may help), or neither (somebody has to
# do something first). No message shows a password.

UNFIT_STATES = ("22", "23", "54")
PASSING_STATES = ("08", "25006", "25P03", "25P04", "40", "53", "55P03", "55006", "57", "58")

# libpq gives no SQLSTATE for a connection that never came to be; the server's words are all there is.
_CONNECT_WORDS = (
    (re.compile(r"password authentication failed|no password supplied|fe_sendauth"), "28P01"),
    (
        re.compile(r"no pg_hba\.conf entry|authentication failed|role .* does not exist|not permitted to log in"),
        "28000",
    ),
    (re.compile(r"database .* does not exist"), "3D000"),
    (re.compile(r"too many (connections|clients)|remaining connection slots"), "53300"),
    (re.compile(r"starting up|shutting down|in recovery mode|not yet accepting"), "57P03"),
    (re.compile(r"certificate|SSL|sslmode|GSSAPI"), "28000"),
)


class Lost(psycopg.OperationalError):
    """A connection that does not answer in time."""


def place_of(url: str) -> str:
    """The database as messages name it: without user and password."""
    try:
        said = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # libpq's own complaint quotes the text, perhaps with a piece of the password.
        raise Refused(
            "this is no PostgreSQL URL",
            "write `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, with `@`, `:`, `/` and `%` of a user name or password "
            "as `%40`, `%3A`, `%2F`, `%25`",
        ) from error
    host = said.get("host") or said.get("hostaddr") or "localhost"
    port = said.get("port")
    where = f"{host}:{port}" if port else str(host)
    return f"database `{said.get('dbname') or said.get('user') or 'postgres'}` on `{where}`"


def state_of(error: psycopg.Error) -> str | None:
    if error.sqlstate:
        return error.sqlstate
    words = str(error)
    return next((state for pattern, state in _CONNECT_WORDS if pattern.search(words)), None)


def is_passing(error: psycopg.Error) -> bool:
    """May the same be done if it is tried again?"""
    state = state_of(error)
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith(PASSING_STATES)


def is_unfit(error: psycopg.Error) -> bool:
    """Are the values at fault?"""
    state = error.sqlstate or ""
    return state.startswith(UNFIT_STATES) or (not state and isinstance(error, psycopg.DataError))


def is_soon_over(error: psycopg.Error) -> bool:
    """Is the server there, and about to be ready, or held up by another process that brings the schema up?"""
    return state_of(error) in ("57P03", "55P03", "40P01")


def words_of(error: psycopg.Error) -> str:
    return error.diag.message_primary or " ".join(str(error).split())


def unavailable(error: psycopg.Error, place: str) -> Unavailable:
    """The trouble with the world behind `error`."""
    state = state_of(error) or ""
    words = words_of(error)
    for beginning, (what, hint) in _TOLD.items():
        if state.startswith(beginning):
            return Unavailable(f"{place} {what}: {words}", hint)
    if not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        what = "does not answer" if isinstance(error, Lost) else "cannot be reached"
        return Unavailable(f"{place} {what}: {words}", f"{SAFE}; see that the server runs and can be reached from here")
    return Unavailable(f"{place} could not be used: {words} ({state or 'no code'})", SAFE)


_TOLD: dict[str, tuple[str, str]] = {
    "28": ("refuses the login", "check user, password and the server's `pg_hba.conf`"),
    "3D000": ("does not exist", "make it with `CREATE DATABASE … ENCODING 'UTF8'`, or correct the name"),
    "3F000": ("lacks the schema", "make it with `CREATE SCHEMA`, or correct the `search_path` of the URL"),
    "42501": (
        "does not allow what is needed",
        "let the user create tables in the schema (`GRANT CREATE, USAGE ON SCHEMA … TO …`), or name another schema "
        "with `?options=-csearch_path%3DNAME`",
    ),
    "42": ("lacks tables of Penstock, or they were changed", "put a backup in their place, or begin with a new schema"),
    "53100": ("has a full disk", f"{SAFE}; make room on the server"),
    "53300": ("has no connection left", "raise `max_connections`, or run fewer servers on it"),
    "53": ("is short of something", f"{SAFE}; give the server more memory or connections"),
    "25006": ("is read-only", "connect to the primary server (`target_session_attrs=read-write`)"),
    "55P03": ("is kept locked by another program", f"{SAFE}; end the program that holds the lock"),
    "57P": ("is stopping or starting", f"{SAFE}; see that the server runs"),
    "57014": ("took too long", f"{SAFE}; see what keeps the server busy, or which program holds a lock"),
    "58": ("has trouble with its own files", f"{SAFE}; look at the server's log"),
    "XX": ("is damaged, or PostgreSQL has a fault", f"{SAFE}; look at the server's log"),
}


T = TypeVar("T")
Job = Callable[["Connection"], T]

SQL = queries("postgres/log")

APPLICATION = "penstock"
OLDEST_SERVER = 140_000
PATIENCE_SECONDS = 60.0
# What one statement may take, on the server and, in case no answer comes through, here.
STATEMENT_SECONDS = 20.0
LOCK_SECONDS = 5.0
# Connections for reading and for single jobs; who comes when all are busy waits.
POOL = 8
THREADS = 4
# So many connections that were given up are remembered until the server has been told.
GIVEN_UP = 256
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0

# Without these a server that vanished would be waited for for hours.
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


class Connection(psycopg.Connection[TupleRow]):
    """A connection on which no wait is for ever, not even when the network swallows the answer."""

    limit_s = STATEMENT_SECONDS + LOCK_SECONDS
    application = APPLICATION
    """A name of its own, by which the server can be told to end it."""

    def wait(self, gen: Any, *args: Any, **more: Any) -> Any:
        return super().wait(_limited(gen, self.limit_s), *args, **more)


def _limited(steps: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    deadline = time.monotonic() + seconds
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise Lost(f"no answer within {seconds:g} s")
            wanted = steps.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


class Database:
    def __init__(self, url: str, patience_s: float = PATIENCE_SECONDS) -> None:
        self.place = place_of(url)
        self.patience_s = patience_s
        self._conninfo = make_conninfo("", **{**_DEFAULTS, **conninfo_to_dict(url), "client_encoding": "utf8"})
        self._idle: deque[Connection] = deque()
        self._given_up: deque[str] = deque(maxlen=GIVEN_UP)
        self._slots = threading.BoundedSemaphore(POOL)
        self._closed = threading.Event()
        self._threads: ThreadPoolExecutor | None = None
        self._threads_lock = threading.Lock()
        with unless_done(self.close):
            self._open()

    # -- connections --------------------------------------------------------------------------------------------------

    def connect(self, application: str = APPLICATION, limit_s: float | None = None) -> Connection:
        """A connection of one's own; the caller closes it, or gives it up. Raises psycopg's errors."""
        name = f"{application} {uuid4().hex[:16]}"
        connection = Connection.connect(self._conninfo, autocommit=True, application_name=name)
        limit_s = limit_s or STATEMENT_SECONDS
        lock_s = min(LOCK_SECONDS, limit_s)
        connection.application, connection.limit_s = name, limit_s + lock_s
        with unless_done(connection.close):
            values = {"statement_ms": _ms(limit_s), "lock_ms": _ms(lock_s), "idle_ms": _ms(limit_s)}
            *_, version, encoding, schema = connection.execute(SQL["prepare_session"], values).fetchone() or ()
            self._check_server(version, encoding, schema)
            self._end_given_up(connection)
        return connection

    def give_up(self, connection: Connection) -> None:
        """It broke, perhaps in the middle of a transaction."""
        self._given_up.append(connection.application)
        connection.close()

    def _end_given_up(self, connection: Connection) -> None:
        """The server may not have noticed: the transaction that was under way holds locks that the next try needs, and a
        COPY that waits for its client knows no time limit."""
        names = list(self._given_up)
        if names:
            connection.execute(SQL["end_backends"], {"names": names})
            for name in names:
                with suppress(ValueError):
                    self._given_up.remove(name)

    def _end_stalled(self) -> None:
        """Whoever holds the lock may have been frozen while it wrote: then its lease has run out, and its lock has not."""
        with suppress(psycopg.Error), self.lending() as connection:
            connection.execute(SQL["end_stalled"], {"application": APPLICATION, "seconds": LOCK_SECONDS})

    @contextmanager
    def lending(self) -> Iterator[Connection]:
        """A connection for as long as one job needs it; so any thread may read, and no read stays open."""
        self.check_open()
        if not self._slots.acquire(timeout=max(self.patience_s, 1.0)):
            raise Unavailable(f"all {POOL} connections to {self.place} stayed busy", "try again, or read less at once")
        try:
            connection = self._take() or self.connect()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._slots.release()

    def run(self, job: Job[T]) -> T:
        """`job` on a connection where every statement is a transaction of its own; again when the world shook."""

        def once() -> T:
            with self.lending() as connection:
                return job(connection)

        return self.patiently(once)

    def transact(self, job: Job[T]) -> T:
        """`job` in one transaction; again when the world shook."""
        return self.patiently(lambda: self.transact_once(job))

    def transact_once(self, job: Job[T]) -> T:
        """`job` in one transaction. Raises psycopg's errors."""
        with self.lending() as connection, connection.transaction():
            return job(connection)

    def patiently(self, call: Callable[[], T]) -> T:
        """`call`, again while what it fails of may pass. The fault of values comes out as it is."""
        deadline = time.monotonic() + self.patience_s
        pause = FIRST_PAUSE
        while True:
            try:
                return call()
            except psycopg.Error as error:
                if is_unfit(error):
                    raise
                if not is_passing(error) or time.monotonic() >= deadline:
                    raise unavailable(error, self.place) from error
                if isinstance(error, psycopg.errors.LockNotAvailable):
                    self._end_stalled()
            if self._closed.wait(min(pause, max(deadline - time.monotonic(), 0.0))):
                self.check_open()
            pause = min(pause * 2, LONGEST_PAUSE)

    async def apart(self, call: Callable[[], T]) -> T:
        """`call` on a thread that may wait."""
        return await asyncio.wrap_future(self.submit(call))

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """The threads are the database's own: jobs that wait for the server must not use up everybody's."""
        self.check_open()
        with self._threads_lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="penstock-postgres")
            return self._threads.submit(call)

    def check_open(self) -> None:
        if self._closed.is_set():
            raise Refused(f"{self.place} is closed here", "open it again first")

    def close(self) -> None:
        self._closed.set()
        if self._threads:
            self._threads.shutdown(wait=False)
        while (connection := self._take()) is not None:
            connection.close()

    def _take(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _give_back(self, connection: Connection) -> None:
        usable = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        if usable and not self._closed.is_set():
            self._idle.append(connection)
            return
        if usable:
            connection.close()
        else:
            self.give_up(connection)
            # What took this one away has probably taken the others too.
            while (other := self._take()) is not None:
                other.close()

    # -- the schema ---------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Nobody waits a minute for a wrong host name; a server that is about to be ready is waited for."""
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                with self.lending() as connection:
                    return self._bring_up(connection)
            except psycopg.Error as error:
                if not is_soon_over(error) or time.monotonic() >= deadline:
                    raise unavailable(error, self.place) from error
            time.sleep(LONGEST_PAUSE / 10)

    def _check_server(self, version: int, encoding: str, schema: str | None) -> None:
        if version < OLDEST_SERVER:
            raise Unavailable(
                f"{self.place} is PostgreSQL {version // 10_000}, and Penstock needs {OLDEST_SERVER // 10_000} or newer",
                "upgrade the server",
            )
        if encoding != "UTF8":
            raise Unavailable(
                f"{self.place} has the encoding `{encoding}`, in which not every text can be kept",
                "make a database with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`",
            )
        if schema is None:
            raise Unavailable(
                f"{self.place} has none of the schemas in its `search_path`",
                "make one with `CREATE SCHEMA`, or correct the `search_path` of the URL",
            )

    def _bring_up(self, connection: Connection) -> None:
        known = schema_files("postgres/log")
        newest = max(known)
        if self._version(connection, newest) == newest:
            return
        with connection.transaction():
            connection.execute(SQL["lock_schema"])
            # Asked again under the lock: another process may have brought the schema up in the meantime.
            version = self._version(connection, newest)
            for number in range(version + 1, newest + 1):
                connection.execute(known[number].read_bytes())
                connection.execute(SQL["record_version"], {"version": number})

    def _version(self, connection: Connection, newest: int) -> int:
        tables = {name for (name,) in connection.execute(SQL["known_tables"])}
        if not tables:
            return 0
        if len(tables) < 4:
            raise Unavailable(
                f"{self.place} has tables of another program in this schema ({', '.join(f'`{one}`' for one in sorted(tables))})",
                "make a schema for Penstock and name it in the URL with `?options=-csearch_path%3DNAME`",
            )
        (version,) = connection.execute(SQL["schema_version"]).fetchone() or (0,)
        if version > newest:
            raise Unavailable(
                f"{self.place} was brought up by a newer Penstock (schema {version}; this one knows up to {newest})",
                "use that version, or another schema",
            )
        return int(version)


def _ms(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))
