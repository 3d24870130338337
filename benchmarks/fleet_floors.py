"""What PostgreSQL allows on this disk: rows of the size of an event, in the four ways in which one can write them.

The table is as bare as it can be, so no engine on PostgreSQL is faster than these with the same number of rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.fleet_scene import postgres
from benchmarks.floors import PAYLOAD

TABLE = "CREATE TABLE event (seq BIGINT PRIMARY KEY, ts FLOAT8, type TEXT, scope TEXT, payload BYTEA)"
INSERT = "INSERT INTO event VALUES (%s, %s, %s, %s, %s)"
BATCH = 256
CLIENTS = 2


def commits(folder: Path, count: int) -> dict[str, float]:
    """One row in each commit, one connection."""

    def work(connect: Callable[[], Any]) -> None:
        _singly(connect, range(count))

    return _timed(folder, count, work)


def two_clients(folder: Path, count: int) -> dict[str, float]:
    """The same from two connections at once, which may share an fsync."""

    def work(connect: Callable[[], Any]) -> None:
        share = count // CLIENTS
        parts = [range(number * share, (number + 1) * share) for number in range(CLIENTS)]
        threads = [threading.Thread(target=_singly, args=(connect, part)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return _timed(folder, count // CLIENTS * CLIENTS, work)


def pipelined(folder: Path, count: int) -> dict[str, float]:
    """Batches of 256 rows, each one commit; within a batch nobody waits for an answer."""

    def work(connect: Callable[[], Any]) -> None:
        with connect() as connection:
            for first in range(0, count, BATCH):
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.executemany(INSERT, [_row(seq) for seq in range(first, min(first + BATCH, count))])

    return _timed(folder, count, work)


def copied(folder: Path, count: int) -> dict[str, float]:
    """All rows in one COPY and one commit."""

    def work(connect: Callable[[], Any]) -> None:
        with (
            connect() as connection,
            connection.transaction(),
            connection.cursor() as cursor,
            cursor.copy("COPY event FROM STDIN") as copy,
        ):
            for seq in range(count):
                copy.write_row(_row(seq))

    return _timed(folder, count, work)


def _singly(connect: Callable[[], Any], numbers: range) -> None:
    with connect() as connection:
        for seq in numbers:
            connection.execute(INSERT, _row(seq))


def _row(seq: int) -> tuple[int, float, str, str, bytes]:
    return (seq, time.time(), "task.done", "start@0", PAYLOAD)


def _timed(folder: Path, count: int, work: Callable[[Callable[[], Any]], None]) -> dict[str, float]:
    with postgres(folder / "pg") as url:
        import psycopg

        def connect() -> Any:
            return psycopg.connect(url, autocommit=True)

        with connect() as connection:
            connection.execute(TABLE)
        began, busy = time.perf_counter(), time.process_time()
        work(connect)
        took, used = time.perf_counter() - began, time.process_time() - busy
        with connect() as connection:
            (rows,) = connection.execute("SELECT count(*) FROM event").fetchone() or (0,)
    if rows != count:
        raise RuntimeError(f"{rows} rows of {count} are there")
    return {"ms": took * 1000 / count, "cpu_ms": used * 1000 / count, "per_s": count / took}


PROBES: dict[str, Callable[..., dict[str, float]]] = {
    "pg-commits": commits,
    "pg-two-clients": two_clients,
    "pg-pipelined": pipelined,
    "pg-copy": copied,
}
