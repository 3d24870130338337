"""Rows that Python makes flow into the engine under the limit on rows in flight.

Without a limit a batch is written as soon as it is there, and nothing is ever in flight. With one, the sender goes on while
DuckDB writes, as far ahead as the limit allows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock.data.duckdb_database import Limits
from penstock.data.queues import PortQueue, pump

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
