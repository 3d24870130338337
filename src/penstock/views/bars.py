"""When things ran, and what is worth stopping at: the bars of a timeline and the marks of a slider, thinned as they grow.

Law: memory is bounded, whatever the number of events. A lane is exact until it is full; then bars that begin close to each other
become one, which says how many it stands for and how many of them failed, so that counts stay exact. Of marks of one kind every
second one goes when there are too many; the first of each kind always stays.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import field

BarKind = Literal["run", "attempt", "wait", "lease"]

MOST_MARKS = 100
"""Of one kind."""
OF_RUN, OF_CHILD, OF_WORKERS = 3_000, 100, 1_000
"""Bars in all lanes: of the run itself, of an execution inside it, of all workers. Twice as many before they are merged."""
MOST_IN_LANE, LEAST_IN_LANE = 300, 8
MOST_WORKERS = 200
OTHERS = "…"
"""The lane of all workers beyond so many."""
WIDE = 4
"""A bar wider than so many buckets stays by itself as long as there is room."""


class Bar(msgspec.Struct, array_like=True, omit_defaults=True):
    since: float
    until: float
    kind: BarKind
    status: str
    count: int = 1
    failed: int = 0
    scope: str = ""
    seq: int = 0
    """The event that began it; of a merged one, the first."""
    label: str = ""
    attempt: int = 0
    worker: str | None = None
    last: int = 0
    """The event that ended it; of a merged one, the last."""

    def take(self, other: Bar) -> None:
        self.count += other.count
        if other.since < self.since:
            self.since = other.since
        if other.until > self.until:
            self.until = other.until
        if other.last > self.last:
            self.last = other.last
        if other.seq < self.seq:
            self.seq, self.scope = other.seq, other.scope
        if self.worker != other.worker:
            self.worker = None
        if self.label != other.label:
            self.label = ""
        if other.failed:
            self.failed, self.status = self.failed + other.failed, other.status


class Lane(msgspec.Struct, omit_defaults=True):
    """The bars of one node, or of one worker, that have ended."""

    bars: list[Bar] = field(default_factory=list)
    width: float = 0.0
    """Bars that begin within so many seconds may have become one."""
    start: float = 0.0
    """Where these stretches are counted from."""
    most: int = MOST_IN_LANE

    def add(self, bar: Bar) -> None:
        width = self.width
        if width:  # Mostly it belongs to the one before.
            last = self.bars[-1]
            if (
                last.kind == bar.kind
                and last.since >= self.start + width * int((bar.since - self.start) / width)
                and bar.until - bar.since <= WIDE * width
                and last.until - last.since <= WIDE * width
            ):
                last.take(bar)
                return
        self.bars.append(bar)
        if len(self.bars) > 2 * self.most:
            self._merge()

    def _merge(self) -> None:
        self.start = min(bar.since for bar in self.bars)
        span = max(bar.until for bar in self.bars) - self.start
        self.width = max(self.width, span / self.most, 1e-6)
        bars = merged(self.bars, self.width, self.start)
        while len(bars) > self.most:
            self.width *= 2
            bars = merged(bars, self.width, self.start)
        self.bars = bars


def merged(bars: list[Bar], width: float, start: float, wide: float = WIDE) -> list[Bar]:
    """What is narrow and begins in the same `width` seconds, counted from `start`, becomes one; of one kind only. The bars
    themselves are changed."""
    found: dict[tuple[str, int, float], Bar] = {}
    for bar in bars:
        is_wide = bar.until - bar.since > wide * width
        key = (bar.kind, bar.attempt if is_wide else 0, bar.since if is_wide else int((bar.since - start) / width))
        known = found.get(key)
        if known is None:
            found[key] = bar
        else:
            known.take(bar)
    return list(found.values())


def lane_of(lanes: dict[str, Lane], name: str, in_all: int) -> Lane:
    """The lane of that name. With a new one, there is less room in each."""
    lane = lanes.get(name)
    if lane is None:
        lane = lanes[name] = Lane()
        most = max(LEAST_IN_LANE, min(MOST_IN_LANE, in_all // len(lanes)))
        for one in lanes.values():
            one.most = most
    return lane


# ---- marks

MarkKind = Literal["start", "resume", "failure", "retry", "interrupted", "cancel", "lost", "end"]


class Mark(msgspec.Struct, array_like=True, omit_defaults=True):
    seq: int
    ts: float
    kind: MarkKind
    text: str
    node: str | None = None


class Marks(msgspec.Struct, omit_defaults=True):
    """Of one kind: every `stride`-th."""

    kept: list[Mark] = field(default_factory=list)
    stride: int = 1
    count: int = 0

    def is_wanted(self) -> bool:
        """Counts one more, and says whether it is to be added."""
        self.count += 1
        return (self.count - 1) % self.stride == 0

    def add(self, mark: Mark) -> None:
        self.kept.append(mark)
        if len(self.kept) > MOST_MARKS:
            self.kept = self.kept[::2]
            self.stride *= 2
