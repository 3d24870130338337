"""How a run is shown while it goes: not at all, as plain lines for a file or a pipe, or as a tree on a terminal.

The tree of a playbook has its step runs, with bars, retries and the last line each printed. That of a job has its components with
states, rows and rates; what components print scrolls by above it, and the tree goes away when the job is over, because the table
of the summary takes its place.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from penstock.cli.output import is_terminal, one_line, safe, say
from penstock.cli.show.progress import News, Part, Progress
from penstock.views.names import counted_ports
from penstock.views.wording import counted, error_line, seconds

if TYPE_CHECKING:
    from rich.text import Text

    from penstock.kernel.net import Container, Net, Region
    from penstock.views.model import Fan, Run

TICK_S = 0.1
LOOPS_EVERY_S = 3.0


class Watcher(Protocol):
    """`show` is called about ten times a second, `note` with a message of the engine, `close` once at the end."""

    def show(self, progress: Progress) -> None: ...

    def note(self, text: str) -> None: ...

    def close(self, progress: Progress) -> None: ...


class Nobody:
    def show(self, progress: Progress) -> None:
        return None

    def note(self, text: str) -> None:
        say(text)

    def close(self, progress: Progress) -> None:
        return None


def watcher_for(title: str, *, is_job: bool, is_silent: bool) -> Watcher:
    if is_silent:
        return Nobody()
    if not is_terminal(sys.stderr):
        return Lines(title)
    return ComponentTree(title) if is_job else StepTree(title)


# ---- plain lines


class Lines:
    """A line for each thing that happens, and how far loops are now and then."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._counted_at = time.monotonic()
        self._counted: dict[str, int] = {}

    def show(self, progress: Progress) -> None:
        if not progress.has_begun():  # Of a run that cannot begin only the error is shown.
            return
        lines = [self._title] if self._title else []
        self._title = ""
        lines += self.news(progress)
        if time.monotonic() - self._counted_at >= LOOPS_EVERY_S:
            self._counted_at = time.monotonic()
            for name, settled, words in loops(progress):
                if self._counted.get(name) != settled:
                    self._counted[name] = settled
                    lines.append(f"{clock(time.time())} {words}")
        if lines:
            say("\n".join(lines))

    def news(self, progress: Progress) -> list[str]:
        """A line for each thing that has happened since the last time."""
        progress.printed.clear()
        line = _component_line if progress.is_job else _step_line
        return [line(news) for news in progress.take_news()]

    def note(self, text: str) -> None:
        say(text)

    def close(self, progress: Progress) -> None:
        self.show(progress)


def loops(progress: Progress) -> Iterator[tuple[str, int, str]]:
    """For each running loop: its name, how many of its iterations have ended, and that as text."""
    runs = progress.root.runs.values() if progress.is_job and progress.root is not None else progress.runs.values()
    for run in runs:
        if run.fan is None or run.ended_at is not None:
            continue
        if progress.is_job and ("[#" in run.id or not run.fan.settled):
            continue
        name = run.name if progress.is_job else _step_name(run)
        yield run.id, run.fan.settled, f"{name}: {turns(run.fan)}"


def turns(fan: Fan) -> str:
    failed = f", {fan.failed:,} failed" if fan.failed else ""
    of = "" if fan.total is None else f" of {fan.total:,}"
    out = f", {counted(len(fan.ranges.out), 'range')} out" if fan.ranges is not None and fan.ranges.out else ""
    return f"{fan.settled:,}{of} iterations{failed}{out}"


def _loop(run: Run) -> str:
    return f", {turns(run.fan)}" if run.fan is not None else ""


def _step_line(news: News) -> str:
    run = news.run
    assert run is not None
    start = f"{clock(news.at)} {_step_name(run)}"
    match news.what:
        case "started":
            return f"{start}: started" + (f" (visit {run.visit})" if (run.visit or 1) > 1 else "")
        case "ended" if run.status == "ok":
            return f"{start}: done in {seconds(run.took)}{_loop(run)}"
        case "ended":
            return f"{start}: failed after {seconds(run.took)}{_loop(run)}: {one_line(error_line(run.error))}"
        case "refused":
            return f"{start}: refused"
        case "retry":
            return f"{start}: {one_line(news.text)}"
    return f"{run.node} | {safe(news.text)}"


