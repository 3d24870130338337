"""What is measured of the web page, and what is asked for. Frames are asked for as the time of one, of which less is better."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import Bench, Figures, Probe, run
from benchmarks.rows import Row

EVENTS = 1_000_000
LOAD_KB = 250.0
FRAME_MS = 1000 / 40
ANSWER_S = 1.0
# A browser and a server take seconds to start: more repeats would take long and tell little.
REPEATS = 3
LIMIT_S = 300.0
LIVE_S = int(os.environ.get("PENSTOCK_BENCH_LIVE_S", "60"))
"""How long the run is whose tab is measured; 600 for what docs/figures.md shows."""


def drawing(bench: Bench) -> list[Row]:
    load = bench.one(Probe("page-load", limit_s=LIMIT_S), 1)
    repeats = min(bench.repeats, REPEATS)
    graph, frames, live = bench.together(
        [Probe(name, limit_s=LIMIT_S) for name in ("page-graph", "page-frames", "page-live")], repeats
    )
    return [
        _row("page: first load of the list of runs, compressed", load, "runs_kb", "kB", LOAD_KB),
        _row("  answers of the API", load, "runs_answers_kb", "kB"),
        _row("page: first load of a run, compressed, without ELK", load, "run_kb", "kB", LOAD_KB),
        _row("  its files", load, "run_files", "files"),
        _row("  headers, which are part of it", load, "run_headers_kb", "kB"),
        _row("  answers of the API", load, "run_answers_kb", "kB"),
        _row("  ELK, only for graphs that need it", load, "elk_kb", "kB"),
        _row("page: a graph of 200 nodes is drawn, nothing cached", graph, "s", "s"),
        _row("  when it was seen before", graph, "again_s", "s"),
        _row("page: a frame while a run of 200 nodes is played", frames, "ms", "ms", FRAME_MS),
        _row("  frames a second", frames, "frames_per_s", "/s"),
        _row("  changes a second", frames, "changes_per_s", "/s"),
        _row("  nodes and links that differ at each change", frames, "changed", "%"),
        _row("  95 % of the frames took at most", frames, "p95_ms", "ms"),
        _row("  slowest frame", frames, "worst_ms", "ms"),
        _row("  a frame while nothing changes", frames, "idle_ms", "ms"),
        _row("page: a frame while a run of 200 nodes is followed live", live, "ms", "ms", FRAME_MS),
        _row("  frames a second", live, "frames_per_s", "/s"),
        _row("  events a second", live, "events_per_s", "/s"),
        _row("  changes a second", live, "changes_per_s", "/s"),
        _row("  slowest frame", live, "worst_ms", "ms"),
    ]


def opening(bench: Bench) -> list[Row]:
    count = EVENTS // 10 if bench.quick else EVENTS
    title = f"page: a run of {count:,} events, seen before: slowest answer"
    with tempfile.TemporaryDirectory(dir=bench.folder, prefix="log-") as name:
        folder = Path(name)
        _, wrong = run(Probe("interrupted", count, limit_s=900.0), folder, bench.folder / "bytecode")
        if wrong is not None:
            return [Row(title, None, "s", ANSWER_S, remark=f"its log was not made: {wrong}")]
        seen = bench.one(Probe("page-opening", limit_s=LIMIT_S, home=folder / "home"), min(bench.repeats, REPEATS))
    return [
        _row(title, seen, "s", "s", ANSWER_S),
        _row("  the graph is drawn", seen, "drawn_s", "s"),
        _row("  the run as it was at any moment, median", seen, "moment_s", "s"),
        _row("  the slowest of 20 moments", seen, "worst_moment_s", "s", ANSWER_S),
        _row(f"page: a run of {count:,} events, never seen: slowest answer", seen, "cold_s", "s", ANSWER_S),
        _row("  the graph is drawn", seen, "cold_drawn_s", "s"),
        _row("  all of its events are read, and snapshots made", seen, "folded_s", "s"),
    ]


def memory(bench: Bench) -> list[Row]:
    seconds = LIVE_S
    figures = bench.one(Probe("page-memory", seconds, seconds + LIMIT_S), 1)
    return [
        _row(f"page: heap of a tab after {seconds:,} s of a live run of 200 nodes", figures, "end_mb", "MB"),
        _row("  at the start", figures, "start_mb", "MB"),
        _row("  in the middle", figures, "middle_mb", "MB"),
        _row("  events of the run by then", figures, "events", "events"),
        _row("  DOM nodes at the start", figures, "nodes", "nodes"),
        _row("  DOM nodes at the end", figures, "nodes_after", "nodes"),
    ]


def _row(title: str, figures: Figures, key: str, unit: str, required: float | None = None) -> Row:
    return Row(title, figures.median(key), unit, required, remark=figures.wrong or "")


CASES: dict[str, Callable[[Bench], list[Row]]] = {
    "page": drawing,
    "page-opening": opening,
    "page-memory": memory,
}
