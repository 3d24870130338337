"""What a fleet of any size would take, calculated: `python -m benchmarks.capacity`.

The engine's own rule for the size of ranges (`Pace`) is played through with a virtual clock: slots that are busy with a
range each, and one server that hands them out one after the other. What a range, an element and a run cost was measured on
the fleet of the benchmarks and stands here as a constant; all else that workers do is the user's own seconds.

Assumptions: machines as fast as the one measured on, elements that take equally long, and no failures. PostgreSQL has a
machine of its own, and commits what many ranges have to say together.
"""

from __future__ import annotations

import heapq
import sys
from dataclasses import dataclass

from penstock.server.terms import HAND_OUT_S, Pace

RANGE_DB_S = 0.0014
"""CPU of PostgreSQL for a range."""
ELEMENT_CPU_S = 0.9e-6
"""CPU of a worker for an element, beside the user's own."""
HANDOVER_S = 0.010
"""From the end of a range until the slot has its next one."""
RUN_SERVER_S = 0.0010
RUN_WORKER_S = 0.0010
RUN_DB_S = 0.0010
"""CPU for a run of one task, where many are under way."""
RUN_BYTES = 3_900
"""What a run of one task leaves in PostgreSQL: nine events, its registration and their indexes."""
RANGE_BYTES = 1_200
MOST_RANGES = 300_000
"""More are not played through: by then the rate no longer changes, and the rest is calculated with it."""


@dataclass(frozen=True, slots=True)
class Loop:
    elements: int
    each_s: float
    workers: int
    slots: int = 8

    @property
    def places(self) -> int:
        """One slot of each worker is kept for steps."""
        return self.workers * max(1, self.slots - 1)


@dataclass(frozen=True, slots=True)
class Course:
    seconds: float
    ranges: float
    server_share: float
    """How busy the server was; a loop is driven by one process."""
    db_cores: float
    efficiency: float
    """Of the time that the slots had, how much was work."""

    @property
    def bytes(self) -> float:
        return self.ranges * RANGE_BYTES


def course(loop: Loop) -> Course:
    """Play the loop through. The virtual clock of each slot is the moment at which it is free."""
    pace, each_s = Pace(None), loop.each_s + ELEMENT_CPU_S
    free = [0.0] * loop.places
    server_free = now = 0.0
    left, ranges = loop.elements, 0
    while left > 0 and ranges < MOST_RANGES:
        free_at = heapq.heappop(free)
        size = min(left, pace.size(left, loop.places))
        begun = max(free_at, server_free)
        server_free = begun + HAND_OUT_S
        end = begun + HANDOVER_S + size * each_s
        heapq.heappush(free, end)
        if ranges > loop.places:  # By then the first have reported how long an element takes.
            pace.saw(size, size * each_s * 1000)
        now, left, ranges = max(now, end), left - size, ranges + 1
    if left > 0:
        done = loop.elements - left
        now, ranges_in_all = now * loop.elements / done, ranges * loop.elements / done
    else:
        ranges_in_all = float(ranges)
    ideal = loop.elements * loop.each_s / loop.places
    a_second = ranges_in_all / now
    return Course(now, ranges_in_all, min(1.0, a_second * HAND_OUT_S), a_second * RANGE_DB_S, ideal / now)


LOOPS = (
    Loop(1_000_000, 0.01, 10),
    Loop(1_000_000, 0.01, 1_000),
    Loop(1_000_000_000, 0.0001, 10),
    Loop(1_000_000_000, 0.0001, 1_000),
    Loop(1_000_000_000, 0.01, 1_000),
    Loop(1_000_000_000, 1.0, 1_000),
)
RUNS_A_DAY = (10_000, 1_000_000, 10_000_000)
DAY_S = 86_400
PEAK = 10.0
"""The busiest minute has so many times the runs of an average one."""


def main() -> int:
    say = sys.stdout.write
    say(
        "| elements | each | workers × slots | takes | work in the slots' time | ranges | server busy | "
        "cores of PostgreSQL | log |\n"
    )
    say("|---|---|---|---|---|---|---|---|---|\n")
    for loop in LOOPS:
        found = course(loop)
        say(
            f"| {loop.elements:,} | {_time(loop.each_s)} | {loop.workers:,} × {loop.slots} | {_time(found.seconds)} | "
            f"{found.efficiency:.0%} | {found.ranges:,.0f} | {found.server_share:.0%} | "
            f"{found.db_cores:.1f} | {_size(found.bytes)} |\n"
        )
    say(
        "\n| runs of one task a day | a second, busiest minute | cores of servers | of PostgreSQL | of workers | rows a day |\n"
    )
    say("|---|---|---|---|---|---|\n")
    for count in RUNS_A_DAY:
        rate = count / DAY_S * PEAK
        costs = (RUN_SERVER_S, RUN_DB_S, RUN_WORKER_S)
        cores = " | ".join(f"{rate * cost:.2f}" for cost in costs)
        say(f"| {count:,} | {rate:,.1f} | {cores} | {_size(count * RUN_BYTES)} |\n")
    return 0


def _time(seconds: float) -> str:
    for unit, size in (("d", DAY_S), ("h", 3_600), ("min", 60), ("s", 1)):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds * 1000:,.3g} ms"


def _size(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.3g} {unit}"
    return f"{count:,.0f} B"


if __name__ == "__main__":
    sys.exit(main())
