"""Whoever watches a job: a file gets plain lines, a terminal the live tree of `job_live`. In words that both share."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.cli.job_progress import JobProgress, News, Part
from penstock.cli.output import one_line, safe
from penstock.cli.watching import Lines, clock
from penstock.projections.jobs_names import counted_ports
from penstock.projections.wording import error_line, seconds


class JobLines(Lines[JobProgress]):
    """One line per component start and end, sub-job end, failed iteration and log line; of iterations the count now and then."""

    def news(self, progress: JobProgress) -> list[str]:
        progress.heard.clear()
        return [_line(news) for news in progress.take_news()]

    def loops(self, progress: JobProgress) -> Iterator[tuple[str, int, str]]:
        for part in progress.parts.values():
            settled = part.done + part.failed
            if part.state == "RUNNING" and settled:
                yield part.name, settled, f"{part.name}: {iterations(part)}"


def _line(news: News) -> str:
    start = f"{clock(news.at)} {news.name}"
    part = news.part
    if news.what == "line":
        return f"{news.name} | {safe(news.text)}"
    if news.what == "subjob":
        return f"{clock(news.at)} sub-job {news.name}: {news.text}"
    if news.what == "iteration":
        return f"{start}: ERROR: {one_line(news.text)}"
    assert part is not None
    match news.what:
        case "started":
            return f"{start}: started ({part.type}){f', rows in {counted_ports(part.rows_in)}' if part.rows_in else ''}"
        case "SKIPPED":
            return f"{start}: SKIPPED: {one_line(part.reason)}"
        case "ERROR":
            return f"{start}: ERROR after {seconds(part.ms / 1000)}{_loop(part)}: {one_line(error_line(part.error))}"
        case _:
            return f"{start}: OK in {seconds(part.ms / 1000)}{_loop(part)}{_rows(part)}"


def _rows(part: Part) -> str:
    return f", rows out {counted_ports(part.rows_out)}" if part.rows_out else ""


def _loop(part: Part) -> str:
    return f", {iterations(part)}" if part.done or part.failed or part.total is not None else ""


def iterations(part: Part) -> str:
    failed = f", {part.failed:,} failed" if part.failed else ""
    total = f" of {part.total:,}" if part.total is not None else ""
    return f"{part.done + part.failed:,}{total} iterations{failed}"


def pace(rate: float) -> str:
    """Rows a second in three figures."""
    for size, word in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{word} rows/s"
    return f"{rate:.3g} rows/s"
