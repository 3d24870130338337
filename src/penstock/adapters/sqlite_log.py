"""The event log in one SQLite file, `penstock.db`, in the state folder: many readers, one writer per process.

Law: what `durable` has acknowledged survives kill -9 and power loss (WAL, synchronous=FULL); the rest may be there too, in
order and without gaps. An execution has one owner on this machine, alive or none (`owner_locks`), under one epoch.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from penstock.adapters.admission import unknown
from penstock.adapters.owner_locks import OwnerLocks
from penstock.adapters.sqlite_batch import PLACE_BITS, find_place
from penstock.adapters.sqlite_database import BUSY_SECONDS, SQL, Database
from penstock.adapters.sqlite_writer import SqliteWriter
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.log import Entry, Header, Request, Status

FILE_NAME = "penstock.db"
# Read in pages: a read that stayed open would keep the write-ahead log from being cut back.
PAGE_ENTRIES = 2_000
# Deleted per transaction: other writers wait no longer than for one of these.
FORGET_ENTRIES = 5_000
FORGET_PAGES = 2_000

# `Entry._make` without its check, and so in half the time: the query has the columns of Entry.
_entry = cast(Callable[[tuple[object, ...]], Entry], partial(tuple.__new__, Entry))


class SqliteLog:
    """The log of one state folder; the folder and the file are made when they are not there."""

    def __init__(self, home: Path | str, busy_seconds: float = BUSY_SECONDS) -> None:
        home = Path(home)
        self._locks = OwnerLocks(home / "locks")
        self._epochs: dict[str, int] = {}
        self._database = Database(home / FILE_NAME, busy_seconds)
        try:
            self._writer = SqliteWriter(self._database)
        except BaseException:
            self._database.close()
            raise

    @property
    def path(self) -> Path:
        return self._database.path

    async def create(self, header: Header, document: bytes) -> None:
        def job(connection: sqlite3.Connection) -> None:
            if connection.execute(SQL["standing"], (header.execution_id,)).fetchone():
                raise Refused(f"there is already an execution `{header.execution_id}`", "choose another id")
            (key,) = connection.execute(SQL["create_execution"], _header_values(header)).fetchone()
            connection.execute(SQL["create_document"], (key, document))

        await self._writer.transact(job)

    async def claim(self, execution_id: str, owner: str) -> int:
        def job(connection: sqlite3.Connection) -> int:
            row = connection.execute(SQL["claim"], (owner, execution_id)).fetchone()
            if row is None:
                raise unknown(execution_id)
            epoch = int(row[0])
            self._writer.begin_epoch(execution_id, epoch)
            return epoch

        self._locks.take(execution_id, owner)
        try:
            epoch = await self._writer.transact(job)
        except BaseException:
            self._locks.give_back(execution_id)
            raise
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

    def append(self, execution_id: str, epoch: int, entries: Sequence[Entry], status: Status | None = None) -> int:
        return self._writer.append(execution_id, epoch, entries, status)

    async def durable(self, ticket: int) -> None:
        await self._writer.durable(ticket)

    @property
    def backlog(self) -> int:
        return self._writer.backlog

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]:
        with self._database.reading() as connection:
            place = find_place(connection, execution_id)
        if place is None:
            raise unknown(execution_id)
        return self._pages(execution_id, place.key << PLACE_BITS, max(after, 0), place.last_seq)

    def header(self, execution_id: str) -> Header | None:
        with self._database.reading() as connection:
            row = connection.execute(SQL["header"], (execution_id,)).fetchone()
        return Header(*row) if row else None

    def headers(self, limit: int = 100) -> list[Header]:
        with self._database.reading() as connection:
            rows = connection.execute(SQL["headers"], (limit,)).fetchall()
        return [Header(*row) for row in rows]

    def document(self, execution_id: str) -> bytes:
        with self._database.reading() as connection:
            row = connection.execute(SQL["document"], (execution_id,)).fetchone()
        if row is None:
            raise unknown(execution_id)
        return bytes(row[0])

    def ask(self, execution_id: str, what: str, payload: bytes = b"{}") -> None:
        def job(connection: sqlite3.Connection) -> int:
            return connection.execute(SQL["ask"], (execution_id, what, payload)).rowcount

        if not self._writer.transact_now(job):
            raise unknown(execution_id)

    def asked(self, execution_id: str) -> list[Request]:
        with self._database.reading() as connection:
            rows = connection.execute(SQL["asked"], (execution_id,)).fetchall()
        return [Request(*row) for row in rows]

    def answered(self, number: int) -> None:
        self._writer.transact_now(lambda connection: connection.execute(SQL["answered"], (number,)))

    def has_owner(self, execution_id: str) -> bool:
        return self._locks.is_held(execution_id)

    async def close(self) -> None:
        try:
            await self._writer.close()
        finally:
            self._epochs.clear()
            self._locks.give_all_back()
            self._database.close()

    def _pages(self, execution_id: str, base: int, after: int, last: int) -> Iterator[Entry]:
        while after < last:
            with self._database.reading() as connection:
                rows = connection.execute(SQL["read_page"], (base, after, last, PAGE_ENTRIES)).fetchall()
            if not rows or rows[-1][0] != after + len(rows):
                raise Unavailable(
                    f"`{execution_id}` has no entry {after + 1}, or one soon after it, though it has {last}",
                    f"it was forgotten while it was read, or `{self.path}` is damaged",
                )
            yield from map(_entry, rows)
            after += len(rows)

    def _forget(self, execution_id: str) -> None:
        def mark(connection: sqlite3.Connection) -> object:
            return connection.execute(SQL["mark_forgotten"], (execution_id,)).fetchone()

        self._locks.take(execution_id, "forget")
        try:
            if not self._writer.transact_now(mark):
                raise unknown(execution_id)
        finally:
            self._locks.give_back(execution_id)
        with self._database.reading() as connection:
            rows = connection.execute(SQL["forgotten"]).fetchall()
        for key, last in rows:
            for start in range(0, last, FORGET_ENTRIES):
                limits = (key, start, start + FORGET_ENTRIES)
                self._writer.transact_now(partial(_run, SQL["delete_entries"], limits))
            self._writer.transact_now(partial(_run, SQL["delete_execution"], (key,)))
        # The room goes back to the disk, little by little for the same reason.
        while self._writer.shrink(FORGET_PAGES):
            pass


def _run(sql: str, values: tuple[int, ...], connection: sqlite3.Connection) -> None:
    connection.execute(sql, values)


def _header_values(header: Header) -> tuple[object, ...]:
    return (
        header.execution_id,
        header.kind,
        header.name,
        header.path,
        header.digest,
        header.status,
        header.started_at,
        header.ended_at,
        header.label,
        header.trace_id,
    )
