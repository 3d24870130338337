"""What the log says about a fanned-out loop: how far it is, which ranges are out and who has them, and what failed.

Law: memory for the ranges that are out, the workers that took part and the first failures; never for all elements or ranges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel.fanout import SETTLED
from penstock.kernel.values import Json, JsonMap
from penstock.ports.log import Entry

KEPT_FAILURES = 20
SHOWN_WORKERS = 100


@dataclass(slots=True)
class RangeSeen:
    """Elements that are out. `lo` moves up as its holder reports; `worker` is None while nobody has taken it."""

    number: int
    lo: int
    hi: int | None
    attempt: int
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class FailureSeen:
    index: int
    key: str
    attempt: int
    error: Json


@dataclass(slots=True)
class FanoutSeen:
    """`status`: running, then complete, partial or failed."""

    loop_id: str
    total: int | None
    is_paged: bool = False
    status: str = "running"
    next: int = 0
    """Elements below it have been handed out at least once."""
    ranges: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    retried: int = 0
    lost: int = 0
    """So many ranges came back because their worker was lost."""
    out: dict[int, RangeSeen] = field(default_factory=dict)
    workers: Counter[str] = field(default_factory=Counter)
    """Worker -> how many elements came to their ends there."""
    failures: list[FailureSeen] = field(default_factory=list)
    refs: Json = None
    shared: JsonMap = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many elements there are, as far as that is known."""
        return self.next if self.total is None else self.total

    def as_json(self, *, is_live: bool) -> JsonMap:
        status = self.status
        if status == "running" and not is_live:
            status = "interrupted"
        return {
            "loop_id": self.loop_id,
            "status": status,
            "total": self.total,
            "next": self.next,
            "succeeded": self.done,
            "failed": self.failed,
            "skipped": self.skipped,
            "retried": self.retried,
            "lost": self.lost,
            "ranges": self.ranges,
            "out": [
                {"range": one.number, "lo": one.lo, "hi": one.hi, "attempt": one.attempt, "worker": one.worker}
                for _, one in sorted(self.out.items())
            ],
            "workers": dict(self.workers.most_common(SHOWN_WORKERS)),
            "failures": [
                {"index": one.index, "key": one.key, "attempt": one.attempt, "error": one.error}
                for one in sorted(self.failures, key=lambda one: one.index)
            ],
            "refs": self.refs,
            "shared": self.shared,
        }


def begun(data: Any, before: FanoutSeen | None) -> FanoutSeen:
    """`before`: the same loop in the failed run that this one goes on from. What was done stands; what failed is tried again."""
    seen = FanoutSeen(data["loop_id"], data["total"], data["is_paged"])
    if before is not None:
        seen.next, seen.ranges, seen.done, seen.retried = before.next, before.ranges, before.done, before.retried
        seen.lost, seen.workers = before.lost, Counter(before.workers)
    return seen


def _enqueued(seen: FanoutSeen, entry: Entry, data: Any) -> None:
    number = data["range"]
    seen.out[number] = RangeSeen(number, data["lo"], data["hi"], data["attempt"])
    seen.ranges = max(seen.ranges, number + 1)
    seen.next = max(seen.next, data["hi"] or 0)


def _started(seen: FanoutSeen, entry: Entry, data: Any) -> None:
    held = seen.out[data["range"]]
    held.worker = entry.worker
    if data["hi"] is not None:
        held.hi = data["hi"]
        seen.next = max(seen.next, data["hi"])
        if data["is_end"]:
            seen.total = data["hi"]


def is_late(data: Any) -> bool:
    """Did it fail at the fan-in, when it had been counted as done?"""
    return bool(data["range"] == SETTLED or data.get("at_fanin"))


def _done(seen: FanoutSeen, entry: Entry, data: Any) -> None:
    if data.get("at_fanin"):
        return
    seen.done += data["done"]
    _moved_up(seen, entry, data["range"], data["hi"], data["done"] + data["failed"])


def _moved_up(seen: FanoutSeen, entry: Entry, number: int, hi: int, count: int) -> None:
    held = seen.out[number]
    held.lo = hi
    if entry.worker is not None:
        seen.workers[entry.worker] += count
    if held.hi is not None and held.lo >= held.hi:
        del seen.out[number]


def _reported(seen: FanoutSeen, entry: Entry, data: Any) -> None:
    """Those that wait for the fan-in are counted as done so far: most of them will be."""
    count = data["hi"] - data["lo"]
    seen.done += count - len(data["failed"])
    _moved_up(seen, entry, data["range"], data["hi"], count)


def _failed(seen: FanoutSeen, entry: Entry, data: Any) -> None:
    if data.get("up_to") is not None:
        _moved_up(seen, entry, data["range"], data["up_to"], 1)
    if data["again"]:
        seen.retried += 1
        return
    seen.failed += 1
    if is_late(data):
        seen.done -= 1
    if len(seen.failures) < KEPT_FAILURES:
        seen.failures.append(FailureSeen(data["iter_index"], data["iter_key"], data["attempt"], data["error"]))


def _returned(seen: FanoutSeen, entry: Entry, data: Any) -> None:
    if seen.out.pop(data["range"], None) is not None:  # It may be told of each of its elements.
        seen.lost += data["reason"] == "lost"


def _completed(seen: FanoutSeen, entry: Entry, data: Any) -> None:
    seen.status, seen.total, seen.skipped = data["status"], data["total"], data["skipped"]
    seen.done, seen.failed, seen.retried = data["succeeded"], data["failed"], data["retried"]
    seen.refs, seen.shared = data["refs"], data["shared"]


FANOUT_HANDLERS: dict[str, Callable[[FanoutSeen, Entry, Any], None]] = {
    "loop.shard.enqueued": _enqueued,
    "loop.shard.started": _started,
    "loop.shard.reported": _reported,
    "loop.shard.done": _done,
    "loop.shard.failed": _failed,
    "loop.shard.returned": _returned,
    "loop.fanin.completed": _completed,
}
