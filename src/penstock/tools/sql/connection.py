"""Where the database is and who asks: from a keychain entry, from parameters, or both, the parameters having the last word."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec

from penstock.kernel.values import Json, JsonMap
from penstock.ports.meanings import CONNECTION_FIELDS, DATABASE, KEYCHAIN_ENTRY, url
from penstock.tools.addresses import OPEN, Addresses
from penstock.tools.base import Call, ToolFailure
from penstock.tools.parameters import Positive, about, convert
from penstock.tools.sql.plan import TRIES, Command, Effect, Happened, NoTable, Ran, Step, Upsert
from penstock.tools.sql.results import (
    MADE_MEANWHILE,
    RunningCommand,
    Table,
    code_of,
    distinct,
    to_json,
    too_large,
    whole,
)
from penstock.tools.sql.text import Bound

T = TypeVar("T")


_NAME_OF_ENTRY = ("credential", "key", "name")


Auth = Annotated[
    str | dict[str, Any] | None,
    about("Name of the keychain entry with the connection, or the entry's mapping itself.", schema=KEYCHAIN_ENTRY),
]
ConnectionName = Annotated[
    str | None,
    about("Name of an entry of the document's `connections`, or of the keychain; instead of `auth`.", schema=DATABASE),
]
_URL = "Connection URL, instead of `auth` or the single fields."
PostgresUrl = Annotated[str | None, about(_URL, schema=url("postgresql", "postgres", "cockroachdb"))]
MysqlUrl = Annotated[str | None, about(_URL, schema=url("mysql", "mariadb"))]
Host = Annotated[str | None, about("Server name or address.")]
Port = Annotated[int | str | None, about("Server port.")]
User = Annotated[str | None, about("User to connect as.")]
Password = Annotated[str | None, about("Password; better kept in the keychain.")]
Database = Annotated[str | None, about("Database to use.")]
SslMode = Annotated[str | None, about("`disable`, `prefer`, `require`, `verify-ca` or `verify-full`.")]

FIELDS = ("url", "host", "port", "user", "password", "database", "sslmode")


@dataclass(frozen=True, slots=True)
class Address:
    """The normalised description of a connection."""

    url: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    database: str | None = None
    options: dict[str, str] = field(default_factory=dict, repr=False)
    allowed: Addresses = OPEN
    """What may be reached: asked when a connection is opened."""

    @property
    def secrets(self) -> list[str | None]:
        return [self.url, self.password]


def entry_of(auth: str | dict[str, Any] | None, call: Call) -> dict[str, Any]:
    """The keychain entry that `auth` means: by name, as a connection text, or already looked up by a template."""
    match auth:
        case None:
            return {}
        case str() if "://" in auth:
            return {"url": auth}
        case str():
            return call.credential(auth)
        case _:
            connects = {CONNECTION_FIELDS.get(key, key) for key in auth} & {"url", "host", "database", "path"}
            named = next((auth[key] for key in _NAME_OF_ENTRY if isinstance(auth.get(key), str)), None)
            return call.credential(named) if named and not connects else auth


def auth_of(params: Any) -> str | dict[str, Any] | None:
    """What a document names in `connections` has become `auth`; another name is one of the keychain's."""
    found: str | dict[str, Any] | None = params.connection if params.auth is None else params.auth
    return found


def address_of(params: Any, call: Call) -> Address:
    """The address that a struct with `auth` and the single fields describes."""
    return address(auth_of(params), {name: getattr(params, name) for name in FIELDS}, call)


def address(auth: str | dict[str, Any] | None, given: dict[str, Any], call: Call) -> Address:
    return address_in((entry_of(auth, call), given), call.settings.addresses)


