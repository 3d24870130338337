"""The one writer of a PostgreSQL log: all that waits is written in one transaction, so durability costs one commit for many.

Law: tickets are settled in order; a settled ticket is in the log or refused. A connection that breaks is made anew and the
batch tried again, until the patience is at an end; then nothing more is written, and no gap can arise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from uuid import uuid4

import psycopg

from penstock.adapters.files.folders import SAFE
from penstock.adapters.log_queue import Append, LogQueue
from penstock.adapters.postgres.batch import Batch, plan, settle, unfit, write
from penstock.adapters.postgres.database import SQL, Connection, Database
from penstock.adapters.postgres.errors import words_of
from penstock.adapters.postgres.ownership import Claim
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.undoing import unless_done

GATHER_SECONDS = 0.005
# The most of one transaction: what comes after waits for its commit.
BATCH_ENTRIES = 16_384
BATCH_BYTES = 32 * 1024 * 1024


class PostgresWriter(LogQueue):
    gather_s = GATHER_SECONDS

    def __init__(self, database: Database, claims: Mapping[str, Claim], when_failed: Callable[[], None]) -> None:
        super().__init__()
        self._database = database
        self._claims = claims
        self._when_failed = when_failed
        self._id = uuid4()
        self._connection: Connection | None = None
        self._batches = 0

    @property
    def _place(self) -> str:
        return self._database.place

    def _check_open(self) -> None:
        self._database.check_open()

    def close(self) -> None:
        """End the thread, once it has written what it is at. Called on a thread that may wait."""
        self._end_thread()
        if self._connection:
            if not self._fault:
                with suppress(psycopg.Error):
                    self._connection.execute(SQL["remove_writer"], {"writer": self._id})
            self._connection.close()

    def _commit_in_thread(self) -> None:
        """One transaction with what waits."""
        appends, entries = self._take()
        if self._fault or not appends:
            return
        try:
            self._write(appends)
        except (Unavailable, Refused) as error:
            # Refused: the log was closed while it waited for the server.
            self._fail(error if isinstance(error, Unavailable) else Unavailable(error.message, SAFE))
            return
        self._written += entries
        self._settled = appends[-1].ticket

    def _take(self) -> tuple[list[Append], int]:
        appends: list[Append] = []
        entries = size = 0
        while self._queue and entries < BATCH_ENTRIES and size < BATCH_BYTES:
            appends.append(append := self._queue.popleft())
            entries += len(append.entries)
            size += sum([len(entry[-1]) for entry in append.entries if isinstance(entry[-1], bytes)])
        return appends, entries

    def _write(self, appends: Sequence[Append]) -> None:
        try:
            batch = self._try(appends)
        except psycopg.Error as error:
            # The values are at fault, in a way only the server knows: those of one append are no reason to refuse another.
            if len(appends) > 1:
                for append in appends:
                    self._write([append])
                return
            reason = unfit(appends[0], words_of(error))
            self._refused[appends[0].ticket] = self._broken[appends[0].execution_id, appends[0].epoch] = reason
            return
        settle(batch)
        self._refused |= batch.refused
        self._broken |= batch.broken

    def _try(self, appends: Sequence[Append]) -> Batch:
        self._batches += 1
        batch = plan(self._batches, appends, self._claims, self._broken)

        def once() -> None:
            if not batch.parts and not batch.strangers:
                return
            with unless_done(self._disconnect):
                write(self._connected(), self._id, batch)

        self._database.patiently(once)
        return batch

    def _connected(self) -> Connection:
        self._connection = self._connection or self._database.connect("penstock-log")
        return self._connection

    def _disconnect(self) -> None:
        if self._connection:
            self._database.give_up(self._connection)
            self._connection = None

    def _fail(self, fault: Unavailable) -> None:
        super()._fail(fault)
        self._when_failed()
