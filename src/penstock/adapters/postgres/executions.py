"""Who owns an execution: the process whose id its row names, for as long as that process keeps its lease.

Law: liveness is decided by the clock of the database alone. A claim raises the epoch that the append of every earlier owner
names, so an owner that was declared dead and wakes up again is fenced out by its epoch, whatever its clock says.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

import psycopg
from psycopg import sql

from penstock.adapters.log_queue import unknown
from penstock.adapters.postgres.database import SQL, Connection, Database, open_database
from penstock.adapters.postgres.rows import given, kept, kept_or_none
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.log import Header, NotOwner, partition_of
from penstock.ports.partitions import Server, fair_share

T = TypeVar("T")


@dataclass(slots=True)
class Claim:
    """An execution this process owns. `last_seq` is the writer's: the number of the last entry it has committed."""

    execution_id: str
    epoch: int
    holder: UUID
    born: date
    last_seq: int
    owner: str
    lost: bool = False


class Ownership(NamedTuple):
    epoch: int
    holder: UUID | None
    owner: str | None
    last_seq: int
    live_name: str | None
    """The name of the process, when it is alive."""
    since: str | None


def ownership(connection: Connection, execution_id: str) -> Ownership:
    row = connection.execute(SQL["ownership"], {"execution_id": kept(execution_id)}).fetchone()
    if row is None:
        raise unknown(execution_id)
    return Ownership(*row)


def occupied(execution_id: str, found: Ownership) -> NotOwner:
    who = f"`{given(found.live_name or '')}` (`{given(found.owner or '')}`), since {found.since} UTC"
    return NotOwner(
        f"`{execution_id}` is already being worked on by {who}",
        "wait for it to end, or stop that process; a run can be resumed once nobody works on it",
    )


def check_free(connection: Connection, execution_id: str) -> None:
    found = ownership(connection, execution_id)
    if found.live_name is not None:
        raise occupied(execution_id, found)


def claim(connection: Connection, execution_id: str, owner: str, holder: UUID, held: Claim | None) -> Claim:
    """Claims the execution, outside any transaction. `held` is what this process believes to own already. A row that names this
    process without its knowledge was claimed by a call that lost its connection before the answer; that claim is replaced.
    """
    while True:
        found = ownership(connection, execution_id)
        is_mine = found.holder == holder and (held is None or held.epoch != found.epoch)
        if found.live_name is not None and not is_mine:
            raise occupied(execution_id, found)
        values = {"execution_id": kept(execution_id), "owner": kept(owner), "holder": holder, "epoch": found.epoch}
        row = connection.execute(SQL["claim"], values).fetchone()
        if row is not None:
            epoch, last_seq, born = row
            return Claim(execution_id, epoch, holder, born, last_seq, owner)


def release(connection: Connection, claims: list[Claim]) -> None:
    values = {
        "names": [kept(one.execution_id) for one in claims],
        "epochs": [one.epoch for one in claims],
        "holders": [one.holder for one in claims],
    }
    connection.execute(SQL["release"], values)


def not_owned(execution_id: str) -> NotOwner:
    return NotOwner(
        f"`{execution_id}` is not owned by this process, or no longer: a lease that is not renewed in time is lost",
        "leave it to whoever takes it over, or claim it again",
    )


# ---- That this process is alive, kept up in the database for as long as it is.
# Law: a thread of its own renews the lease, and only while the event loop turns: a process that hangs loses what it owns like one
# that died. Once the row is gone all claims made under it are lost, and only then is there a new one under a new id; so that two
# lives of a process cannot be confused.

# Of a lease: how often it is renewed, and how soon after a failure it is tried again.
RENEWALS = 3
HURRIED_RENEWALS = 10