def _step_name(run: Run) -> str:
    return run.id if _depth(run) else run.node


def _depth(run: Run) -> int:
    return run.id.count("/") // 2


def _component_line(news: News) -> str:
    start = f"{clock(news.at)} {news.name}"
    match news.what:
        case "line":
            return f"{news.name} | {safe(news.text)}"
        case "subjob":
            return f"{clock(news.at)} sub-job {news.name}: {news.text}"
        case "iteration":
            return f"{start}: ERROR: {one_line(news.text)}"
    run = news.run
    assert run is not None
    took = seconds(run.ms / 1000)
    match news.what:
        case "started":
            return f"{start}: started ({run.type}){f', rows in {counted_ports(run.rows_in)}' if run.rows_in else ''}"
        case "skipped":
            return f"{start}: SKIPPED: {one_line(run.reason)}"
    if run.status == "failed":
        return f"{start}: ERROR after {took}{_loop(run)}: {one_line(error_line(run.error))}"
    return f"{start}: OK in {took}{_loop(run)}{f', rows out {counted_ports(run.rows_out)}' if run.rows_out else ''}"


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


# ---- a terminal

LONGEST_BAR, SHORTEST_BAR = 24, 8
SPINNER, PLAIN_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
Mark = tuple[str, str, str]
"""The sign, what stands for it where there is only ASCII, and its paint."""
_GOOD: Mark = ("✓", "+", "green")
_MARKS: dict[str, Mark] = {
    "ok": _GOOD,
    "failed": ("✗", "x", "red"),
    "refused": ("⊘", "-", "yellow"),
    "skipped": ("⊘", "-", "yellow"),
    "waiting": ("·", ".", "dim"),
}