def address_in(sources: Iterable[Mapping[str, Any]], allowed: Addresses) -> Address:
    """Of mappings that describe a connection, a later one has the last word. Raises ToolFailure."""
    fields: dict[str, Any] = {}
    for source in sources:
        fields.update({CONNECTION_FIELDS.get(key, key): value for key, value in source.items() if value is not None})
    fields.pop("type", None)  # What a stored credential is called elsewhere; the tool knows what it talks to.
    if not any(fields.get(name) for name in ("url", "host", "database")):
        raise ToolFailure(
            "parameters", "no database is named; hint: `auth: <name of a keychain entry>`, or `url`, or `host`"
        )
    known = {name: fields.pop(name, None) for name in ("url", "host", "port", "user", "password", "database")}
    options = {key: str(value) for key, value in fields.items() if isinstance(value, (str, int, float, bool))}
    text = {name: None if value is None else str(value) for name, value in known.items() if name != "port"}
    return Address(**text, port=_port(known["port"]), options=options, allowed=allowed)


def _port(value: Any) -> int | None:
    if value is None or value == "":
        return None
    try:
        port = int(value)
    except (TypeError, ValueError):
        port = 0
    if not 0 < port < 65536:
        raise ToolFailure("parameters", f"`{value}` is not a port: a number from 1 to 65535")
    return port


def connect_timeout(call: Call) -> float:
    """`spec.timeout.connect` in seconds, 10 when nothing is said."""
    timeout = call.spec.get("timeout")
    value = timeout.get("connect") if isinstance(timeout, dict) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 10.0


# ---- The connections that an execution keeps of a database


MOST_CONNECTIONS = 10
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