class Holder:
    def __init__(self, database: Database, name: str, lease_s: float, when_lost: Callable[[], None]) -> None:
        self._database = database
        self._name = name
        self._lease_s = lease_s
        self._when_lost = when_lost
        self._id: UUID | None = None
        self._renewed_at = 0.0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turned_at = 0.0

    def watch(self) -> None:
        """From here on the lease depends on the loop this is called from; a loop that is closed is watched no more."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._turn(loop)

    def be_alive(self) -> UUID:
        """The id under which claims can be made now. Called on a thread that may wait."""
        with self._lock:
            if self._id is None or time.monotonic() - self._renewed_at > self._lease_s / 2:
                self._database.run(self._renew)
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="penstock-lease", daemon=True)
                self._thread.start()
            if self._id is None or self._stopped.is_set():
                raise Unavailable("this log can own nothing any more: it has failed, or is being closed")
            return self._id

    def is_alive_as(self, holder: UUID) -> bool:
        """Is that still the id of this process?"""
        return self._id == holder

    @property
    def is_known(self) -> bool:
        """Does the database know of this process?"""
        return self._id is not None

    def stop(self) -> None:
        """Renew no more."""
        self._stopped.set()

    def leave(self, connection: Connection) -> None:
        """All that was owned has been given up."""
        self.stop()
        with self._lock:
            if self._id is not None:
                connection.execute(SQL["remove_holder"], {"holder": self._id})

    def join(self) -> None:
        self.stop()
        if self._thread:
            self._thread.join()

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is loop and not self._stopped.is_set():
            self._turned_at = time.monotonic()
            loop.call_later(self._lease_s / RENEWALS, self._turn, loop)

    def _is_wedged(self) -> bool:
        """Has the loop stood still for a whole lease?"""
        loop = self._loop
        return loop is not None and not loop.is_closed() and time.monotonic() - self._turned_at > self._lease_s

    def _run(self) -> None:
        connection: Connection | None = None
        pause = self._lease_s / RENEWALS
        while not self._stopped.wait(pause):
            pause = self._lease_s / RENEWALS
            if self._is_wedged():
                continue
            try:
                connection = connection or self._database.connect(limit_s=max(self._lease_s / 2, 1.0))
                with self._lock:
                    self._renew(connection)
            except (psycopg.Error, Unavailable):
                # Tried again soon: what the lease is for is that this may go on failing.
                pause = self._lease_s / HURRIED_RENEWALS
                if connection:
                    connection.close()
                    connection = None
        if connection:
            connection.close()

    def _renew(self, connection: Connection) -> None:
        """With the lock held."""
        began = time.monotonic()
        if self._id is None or connection.execute(SQL["renew_holder"], {"holder": self._id}).fetchone() is None:
            if self._id is not None:
                self._when_lost()
            self._id = None
            self._register(connection)
        self._renewed_at = began

    def _register(self, connection: Connection) -> None:
        new = uuid4()
        values = {"holder": new, "name": kept(self._name), "lease": timedelta(seconds=self._lease_s)}
        connection.execute(SQL["register_holder"], values)
        self._id = new
        with suppress(psycopg.errors.LockNotAvailable):
            connection.execute(SQL["remove_old_holders"])
            connection.execute(SQL["remove_old_writers"])


# ---- How long the PostgreSQL log keeps what: entries lie in one table per month, and leave it with their execution.
# Law: all entries of an execution lie in the month it was born in. An execution goes as a whole, in one transaction; a month
# that is over and has no execution left is dropped with whatever is still in it.

# Deleting what an execution of millions of entries leaves takes its time.
LONG_SECONDS = 600.0


class Months:
    """The tables of the months."""

    def __init__(self) -> None:
        self._known: set[date] = set()

    def ensure(self, connection: Connection, born: date) -> None:
        """A table for the entries of who was born on that day, inside the caller's transaction."""
        first = born.replace(day=1)
        if first in self._known:
            return
        connection.execute(SQL["lock_schema"])
        if first not in months(connection):
            connection.execute(_about(SQL["make_month"], first))
            connection.execute(_about(SQL["attach_month"], first))

    def remember(self, born: date) -> None:
        """The transaction that made sure of the table is committed."""
        self._known.add(born.replace(day=1))


def months(connection: Connection) -> list[date]:
    """The first days of those that have a table."""
    names = [name for (name,) in connection.execute(SQL["months"])]
    return sorted(date(int(name[-7:-3]), int(name[-2:]), 1) for name in names)


def forget(database: Database, execution_id: str) -> None:
    tried = False

    def job(connection: Connection) -> None:
        nonlocal tried
        name = {"execution_id": kept(execution_id)}
        row = connection.execute(SQL["lock_execution"], name).fetchone()
        if row is None:
            if tried:
                return  # by a transaction of ours whose end we were not told
            raise unknown(execution_id)
        check_free(connection, execution_id)
        tried = True
        with _unhurried(connection):
            connection.execute(SQL["delete_executions"], {"names": [kept(execution_id)]})
            connection.execute(SQL["delete_entries"], {"names": [kept(execution_id)], "born": row[0]})

    database.transact(job)


