"""Who owns an execution: the process whose id its row names, for as long as that process keeps its lease.

Law: liveness is decided by the clock of the database alone. A claim raises the epoch that the append of every earlier owner
names, so an owner that was declared dead and wakes up again is fenced out by its epoch, whatever its clock says.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
    """Another call has used the submission key in the meantime."""


def create(database: Database, months: Months, header: Header, document: bytes, key: str | None) -> str:
    """The id of the execution that was made now, or under this key before."""
    values = _values(header, document)
    born: date | None = None

    def job(connection: Connection) -> str:
        nonlocal born
        if known := _submitted(connection, key):
            return known
        row = connection.execute(SQL["create_execution"], values).fetchone()
        if row is None:
            return _found(connection, header, values, key)
        born = row[0]
        months.ensure(connection, row[0])
        if key is not None:
            submission = {"key": kept(key), "execution_id": kept(header.execution_id)}
            if connection.execute(SQL["submit"], submission).fetchone() is None:
                raise _Beaten
        return header.execution_id

    while True:
        try:
            made = database.transact(job)
        except _Beaten:
            continue
        if born is not None:
            months.remember(born)
        return made


def _found(connection: Connection, header: Header, values: dict[str, Any], key: str | None) -> str:
    """The id exists: made by an earlier try of this call, by another call under the same key, or by somebody else."""
    if connection.execute(SQL["is_made_by"], values).fetchone():
        return header.execution_id
    if known := _submitted(connection, key):
        return known
    raise Refused(f"there is already an execution `{header.execution_id}`", "choose another id")


def _submitted(connection: Connection, key: str | None) -> str | None:
    if key is None:
        return None
    row = connection.execute(SQL["submitted"], {"key": kept(key)}).fetchone()
    return given(row[0]) if row else None


def _values(header: Header, document: bytes) -> dict[str, Any]:
    return {
        "execution_id": kept(header.execution_id),
        "kind": kept(header.kind),
        "name": kept(header.name),
        "path": kept(header.path),
        "digest": kept(header.digest),
        "status": header.status,
        "started_at": header.started_at,
        "ended_at": header.ended_at,
        "label": kept_or_none(header.label),
        "trace_id": kept_or_none(header.trace_id),
        "partition": partition_of(header.execution_id),
        "token": uuid4(),
        "document": document,
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
