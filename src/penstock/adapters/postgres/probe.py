"""Is PostgreSQL there, and can it be written to?

Law: whoever asks wants to know how it is now, so nothing is tried twice, and nothing is waited for longer than a few seconds.
That a row can be changed says nothing about the disk, because there may be room in the pages that are there: so a file is
written, one that PostgreSQL removes at once.
"""

from __future__ import annotations

import threading

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from penstock.adapters.postgres.database import SQL, Connection, place_of, state_of, unavailable
from penstock.kernel.errors import Unavailable
from penstock.ports.undoing import unless_done

LIMIT_SECONDS = 3.0
# Somebody allows no files that large: then it is not known whether the disk is full.
NOT_ALLOWED = "53400"
APPLICATION = "penstock ready"


class PostgresProbe:
    """One connection, kept: when all others are taken the server still works, and so does this."""

    def __init__(self, url: str) -> None:
        self.place = place_of(url)
        defaults = {"connect_timeout": "2", "application_name": APPLICATION}
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
            connection.execute(SQL["spill_soon"])
            (is_read_only, _) = connection.execute(SQL["spill"]).fetchone() or (False, 0)
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
            connection.limit_s = LIMIT_SECONDS
            self._connection = connection
        return self._connection
