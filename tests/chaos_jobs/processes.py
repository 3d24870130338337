"""Jobs in processes of their own, stopped while something takes long; the same job is quick once the test lets it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.adapters.sqlite.log import SqliteLog
from tests.chaos_jobs import trials
from tests.chaos_jobs.jobs import marking
from tests.chaos_jobs.zygote import JobZygote
from tests.cli.support import started
from tests.spec_jobs.support import job

PATIENCE_S = 20.0
CROSSED = "SELECT a.i * b.i + c.i AS v FROM input a, input b, input c, input d"
COUNTED = "SELECT count(*) AS v FROM input a, input b, input c, input d WHERE a.i <> b.i + c.i * d.i"


def until(holds: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def has_started(home: Path, component: str) -> Callable[[], bool]:
    """Whatever the execution is called; there is only one."""

    def holds() -> bool:
        if not (home / ".penstock" / "locks").exists():
            return False
        log = SqliteLog(home / ".penstock")
        try:
            entries = [entry for header in log.headers(9) for entry in log.read(header.execution_id)]
        finally:
            asyncio.run(log.close())
        return any((entry.type, entry.scope) == ("component.started", component) for entry in entries)

    return holds


@contextmanager
def command(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command line as a process, which does not outlive its test."""
    running = started(*arguments)
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def lengthy(folder: Path, sink: dict[str, Any], query: str = COUNTED) -> Path:
    """`before`, a sub-job of its own; then rows of the file `rows.csv`, crossed with themselves, into a sink; then `after`."""
    text = job(
        "before (subjob_ok) read",
        "sink (ok) after",
        data=("read.main -> crossed.input", "crossed.main -> sink.input"),
        before=marking("before"),
        read={"type": "read_csv", "params": {"path": "rows.csv"}},
        crossed={"type": "sql", "params": {"query": query}},
        sink=sink,
        after=marking("after"),
        config={"memory_limit": "200MB"},
    )
    path = folder / "job.yaml"
    path.write_text(text)
    grow(folder)
    return path


def grow(folder: Path) -> None:
    """So many that crossing them would take days."""
    (folder / "rows.csv").write_text("i\n" + "\n".join(str(n) for n in range(3000)) + "\n")


def shrink(folder: Path) -> None:
    (folder / "rows.csv").write_text("i\n1\n2\n")


def begun(zygote: JobZygote, folder: Path, file: Path) -> int:
    return zygote.spawn(trials.start, home=str(folder), file=str(file))


def resumed(zygote: JobZygote, folder: Path) -> Any:
    ended = zygote.call(trials.resume, home=str(folder))
    assert ended.code == 0, ended.error
    return ended.value
