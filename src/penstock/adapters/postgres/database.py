"""PostgreSQL for every store: errors, sessions, tables and their versions, connections and retries.

Law: a connection comes with durable commits, the tables of its store and a bound on every wait, or with an `Unavailable` that
names the trouble with the database. Transient failures are retried until the patience has run out; so a job may run more than
once, and has to recognise its own work.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from penstock.adapters.files.folders import SAFE
from penstock.adapters.sql_files import queries, schema_files
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.undoing import unless_done

T = TypeVar("T")
Job = Callable[["Connection"], T]

SHARED = queries("postgres/database")

APPLICATION = "penstock"
WRITER = "penstock-log"
"""The application name of the connections that append to the log."""
OLDEST_SERVER = 140_000
PATIENCE_SECONDS = 60.0
# The time limit of one statement, on the server and, in case no answer arrives, here.
STATEMENT_SECONDS = 20.0
LOCK_SECONDS = 5.0
# Connections for reading and for single jobs; callers wait while all are busy.
POOL = 8
THREADS = 4
# So many connections that were given up are remembered until the server has been told.
GIVEN_UP = 256
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0

# ---- Errors
# An error is `unfit` (the values are at fault, permanently), passing (a retry may help), or neither (an operator has to act
# first). No message shows a password.

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
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # libpq's own complaint quotes the text, perhaps with a piece of the password.
        raise Refused(
            "this is no PostgreSQL URL",
            "write `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, with `@`, `:`, `/` and `%` of a user name or password "
            "as `%40`, `%3A`, `%2F`, `%25`",
        ) from error
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    port = parts.get("port")
    where = f"{host}:{port}" if port else str(host)
    return f"database `{parts.get('dbname') or parts.get('user') or 'postgres'}` on `{where}`"


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
    """Whether the server is starting, or another process is migrating the schema."""
    return state_of(error) in ("57P03", "55P03", "40P01")


def words_of(error: psycopg.Error) -> str:
    return error.diag.message_primary or " ".join(str(error).split())


def unavailable(error: psycopg.Error, place: str) -> Unavailable:
    """The `Unavailable` for an error of PostgreSQL."""
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


class Retry:
    """The tries of one call: when the next one is due, or why there is none."""

    def __init__(self, place: str, patience_s: float) -> None:
        self._place = place
        self._deadline = time.monotonic() + patience_s
        self._pause = FIRST_PAUSE

    def pause(self, error: psycopg.Error, *, has_answered: bool = True) -> float:
        """How long to wait after `error`. Raises Unavailable when trying again cannot help, or the patience is at an end.

        A server that never answered is more likely named wrongly than about to come back.
        """
        is_hopeful = is_passing(error) if has_answered else is_soon_over(error)
        left = self._deadline - time.monotonic()
        if not is_hopeful or left <= 0:
            raise unavailable(error, self._place) from error
        pause, self._pause = min(self._pause, left), min(self._pause * 2, LONGEST_PAUSE)
        return pause


# ---- Sessions


class Session(NamedTuple):
    """The bounds of a connection's waits."""

    statement_s: float
    lock_s: float
    idle_s: float
    """How long a transaction may do nothing."""
    silence_s: float = 15.0
    """How long what was sent may stay without an acknowledgement."""
    is_short_lived: bool = False
    """Whether the rows live for moments: see `prepare_session`."""

    def values(self) -> dict[str, object]:
        return {
            "statement_ms": _ms(self.statement_s),
            "lock_ms": _ms(self.lock_s),
            "idle_ms": _ms(self.idle_s),
            "is_short_lived": self.is_short_lived,
        }


def conninfo_of(url: str, silence_s: float) -> str:
    """`url` with time limits: without them a vanished server would be waited for for hours."""
    defaults = {
        "connect_timeout": "5",
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": _ms(silence_s),
    }
    return make_conninfo("", **{**defaults, **conninfo_to_dict(url), "client_encoding": "utf8"})


class Connection(psycopg.Connection[TupleRow]):
    """A connection on which every wait has a limit, even if the network loses the answer."""

    limit_s = STATEMENT_SECONDS + LOCK_SECONDS
    application = APPLICATION
    """A name of its own, by which the server can be told to end it."""

    def wait(self, gen: Any, *args: Any, **more: Any) -> Any:
        return super().wait(limited(gen, self.limit_s), *args, **more)


def limited(steps: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    """The steps of the driver, which raise `Lost` when no answer comes in time."""
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


def check_server(place: str, version: int, encoding: str, schema: str | None) -> None:
    if version < OLDEST_SERVER:
        raise Unavailable(
            f"{place} is PostgreSQL {version // 10_000}, and Penstock needs {OLDEST_SERVER // 10_000} or newer",
            "upgrade the server",
        )
    if encoding != "UTF8":
        raise Unavailable(
            f"{place} has the encoding `{encoding}`, in which not every text can be kept",
            "make a database with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`",
        )
    if schema is None:
        raise Unavailable(
            f"{place} has none of the schemas in its `search_path`",
            "make one with `CREATE SCHEMA`, or correct the `search_path` of the URL",
        )


def _ms(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))


