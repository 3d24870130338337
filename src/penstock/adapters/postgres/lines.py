"""Printed lines in PostgreSQL, for fleets: the lines of any worker can be read at any server.

Law: lines wait in memory for one thread that writes them in batches, and are lost when the database cannot be reached for long,
or when too many wait. After a connection that broke during a commit, the lines of that batch may be there twice.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence

import psycopg
from psycopg.errors import UniqueViolation

from penstock.adapters.postgres.database import Connection, Tables, bulk_database
from penstock.adapters.sql_files import queries
from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import JsonMap
from penstock.ports.lines import Line, lost_lines

TABLES = Tables(
    "postgres/lines", lock="penstock lines", tables=("run_line",), versions=None, newer="the lines in {place}"
)
SQL = queries(TABLES.store)
BATCH = 1_000
MOST_WAITING = 100_000
LONGEST_TEXT = 64 * 1024
PATIENCE_SECONDS = 15.0
# Two servers may have lines of one execution for a moment, while it changes hands.
TRIES = 20


class PostgresLines:
    def __init__(self, url: str, *, patience_s: float = PATIENCE_SECONDS, most_waiting: int = MOST_WAITING) -> None:
        self._database = bulk_database(url, patience_s, TABLES)
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[str, Line] | threading.Event] = deque()
        self._lost: Counter[str] = Counter()
        self._has_work = threading.Condition()
        self._is_closed = False
        self._writer: threading.Thread | None = None

    def append(self, execution_id: str, lines: Sequence[Line]) -> None:
        with self._has_work:
            if self._is_closed or not execution_id:
                return
            room = max(0, self._most_waiting - len(self._waiting))
            if len(lines) > room:
                self._lost[execution_id] += len(lines) - room
            self._waiting.extend((execution_id, line) for line in lines[:room])
            self._wake()

    def flush(self) -> None:
        mark = threading.Event()
        with self._has_work:
            if self._is_closed:
                return
            self._waiting.append(mark)
            self._wake()
        mark.wait()

    def read(self, execution_id: str, after: int = 0, limit: int = 1000) -> list[JsonMap]:
        self._check_open()
        values = (_sayable(execution_id), after, max(0, limit))
        rows = self._database.run(lambda one: one.execute(SQL["read"], values).fetchall())
        return [Line(*row).record() for row in rows]

    def count(self, execution_id: str, after: int = 0) -> int:
        self._check_open()
        rows = self._database.run(lambda one: one.execute(SQL["count"], (_sayable(execution_id),)).fetchall())
        return int(rows[0][0])

    def drop(self, executions: Iterable[str]) -> None:
        self._check_open()
        names = [_sayable(name) for name in executions]
        self._database.run(lambda one: one.execute(SQL["drop"], (names,)))

    def close(self) -> None:
        with self._has_work:
            self._is_closed = True
            self._has_work.notify()
        if self._writer is not None:
            self._writer.join()
        self._database.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise Refused("the store of lines has been closed")

    # ---- the writer

    def _wake(self) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="penstock-lines", daemon=True)
            self._writer.start()
        self._has_work.notify()

    def _write_all(self) -> None:
        while True:
            with self._has_work:
                while not self._waiting and not self._is_closed:
                    self._has_work.wait()
                if not self._waiting:
                    return
                batch, marks = self._taken()
            if batch:
                self._write(batch)
            for mark in marks:
                mark.set()

    def _taken(self) -> tuple[list[tuple[str, Line]], list[threading.Event]]:
        """The next lines, and their waiters. Lost lines are replaced by their number."""
        batch: list[tuple[str, Line]] = []
        marks: list[threading.Event] = []
        while self._waiting and len(batch) < BATCH:
            one = self._waiting.popleft()
            if isinstance(one, threading.Event):
                marks.append(one)
            else:
                batch.append(one)
        if self._lost and not self._waiting:
            last = batch[-1][1].ts if batch else 0.0
            batch.extend((name, lost_lines(count, last)) for name, count in self._lost.items())
            self._lost.clear()
        return batch, marks

    def _write(self, batch: list[tuple[str, Line]]) -> None:
        columns: list[list[object]] = [
            [_sayable(name) for name, _ in batch],
            [line.ts for _, line in batch],
            [_sayable(line.scope) for _, line in batch],
            [None if line.task is None else _sayable(line.task) for _, line in batch],
            [_sayable(line.text[:LONGEST_TEXT]) for _, line in batch],
        ]
        try:
            self._database.run(lambda one: self._insert(one, columns))
        except (Unavailable, psycopg.Error):
            with self._has_work:
                self._lost.update(name for name, _ in batch)

    def _insert(self, connection: Connection, columns: list[list[object]]) -> None:
        for left in range(TRIES, 0, -1):
            try:
                connection.execute(SQL["append"], columns)
                return
            except UniqueViolation:
                if left == 1:
                    raise


def _sayable(text: str) -> str:
    """Text without NUL and lone surrogates, which PostgreSQL cannot store."""
    return text.replace("\0", "\u2400").encode("utf-8", "replace").decode()
