"""The events and printed lines of a run in a state folder, as another process writes them, and the warnings among them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from msgspec import DecodeError

from penstock.cli.output import BOLD, YELLOW, one_line, painted, safe, say
from penstock.cli.show.watched import Line
from penstock.ports.log import Entry, EventLog
from penstock.ports.results import decode

if TYPE_CHECKING:
    from penstock.app.embedded import Embedded
    from penstock.cli.targets import Engine


POLL_S = 0.1
PAGE = 500
CHUNK = 1 << 16


def is_over(log: EventLog, execution_id: str) -> bool:
    """It has ended, or no process owns it."""
    header = log.header(execution_id)
    return header is None or header.status != "running" or not log.has_owner(execution_id)


class PrintedLines:
    """The file of printed lines, read in chunks while it grows."""

    def __init__(self, engine: Embedded, execution_id: str) -> None:
        self._path = engine.home / "logs" / f"{execution_id}.ndjson"
        self._file: IO[bytes] | None = None
        self.rest = b""
        """The last line while it is incomplete."""

    def new(self) -> Iterator[bytes]:
        """Complete lines since the last call."""
        if self._file is None and self._path.exists():
            self._file = self._path.open("rb")
        while self._file is not None and (data := self._file.read(CHUNK)):
            *whole, self.rest = (self.rest + data).split(b"\n")
            yield from whole

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class LocalFeed:
    def __init__(self, engine: Embedded, execution_id: str) -> None:
        self.note: Callable[[str], None] = say
        self._engine = engine
        self._run = execution_id

    def earlier(self) -> Iterator[Entry]:
        return iter(())

    async def news(self) -> AsyncIterator[Entry | Line]:
        printed = PrintedLines(self._engine, self._run)
        seq, was_over = 0, False
        held: list[Line] = []
        """A printed line may be there before the event that it belongs to: it is yielded one poll later."""
        try:
            while True:
                # Asked first: what was written before the run was over is then certainly read.
                over = await asyncio.to_thread(is_over, self._engine.log, self._run)
                lines = await asyncio.to_thread(lambda: list(printed.new()))
                while page := await asyncio.to_thread(self._page, seq):
                    seq = page[-1].seq
                    for entry in page:
                        yield entry
                for line_before in held:
                    yield line_before
                held = [line for data in lines if (line := _line(data)) is not None]
                # A run that was only just registered has no owner for a moment.
                if over and was_over and not held:
                    return
                was_over = over
                await asyncio.sleep(POLL_S)
        finally:
            printed.close()

    def _page(self, after: int) -> list[Entry]:
        return list(islice(self._engine.log.read(self._run, after), PAGE))


def _line(data: bytes) -> Line | None:
    try:
        record: Any = decode(data)
        return Line(str(record["scope"]), record["task_run_id"], str(record["line"]))
    except (DecodeError, KeyError, TypeError):  # The last line of a process that was killed may be cut off.
        return None


PRINTED_POLL_S = 0.2
MARK = "warning: "
MOST_READ = 200_000
"""Lines of a run that are looked through for warnings; `logs` has all of them."""
MOST_SHOWN = 20


def printed_lines(engine: Engine, execution_id: str, *, follow: bool) -> Iterator[bytes]:
    if engine.is_remote:
        yield from engine.lines(execution_id, follow=follow)
        return
    printed = PrintedLines(engine, execution_id)
    try:
        while True:
            over = is_over(engine.log, execution_id)
            yield from printed.new()
            sys.stdout.flush()
            if not follow or over:
                break
            time.sleep(PRINTED_POLL_S)
        if printed.rest:
            yield printed.rest
    finally:
        printed.close()


def warnings_of(engine: Engine, execution_id: str) -> list[dict[str, Any]]:
    """The warnings of the engine, each once, with the scope of its first occurrence and how often it occurred."""
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
            warning = found.setdefault(text, {"scope": scope, "message": text.removeprefix(MARK), "count": 0})
            warning["count"] += 1
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
