"""What is drawn on a terminal while a run goes: a title with a clock, and below it as many lines as there is room for.

Here is the frame: when it is drawn, in which signs, and how it ends. What the lines say is up to those who fill it.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Generic

from penstock.cli.watching import F_contra
from penstock.projections.wording import seconds

if TYPE_CHECKING:
    from rich.text import Text

LONGEST_BAR, SHORTEST_BAR = 24, 8
SPINNER, PLAIN_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
GOOD, BAD, PASSED_BY, WAITING = ("✓", "+", "green"), ("✗", "x", "red"), ("⊘", "-", "yellow"), ("·", ".", "dim")
Mark = tuple[str, str, str]
"""The sign, what stands for it where there is only ASCII, and its paint."""


class Screen(ABC, Generic[F_contra]):
    def __init__(self, title: str, *, goes_away: bool) -> None:
        """`goes_away`: nothing of it is left when the run is over, because a summary takes its place."""
        from rich.console import Console
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
        """Before a frame: what is to scroll by above it is printed, and what nobody will ask for is dropped."""

    @abstractmethod
    def lines(self, progress: F_contra, height: int) -> list[Text]:
        """At most `height` of them."""

    def show(self, progress: F_contra) -> None:
        if not progress.has_begun():  # A run that cannot begin is told of by its error alone.
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
        from rich.text import Text

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
        from rich.text import Text

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
