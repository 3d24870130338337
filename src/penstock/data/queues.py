"""Batches of rows on their way from a sender to a consumer, with a limit on how many may be under way.

D19: while a consumer is there, a sender above the limit waits until it has taken some; while there is none, what is above
the limit goes to disk. So a limit slows a job down and never stops it: a sender never waits for somebody who may be waiting
for it. A batch that is larger than the limit passes alone. Both sides may live in threads of their own, or in the same one.
"""

from __future__ import annotations

import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from penstock.data.duckdb_database import Limits

B = TypeVar("B")


class QueueClosed(Exception):
    """The consumer has gone: what was put will not be taken."""


@dataclass(slots=True)
class _Waiting(Generic[B]):
    rows: int
    bytes: int
    batch: B | None
    file: Path | None = None


class PortQueue(Generic[B]):
    """A queue with one sender and one consumer.

    `waits` counts how often the sender had to wait, `spilled_bytes` what went to disk; `peak_rows` and `peak_bytes` are the most
    that was ever held in memory.
    """

    def __init__(self, max_rows: int | None, max_bytes: int | None, spill: Path) -> None:
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._spill = spill
        self._waiting: deque[_Waiting[B]] = deque()
        self._changed = threading.Condition()
        self._rows = 0
        self._bytes = 0
        self._files = 0
        self._consumer: int | None = None
        self._has_ended = False
        self._has_left = False
        self._broken: BaseException | None = None
        self.waits = 0
        self.spilled_bytes = 0
        self.peak_rows = 0
        self.peak_bytes = 0

    def put(self, batch: B, rows: int, bytes: int = 0) -> None:
        """Hands a batch over. Raises QueueClosed if the consumer has left, or the exception that it failed with."""
        with self._changed:
            self._check_sender()
            if not self._fits(rows, bytes) and self._consumer is not None and self._consumer != threading.get_ident():
                self.waits += 1
                self._changed.wait_for(lambda: self._fits(rows, bytes) or self._is_over())
                self._check_sender()
            entry = _Waiting(rows, bytes, batch)
            if not self._fits(rows, bytes):
                self._write(entry)
            else:
                self._hold(entry)
            self._waiting.append(entry)
            self._changed.notify_all()

    def end(self) -> None:
        """Marks the end of the batches."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """One side failed: raises its exception in the other instead of leaving it waiting."""
        with self._changed:
            self._broken = self._broken or error
            self._changed.notify_all()

    def take(self) -> Iterator[B]:
        """The batches in order. From the first call on there is a consumer, until the iterator is closed or has ended."""
        with self._changed:
            if self._consumer is not None:
                raise RuntimeError("this queue has a consumer already")
            self._consumer = threading.get_ident()
            self._changed.notify_all()
        return self._batches()

    def _batches(self) -> Iterator[B]:
        try:
            while (entry := self._next()) is not None:
                yield self._read(entry)
        finally:
            self._leave()

    def _next(self) -> _Waiting[B] | None:
        with self._changed:
            self._consumer = threading.get_ident()
            self._changed.wait_for(lambda: self._waiting or self._has_ended or self._broken)
            if self._broken is not None:
                raise self._broken
            if not self._waiting:
                return None
            entry = self._waiting.popleft()
            if entry.file is None:
                self._rows -= entry.rows
                self._bytes -= entry.bytes
            self._changed.notify_all()
            return entry

    def _fits(self, rows: int, bytes: int) -> bool:
        if not self._rows and not self._bytes and not self._waiting:
            return True
        within_rows = self._max_rows is None or self._rows + rows <= self._max_rows
        return within_rows and (self._max_bytes is None or self._bytes + bytes <= self._max_bytes)

    def _is_over(self) -> bool:
        return self._has_left or self._broken is not None

    def _check_sender(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._has_left:
            raise QueueClosed("the consumer of this queue has left")
        if self._has_ended:
            raise RuntimeError("nothing can be put into a queue after its end")

    def _hold(self, entry: _Waiting[B]) -> None:
        self._rows += entry.rows
        self._bytes += entry.bytes
        self.peak_rows = max(self.peak_rows, self._rows)
        self.peak_bytes = max(self.peak_bytes, self._bytes)

    def _write(self, entry: _Waiting[B]) -> None:
        self._spill.mkdir(parents=True, exist_ok=True)
        self._files += 1
        entry.file = self._spill / f"{id(self):x}-{self._files}.batch"
        with entry.file.open("xb") as file:
            pickle.dump(entry.batch, file, protocol=pickle.HIGHEST_PROTOCOL)
            self.spilled_bytes += file.tell()
        entry.batch = None

    def _read(self, entry: _Waiting[B]) -> B:
        if entry.file is None:
            assert entry.batch is not None
            return entry.batch
        with entry.file.open("rb") as file:
            batch: B = pickle.load(file)
        entry.file.unlink()
        return batch

    def _leave(self) -> None:
        with self._changed:
            self._has_left = True
            for entry in self._waiting:
                if entry.file is not None:
                    entry.file.unlink(missing_ok=True)
            self._waiting.clear()
            self._changed.notify_all()


def pump(queue: PortQueue[B], batches: Iterable[tuple[B, int, int]], consume: Callable[[Iterator[B]], None]) -> None:
    """Send batches (each with its rows and bytes) from this thread to a consumer in another, and return when it is done.

    The sender's code stays in the thread it was called in: what it reads from may not be used in another.
    """
    failed: list[BaseException] = []

    def run() -> None:
        try:
            consume(queue.take())
        except BaseException as error:  # Whatever it is, it belongs to the thread that waits for this one.
            failed.append(error)
            queue.fail(error)

    consumer = threading.Thread(target=run, name="rows", daemon=True)
    consumer.start()
    try:
        for batch, rows, size in batches:
            queue.put(batch, rows, size)
    except BaseException as error:  # Whatever ends this thread ends the other.
        queue.fail(error)
        consumer.join()
        raise
    queue.end()
    consumer.join()
    if failed:
        raise failed[0]


_LOOKED_AT = 16


class Feed:
    def __init__(self, limits: Limits, spill: Path) -> None:
        self._limits = limits
        self._spill = spill

    def run(self, batches: Iterable[Sequence[Any]], write: Callable[[Sequence[Any]], None]) -> None:
        rows, size = self._limits.in_flight_rows, self._limits.in_flight_bytes
        if rows is None and size is None:
            for batch in batches:
                write(batch)
            return
        queue: PortQueue[Sequence[Any]] = PortQueue(rows, size, self._spill)

        def consume(taken: Iterator[Sequence[Any]]) -> None:
            for batch in taken:
                write(batch)

        pump(queue, ((part, len(part), size_of(part)) for batch in batches for part in self._parts(batch)), consume)

    def _parts(self, batch: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """A batch above the limit in pieces that are not."""
        most = self._limits.in_flight_rows or len(batch)
        if self._limits.in_flight_bytes and batch:
            most = min(most, max(1, self._limits.in_flight_bytes * len(batch) // max(1, size_of(batch))))
        for start in range(0, len(batch), max(1, most)):
            yield batch[start : start + most] if most < len(batch) else batch


def size_of(batch: Sequence[Any]) -> int:
    """About how many bytes a batch takes, by a few of its rows."""
    step = max(1, len(batch) // _LOOKED_AT)
    looked_at = batch[::step]
    return sum(map(_row_size, looked_at)) * len(batch) // max(1, len(looked_at))


def _row_size(row: Any) -> int:
    values = row.values() if isinstance(row, dict) else row
    return sys.getsizeof(row) + sum(map(sys.getsizeof, values))
