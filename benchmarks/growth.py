"""How time grows with the size of what is done: one row for each size, so that a bend can be seen."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import Bench, Probe, run
from benchmarks.rows import Row

ROWS = (1_000_000, 10_000_000, 50_000_000)
ELEMENTS = (10_000, 100_000, 1_000_000, 10_000_000)
RUNS = (500, 2_000, 8_000)
EVENTS = (10_000, 100_000, 1_000_000)
WORKERS = (1, 2, 4, 8)
LIMIT_S = 1_200.0


def _sizes(bench: Bench, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return sizes[:-1] if bench.quick else sizes


def rows(bench: Bench) -> list[Row]:
    found = [Row("rows of CSV: filter, join, aggregate, Parquet; per million", None, "s", remark="by number of rows")]
    for count in _sizes(bench, ROWS):
        figures = bench.one(Probe("job-etl", count, LIMIT_S), 1)
        took = figures.median("s")
        title = f"  {count:,} rows"
        found.append(Row(title, None if took is None else took * 1e6 / count, "s", remark=figures.wrong or ""))
        found.append(Row(f"{title}, peak memory", figures.median("rss_mb"), "MB"))
    return found


def elements(bench: Bench) -> list[Row]:
    found = [Row("elements of a loop that is fanned out, a second", None, "/s", remark="by number of elements")]
    for count in _sizes(bench, ELEMENTS):
        figures = bench.one(Probe("fleet-summary", count, LIMIT_S), 1)
        title = f"  {count:,} elements"
        found.append(Row(title, figures.median("per_s"), "/s", remark=figures.wrong or ""))
        found.append(Row(f"{title}, memory of the server at the end", figures.median("rss_end_mb"), "MB"))
    return found


def runs(bench: Bench) -> list[Row]:
    found = [Row("runs of one task, put in 500 at a time, a second", None, "/s", remark="by number of runs")]
    for count in _sizes(bench, RUNS):
        figures = bench.one(Probe("fleet-many-runs", count, LIMIT_S), 1)
        found.append(Row(f"  {count:,} runs", figures.median("per_s"), "/s", remark=figures.wrong or ""))
    return found


def events(bench: Bench) -> list[Row]:
    found = [Row("resume of a run, per 1,000 events", None, "ms", remark="by number of events")]
    for count in _sizes(bench, EVENTS):
        with tempfile.TemporaryDirectory(dir=bench.folder, prefix="log-") as name:
            folder = Path(name)
            _, wrong = run(Probe("interrupted", count, limit_s=LIMIT_S), folder, bench.folder / "bytecode")
            if wrong is not None:
                found.append(Row(f"  {count:,} events", None, "ms", remark=wrong))
                continue
            again = bench.one(Probe("resume", limit_s=LIMIT_S, home=folder / "home"), 1)
            seen = bench.one(Probe("moments", limit_s=LIMIT_S, home=folder / "home"), 1)
        took = again.median("s")
        found += [
            Row(f"  {count:,} events", None if took is None else took * 1e6 / count, "ms", remark=again.wrong or ""),
            Row(f"  {count:,} events, its state at any event", seen.median("worst_s"), "s"),
        ]
    return found


def workers(bench: Bench) -> list[Row]:
    found = [Row("elements that wait 50 ms each, share of the best that is possible", None, "%", remark="by workers")]
    for count in _sizes(bench, WORKERS):
        figures = bench.one(Probe("fleet-workers", count, LIMIT_S), 1)
        share = figures.median("share")
        title = f"  {count} workers of 8 slots" if count > 1 else "  1 worker of 8 slots"
        found.append(Row(title, None if share is None else share * 100, "%", remark=figures.wrong or ""))
        found.append(Row(f"{title}, elements a second", figures.median("per_s"), "/s"))
    return found


def growth(bench: Bench) -> list[Row]:
    return [row for curve in (rows, elements, runs, events, workers) for row in curve(bench)]


CASES: dict[str, Callable[[Bench], list[Row]]] = {"growth": growth}