# ---- Tables
# Each store has its own numbered list of schema files: the stores of one fleet may lie in different databases.


class Statement(NamedTuple):
    text: str | bytes
    values: Mapping[str, object] | None = None


Steps = Generator[Statement, Any, T]
"""Statements, each answered with its first row: the same steps run on a connection that blocks and on one that is awaited."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one store."""

    store: str
    """The folder of its SQL."""
    lock: str
    tables: tuple[str, ...]
    """Those by which they are recognised."""
    versions: str | None
    """Where the schema files that were applied are recorded; None for a store that has had one file only."""
    newer: str
    """The beginning of the message for tables of a newer version, with `{place}`."""

    def bring_up(self, place: str) -> Steps[None]:
        known = schema_files(self.store)
        newest = max(known)
        if (yield from self._version(place, newest)) == newest:
            return
        yield Statement("BEGIN")
        yield Statement(SHARED["lock_tables"], {"lock": self.lock})
        # Asked again under the lock: another process may have brought the tables up in the meantime.
        for number in range((yield from self._version(place, newest)) + 1, newest + 1):
            yield Statement(known[number].read_bytes())
            if self.versions is not None:
                yield Statement(SHARED["record_version"].format(table=self.versions), {"version": number})
        yield Statement("COMMIT")

    def _version(self, place: str, newest: int) -> Steps[int]:
        (there,) = yield Statement(SHARED["tables_there"], {"tables": list(self.tables)})
        if not there:
            return 0
        if len(there) < len(self.tables):
            raise Unavailable(
                f"{place} has tables of another program in this schema ({', '.join(f'`{one}`' for one in there)})",
                "make a schema for Penstock and name it in the URL with `?options=-csearch_path%3DNAME`",
            )
        if self.versions is None:
            return newest
        (version,) = yield Statement(SHARED["newest_version"].format(table=self.versions))
        if version > newest:
            raise Unavailable(
                f"{self.newer.format(place=place)} (schema {version}; this one knows up to {newest})",
                "use that version, or another schema",
            )
        return int(version)


def perform(connection: Connection, steps: Steps[T]) -> T:
    row = None
    try:
        while True:
            cursor = connection.execute(*steps.send(row))
            row = cursor.fetchone() if cursor.description else None
    except StopIteration as end:
        result: T = end.value
        return result


LOG = Tables(
    "postgres/log",
    lock="penstock",
    tables=("entry", "execution", "holder", "schema_version"),
    versions="schema_version",
    newer="{place} was brought up by a newer Penstock",
)

SQL = queries(LOG.store)


# ---- Connections


def open_database(url: str, patience_s: float = PATIENCE_SECONDS, tables: Sequence[Tables] = (LOG,)) -> Database:
    """A database that has answered, with these tables."""
    database = Database(url, patience_s, tables)
    with unless_done(database.close):
        database.open()
    return database


def bulk_database(url: str, patience_s: float, tables: Tables) -> Database:
    """For values so large that one statement may take minutes: each caller gets a connection at once, and a few are kept.

    On a lock of another process nobody waits long: it is held for moments.
    """
    place_of(url)  # Refuses what is no URL, without showing it.
    application = str(conninfo_to_dict(url).get("application_name", "penstock-bulk"))
    session = Session(statement_s=300.0, lock_s=30.0, idle_s=60.0, silence_s=60.0)
    return Database(url, patience_s, (tables,), application=application, session=session, pool=1000, idle=4)


