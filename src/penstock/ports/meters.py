"""Figures for those who watch: what a process keeps about itself for monitoring, and how many rows running components have made.
They are cheap, are in no log, and start afresh with the process.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from msgspec import MsgspecError, Struct, field
from msgspec.msgpack import decode, encode

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Histogram:
    """Counts of durations by upper bound. Must be used from one thread."""

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


class RowsSoFar(Struct, frozen=True, array_like=True):
    """How many rows the components under one lease had made at a time `at`, by the clock of their events."""

    at: float = 0.0
    made: dict[str, dict[str, int]] = field(default_factory=dict)
    """Component, by its place in the execution -> port -> rows."""

    def packed(self) -> bytes:
        return encode(self)

    @staticmethod
    def unpacked(data: bytes) -> RowsSoFar:
        """A worker of another release may say it in a way that is not known here: then nothing is known."""
        try:
            return decode(data, type=RowsSoFar) if data else RowsSoFar()
        except MsgspecError:
            return RowsSoFar()


KEPT = 1_000
"""Components: an iterator may run one a million times."""
REPORTED = 100
"""Components in one heartbeat."""


class RowCounts:
    """May be used from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: OrderedDict[str, dict[str, int]] = OrderedDict()

    def note(self, component: str, port: str, rows: int) -> None:
        with self._lock:
            self._made.setdefault(component, {})[port] = rows
            self._made.move_to_end(component)
            if len(self._made) > KEPT:
                self._made.popitem(last=False)

    def report(self, at: float, is_running: Callable[[str], bool]) -> RowsSoFar:
        """The latest counts. A component that has ended is reported once more, because the log may not know of its end yet."""
        with self._lock:
            latest = [*self._made][-REPORTED:]
            found = RowsSoFar(at, {name: dict(self._made[name]) for name in latest})
            for name in [name for name in self._made if not is_running(name)]:
                del self._made[name]
        return found
