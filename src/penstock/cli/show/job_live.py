"""A job while it runs: on a terminal a tree of components with states, rows, rates and bars, else plain lines.

What components print scrolls by above the tree and stays; the tree itself goes away when the job is over, and the table of the
summary takes its place.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.cli.output import one_line, safe
from penstock.cli.show.job_progress import JobProgress, News, Part
from penstock.cli.show.watcher import BAD, GOOD, PASSED_BY, WAITING, Lines, Screen, clock
from penstock.kernel.net import Container, Net, Opening, Region
from penstock.views.names import counted_ports
from penstock.views.wording import counted, error_line, seconds

if TYPE_CHECKING:
    from rich.text import Text


CROWD = 3
_MARKS = {"OK": GOOD, "ERROR": BAD, "SKIPPED": PASSED_BY, "WAIT": WAITING}
_RANKS = {"RUNNING": 0, "ERROR": 1, "OK": 2, "SKIPPED": 3, "WAIT": 4}


class JobTree(Screen[JobProgress]):
    def __init__(self, title: str) -> None:
        super().__init__(title, goes_away=True)

    def prepare(self, progress: JobProgress) -> None:
        progress.news.clear()
        if progress.heard:
            said = [f"{news.name} | {safe(news.text)}" for news in progress.heard]
            progress.heard.clear()
            self.console.print("\n".join(said), soft_wrap=True)

    def lines(self, progress: JobProgress, height: int) -> list[Text]:
        """As much as there is room for: first all, then without the links of what is over, then only what goes on."""
        if progress.net is None or len(progress.parts) > CROWD * height:  # Drawing them all would slow the run down.
            return self._closest(progress, list(progress.parts.values()), height)
        for detail in (2, 1):
            lines = self._container(progress, progress.net, progress.net.containers[""], 1, detail)
            if len(lines) <= height:
                return lines
        return self._closest(progress, list(progress.parts.values()), height)

    def _closest(self, progress: JobProgress, parts: list[Part], height: int) -> list[Text]:
        from rich.text import Text  # Only a terminal needs rich.

        shown = sorted(parts, key=lambda part: (_RANKS.get(part.state, 5), -(part.ended_at or 0.0)))[: height - 1]
        names = {part.name for part in shown}
        lines = [line for part in parts if part.name in names for line in self._part(progress, part, part.name, 1, 0)]
        left = len(parts) - len(shown)
        more = [Text(f"  … and {counted(left, 'more component')}", "dim")] if left else []
        return [*lines[: height - 1], *more]

    def _container(self, progress: JobProgress, net: Net, container: Container, depth: int, detail: int) -> list[Text]:
        lines: list[Text] = []
        for region in container.regions:
            inner = depth
            if len(container.regions) > 1:
                lines.append(self._subjob(progress, region, depth))
                inner += 1
            for name in region.members:
                node = net.nodes[name].part
                assert node is not None
                lines += self._part(progress, progress.parts[name], node.local, inner, detail)
                if node.opens is not None:
                    opened = net.containers[node.opens]
                    if opened.opening is Opening.JOBLET or progress.parts[name].state == "RUNNING":
                        lines += self._container(progress, net, opened, inner + 1, detail)
        return lines

    def _subjob(self, progress: JobProgress, region: Region, depth: int) -> Text:
        from rich.text import Text  # Only a terminal needs rich.

        state = progress.subjobs.get(region.name, "")
        text = Text(f"{'  ' * depth}sub-job {region.name}", "bold" if state == "RUNNING" else "dim")
        if state and state != "RUNNING":
            text.append(f"  {state}", {"OK": "green", "ERROR": "red"}.get(state, "yellow"))
        return text

    def _part(self, progress: JobProgress, part: Part, label: str, depth: int, detail: int) -> list[Text]:
        from rich.text import Text  # Only a terminal needs rich.

        text = Text("  " * depth)
        text.append(*self._mark(part))
        text.append(f" {label}", "bold" if part.state == "RUNNING" else "dim" if part.state == "WAIT" else "")
        if part.type:
            text.append(f" {part.type}", "dim")
        if part.total is not None or part.done or part.failed:
            text.append_text(self.bar(part.done + part.failed, part.total, part.failed))
        text.append(f"  {self._time(part)}", "dim")
        if part.state == "ERROR":
            text.append(f"  {one_line(error_line(part.error), 160)}" if part.error is not None else "", "red")
        elif part.state == "SKIPPED":
            text.append(f"  {one_line(part.reason, 120)}", "yellow")
        elif part.state == "RUNNING" and part.inside:
            text.append(f"  {part.inside}", "dim")
        is_worth_links = detail == 2 or (detail == 1 and part.state == "RUNNING")
        return [text, *(self._links(progress, part, depth + 2) if is_worth_links else [])]

    def _mark(self, part: Part) -> tuple[str, str]:
        if part.kept:
            return self.mark(GOOD)[0], "dim"
        return self.spin() if part.state == "RUNNING" else self.mark(_MARKS.get(part.state))

    def _time(self, part: Part) -> str:
        if part.kept:
            return "kept"
        if part.state == "RUNNING":
            return seconds(max(0.0, time.time() - part.started_at))
        return seconds(part.ms / 1000) if part.state in ("OK", "ERROR") else ""

    def _links(self, progress: JobProgress, part: Part, depth: int) -> list[Text]:
        from rich.text import Text  # Only a terminal needs rich.

        arrow = self.sign("→", "->")
        lines: list[Text] = []
        for link in progress.data_links(part.name):
            rows = part.rows_out.get(link.port)
            if rows is None:
                continue
            rate = progress.rate(part.name, link.port)
            speed = f"  {pace(rate)}" if rate is not None else ""
            lines.append(
                Text(
                    f"{'  ' * depth}{link.port} {arrow} {link.target}.{link.to_port}  {counted(rows, 'row')}{speed}",
                    "dim",
                )
            )
        return lines


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