class Screen(ABC):
    def __init__(self, title: str, *, goes_away: bool) -> None:
        """`goes_away`: the tree is erased when the run is over, because a summary replaces it."""
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
    def prepare(self, progress: Progress) -> None:
        """Before a frame: prints what scrolls by above it, and drops what will not be shown."""

    @abstractmethod
    def lines(self, progress: Progress, height: int) -> list[Text]:
        """At most `height` of them."""

    def show(self, progress: Progress) -> None:
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

    def close(self, progress: Progress) -> None:
        self.show(progress)
        with suppress(OSError):
            self._live.stop()

    def _drawn(self, lines: list[Text]) -> Text:
        text = self.text("")
        text.no_wrap, text.overflow = True, "ellipsis"
        text.append(self._title, "bold")
        text.append(f"  {seconds(time.monotonic() - self._started)}", "dim")
        for line in lines:
            text.append("\n")
            text.append_text(line)
        return text

    # ---- signs

    def text(self, words: str, paint: str = "") -> Text:
        from rich.text import Text  # Only a terminal needs rich.

        return Text(words, paint)

    def sign(self, fancy: str, plain: str) -> str:
        return fancy if self._is_fancy else plain

    def mark(self, status: str) -> tuple[str, str]:
        """A sign and its paint."""
        if status == "running":
            signs = self.sign(SPINNER, PLAIN_SPINNER)
            return signs[self._frames % len(signs)], "cyan"
        fancy, plain, paint = _MARKS.get(status) or ("?", "?", "")
        return self.sign(fancy, plain), paint

    def bar(self, fan: Fan) -> Text:
        """A progress bar."""
        text = self.text("  ")
        if fan.total is None:
            text.append(f"{fan.settled:,} iterations")
        else:
            length = min(LONGEST_BAR, max(SHORTEST_BAR, self.console.size.width * 3 // 10))
            filled = length if not fan.total else min(length, length * fan.settled // fan.total)
            text.append(self.sign("━", "#") * filled, "cyan")
            text.append(self.sign("─", "-") * (length - filled), "dim")
            text.append(f"  {fan.settled:,}/{fan.total:,}")
        if fan.failed:
            text.append(f"  {fan.failed:,} failed", "red")
        return text


class StepTree(Screen):
    def __init__(self, title: str) -> None:
        super().__init__(title, goes_away=False)

    def prepare(self, progress: Progress) -> None:
        progress.news.clear()

    def lines(self, progress: Progress, height: int) -> list[Text]:
        runs = list(progress.runs.values())
        going_on = [run for run in runs if run.ended_at is None]
        every = progress.ended + len(going_on)
        chosen = self._chosen(progress, runs, going_on, height)
        if every <= sum(is_step for is_step, _ in chosen):
            return [line for _, line in chosen]
        chosen = self._chosen(progress, runs, going_on, height - 1)
        left = every - sum(is_step for is_step, _ in chosen)
        return [self.text(f"  … {counted(left, 'earlier step run')}", "dim"), *(line for _, line in chosen)]

    def _chosen(self, progress: Progress, runs: list[Run], going_on: list[Run], height: int) -> list[tuple[bool, Text]]:
        """Everything that is running, then what ended last, in the order of the run. Each line, and whether a step begins
        there."""
        now = time.time()
        running = {run.id: self._going_on(run, progress.lines.get(run.id), now) for run in going_on[-height:]}
        room = height - sum(map(len, running.values()))
        kept = {run.id for run in [run for run in runs if run.ended_at is not None][-room:]} if room > 0 else set()
        lines: list[tuple[bool, Text]] = []
        for run in runs:
            drawn = running.get(run.id) or ([self._over(run)] if run.id in kept else [])
            lines += [(number == 0, line) for number, line in enumerate(drawn)]
        return lines[-height:]

    def _head(self, run: Run, paint: str = "") -> Text:
        text = self.text(f"  {'    ' * _depth(run)}")
        sign, colour = self.mark(run.status)
        text.append(f"{sign} ", colour)
        text.append(f"{run.node} (visit {run.visit})" if (run.visit or 1) > 1 else run.node, paint)
        return text

    def _over(self, run: Run) -> Text:
        text = self._head(run)
        text.append(f"  {seconds(run.took)}", "dim")
        if run.fan is not None:
            text.append(f"  {turns(run.fan)}", "dim")
        if run.status == "failed":
            text.append(f"  {one_line(error_line(run.error), 160)}", "red")
        return text

    def _going_on(self, run: Run, line: str | None, now: float) -> list[Text]:
        indent = "    " * _depth(run)
        head = self._head(run, "bold")
        if run.fan is not None:
            head.append_text(self.bar(run.fan))
            if run.fan.ranges is not None and run.fan.ranges.out:
                head.append(f"  {counted(len(run.fan.ranges.out), 'range')} out", "dim")
        head.append(f"  {seconds(max(0.0, now - (run.started_at or now)))}", "dim")
        lines = [head]
        if run.fan is None and run.tasks:
            lines.append(self._task(run, now, indent))
        if line:
            lines.append(self.text(f"      {indent}{self.sign('│', '|')} {one_line(line)}", "dim"))
        return lines

    def _task(self, run: Run, now: float, indent: str) -> Text:
        under_way = next(reversed(run.under_way.values()), None) if run.under_way else None
        last = under_way or (run.attempts[-1] if run.attempts else None)
        if last is None:
            return self.text(f"      {indent}")
        text = self.text(f"      {indent}{last.task}")
        retry_at = (last.ended_at or 0.0) + last.delay if last.do == "retry" else 0.0
        if retry_at > now:
            text.append(f"  attempt {last.number} failed, next try in {retry_at - now:.0f} s", "yellow")
        elif last.number > 1:
            text.append(f"  attempt {last.number}", "yellow")
        return text


CROWD = 3
_RANKS = {"running": 0, "failed": 1, "ok": 2, "skipped": 3, "waiting": 4}


class ComponentTree(Screen):
    def __init__(self, title: str) -> None:
        super().__init__(title, goes_away=True)

    def prepare(self, progress: Progress) -> None:
        progress.news.clear()
        if progress.printed:
            printed = [f"{news.name} | {safe(news.text)}" for news in progress.printed]
            progress.printed.clear()
            self.console.print("\n".join(printed), soft_wrap=True)

    def lines(self, progress: Progress, height: int) -> list[Text]:
        """As much as fits: everything, else without the links of what has ended, else only what is running."""
        frame = _Frame(self, progress)
        if progress.net is None or len(frame.parts) > CROWD * height:  # Drawing them all would slow the run down.
            return frame.closest(height)
        for detail in (2, 1):
            lines = frame.container(progress.net, progress.net.containers[""], 1, detail)
            if len(lines) <= height:
                return lines
        return frame.closest(height)


class _Frame:
    """One drawing of a job's components."""

    def __init__(self, screen: ComponentTree, progress: Progress) -> None:
        self._screen = screen
        self._progress = progress
        self.parts = progress.parts()

    def closest(self, height: int) -> list[Text]:
        ranked = sorted(self.parts.values(), key=lambda part: (_RANKS.get(part.status, 5), -(part.ended_at or 0.0)))
        names = {part.name for part in ranked[: height - 1]}
        lines = [
            line for part in self.parts.values() if part.name in names for line in self._part(part, part.name, 1, 0)
        ]
        left = len(self.parts) - len(names)
        more = [self._screen.text(f"  … and {counted(left, 'more component')}", "dim")] if left else []
        return [*lines[: height - 1], *more]

    def container(self, net: Net, container: Container, depth: int, detail: int) -> list[Text]:
        lines: list[Text] = []
        for region in container.regions:
            inner = depth
            if len(container.regions) > 1:
                lines.append(self._subjob(region, depth))
                inner += 1
            for name in region.members:
                node, part = net.nodes[name].part, self.parts[name]
                assert node is not None
                lines += self._part(part, node.local, inner, detail)
                if node.opens is not None:
                    opened = net.containers[node.opens]
                    if opened.opening.value == "joblet" or part.status == "running":
                        lines += self.container(net, opened, inner + 1, detail)
        return lines

    def _subjob(self, region: Region, depth: int) -> Text:
        root = self._progress.root
        group = (
            next((one for one in root.groups.values() if one.name == region.name), None) if root is not None else None
        )
        is_running = group is not None and group.status == "running"
        text = self._screen.text(f"{'  ' * depth}sub-job {region.name}", "bold" if is_running else "dim")
        if group is not None and group.kept:
            text.append("  kept", "yellow")
        elif group is not None and group.status in _SUBJOBS:
            text.append(*_SUBJOBS[group.status])
        return text

    def _part(self, part: Part, label: str, depth: int, detail: int) -> list[Text]:
        screen = self._screen
        text = screen.text("  " * depth)
        text.append(*((screen.mark("ok")[0], "dim") if part.kept else screen.mark(part.status)))
        text.append(f" {label}", {"running": "bold", "waiting": "dim"}.get(part.status, ""))
        if part.type:
            text.append(f" {part.type}", "dim")
        if part.fan is not None:
            text.append_text(screen.bar(part.fan))
        text.append(f"  {self._time(part)}", "dim")
        if part.status == "failed" and part.error is not None:
            text.append(f"  {one_line(error_line(part.error), 160)}", "red")
        elif part.status == "skipped":
            text.append(f"  {one_line(part.reason, 120)}", "yellow")
        elif part.status == "running" and part.name in self._progress.inside:
            text.append(f"  {self._progress.inside[part.name]}", "dim")
        is_worth_links = detail == 2 or (detail == 1 and part.status == "running")
        return [text, *(self._links(part, depth + 2) if is_worth_links else [])]

    def _time(self, part: Part) -> str:
        if part.kept:
            return "kept"
        if part.status == "running" and part.started_at is not None:
            return seconds(max(0.0, time.time() - part.started_at))
        return seconds(part.ms / 1000) if part.status in ("ok", "failed") else ""

    def _links(self, part: Part, depth: int) -> list[Text]:
        arrow = self._screen.sign("→", "->")
        lines: list[Text] = []
        for link in self._progress.data_links(part.name):
            rows = part.rows_out.get(link.port)
            if rows is None:
                continue
            rate = self._progress.rate(part, link.port, self.parts)
            speed = f"  {pace(rate)}" if rate is not None else ""
            to = f"{link.port} {arrow} {link.target}.{link.to_port}"
            lines.append(self._screen.text(f"{'  ' * depth}{to}  {counted(rows, 'row')}{speed}", "dim"))
        return lines


_SUBJOBS = {"ok": ("  OK", "green"), "failed": ("  ERROR", "red"), "skipped": ("  SKIPPED", "yellow")}


def pace(rate: float) -> str:
    """Rows a second in three figures."""
    for size, word in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{word} rows/s"
    return f"{rate:.3g} rows/s"
