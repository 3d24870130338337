"""The event log in one SQLite file, `penstock.db`, in the state folder: many readers, one writer per process.

Law: what `durable` has acknowledged survives kill -9 and power loss (WAL, synchronous=FULL); the rest may be there too, in
order and without gaps. An execution has one owner on this machine, alive or none (`owner_locks`), under one epoch.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from penstock.adapters.files.folders import make_folder, make_home, unavailable_file
from penstock.adapters.log_queue import kept_of, kept_values, unknown
from penstock.adapters.sql_files import filtered
from penstock.adapters.sqlite.database import BUSY_SECONDS, SQL, Database
from penstock.adapters.sqlite.writer import SEQ_BITS, SqliteWriter, find_record
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.checksums import verified
from penstock.ports.kept_state import Change, Kept, Kind
from penstock.ports.log import Entry, Header, NotOwner, Request, Status, lowered, partition_of
from penstock.ports.state_folder import PRIVATE_FOLDER, opener
from penstock.ports.undoing import unless_done

# ---- Who owns an execution on this machine: the process that holds an exclusive lock on its lock file.
# Law: the operating system gives a lock back when its holder dies, however it dies, so an owner is alive or there is none.
# The lock is on a file of its own and says nothing about the data; the epoch in the log is what fences out a late writer.

PLAIN_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,119}")
# How long a claim retries while another process only tests whether there is an owner.
GLANCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Holder:
    """What the holder of a lock wrote about itself."""

    owner: str
    pid: int
    host: str
    since: float

    def describe(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host} (`{self.owner}`), since {since}"


class OwnerLocks:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def take(self, execution_id: str, owner: str) -> None:
        """Hold the lock until `give_back` or the death of this process. Raises Refused when another process holds it."""
        if execution_id in self._held:
            raise self._refusal(execution_id)
        path = self._path(execution_id)
        make_folder(self._folder, PRIVATE_FOLDER)
        try:
            descriptor = self._lock(path)
            if descriptor is None:
                raise self._refusal(execution_id)
            self._held[execution_id] = descriptor
            _introduce(descriptor, owner)
        except OSError as error:
            self.give_back(execution_id)
            raise unavailable_file(error, path) from error

    def give_back(self, execution_id: str) -> None:
        descriptor = self._held.pop(execution_id, None)
        if descriptor is None:
            return
        # While the lock is still held: a claim that opened the old file sees that it is no longer the one under the name.
        self._path(execution_id).unlink(missing_ok=True)
        os.close(descriptor)

    def give_all_back(self) -> None:
        for execution_id in list(self._held):
            self.give_back(execution_id)

    def is_held(self, execution_id: str) -> bool:
        """Asked with a shared lock for a moment, which a claim knows from a real one."""
        if execution_id in self._held:
            return True
        path = self._path(execution_id)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise unavailable_file(error, path) from error
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def _lock(self, path: Path) -> int | None:
        """A descriptor with the lock, or None when it is held for good."""
        deadline = time.monotonic() + GLANCE_SECONDS
        while True:
            descriptor = opener(str(path), os.O_RDWR | os.O_CREAT)
            if _try_lock(descriptor, fcntl.LOCK_EX):
                if _is_named(descriptor, path):
                    return descriptor
                os.close(descriptor)
                continue
            only_a_glance = _try_lock(descriptor, fcntl.LOCK_SH)
            os.close(descriptor)
            if not only_a_glance or time.monotonic() > deadline:
                return None
            time.sleep(0.001)

    def _path(self, execution_id: str) -> Path:
        plain = PLAIN_NAME.fullmatch(execution_id) is not None
        name = execution_id if plain else hashlib.sha256(execution_id.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"{name}.lock"

    def _refusal(self, execution_id: str) -> NotOwner:
        holder = _read_holder(self._path(execution_id))
        who = holder.describe() if holder else "another process"
        return NotOwner(
            f"`{execution_id}` is already being worked on by {who}",
            "wait for it to end, or stop that process; a run can be resumed once nobody works on it",
        )


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_named(descriptor: int, path: Path) -> bool:
    """Is the file we locked still the one under this name? Its last holder may have removed it in between."""
    mine = os.fstat(descriptor)
    try:
        named = os.stat(path)
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)


def _introduce(descriptor: int, owner: str) -> None:
    holder = {"owner": owner, "pid": os.getpid(), "host": os.uname().nodename, "since": time.time()}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _read_holder(path: Path) -> Holder | None:
    try:
        data = json.loads(path.read_bytes())
        return Holder(str(data["owner"]), int(data["pid"]), str(data["host"]), float(data["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


FILE_NAME = "penstock.db"
# Read in pages: a read that stayed open would keep the write-ahead log from being cut back.
PAGE_ENTRIES = 2_000
# Deleted per transaction: other writers wait no longer than for one of these.
FORGET_ENTRIES = 5_000
FORGET_PAGES = 2_000


class SqliteLog:
    """The log of one state folder; the folder and the file are made when they are not there."""

    def __init__(self, home: Path | str, busy_seconds: float = BUSY_SECONDS) -> None:
        home = Path(home)
        make_home(home)
        self._locks = OwnerLocks(home / "locks")
        self._epochs: dict[str, int] = {}
        self._database = Database(home / FILE_NAME, busy_seconds)
        with unless_done(self._database.close):
            self._writer = SqliteWriter(self._database)

    @property
    def path(self) -> Path:
        return self._database.path

    async def create(self, header: Header, document: bytes, key: str | None = None, owner: str | None = None) -> str:
        def job(connection: sqlite3.Connection) -> str:
            if key is not None and (made := connection.execute(SQL["submitted"], (key,)).fetchone()):
                return str(made[0])
            if connection.execute(SQL["standing"], (header.execution_id,)).fetchone():
                raise Refused(f"there is already an execution `{header.execution_id}`", "choose another id")
            (record,) = connection.execute(SQL["create_execution"], _header_values(header)).fetchone()
            connection.execute(SQL["create_document"], (record, document))
            if key is not None:
                connection.execute(SQL["submit"], (key, record))
            return header.execution_id

        return await self._writer.transact(job)

    async def claim(self, execution_id: str, owner: str) -> int:
        def job(connection: sqlite3.Connection) -> int:
            row = connection.execute(SQL["claim"], (owner, execution_id)).fetchone()
            if row is None:
                raise unknown(execution_id)
            epoch = int(row[0])
            self._writer.begin_epoch(execution_id, epoch)
            return epoch

        self._locks.take(execution_id, owner)
        with unless_done(lambda: self._locks.give_back(execution_id)):
            epoch = await self._writer.transact(job)
        self._epochs[execution_id] = epoch
        return epoch

    async def release(self, execution_id: str) -> None:
        epoch = self._epochs.pop(execution_id, None)
        if epoch is None:
            return
        try:
            await self._writer.flush()
            if not self._writer.has_failed:
                await self._writer.transact(
                    lambda connection: connection.execute(SQL["release"], (execution_id, epoch))
                )
        finally:
            self._locks.give_back(execution_id)

    async def forget(self, execution_id: str) -> None:
        await asyncio.to_thread(self._forget, execution_id)

    async def prune(self, before: float, limit: int = 1000) -> list[str]:
        return await asyncio.to_thread(self._prune, before, max(limit, 0))

    def append(
        self,
        execution_id: str,
        epoch: int,
        entries: Sequence[Entry],
        status: Status | None = None,
        changes: Sequence[Change] = (),
        is_last: bool = False,
    ) -> int:
        return self._writer.append(execution_id, epoch, entries, status, changes)

    async def durable(self, ticket: int) -> None:
        await self._writer.durable(ticket)

    @property
    def backlog(self) -> int:
        return self._writer.backlog

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]:
        with self._database.reading() as connection:
            record = find_record(connection, execution_id)
        if record is None:
            raise unknown(execution_id)
        return self._pages(execution_id, record.key << SEQ_BITS, max(after, 0), record.last_seq)

    def header(self, execution_id: str) -> Header | None:
        rows = self._rows(SQL["header"], (execution_id,))
        return Header(*rows[0]) if rows else None

    def headers(
        self,
        limit: int = 100,
        *,
        after: str | None = None,
        status: Status | None = None,
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        kind: str | None = None,
        label: str | None = None,
        text: str | None = None,
    ) -> list[Header]:
        values = {
            "limit": limit,
            "after": after,
            "status": status,
            "name": name,
            "since": since,
            "until": until,
            "kind": kind,
            "label": label,
            "text": text and lowered(text),
        }
        return [Header(*row) for row in self._rows(filtered(SQL, "headers", values), values)]

    def named(self, name: str, limit: int = 10) -> list[Header]:
        return [Header(*row) for row in self._rows(SQL["named"], {"name": name, "limit": limit})]

    def submitted(self, key: str) -> str | None:
        rows = self._rows(SQL["submitted"], (key,))
        return str(rows[0][0]) if rows else None

    def unfinished(self, partitions: Collection[int] | None = None) -> list[str]:
        names = [name for (name,) in self._rows(SQL["unfinished"])]
        return [name for name in names if partitions is None or partition_of(name) in partitions]

    def document(self, execution_id: str) -> bytes:
        rows = self._rows(SQL["document"], (execution_id,))
        if not rows:
            raise unknown(execution_id)
        return bytes(rows[0][0])

    def kept(self, document: str | None = None) -> list[Kept]:
        return [kept_of(row) for row in self._rows(SQL["kept"], {"document": document})]

    def keep(self, kept: Kept) -> None:
        self._writer.transact_now(lambda connection: connection.execute(SQL["keep"], kept_values(kept)))

    def drop_kept(self, document: str, kind: Kind | None = None, key: str | None = None) -> int:
        values = {"document": document, "kind": kind, "key": key}
        return int(self._writer.transact_now(lambda connection: connection.execute(SQL["drop_kept"], values).rowcount))

    def snapshot(self, execution_id: str, format: int, upto: int) -> tuple[int, bytes] | None:
        with self._database.reading() as connection:
            row = connection.execute(SQL["snapshot"], (execution_id, format, upto)).fetchone()
        return (row[0], bytes(row[1])) if row else None

    def keep_snapshot(self, execution_id: str, format: int, seq: int, data: bytes) -> None:
        values = (execution_id, format, seq, data)
        self._writer.transact_now(lambda connection: connection.execute(SQL["keep_snapshot"], values))

    def ask(self, execution_id: str, what: str, payload: bytes = b"{}") -> None:
        def job(connection: sqlite3.Connection) -> int:
            return connection.execute(SQL["ask"], (execution_id, what, payload)).rowcount

        if not self._writer.transact_now(job):
            raise unknown(execution_id)

    def asked(self, execution_id: str | None = None) -> list[Request]:
        if execution_id is None:
            return [Request(*row) for row in self._rows(SQL["asked_of_all"])]
        return [Request(*row) for row in self._rows(SQL["asked"], (execution_id,))]

    def answered(self, number: int) -> None:
        self._writer.transact_now(lambda connection: connection.execute(SQL["answered"], (number,)))

    def has_owner(self, execution_id: str) -> bool:
        return self._locks.is_held(execution_id)

    async def close(self) -> None:
        try:
            for execution_id in list(self._epochs):
                await self.release(execution_id)
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        try:
            await self._writer.close()
        finally:
            self._epochs.clear()
            self._locks.give_all_back()
            self._database.close()

    def _rows(self, query: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        with self._database.reading() as connection:
            return connection.execute(query, values).fetchall()

    def _pages(self, execution_id: str, base: int, after: int, last: int) -> Iterator[Entry]:
        while after < last:
            rows = self._rows(SQL["read_page"], (base, after, last, PAGE_ENTRIES))
            if not rows or rows[-1][0] != after + len(rows):
                raise Unavailable(
                    f"`{execution_id}` has no entry {after + 1}, or one soon after it, though it has {last}",
                    f"it was forgotten while it was read, or `{self.path}` is damaged",
                )
            yield from verified(execution_id, rows, f"`{self.path}`")
            after += len(rows)

    def _forget(self, execution_id: str) -> None:
        if not self._mark(execution_id):
            raise unknown(execution_id)
        self._sweep()

    def _prune(self, before: float, limit: int) -> list[str]:
        pruned: list[str] = []
        for (execution_id,) in self._rows(SQL["ended_before"], (before, limit)):
            # Refused: it has ended, and its owner has not let go of it yet, or has begun to resume it.
            with suppress(Refused):
                if self._mark(execution_id, before):
                    pruned.append(execution_id)
        if pruned:
            self._sweep()
        return pruned

    def _mark(self, execution_id: str, before: float | None = None) -> bool:
        """Hides the execution from all readers. False when there is none, or none that ended `before`."""

        def mark(connection: sqlite3.Connection) -> bool:
            # Asked again now that nobody else can own it: it may have been resumed in the meantime.
            if before is not None and not connection.execute(SQL["is_ended"], (execution_id, before)).fetchone():
                return False
            row = connection.execute(SQL["mark_forgotten"], (execution_id,)).fetchone()
            if row:
                connection.execute(SQL["forget_submissions"], row)
            return row is not None

        self._locks.take(execution_id, "forget")
        try:
            return self._writer.transact_now(mark)
        finally:
            self._locks.give_back(execution_id)

    def _sweep(self) -> None:
        for key, last in self._rows(SQL["forgotten"]):
            for start in range(0, last, FORGET_ENTRIES):
                limits = (key, start, start + FORGET_ENTRIES)
                self._writer.transact_now(partial(_run, SQL["delete_entries"], limits))
            self._writer.transact_now(partial(_run, SQL["delete_execution"], (key,)))
        # The room goes back to the disk, little by little for the same reason.
        while self._writer.shrink(FORGET_PAGES):
            pass


def _run(sql: str, values: tuple[int, ...], connection: sqlite3.Connection) -> None:
    connection.execute(sql, values)


_header_values = attrgetter(
    *["execution_id", "kind", "name", "path", "digest", "status", "started_at", "ended_at", "label", "trace_id"]
)
