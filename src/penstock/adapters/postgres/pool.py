"""Connections to PostgreSQL for the result store: a few that wait for work, made again when they break.

Law: what is done here can be done twice with the same end, so that a connection which dies at any point, the commit too,
is answered by doing it once more. That goes on for as long as the store is patient; then it is Unavailable.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from penstock.adapters.postgres.database import Connection, is_passing, is_soon_over, place_of, unavailable
from penstock.kernel.errors import Refused
from penstock.ports.undoing import unless_done

T = TypeVar("T")

IDLE = 4
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
# The server looks at every piece of a large result in one statement, which takes its time.
LIMIT_SECONDS = 300.0
# On a lock of another process nobody waits long: it is held for moments.
SETTINGS = "SET lock_timeout = '30s'; SET idle_in_transaction_session_timeout = '60s'"
# A peer that is gone is noticed within a minute.
NETWORK = {
    "connect_timeout": "10",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "fallback_application_name": "penstock results",
}


class Connections:
    def __init__(self, url: str, patience_s: float, prepare: Callable[[Connection], None]) -> None:
        self._place = place_of(url)
        self._conninfo = make_conninfo("", **{**NETWORK, **conninfo_to_dict(url)})
        self._patience_s = patience_s
        self._prepare = prepare
        self._idle: list[Connection] = []
        self._mutex = threading.Lock()
        self._is_prepared = False
        self._is_closed = False

    def run(self, act: Callable[[Connection], T]) -> T:
        deadline = time.monotonic() + self._patience_s
        pause = FIRST_PAUSE
        while True:
            try:
                return self._try(act)
            except psycopg.Error as error:
                # A server that never answered is more likely named wrongly than about to come back.
                is_hopeful = is_passing(error) if self._is_prepared else is_soon_over(error)
                if not is_hopeful or time.monotonic() + pause > deadline:
                    raise unavailable(error, self._place) from error
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def close(self) -> None:
        self._is_closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _try(self, act: Callable[[Connection], T]) -> T:
        connection = self._take()
        with unless_done(lambda: self._give_up(connection)):
            if not self._is_prepared:
                self._prepare(connection)
                self._is_prepared = True
            result = act(connection)
        self._give_back(connection)
        return result

    def _give_up(self, connection: Connection) -> None:
        if connection.closed:  # What took this one away has probably taken the others too.
            self._drop_idle()
        connection.close()

    def _take(self) -> Connection:
        with self._mutex:
            if self._is_closed:
                raise Refused("the result store has been closed")
            if self._idle:
                return self._idle.pop()
        connection = Connection.connect(self._conninfo, autocommit=True)
        connection.limit_s = LIMIT_SECONDS
        with unless_done(connection.close):
            connection.execute(SETTINGS)
        return connection

    def _give_back(self, connection: Connection) -> None:
        with self._mutex:
            if not self._is_closed and len(self._idle) < IDLE:
                self._idle.append(connection)
                return
        connection.close()
