"""What the disk and Python allow: a bare asyncio loop that writes one row per event into SQLite and does nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

PAYLOAD = b'{"task":"t1","attempt":1,"outcome":{"status":"ok","result":null},"do":"continue","next":2}'
INSERT = "INSERT INTO event (ts, type, scope, payload) VALUES (?, ?, ?, ?)"


def chain_with_fsync(folder: Path, count: int) -> dict[str, float]:
    """One commit per event, each on the disk before the next: what `durability: strict` asks for."""
    return _timed(folder, count, "FULL", 1)


def chain_without_fsync(folder: Path, count: int) -> dict[str, float]:
    return _timed(folder, count, "OFF", 1)


def grouped(folder: Path, count: int) -> dict[str, float]:
    """As durable as Penstock's default: many events in one commit, one fsync for them all."""
    return _timed(folder, count, "FULL", 1_000)


def _timed(folder: Path, count: int, synchronous: str, group: int) -> dict[str, float]:
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, ts REAL, type TEXT, scope TEXT, payload BLOB)")
    began, busy = time.perf_counter(), time.process_time()
    asyncio.run(_events(connection, count, group))
    took, used = time.perf_counter() - began, time.process_time() - busy
    connection.close()
    return {"ms": took * 1000 / count, "cpu_ms": used * 1000 / count}


async def _events(connection: sqlite3.Connection, count: int, group: int) -> None:
    for first in range(0, count, group):
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(first, min(first + group, count)):
            connection.execute(INSERT, (time.time(), "task.done", "start@0", PAYLOAD))
            await asyncio.sleep(0)
        connection.execute("COMMIT")
