"""The live tree on a terminal: steps with their tasks, loops with bars, retries with a countdown, the last line of each log."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.cli.output import one_line
from penstock.cli.progress import Progress, Shown
from penstock.cli.watching import took
from penstock.projections.wording import error_line, seconds

if TYPE_CHECKING:
    from rich.text import Text

BAR = 24
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "refused": ("⊘", "yellow")}
_PLAIN_MARKS = {"done": ("+", "green"), "failed": ("x", "red"), "refused": ("-", "yellow")}


class LiveTree:
    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self._title = title
        self._started = time.monotonic()
        self._frames = 0
        self._console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
        encoding = (self._console.encoding or "").lower()
        self._is_fancy = encoding.startswith("utf")
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def show(self, progress: Progress) -> None:
        progress.news.clear()
        self._frames += 1
        height = max(5, self._console.size.height - 2)
        with suppress(OSError):  # A terminal that was closed.
            self._live.update(self._drawn(progress, height), refresh=True)

    def note(self, text: str) -> None:
        with suppress(OSError):
            self._console.print(text)

    def close(self, progress: Progress) -> None:
        self.show(progress)
        with suppress(OSError):
            self._live.stop()

    def _drawn(self, progress: Progress, height: int) -> Text:
        from rich.text import Text

        text = Text(no_wrap=True, overflow="ellipsis")
        elapsed = seconds(time.monotonic() - self._started)
        text.append(self._title, "bold")
        text.append(f"  {elapsed}", "dim")
        lines = self._chosen(progress, height - 1)
        left = progress.ended + len(progress.open) - sum(1 for _, is_step, _ in lines if is_step)
        if left > 0:
            text.append(f"\n  … {left:,} earlier step runs", "dim")
        for _, _, line in lines:
            text.append("\n")
            text.append_text(line)
        return text

    def _chosen(self, progress: Progress, height: int) -> list[tuple[str, bool, Text]]:
        """What is running always, then what ended last, in the order of the run."""
        now = time.time()
        running = {run.id: self._step(run, now) for run in list(progress.open.values())[-height:]}
        room = height - sum(map(len, running.values()))
        ended = [run for run in progress.runs.values() if run.ended_at is not None]
        kept = {run.id for run in ended[-room:]} if room > 0 else set()
        lines: list[tuple[str, bool, Text]] = []
        for run in progress.runs.values():
            drawn = running.get(run.id) or ([self._ended(run)] if run.id in kept else [])
            lines += [(run.id, number == 0, line) for number, line in enumerate(drawn)]
        return lines[-height:]

    def _ended(self, run: Shown) -> Text:
        from rich.text import Text

        marks = _MARKS if self._is_fancy else _PLAIN_MARKS
        mark, style = marks.get(run.status, ("?", ""))
        text = Text(f"  {'    ' * run.depth}")
        text.append(f"{mark} ", style)
        text.append(self._label(run))
        text.append(f"  {took(run)}", "dim")
        if run.total is not None:
            failed = f", {run.failed:,} failed" if run.failed else ""
            text.append(f"  {run.done:,} of {run.total:,} iterations{failed}", "dim")
        if run.status == "failed":
            text.append(f"  {one_line(error_line(run.error), 160)}", "red")
        return text

    def _step(self, run: Shown, now: float) -> list[Text]:
        from rich.text import Text

        indent = "    " * run.depth
        spin = SPINNER[self._frames % len(SPINNER)] if self._is_fancy else "|/-\\"[self._frames % 4]
        head = Text(f"  {indent}")
        head.append(f"{spin} ", "cyan")
        head.append(self._label(run), "bold")
        if run.total is not None:
            head.append_text(self._bar(run))
        head.append(f"  {seconds(max(0.0, now - run.started_at))}", "dim")
        lines = [head]
        if run.total is None and run.task:
            lines.append(self._task(run, now, indent))
        if run.line:
            bar = "│" if self._is_fancy else "|"
            lines.append(Text(f"      {indent}{bar} {one_line(run.line)}", "dim"))
        return lines

    def _task(self, run: Shown, now: float, indent: str) -> Text:
        from rich.text import Text

        text = Text(f"      {indent}{run.task}")
        if run.retry_at is not None and run.retry_at > now:
            text.append(f"  attempt {run.attempt} failed, next try in {run.retry_at - now:.0f} s", "yellow")
        elif run.attempt > 1:
            text.append(f"  attempt {run.attempt}", "yellow")
        return text

    def _bar(self, run: Shown) -> Text:
        from rich.text import Text

        total, settled = run.total or 0, run.done + run.failed
        filled = BAR if not total else min(BAR, BAR * settled // total)
        full, empty = ("━", "─") if self._is_fancy else ("#", "-")
        text = Text("  ")
        text.append(full * filled, "cyan")
        text.append(empty * (BAR - filled), "dim")
        text.append(f"  {settled:,}/{total:,}")
        if run.failed:
            text.append(f"  {run.failed:,} failed", "red")
        return text

    def _label(self, run: Shown) -> str:
        return f"{run.step} (visit {run.visit})" if run.visit > 1 else run.step