class PoolUse(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """How a task shares connections with the other tasks of its execution."""

    max_size: Annotated[AtLeastOne | None, about("Connections to the database at most; 10 when left out.")] = None
    timeout: Annotated[
        Positive | None, about("Seconds to wait for a free connection; as long as it takes when left out.")
    ] = None
    name: Annotated[str, about("Tasks that name another pool share other connections.")] = ""
    min_size: Annotated[int | None, about("Without effect: a connection is opened when a task needs it.")] = None
    max_waiting: Annotated[int | None, about("Without effect: any number of tasks may wait.")] = None


PoolParam = Annotated[
    bool | PoolUse | None,
    about(
        "The connections that the tasks of an execution share, `spec.pool` with what this says over it; `true` is the same as "
        "`{}`, and `false` a connection of the task's own."
    ),
]
FilePool = Annotated[
    bool | PoolUse | None,
    about(
        "`false`: a connection of the task's own. Anything else is without effect: a file has as many as are needed."
    ),
]


def pool_of(wanted: bool | PoolUse | None, call: Call) -> PoolUse | None:
    """What a task is told, in its parameter `pool` and by `spec.pool`; None for a connection of its own."""
    if wanted is False:
        return None
    said = call.spec.get("pool")  # As text it is the name of a pool of workers.
    given = dict(said) if isinstance(said, dict) else {}
    if isinstance(wanted, PoolUse):
        given |= {name: value for name, value in msgspec.structs.asdict(wanted).items() if value not in (None, "")}
    found = convert("spec.pool", PoolUse, given)
    assert isinstance(found, PoolUse)
    return found


class Turns:
    """How many tasks have a connection of a pool at once; the others wait."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = asyncio.Semaphore(size)

    @asynccontextmanager
    async def turn(self, wait_s: float | None) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(wait_s):
                await self._free.acquire()
        except TimeoutError:
            message = (
                f"no connection was free within {wait_s:g} s: the pool has {self._size}, and other tasks have them all"
            )
            raise ToolFailure("timeout", message, retryable=True) from None
        try:
            yield
        finally:
            self._free.release()


# ---- Blocking drivers in threads, with a way to stop them: a cancelled or overdue task interrupts its statement.
# Law: when `interruptible` ends, the thread no longer touches the connection, or it was given up after GRACE seconds.

GRACE = 10.0
_MOMENT_S = 0.05
_BATCH = 1000
_EFFECT = RunningCommand(0, 1, "the name of the effect")


class Stopped(Exception):
    """The task was told to stop while nothing could be interrupted; raised inside the thread, never seen outside."""


class Stop:
    """How the event loop tells a thread to stop: a flag the thread looks at, and the interrupt of what is running now."""

    def __init__(self) -> None:
        self._flag = threading.Event()
        self._lock = threading.Lock()
        self._interrupts: list[Callable[[], None]] = []

    def on_stop(self, interrupt: Callable[[], None]) -> Callable[[], None]:
        """`interrupt` is called on the event loop, perhaps several times: it must not block.

        Gives the function that takes it back: after that the connection can be closed, or lent to another task.
        """
        with self._lock:
            self._interrupts.append(interrupt)

        def forget() -> None:
            with self._lock:
                if interrupt in self._interrupts:
                    self._interrupts.remove(interrupt)

        return forget

    def check(self) -> None:
        if self._flag.is_set():
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Sleep, and raise Stopped as soon as the task is told to stop."""
        if self._flag.wait(seconds):
            raise Stopped

    @property
    def is_set(self) -> bool:
        return self._flag.is_set()

    def now(self) -> None:
        self._flag.set()
        with self._lock:
            for interrupt in self._interrupts:
                interrupt()


def in_a_thread(work: Callable[[], object]) -> Callable[[], None]:
    """An interrupt that blocks, made into one that does not: it is carried out in a thread, one at a time."""
    threads: list[threading.Thread] = []

    def interrupt() -> None:
        if not threads or not threads[-1].is_alive():
            threads[:] = [threading.Thread(target=work, daemon=True)]
            threads[0].start()

    return interrupt


async def _wind_up(running: asyncio.Future[Any], stop: Stop) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GRACE
    # An interrupt that comes between two statements is lost, so it is repeated until the thread is done.
    while not running.done() and loop.time() < deadline:
        stop.now()
        await asyncio.wait({running}, timeout=0.05)
    # Its result is of no interest, but asyncio warns about exceptions that are never retrieved.
    running.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    running.cancel()


def _ended_well(running: asyncio.Future[Any]) -> bool:
    """Work that was over before it could be stopped counts: it has been committed."""
    return running.done() and not running.cancelled() and running.exception() is None


async def interruptible(call: Call, work: Callable[[Stop], T]) -> T:
    """Run `work` in a thread. On cancellation and on time-out it is stopped before this returns."""
    stop = Stop()
    limit = call.timeout()

    def whole() -> T:
        stop.check()
        return work(stop)

    running = asyncio.ensure_future(call.threads.run(whole))
    try:
        done, _ = await asyncio.wait({running}, timeout=limit)
    except asyncio.CancelledError:
        await _wind_up(running, stop)
        raise
    if not done:
        await _wind_up(running, stop)
    if done or _ended_well(running):
        result: T = running.result()
        return result
    raise ToolFailure("timeout", f"the task took longer than its time limit of {limit:g} s", retryable=True)


class Session(ABC):
    """One connection of a blocking driver, and a transaction on it."""

    connection: Any
    errors: tuple[type[Exception], ...]
    """What the driver raises; `failure` makes outcomes of them."""
    max_rows: int

    def begin(self, *, writing: bool) -> None:
        self.connection.begin()

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        with suppress(*self.errors):
            self.connection.rollback()

    @abstractmethod
    def execute(self, statement: Bound) -> Table: ...

    @abstractmethod
    def failure(self, error: Exception, running: RunningCommand) -> ToolFailure: ...

    def fetched(self, cursor: Any, change: Sequence[Callable[[Any], Json]] | None = None) -> Table:
        """All rows of a cursor, each value changed by the function of its column. Raises ToolFailure when they are too many."""
        columns = distinct([column[0] for column in cursor.description])
        rows: list[Json] = []
        while batch := cursor.fetchmany(_BATCH):
            if len(rows) + len(batch) > self.max_rows:
                self.give_up()
                raise too_large(self.max_rows)
            if change is None:
                rows.extend(dict(zip(columns, map(to_json, row), strict=True)) for row in batch)
            else:
                rows.extend(
                    {name: to(value) for name, to, value in zip(columns, change, row, strict=True)} for row in batch
                )
        return Table(columns, rows, len(rows))

    def give_up(self) -> None:
        """What is still to come of a query is not wanted."""
        return


class TaskSession(Session):
    """A session that runs the steps of a task. PostgreSQL's tool runs its own, on a driver that does not block."""

    @abstractmethod
    def upsert(self, step: Upsert) -> Table: ...


@contextmanager
def failures_at(session: Session, running: RunningCommand) -> Iterator[None]:
    """The driver's errors become outcomes that name the command."""
    try:
        yield
    except session.errors as error:
        raise session.failure(error, running) from None


def run_steps(session: TaskSession, steps: list[Step], stop: Stop, *, transaction: bool) -> list[Table]:
    """All steps, in one transaction unless each statement is to commit by itself."""
    total = len(steps)
    committed = not transaction
    try:
        if transaction:
            with failures_at(session, RunningCommand(0, total, "BEGIN")):
                session.begin(writing=any(_writes(step) for step in steps))
        tables = [_run_step(session, step, stop, RunningCommand(index, total)) for index, step in enumerate(steps)]
        stop.check()
        if transaction:
            with failures_at(session, RunningCommand(total - 1, total, "COMMIT")):
                session.commit()
        committed = True
    finally:
        if not committed:
            session.rollback()
    return tables


def run_task(session: TaskSession, steps: list[Step], stop: Stop, effect: Effect | None, *, transaction: bool) -> Ran:
    """The steps of a task, once if that is asked for."""
    if effect is not None:
        return run_once(session, steps, stop, effect)
    return Ran(whole(run_steps(session, steps, stop, transaction=transaction)))


def run_once(session: TaskSession, steps: list[Step], stop: Stop, effect: Effect) -> Ran:
    """All steps, in the transaction that keeps the name of their effect."""
    found = claimed(session, effect)
    if found is not None:
        return Ran(found, {"repeated": True})
    total, committed = len(steps), False
    try:
        result = whole(
            [_run_step(session, step, stop, RunningCommand(index, total)) for index, step in enumerate(steps)]
        )
        with failures_at(session, _EFFECT):
            session.execute(effect.keep(result))
        stop.check()
        with failures_at(session, RunningCommand(total - 1, total, "COMMIT")):
            session.commit()
        committed = True
    finally:
        if not committed:
            session.rollback()
    return Ran(result, {"repeated": False})


def claimed(session: Session, effect: Effect) -> JsonMap | None:
    """None: the name is new, and a transaction has begun that keeps it. Else the result that was kept with it."""
    for _ in range(TRIES):
        try:
            if _is_new(session, effect):
                return None
        except NoTable:
            _make_table(session, effect)
            continue
        except Happened:
            pass
        with failures_at(session, _EFFECT):
            found = effect.found(session.execute(effect.look()))
            session.rollback()  # A driver may have begun a transaction to look.
        if found is not None:
            return found
    raise effect.unsettled()


def _make_table(session: Session, effect: Effect) -> None:
    try:
        with failures_at(session, _EFFECT):
            session.begin(writing=True)
            session.execute(effect.create())
            session.commit()
    except ToolFailure as failure:
        session.rollback()
        # Of two that make it at once the second is told so: DuckDB calls it a conflict, PostgreSQL a name that is there already.
        if failure.kind != "serialization" and code_of(failure) not in MADE_MEANWHILE:
            raise
        time.sleep(_MOMENT_S)  # DuckDB says so before the first has committed.


def _is_new(session: Session, effect: Effect) -> bool:
    is_new = False
    try:
        with _about_effect(session):
            session.begin(writing=True)
            is_new = session.execute(effect.claim()).row_count == 1
    finally:
        if not is_new:
            session.rollback()
    return is_new


@contextmanager
def _about_effect(session: Session) -> Iterator[None]:
    try:
        with failures_at(session, _EFFECT):
            yield
    except ToolFailure as failure:
        if failure.kind == "not_found":
            raise NoTable from failure
        if failure.kind == "constraint":
            # DuckDB does not wait for another transaction that is about to write the same name.
            raise Happened from failure
        raise


def _writes(step: Step) -> bool:
    return not isinstance(step, Command) or any(statement.writes for statement in step.statements)


def _run_step(session: TaskSession, step: Step, stop: Stop, running: RunningCommand) -> Table:
    if isinstance(step, Upsert):
        stop.check()
        with failures_at(session, running.at(step.excerpt)):
            return session.upsert(step)
    assert isinstance(step, Command)
    table = Table()
    for statement in step.statements:
        stop.check()
        with failures_at(session, running.at(statement.excerpt)):
            table = session.execute(statement)
    return table
