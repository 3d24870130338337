"""Whoever watches a run: nobody, a file that gets plain lines, or a person at a terminal who gets a live tree.

What playbooks and jobs have in common of it is here and in `screen`; their own words are in `lines` and `live`, `job_watching`
and `job_live`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from penstock.cli.output import say
from penstock.kernel.evolve import Execution
from penstock.ports.log import Entry

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


class Lines(ABC, Generic[F_contra]):
    """For a file or a pipe: a line for each thing that happens, and how far loops are now and then."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._counted_at = time.monotonic()
        self._counted: dict[str, int] = {}

    @abstractmethod
    def news(self, progress: F_contra) -> list[str]:
        """A line for each thing that has happened since the last time."""

    @abstractmethod
    def loops(self, progress: F_contra) -> Iterator[tuple[str, int, str]]:
        """Of each loop that goes on: its name, how many of its turns are over, and that in words."""

    def show(self, progress: F_contra) -> None:
        if not progress.has_begun():  # A run that cannot begin is told of by its error alone.
            return
        lines = [self._title] if self._title else []
        self._title = ""
        lines += self.news(progress)
        if time.monotonic() - self._counted_at >= LOOPS_EVERY_S:
            self._counted_at = time.monotonic()
            for name, settled, words in self.loops(progress):
                if self._counted.get(name) != settled:
                    self._counted[name] = settled
                    lines.append(f"{clock(time.time())} {words}")
        if lines:
            say("\n".join(lines))

    def note(self, text: str) -> None:
        say(text)

    def close(self, progress: F_contra) -> None:
        self.show(progress)


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