def prune(database: Database, before: float, limit: int) -> list[str]:
    """Forget what ended before that time: the ids, the earliest first."""
    chosen: dict[str, None] = {}

    def job(connection: Connection) -> set[str]:
        rows = connection.execute(SQL["lock_ended"], {"before": before, "limit": limit}).fetchall()
        chosen.update((name, None) for name, _ in rows)
        by_day: dict[date, list[str]] = defaultdict(list)
        for name, born in rows:
            by_day[born].append(name)
        with _unhurried(connection):
            connection.execute(SQL["delete_executions"], {"names": [name for name, _ in rows]})
            # The entries of a month that is left empty go when the month is dropped.
            empty = set(_empty_months(connection))
            for born, names in by_day.items():
                if born.replace(day=1) not in empty:
                    connection.execute(SQL["delete_entries"], {"names": names, "born": born})
        return {name for name, _ in rows}

    gone = database.transact(job)
    if doubtful := [name for name in chosen if name not in gone]:
        # Chosen in a transaction whose end we were not told: it is gone if it was committed.
        there = database.run(lambda one: one.execute(SQL["still_there"], {"names": doubtful}).fetchall())
        gone |= set(doubtful) - {name for (name,) in there}
    _drop_empty_months(database)
    return [given(name) for name in chosen if name in gone]


def _empty_months(connection: Connection) -> list[date]:
    rows = connection.execute(SQL["empty_months"], {"firsts": months(connection)}).fetchall()
    return [first for (first,) in rows]


def _drop_empty_months(database: Database) -> None:
    """Each in a transaction of its own. One that is being read just now is left for the next time."""
    for first in database.run(_empty_months):
        with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            database.transact_once(partial(_drop_month, first))


def _drop_month(first: date, connection: Connection) -> None:
    connection.execute(SQL["brief_lock"])
    connection.execute(SQL["lock_schema"])
    if first in _empty_months(connection):
        connection.execute(_about(SQL["drop_month"], first))


@contextmanager
def _unhurried(connection: Connection) -> Iterator[None]:
    """Statements of this transaction may take long."""
    usual = connection.limit_s
    connection.execute(SQL["long_statements"], {"ms": str(round(LONG_SECONDS * 1000))})
    connection.limit_s = LONG_SECONDS + usual
    try:
        yield
    finally:
        connection.limit_s = usual


def _about(statement: str, first: date) -> sql.Composed:
    following = (first + timedelta(days=31)).replace(day=1)
    names = {
        "month": sql.Identifier(f"entry_{first:%Y_%m}"),
        "first": sql.Literal(first.isoformat()),
        "next": sql.Literal(following.isoformat()),
    }
    used = {name: value for name, value in names.items() if f"{{{name}}}" in statement}
    return sql.SQL(statement).format(**used)


# ---- New executions in the PostgreSQL log.
# Law: an id is taken once, and a submission key makes one execution, however many callers come at once; a call that is repeated
# because its connection broke finds what it made, and makes nothing twice.


class _Beaten(Exception):
    """Another call has used a submission key in the meantime."""


@dataclass(frozen=True, slots=True)
class Birth:
    """An execution to be created. `owner`: whose it is from its first moment, if not nobody's."""

    header: Header
    document: bytes
    key: str | None = None
    owner: str | None = None
    token: UUID = field(default_factory=uuid4)


class Born(NamedTuple):
    execution_id: str
    """Of the execution that was made now, or under this key before."""
    claim: Claim | None = None
    """If it was made now, for an owner."""


def create(database: Database, months: Months, births: Sequence[Birth], holder: UUID | None) -> list[Born | Exception]:
    """Many executions in one transaction; each is created or refused by itself. `holder`: the id under which this process owns
    those that have an owner."""
    try:
        return _Creation(months, births, holder).run(database)
    except (psycopg.Error, UnicodeError, TypeError, OverflowError) as error:
        # The values are at fault, in a way only the server knows: those of one are no reason to refuse another.
        if len(births) == 1:
            return [error]
        return [one for birth in births for one in create(database, months, [birth], holder)]


class _Creation:
    def __init__(self, months: Months, births: Sequence[Birth], holder: UUID | None) -> None:
        self._months = months
        self._births = births
        self._holder = holder
        self._days: set[date] = set()

    def run(self, database: Database) -> list[Born | Exception]:
        while True:
            try:
                found = database.transact(self._create)
            except _Beaten:
                continue
            for born in self._days:
                self._months.remember(born)
            return found

    def _create(self, connection: Connection) -> list[Born | Exception]:
        keys = {birth.key for birth in self._births if birth.key is not None}
        known = _submitted(connection, keys)
        firsts: dict[str, Birth] = {}
        for birth in self._births:
            if birth.key is not None:
                firsts.setdefault(birth.key, birth)
        fresh = [one for one in self._births if one.key is None or (one.key not in known and firsts[one.key] is one)]
        made: dict[UUID, date] = (
            dict(connection.execute(SQL["create_executions"], _columns(fresh, self._holder))) if fresh else {}
        )
        self._days = set(made.values())
        for born in self._days:
            self._months.ensure(connection, born)
        _submit(connection, [one for one in firsts.values() if one.token in made])
        known |= {key: one.header.execution_id for key, one in firsts.items() if one.token in made}
        return [self._answer(connection, birth, made, known) for birth in self._births]

    def _answer(
        self, connection: Connection, birth: Birth, made: Mapping[UUID, date], known: Mapping[str, str]
    ) -> Born | Exception:
        name = birth.header.execution_id
        if birth.token in made:
            owner, holder = birth.owner, self._holder
            if owner is None or holder is None:
                return Born(name)
            return Born(name, Claim(name, 1, holder, made[birth.token], last_seq=0, owner=owner))
        if birth.key is not None and birth.key in known:
            return Born(known[birth.key])
        # The id exists: made by an earlier try of this call, or by somebody else.
        values = {"execution_id": kept(name), "token": birth.token}
        if connection.execute(SQL["is_made_by"], values).fetchone():
            return Born(name)
        return Refused(f"there is already an execution `{name}`", "choose another id")


