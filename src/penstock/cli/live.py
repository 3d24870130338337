"""The live tree on a terminal: steps with their tasks, loops with bars, retries with a countdown, the last line of each log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.cli.lines import counts, took
from penstock.cli.output import one_line
from penstock.cli.progress import Progress, Shown
from penstock.cli.screen import BAD, GOOD, PASSED_BY, Screen
from penstock.projections.wording import counted, error_line, seconds

if TYPE_CHECKING:
    from rich.text import Text

_MARKS = {"done": GOOD, "failed": BAD, "refused": PASSED_BY}


class LiveTree(Screen[Progress]):
    def __init__(self, title: str) -> None:
        super().__init__(title, goes_away=False)

    def prepare(self, progress: Progress) -> None:
        progress.news.clear()

    def lines(self, progress: Progress, height: int) -> list[Text]:
        from rich.text import Text

        chosen = self._chosen(progress, height)
        left = progress.ended + len(progress.open) - sum(is_step for is_step, _ in chosen)
        if left > 0:
            chosen = self._chosen(progress, height - 1)
            left = progress.ended + len(progress.open) - sum(is_step for is_step, _ in chosen)
            return [Text(f"  … {counted(left, 'earlier step run')}", "dim"), *(line for _, line in chosen)]
        return [line for _, line in chosen]

    def _chosen(self, progress: Progress, height: int) -> list[tuple[bool, Text]]:
        """What is running always, then what ended last, in the order of the run. Each line, and whether a step begins there."""
        now = time.time()
        running = {run.id: self._step(run, now) for run in list(progress.open.values())[-height:]}
        room = height - sum(map(len, running.values()))
        ended = [run for run in progress.runs.values() if run.ended_at is not None]
        kept = {run.id for run in ended[-room:]} if room > 0 else set()
        lines: list[tuple[bool, Text]] = []
        for run in progress.runs.values():
            drawn = running.get(run.id) or ([self._ended(run)] if run.id in kept else [])
            lines += [(number == 0, line) for number, line in enumerate(drawn)]
        return lines[-height:]

    def _ended(self, run: Shown) -> Text:
        from rich.text import Text

        sign, paint = self.mark(_MARKS.get(run.status))
        text = Text(f"  {'    ' * run.depth}")
        text.append(f"{sign} ", paint)
        text.append(self._label(run))
        text.append(f"  {took(run)}", "dim")
        if run.is_loop:
            text.append(f"  {counts(run)}", "dim")
        if run.status == "failed":
            text.append(f"  {one_line(error_line(run.error), 160)}", "red")
        return text

    def _step(self, run: Shown, now: float) -> list[Text]:
        from rich.text import Text

        indent = "    " * run.depth
        sign, paint = self.spin()
        head = Text(f"  {indent}")
        head.append(f"{sign} ", paint)
        head.append(self._label(run), "bold")
        if run.is_loop:
            head.append_text(self.bar(run.done + run.failed, run.total, run.failed))
        if run.out:
            head.append(f"  {counted(run.out, 'range')} out", "dim")
        head.append(f"  {seconds(max(0.0, now - run.started_at))}", "dim")
        lines = [head]
        if not run.is_loop and run.task:
            lines.append(self._task(run, now, indent))
        if run.line:
            lines.append(Text(f"      {indent}{self.sign('│', '|')} {one_line(run.line)}", "dim"))
        return lines

    def _task(self, run: Shown, now: float, indent: str) -> Text:
        from rich.text import Text

        text = Text(f"      {indent}{run.task}")
        if run.retry_at is not None and run.retry_at > now:
            text.append(f"  attempt {run.attempt} failed, next try in {max(0.0, run.retry_at - now):.0f} s", "yellow")
        elif run.attempt > 1:
            text.append(f"  attempt {run.attempt}", "yellow")
        return text

    def _label(self, run: Shown) -> str:
        return f"{run.step} (visit {run.visit})" if run.visit > 1 else run.step
