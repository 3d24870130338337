"""That this process is alive, kept up in the database for as long as it is.

Law: a thread of its own renews the lease, and only while the event loop turns: a process that lives and does nothing loses
what it owns like one that died. Once the row is gone all claims made under it are lost, and only then is there a new one
under a new id; so nobody can take two lives of a process for one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg

from penstock.adapters.postgres.database import SQL, Connection, Database
from penstock.adapters.postgres.rows import kept
from penstock.kernel.errors import Unavailable

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