def _submitted(connection: Connection, keys: Collection[str]) -> dict[str, str]:
    if not keys:
        return {}
    rows = connection.execute(SQL["submitted_of"], {"keys": [kept(key) for key in keys]})
    return {given(key): given(name) for key, name in rows}


def _submit(connection: Connection, births: Sequence[Birth]) -> None:
    if not births:
        return
    values = {
        "keys": [kept(birth.key or "") for birth in births],
        "names": [kept(birth.header.execution_id) for birth in births],
    }
    if len(connection.execute(SQL["submit"], values).fetchall()) < len(births):
        raise _Beaten


def _columns(births: Sequence[Birth], holder: UUID | None) -> dict[str, Any]:
    headers = [birth.header for birth in births]
    owned = [birth.owner is not None and holder is not None for birth in births]
    return {
        "execution_ids": [kept(one.execution_id) for one in headers],
        "kinds": [kept(one.kind) for one in headers],
        "names": [kept(one.name) for one in headers],
        "paths": [kept(one.path) for one in headers],
        "digests": [kept(one.digest) for one in headers],
        "statuses": [one.status for one in headers],
        "starts": [one.started_at for one in headers],
        "ends": [one.ended_at for one in headers],
        "labels": [kept_or_none(one.label) for one in headers],
        "traces": [kept_or_none(one.trace_id) for one in headers],
        "partitions": [partition_of(one.execution_id) for one in headers],
        "epochs": [int(one) for one in owned],
        "holders": [holder if one else None for one in owned],
        "owners": [kept_or_none(birth.owner) if one else None for birth, one in zip(births, owned, strict=True)],
        "tokens": [birth.token for birth in births],
        "documents": [birth.document for birth in births],
    }


# ---- The shares of servers as lease rows in PostgreSQL.
# Law: every change is one statement that says what it changed, and only what it said counts. The clock is the database's. A
# share is known to be held only for one lease after the start of the `hold` that gave it.


LEASE_SECONDS = 10.0


class PostgresPartitions:
    """`server_id` is this life of the server: a new one each time it starts."""

    def __init__(self, url: str, *, name: str, lease_s: float = LEASE_SECONDS, server_id: UUID | None = None) -> None:
        # A holder must know that its lease cannot be renewed before it has run out.
        self._database = open_database(url, patience_s=lease_s / 2)
        self._me = {"id": server_id or uuid4(), "name": kept(name), "lease": timedelta(seconds=lease_s)}
        self._is_closed = False

    async def hold(self) -> dict[int, int]:
        return await self._run(self._hold)

    async def leave(self) -> None:
        await self._run(lambda connection: connection.execute(SQL["leave"], self._me))

    async def servers(self) -> list[Server]:
        rows = await self._run(lambda connection: connection.execute(SQL["servers"], self._me).fetchall())
        return [Server(str(server), given(name), since, count) for server, name, since, count in rows]

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                await self.leave()
            finally:
                self._database.close()

    async def _run(self, job: Callable[[Connection], T]) -> T:
        return await self._database.apart(lambda: self._database.run(job))

    def _hold(self, connection: Connection) -> dict[int, int]:
        (alive,) = connection.execute(SQL["hold_server"], self._me).fetchone() or (1,)
        share = fair_share(alive)
        held = dict(self._changed(connection, SQL["renew_partitions"]))
        if len(held) > share:
            surplus = sorted(held)[share:]
            self._changed(connection, SQL["give_back_partitions"], partitions=surplus)
            # Those not given back now were not ours any more.
            held = {partition: epoch for partition, epoch in held.items() if partition not in surplus}
        elif len(held) < share:
            held |= dict(self._changed(connection, SQL["take_partitions"], count=share - len(held)))
            connection.execute(SQL["remove_old_servers"])
        return held

    def _changed(self, connection: Connection, statement: str, **values: Any) -> list[Any]:
        return connection.execute(statement, {**self._me, **values}).fetchall()
