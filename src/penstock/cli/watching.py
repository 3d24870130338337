"""Whoever watches a run: nobody, a file that gets plain lines, or a person at a terminal who gets a live tree."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from penstock.cli.output import one_line, safe, say
from penstock.cli.progress import News, Progress, Shown
from penstock.kernel.evolve import Execution
from penstock.ports.log import Entry
from penstock.projections.wording import error_line, seconds

TICK_S = 0.1
LOOPS_EVERY_S = 3.0


class Folding(Protocol):
    """A run as it goes: entries and lines are put aside as they come, and folded when somebody looks."""

    def observer(self) -> Callable[[Entry], None]: ...

    def line_observer(self) -> Callable[[str, str | None, str], None]: ...

    def has_begun(self) -> bool: ...

    def fold(self, now: float) -> None: ...

    def look_at(self, tree: Execution) -> None: ...


F = TypeVar("F", bound=Folding)
F_contra = TypeVar("F_contra", bound=Folding, contravariant=True)


class Watcher(Protocol[F_contra]):
    """`show` is called about ten times a second, `note` for a word from the engine, `close` once at the end."""

    def show(self, progress: F_contra) -> None: ...

    def note(self, text: str) -> None: ...

    def close(self, progress: F_contra) -> None: ...


class Nobody:
    def show(self, progress: Folding) -> None:
        return None

    def note(self, text: str) -> None:
        say(text)

    def close(self, progress: Folding) -> None:
        return None


class PlainLines:
    """One line per step start and end, retry and log line; of loops the count every few seconds."""

    def __init__(self, title: str) -> None:
        say(title)
        self._loops_at = time.monotonic()
        self._counted: dict[str, int] = {}

    def show(self, progress: Progress) -> None:
        lines = [_line(news) for news in progress.take_news()]
        if time.monotonic() - self._loops_at >= LOOPS_EVERY_S:
            self._loops_at = time.monotonic()
            lines += self._loops(progress)
        if lines:
            say("\n".join(lines))

    def note(self, text: str) -> None:
        say(text)

    def close(self, progress: Progress) -> None:
        self.show(progress)

    def _loops(self, progress: Progress) -> list[str]:
        lines = []
        for run in progress.open.values():
            settled = run.done + run.failed
            if run.total is not None and self._counted.get(run.id) != settled:
                self._counted[run.id] = settled
                lines.append(f"{_clock(time.time())} {_name(run)}: {counts(run)}")
        return lines


def _line(news: News) -> str:
    run = news.run
    start = f"{_clock(news.at)} {_name(run)}"
    match news.what:
        case "started":
            return f"{start}: started" + (f" (visit {run.visit})" if run.visit > 1 else "")
        case "done":
            loop = f", {counts(run)}" if run.total is not None else ""
            return f"{start}: done in {took(run)}{loop}"
        case "failed":
            loop = f", {counts(run)}" if run.total is not None else ""
            return f"{start}: failed after {took(run)}{loop}: {one_line(error_line(run.error))}"
        case "refused":
            return f"{start}: refused"
        case "retry":
            return f"{start}: {one_line(news.text)}"
        case _:
            return f"{run.step} | {safe(news.text)}"


def _name(run: Shown) -> str:
    return run.id if run.depth else run.step


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def took(run: Shown) -> str:
    return seconds(max(0.0, (run.ended_at or run.started_at) - run.started_at))


def counts(run: Shown) -> str:
    failed = f", {run.failed:,} failed" if run.failed else ""
    return f"{run.done + run.failed:,} of {run.total or 0:,} iterations{failed}"
