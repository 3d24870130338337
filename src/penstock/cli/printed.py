"""What a run said while it ran, and which of it are warnings of the engine itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.cli.output import BOLD, YELLOW, one_line, painted, safe

if TYPE_CHECKING:
    from penstock.cli.engine import Engine

POLL_S = 0.2
MARK = "warning: "
MOST_READ = 200_000
"""Lines of a run that are looked through for warnings; whoever prints more has them in `logs`."""
MOST_SHOWN = 20


def printed_lines(engine: Engine, execution_id: str, *, follow: bool) -> Iterator[bytes]:
    from penstock.app.embedded import Embedded
    from penstock.cli.local_feed import PrintedLines, is_over

    if not isinstance(engine, Embedded):
        yield from engine.lines(execution_id, follow=follow)
        return
    printed = PrintedLines(engine, execution_id)
    try:
        while True:
            over = is_over(engine, execution_id)
            yield from printed.new()
            sys.stdout.flush()
            if not follow or over:
                break
            time.sleep(POLL_S)
        if printed.rest:
            yield printed.rest
    finally:
        printed.close()


def warnings_of(engine: Engine, execution_id: str) -> list[dict[str, Any]]:
    """What the engine warned of, each once: the place where it was first said, and how often."""
    from msgspec import DecodeError

    from penstock.ports.results import decode

    found: dict[str, dict[str, Any]] = {}
    for line in islice(printed_lines(engine, execution_id, follow=False), MOST_READ):
        if MARK.encode() not in line:
            continue
        try:
            record: Any = decode(line)
            text, scope, task = str(record["line"]), str(record["scope"]), record.get("task_run_id")
        except (DecodeError, KeyError, TypeError):  # The last line of a process that was killed may be cut off.
            continue
        if task is None and text.startswith(MARK):
            told = found.setdefault(text, {"scope": scope, "message": text.removeprefix(MARK), "count": 0})
            told["count"] += 1
    return list(found.values())


def warning_lines(warnings: list[dict[str, Any]]) -> list[str]:
    """As `show` prints them, with a title."""
    if not warnings:
        return []
    lines = ["", painted("warnings", BOLD + YELLOW, sys.stdout)]
    for one in warnings[:MOST_SHOWN]:
        times = f" ({one['count']:,} times)" if one["count"] > 1 else ""
        lines.append(f"  {safe(one['scope'])}: {one_line(one['message'], 1000)}{times}")
    if len(warnings) > MOST_SHOWN:
        lines.append(f"  … and {len(warnings) - MOST_SHOWN:,} more; `penstock logs` has all of them")
    return lines
