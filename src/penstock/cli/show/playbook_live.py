"""A playbook while it runs: on a terminal a tree of steps with bars, retries and last log lines, else plain lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.cli.output import one_line, safe
from penstock.cli.show.playbook_progress import News, Progress, Shown
from penstock.cli.show.watcher import BAD, GOOD, PASSED_BY, Lines, Screen, clock
from penstock.views.wording import counted, error_line, seconds

if TYPE_CHECKING:
    from rich.text import Text


_MARKS = {"done": GOOD, "failed": BAD, "refused": PASSED_BY}


class LiveTree(Screen[Progress]):
    def __init__(self, title: str) -> None:
        super().__init__(title, goes_away=False)

    def prepare(self, progress: Progress) -> None:
        progress.news.clear()

    def lines(self, progress: Progress, height: int) -> list[Text]:
        from rich.text import Text  # Only a terminal needs rich.

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
        from rich.text import Text  # Only a terminal needs rich.

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
        from rich.text import Text  # Only a terminal needs rich.

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
        from rich.text import Text  # Only a terminal needs rich.

        text = Text(f"      {indent}{run.task}")
        if run.retry_at is not None and run.retry_at > now:
            text.append(f"  attempt {run.attempt} failed, next try in {max(0.0, run.retry_at - now):.0f} s", "yellow")
        elif run.attempt > 1:
            text.append(f"  attempt {run.attempt}", "yellow")
        return text

    def _label(self, run: Shown) -> str:
        return f"{run.step} (visit {run.visit})" if run.visit > 1 else run.step


class StepLines(Lines[Progress]):
    def news(self, progress: Progress) -> list[str]:
        return [_line(news) for news in progress.take_news()]

    def loops(self, progress: Progress) -> Iterator[tuple[str, int, str]]:
        for run in progress.open.values():
            if run.is_loop:
                yield run.id, run.done + run.failed, f"{_name(run)}: {counts(run)}"


def _line(news: News) -> str:
    run = news.run
    start = f"{clock(news.at)} {_name(run)}"
    match news.what:
        case "started":
            return f"{start}: started" + (f" (visit {run.visit})" if run.visit > 1 else "")
        case "done":
            loop = f", {counts(run)}" if run.is_loop else ""
            return f"{start}: done in {took(run)}{loop}"
        case "failed":
            loop = f", {counts(run)}" if run.is_loop else ""
            return f"{start}: failed after {took(run)}{loop}: {one_line(error_line(run.error))}"
        case "refused":
            return f"{start}: refused"
        case "retry":
            return f"{start}: {one_line(news.text)}"
        case _:
            return f"{run.step} | {safe(news.text)}"


def _name(run: Shown) -> str:
    return run.id if run.depth else run.step


def took(run: Shown) -> str:
    return seconds(max(0.0, (run.ended_at or run.started_at) - run.started_at))


def counts(run: Shown) -> str:
    failed = f", {run.failed:,} failed" if run.failed else ""
    out = f", {counted(run.out, 'range')} out" if run.out else ""
    of = "" if run.total is None else f" of {run.total:,}"
    return f"{run.done + run.failed:,}{of} iterations{failed}{out}"
