"""A run as it was at any of its events: a state from the nearest snapshot, and what making the snapshots costs."""

from __future__ import annotations

import asyncio
import random
import resource
import time
from pathlib import Path
from statistics import median

MOMENTS = 20


def moments(folder: Path) -> dict[str, float]:
    """`first_s`: all events are folded, and snapshots are made on the way. Then moments at random: the median, and the worst."""
    from benchmarks.engine import EXECUTION
    from penstock.adapters.sqlite.log import SqliteLog
    from penstock.views.run_view import FORMAT, view_at

    log = SqliteLog(folder / "home")
    try:
        began = time.perf_counter()
        last = view_at(log, EXECUTION).seq
        first = time.perf_counter() - began
        chance = random.Random(7)
        took: list[float] = []
        for _ in range(MOMENTS):
            seq = chance.randint(1, last)
            began = time.perf_counter()
            if view_at(log, EXECUTION, seq).seq != seq:
                raise RuntimeError(f"there is no view at {seq:,}")
            took.append(time.perf_counter() - began)
        kept = log.snapshot(EXECUTION, FORMAT, last)
    finally:
        asyncio.run(log.close())
    return {
        "first_s": first,
        "s": median(took),
        "worst_s": max(took),
        "snapshot_kb": len(kept[1]) / 1024 if kept is not None else 0.0,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