class Database:
    """A pool of connections to one schema. It is opened, with its tables, by its first use at the latest."""

    def __init__(
        self,
        url: str,
        patience_s: float,
        tables: Sequence[Tables],
        *,
        application: str = APPLICATION,
        session: Session | None = None,
        pool: int = POOL,
        idle: int = POOL,
    ) -> None:
        self.place = place_of(url)
        self.patience_s = patience_s
        self._tables = tables
        self._application = application
        self._session = session or Session(STATEMENT_SECONDS, LOCK_SECONDS, STATEMENT_SECONDS)
        self._conninfo = conninfo_of(url, self._session.silence_s)
        self._pool = pool
        self._most_idle = idle
        self._idle: deque[Connection] = deque()
        self._given_up: deque[str] = deque(maxlen=GIVEN_UP)
        self._slots = threading.BoundedSemaphore(pool)
        self._is_open = False
        self._closed = threading.Event()
        self._threads: ThreadPoolExecutor | None = None
        self._threads_lock = threading.Lock()

    def open(self) -> None:
        """Creates or migrates the tables. A wrong host name fails quickly; a server that is starting is waited for."""
        retry = Retry(self.place, self.patience_s)
        while not self._is_open:
            try:
                with self._lending() as connection:
                    for tables in self._tables:
                        perform(connection, tables.bring_up(self.place))
                self._is_open = True
            except psycopg.Error as error:
                time.sleep(retry.pause(error, has_answered=False))

    def connect(self, application: str | None = None, limit_s: float | None = None) -> Connection:
        """A dedicated connection; the caller closes it, or gives it up. Raises psycopg's errors."""
        name = f"{application or self._application} {uuid4().hex[:16]}"
        session = self._session
        if limit_s is not None:
            session = session._replace(statement_s=limit_s, lock_s=min(session.lock_s, limit_s), idle_s=limit_s)
        connection = Connection.connect(self._conninfo, autocommit=True, application_name=name)
        connection.application, connection.limit_s = name, session.statement_s + session.lock_s
        with unless_done(connection.close):
            *_, version, encoding, schema = (
                connection.execute(SHARED["prepare_session"], session.values()).fetchone() or ()
            )
            check_server(self.place, version, encoding, schema)
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
            connection.execute(SHARED["end_backends"], {"names": names})
            for name in names:
                with suppress(ValueError):
                    self._given_up.remove(name)

    def _end_stalled(self) -> None:
        """The writer that holds the lock may have been frozen in a write: then its lease has run out, and its lock has not."""
        with suppress(psycopg.Error), self.lending() as connection:
            connection.execute(SHARED["end_stalled"], {"application": WRITER, "seconds": LOCK_SECONDS})

    @contextmanager
    def lending(self) -> Iterator[Connection]:
        """A connection for as long as one job needs it; so any thread may read, and no read stays open."""
        self.open()
        with self._lending() as connection:
            yield connection

    @contextmanager
    def _lending(self) -> Iterator[Connection]:
        self.check_open()
        if not self._slots.acquire(timeout=max(self.patience_s, 1.0)):
            raise Unavailable(
                f"all {self._pool} connections to {self.place} stayed busy", "try again, or read less at once"
            )
        try:
            connection = self._take() or self.connect()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._slots.release()

    def run(self, job: Job[T]) -> T:
        """`job` on a connection where every statement is a transaction of its own; retried after errors that may pass."""

        def once() -> T:
            with self.lending() as connection:
                return job(connection)

        return self.patiently(once)

    def transact(self, job: Job[T]) -> T:
        """`job` in one transaction; retried after errors that may pass."""
        return self.patiently(lambda: self.transact_once(job))

    def transact_once(self, job: Job[T]) -> T:
        """`job` in one transaction. Raises psycopg's errors."""
        with self.lending() as connection, connection.transaction():
            return job(connection)

    def patiently(self, call: Callable[[], T]) -> T:
        """`call`, retried after errors that may pass. An error that the values cause is raised as it is."""
        retry = Retry(self.place, self.patience_s)
        while True:
            try:
                return call()
            except psycopg.Error as error:
                if is_unfit(error):
                    raise
                pause = retry.pause(error)
                if isinstance(error, psycopg.errors.LockNotAvailable):
                    self._end_stalled()
            if self._closed.wait(pause):
                self.check_open()

    async def apart(self, call: Callable[[], T]) -> T:
        """`call` on a thread that may wait."""
        return await asyncio.wrap_future(self.submit(call))

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """The database has its own threads: jobs that wait for the server must not occupy shared ones."""
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
        if usable and not self._closed.is_set() and len(self._idle) < self._most_idle:
            self._idle.append(connection)
        elif usable:
            connection.close()
        else:
            self.give_up(connection)
            # The other connections are probably lost as well.
            while (other := self._take()) is not None:
                other.close()


# ---- The probe: is PostgreSQL there, and can it be written to?
# The answer is about now, so nothing is tried twice, and nothing is waited for longer than a few seconds. That a row can be
# changed says nothing about the disk, because there may be room in the pages that are there: so a file is written, one that
# PostgreSQL removes at once.

PROBE_SECONDS = 3.0
# Somebody allows no files that large: then it is not known whether the disk is full.
NOT_ALLOWED = "53400"


class PostgresProbe:
    """One connection, kept: when all others are taken the server still works, and so does this."""

    def __init__(self, url: str) -> None:
        self.place = place_of(url)
        defaults = {"connect_timeout": "2", "application_name": "penstock ready"}
        self._conninfo = make_conninfo("", **{**conninfo_to_dict(url), **defaults, "client_encoding": "utf8"})
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raises Unavailable when something is wrong. For any thread; one at a time is let in."""
        with self._lock:
            was_open = self._connection is not None
            try:
                try:
                    self._look()
                except psycopg.OperationalError:
                    if not was_open:
                        raise
                    self._look()  # What was open from before says nothing about now.
            except psycopg.Error as error:
                if state_of(error) != NOT_ALLOWED:
                    raise unavailable(error, self.place) from error

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _look(self) -> None:
        connection = self._opened()
        # Settings are those of one transaction: poolers that hand connections around let nothing else pass.
        with unless_done(self._drop), connection.transaction():
            connection.execute(SHARED["spill_soon"])
            (is_read_only, _) = connection.execute(SHARED["spill"]).fetchone() or (False, 0)
        if is_read_only:
            raise Unavailable(
                f"{self.place} is read-only", "connect to the primary server (`target_session_attrs=read-write`)"
            )

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> Connection:
        if self._connection is None:
            connection = Connection.connect(self._conninfo, autocommit=True)
            connection.limit_s = PROBE_SECONDS
            self._connection = connection
        return self._connection
