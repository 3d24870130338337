"""A playbook as plain lines: one per step start and end, retry and log line; of loops the count every few seconds."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.cli.output import one_line, safe
from penstock.cli.progress import News, Progress, Shown
from penstock.cli.watching import Lines, clock
from penstock.projections.wording import counted, error_line, seconds


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
