"""A fanned-out loop on the command line: how far it is, who works on it, what failed; and its events in a few words."""

from __future__ import annotations

from typing import Any

from penstock.cli.output import one_line, safe
from penstock.projections.wording import counted, elements, error_line

MOST_RANGES = 3
MOST_WORKERS = 5
MOST_FAILURES = 5


def fanout_lines(fanin: Any, indent: str) -> list[str]:
    figures = [counted(fanin["ranges"], "range")]
    if fanin["out"]:
        figures.append(f"{len(fanin['out']):,} of them out")
    if fanin["lost"]:
        figures.append(f"{fanin['lost']:,} lost with their workers")
    if fanin["retried"]:
        figures.append(f"{fanin['retried']:,} retried")
    if fanin["skipped"]:
        figures.append(f"{fanin['skipped']:,} not tried")
    if fanin["total"] is None:
        figures.append("more pages to read")
    lines = [f"fan-out {fanin['status']}: {', '.join(figures)}"]
    if fanin["workers"]:
        lines.append(f"on {_workers(fanin['workers'])}")
    lines += [_range(one) for one in fanin["out"][:MOST_RANGES]]
    left = len(fanin["out"]) - MOST_RANGES
    if left > 0:
        lines.append(f"… {counted(left, 'more range')} out")
    lines += [_failure(one) for one in fanin["failures"][:MOST_FAILURES]]
    left = fanin["failed"] - MOST_FAILURES
    if left > 0:
        lines.append(f"… {left:,} more failed")
    return [f"{indent}{line}" for line in lines]


def _workers(workers: dict[str, int]) -> str:
    named = [f"{safe(name)} ({count:,})" for name, count in list(workers.items())[:MOST_WORKERS]]
    left = len(workers) - MOST_WORKERS
    return ", ".join(named) + (f" and {counted(left, 'more worker')}" if left > 0 else "")


def _range(one: Any) -> str:
    where = f"on {safe(one['worker'])}" if one["worker"] else "waits for a worker"
    again = f", try {one['attempt'] + 1}" if one["attempt"] else ""
    return f"range {one['range']}, {elements(one['lo'], one['hi'])}{again}: {where}"


def _failure(one: Any) -> str:
    key = f" ({safe(one['key'])})" if one["key"] != str(one["index"]) else ""
    return f"[{one['index']}]{key} failed: {one_line(error_line(one['error']))}"


def fanout_detail(kind: str, data: Any) -> str:
    """An event of a fanned-out loop in a few words, for `penstock events`."""
    failed = f", {data['failed']:,} failed" if isinstance(data.get("failed"), int) and data["failed"] else ""
    match kind:
        case "loop.fanout.started":
            what = data["collection"]["kind"]
            return f"{data['total']:,} of {what}" if data["total"] is not None else f"pages of {what}"
        case "loop.shard.enqueued":
            again = f", try {data['attempt'] + 1}" if data["attempt"] else ""
            return f"range {data['range']}: {elements(data['lo'], data['hi'])}{again}"
        case "loop.shard.started":
            return f"range {data['range']}"
        case "loop.shard.reported":
            broken = f", {len(data['failed']):,} failed" if data["failed"] else ""
            return f"range {data['range']}: {elements(data['lo'], data['hi'])}{broken}, to be compared at the fan-in"
        case "loop.shard.done":
            return f"range {data['range']}: {elements(data['lo'], data['hi'])}, {data['done']:,} done{failed}"
        case "loop.shard.failed":
            return f"{error_line(data['error'])}{'; it comes again' if data['again'] else ''}"
        case "loop.shard.returned":
            return f"range {data['range']}: {elements(data['lo'], data['hi'])}, {data['reason']}"
    return f"{data['status']}: {data['succeeded']:,} of {data['total']:,} done{failed}"
