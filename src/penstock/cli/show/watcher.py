"""How a run is shown while it goes: buffers that it appends to, and watchers that read them: none, plain lines, a live screen.

Law: showing a run may cost it almost nothing. So the run only appends to a buffer, and everything else is done in batches.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from penstock.cli.output import say
from penstock.kernel.evolve import Execution
from penstock.ports.log import Entry
from penstock.views.wording import seconds

if TYPE_CHECKING:
    from rich.text import Text


TICK_S = 0.1
LOOPS_EVERY_S = 3.0


class Folding(Protocol):
    """A run as it goes: entries and lines are buffered as they come, and folded when it is looked at."""

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
        if not progress.has_begun():  # Of a run that cannot begin only the error is shown.
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


LONGEST_BAR, SHORTEST_BAR = 24, 8
SPINNER, PLAIN_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
GOOD, BAD, PASSED_BY, WAITING = ("✓", "+", "green"), ("✗", "x", "red"), ("⊘", "-", "yellow"), ("·", ".", "dim")
Mark = tuple[str, str, str]
"""The sign, what stands for it where there is only ASCII, and its paint."""


class Screen(ABC, Generic[F_contra]):
    def __init__(self, title: str, *, goes_away: bool) -> None:
        """`goes_away`: nothing of it is left when the run is over, because a summary takes its place."""
        from rich.console import Console  # Only a terminal needs rich.
        from rich.live import Live

        self._title = title
        self._started = time.monotonic()
        self._frames = 0
        self.console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
        self._is_fancy = (self.console.encoding or "").lower().startswith("utf")
        self._live = Live(
            console=self.console,
            auto_refresh=False,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
            transient=goes_away,
        )

    @abstractmethod
    def prepare(self, progress: F_contra) -> None:
        """Before a frame: what is to scroll by above it is printed, and what will not be asked for is dropped."""

    @abstractmethod
    def lines(self, progress: F_contra, height: int) -> list[Text]:
        """At most `height` of them."""

    def show(self, progress: F_contra) -> None:
        if not progress.has_begun():  # Of a run that cannot begin only the error is shown.
            return
        self._frames += 1
        height = max(5, self.console.size.height - 2)
        with suppress(OSError):  # A terminal that was closed.
            self._live.start()  # The first time; after that it does nothing.
            self.prepare(progress)
            self._live.update(self._drawn(self.lines(progress, height - 1)), refresh=True)

    def note(self, text: str) -> None:
        with suppress(OSError):
            self.console.print(text)

    def close(self, progress: F_contra) -> None:
        self.show(progress)
        with suppress(OSError):
            self._live.stop()

    def _drawn(self, lines: list[Text]) -> Text:
        from rich.text import Text  # Only a terminal needs rich.

        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(self._title, "bold")
        text.append(f"  {seconds(time.monotonic() - self._started)}", "dim")
        for line in lines:
            text.append("\n")
            text.append_text(line)
        return text

    # ---- signs

    def sign(self, fancy: str, plain: str) -> str:
        return fancy if self._is_fancy else plain

    def mark(self, mark: Mark | None) -> tuple[str, str]:
        """A sign and its paint."""
        fancy, plain, paint = mark or ("?", "?", "")
        return self.sign(fancy, plain), paint

    def spin(self) -> tuple[str, str]:
        signs = self.sign(SPINNER, PLAIN_SPINNER)
        return signs[self._frames % len(signs)], "cyan"

    def bar(self, settled: int, total: int | None, failed: int) -> Text:
        """How far something is that is done many times."""
        from rich.text import Text  # Only a terminal needs rich.

        text = Text("  ")
        if total is None:
            text.append(f"{settled:,} iterations")
        else:
            length = min(LONGEST_BAR, max(SHORTEST_BAR, self.console.size.width * 3 // 10))
            filled = length if not total else min(length, length * settled // total)
            text.append(self.sign("━", "#") * filled, "cyan")
            text.append(self.sign("─", "-") * (length - filled), "dim")
            text.append(f"  {settled:,}/{total:,}")
        if failed:
            text.append(f"  {failed:,} failed", "red")
        return text


KEPT_NEWS = 10_000

N = TypeVar("N")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Heard:
    """A line that a tool or a component said."""

    scope: str
    line: str


def latest() -> deque[T]:
    """For news: when they are not taken, the oldest are dropped."""
    return deque(maxlen=KEPT_NEWS)


@dataclass(slots=True, kw_only=True)
class Inbox(ABC, Generic[N]):
    """`N` is what one piece of news looks like."""

    news: deque[N] = field(default_factory=latest)
    _waiting: deque[object] = field(default_factory=deque)

    @abstractmethod
    def _take(self, entry: Entry) -> None: ...

    @abstractmethod
    def _hear(self, heard: Heard, now: float) -> None: ...

    def _count(self, item: object, now: float) -> None:
        """Anything else that was put aside."""
        raise AssertionError(f"{type(item).__name__} is never buffered")

    def observer(self) -> Callable[[Entry], None]:
        return self._waiting.append

    def line_observer(self) -> Callable[[str, str | None, str], None]:
        waiting = self._waiting

        def heard(scope: str, task_run_id: str | None, line: str) -> None:
            waiting.append(Heard(scope, line))

        return heard

    def fold(self, now: float) -> None:
        """Take up all that has come since the last time."""
        waiting = self._waiting
        while waiting:
            item = waiting.popleft()
            if isinstance(item, Entry):
                self._take(item)
            elif isinstance(item, Heard):
                self._hear(item, now)
            else:
                self._count(item, now)

    def take_news(self) -> list[N]:
        news = list(self.news)
        self.news.clear()
        return news
