"""A job on a terminal: components by sub-job with their states, rows and rows a second on each link, iterations with bars.

What components say scrolls by above the tree and stays; the tree itself goes away when the job is over, and the table of the
summary takes its place.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.cli.job_progress import JobProgress, Part
from penstock.cli.job_watching import pace
from penstock.cli.output import one_line, safe
from penstock.kernel.net import Container, Net, Opening, Region
from penstock.projections.wording import counted, error_line, seconds

if TYPE_CHECKING:
    from rich.text import Text

BAR = 24
CROWD = 3
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MARKS = {"OK": ("✓", "green"), "ERROR": ("✗", "red"), "SKIPPED": ("⊘", "yellow"), "WAIT": ("·", "dim")}
_PLAIN_MARKS = {"OK": ("+", "green"), "ERROR": ("x", "red"), "SKIPPED": ("-", "yellow"), "WAIT": (".", "dim")}
_RANKS = {"RUNNING": 0, "ERROR": 1, "OK": 2, "SKIPPED": 3, "WAIT": 4}


class JobTree:
    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self._title = title
        self._started = time.monotonic()
        self._frames = 0
        self._console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
        self._is_fancy = (self._console.encoding or "").lower().startswith("utf")
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
            transient=True,
        )
        self._live.start()

    def show(self, progress: JobProgress) -> None:
        progress.news.clear()
        self._frames += 1
        height = max(5, self._console.size.height - 2)
        with suppress(OSError):  # A terminal that was closed.
            if progress.heard:
                lines = [f"{news.name} | {safe(news.text)}" for news in progress.heard]
                progress.heard.clear()
                self._console.print("\n".join(lines), soft_wrap=True)
            self._live.update(self._drawn(progress, height), refresh=True)

    def note(self, text: str) -> None:
        with suppress(OSError):
            self._console.print(text)

    def close(self, progress: JobProgress) -> None:
        self.show(progress)
        with suppress(OSError):
            self._live.stop()

    # ---- drawing

    def _drawn(self, progress: JobProgress, height: int) -> Text:
        from rich.text import Text

        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(self._title, "bold")
        text.append(f"  {seconds(time.monotonic() - self._started)}", "dim")
        for line in self._fitting(progress, height - 1):
            text.append("\n")
            text.append_text(line)
        return text

    def _fitting(self, progress: JobProgress, height: int) -> list[Text]:
        """As much as there is room for: first all, then without the links of what is over, then only what goes on."""
        if progress.net is None or len(progress.parts) > CROWD * height:  # Drawing them all would slow the run down.
            return self._closest(progress, list(progress.parts.values()), height)
        for detail in (2, 1):
            lines = self._container(progress, progress.net, progress.net.containers[""], 1, detail)
            if len(lines) <= height:
                return lines
        return self._closest(progress, list(progress.parts.values()), height)

    def _closest(self, progress: JobProgress, parts: list[Part], height: int) -> list[Text]:
        from rich.text import Text

        shown = sorted(parts, key=lambda part: (_RANKS.get(part.state, 5), -(part.ended_at or 0.0)))[: height - 1]
        names = {part.name for part in shown}
        lines = [line for part in parts if part.name in names for line in self._part(progress, part, 1, 0)]
        left = len(parts) - len(shown)
        return [*lines[: height - 1], Text(f"  … and {left:,} more components", "dim")]

    def _container(self, progress: JobProgress, net: Net, container: Container, depth: int, detail: int) -> list[Text]:
        lines: list[Text] = []
        for region in container.regions:
            inner = depth
            if len(container.regions) > 1:
                lines.append(self._subjob(progress, region, depth))
                inner += 1
            for name in region.members:
                lines += self._part(progress, progress.parts[name], inner, detail)
                node = net.nodes[name].part
                if node is not None and node.opens is not None:
                    opened = net.containers[node.opens]
                    if opened.opening is Opening.JOBLET or progress.parts[name].state == "RUNNING":
                        lines += self._container(progress, net, opened, inner + 1, detail)
        return lines

    def _subjob(self, progress: JobProgress, region: Region, depth: int) -> Text:
        from rich.text import Text

        state = progress.subjobs.get(region.name, "")
        text = Text(f"{'  ' * depth}sub-job {region.name}", "bold" if state == "RUNNING" else "dim")
        if state and state != "RUNNING":
            text.append(f"  {state}", {"OK": "green", "ERROR": "red"}.get(state, "yellow"))
        return text

    def _part(self, progress: JobProgress, part: Part, depth: int, detail: int) -> list[Text]:
        from rich.text import Text

        text = Text("  " * depth)
        text.append(*self._mark(part))
        text.append(f" {part.name}", "bold" if part.state == "RUNNING" else "dim" if part.state == "WAIT" else "")
        if part.type:
            text.append(f" {part.type}", "dim")
        if part.total is not None or part.done or part.failed:
            text.append_text(self._bar(part))
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
            return ("✓" if self._is_fancy else "+", "dim")
        if part.state == "RUNNING":
            spin = SPINNER[self._frames % len(SPINNER)] if self._is_fancy else "|/-\\"[self._frames % 4]
            return spin, "cyan"
        return (_MARKS if self._is_fancy else _PLAIN_MARKS).get(part.state, ("?", ""))

    def _time(self, part: Part) -> str:
        if part.kept:
            return "kept"
        if part.state == "RUNNING":
            return seconds(max(0.0, time.time() - part.started_at))
        return seconds(part.ms / 1000) if part.state in ("OK", "ERROR") else ""

    def _bar(self, part: Part) -> Text:
        from rich.text import Text

        settled, total = part.done + part.failed, part.total
        text = Text("  ")
        if total is not None:
            filled = BAR if not total else min(BAR, BAR * settled // total)
            full, empty = ("━", "─") if self._is_fancy else ("#", "-")
            text.append(full * filled, "cyan")
            text.append(empty * (BAR - filled), "dim")
            text.append(f"  {settled:,}/{total:,}")
        else:
            text.append(f"{settled:,} iterations")
        if part.failed:
            text.append(f"  {part.failed:,} failed", "red")
        return text

    def _links(self, progress: JobProgress, part: Part, depth: int) -> list[Text]:
        from rich.text import Text

        arrow = "→" if self._is_fancy else "->"
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
