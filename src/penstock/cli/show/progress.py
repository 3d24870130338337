"""A run while it goes: entries and printed lines are buffered as they arrive, and folded into a view before each frame.

Law: showing a run must not slow it down. So the run only appends to a buffer, and everything else is done in batches. What
is worth a line of its own is kept as news until it has been printed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.kernel.values import frozen, mutable
from penstock.ports.log import Entry
from penstock.ports.wire import step_run_of
from penstock.views.model import Totals
from penstock.views.names import node_of, subjob_name
from penstock.views.wording import elements

if TYPE_CHECKING:
    from penstock.kernel.net import Link, Net
    from penstock.views.model import Execution, Fan, Run
    from penstock.views.run_view import RunView

KEPT_NEWS = 10_000
KEPT_RUNS = 200
MOST_TOLD = 20
"""The most handled failures of one step run that are news."""

_RETRY = b'"do":"retry"'
_UNMATCHED = b'"rule":null'
_ERROR = b'"status":"error"'
_TASKS = frozenset({"task.started", "task.done"})
_FAIL = b'"do":"fail"'


@frozen
class News:
    """Something worth a line of its own. `what`: started, ended, refused, skipped, retry, subjob, iteration, line."""

    what: str
    name: str
    at: float
    run: Run | None = None
    text: str = ""


@frozen
class PrintedLine:
    """A line that a tool or a component printed."""

    scope: str
    line: str


@frozen
class Rows:
    """The rows so far on a port of a running component."""

    component: str
    port: str
    rows: int


@mutable
class Flowing:
    """A rate, from the last two readings of a count."""

    rows: int
    at: float
    rate: float = 0.0

    def seen(self, rows: int, now: float) -> None:
        if now > self.at:
            latest = max(0, rows - self.rows) / (now - self.at)
            self.rate = latest if not self.rate else 0.5 * self.rate + 0.5 * latest
            self.rows, self.at = rows, now


@mutable
class Part:
    """One component on the screen; of one in a body, all of its runs together."""

    name: str
    type: str = ""
    status: str = "waiting"
    started_at: float | None = None
    ended_at: float | None = None
    ms: float = 0.0
    rows_out: dict[str, int] = field(default_factory=dict)
    error: Any = None
    reason: str = ""
    kept: bool = False
    fan: Fan | None = None


class Progress:
    def __init__(self, net: Net | None = None) -> None:
        """`net`: of a job, so that components that have not begun can be shown."""
        self.net = net
        self.is_job = net is not None and net.kind == "job"
        self.news: deque[News] = deque(maxlen=KEPT_NEWS)
        """When they are not taken, the oldest are dropped."""
        self.printed: deque[News] = deque(maxlen=KEPT_NEWS)
        """Lines that components printed."""
        self.runs: dict[str, Run] = {}
        """Step runs on the screen, in the order in which they were scheduled."""
        self.ended = 0
        self.lines: dict[str, str] = {}
        """Step run -> what it printed last."""
        self.inside: dict[str, str] = {}
        """Iterator -> what goes on in the latest of its iterations."""
        self._told: dict[str, int] = {}
        self._counted: dict[tuple[str, str], int] = {}
        """Component and port -> rows so far, while it works."""
        self._flowing: dict[tuple[str, str], Flowing] = {}
        self._waiting: deque[Entry | PrintedLine | Rows] = deque()
        self._has_begun = False

    @cached_property
    def view(self) -> RunView:
        # Loaded when a run is first looked at: one that nobody watches starts without.
        from penstock.views.run_view import RunView

        return RunView()

    @property
    def root(self) -> Execution | None:
        return self.view.root

    # ---- what comes

    def observer(self) -> Callable[[Entry], None]:
        return self._waiting.append

    def line_observer(self) -> Callable[[str, str | None, str], None]:
        waiting = self._waiting

        def observe(scope: str, task_run_id: str | None, line: str) -> None:
            waiting.append(PrintedLine(scope, line))

        return observe

    def rows_observer(self) -> Callable[[str, str, int], None]:
        """May be called from any thread."""
        waiting = self._waiting

        def counted(component: str, port: str, rows: int) -> None:
            waiting.append(Rows(component, port, rows))

        return counted

    def has_begun(self) -> bool:
        """Whether anything was recorded since watching began."""
        return self._has_begun or bool(self._waiting)

    def catch_up(self, entries: Iterable[Entry]) -> None:
        self.start_from(self.view.apply_all(entries))

    def start_from(self, view: RunView) -> None:
        """Begins with a view of what happened before: that is no news."""
        self.view = view
        for execution in view.executions.values():
            if execution.kind == "playbook":
                self.runs.update({run.id: run for run in execution.runs.values() if run.status == "running"})

    def fold(self, now: float) -> None:
        """Folds everything that has arrived since the last call."""
        waiting = self._waiting
        while waiting:
            item = waiting.popleft()
            if isinstance(item, Entry):
                self._take(item)
            elif isinstance(item, PrintedLine):
                (self._component_printed if self.is_job else self._step_printed)(item, now)
            else:
                self._count(item, now)

    def take_news(self) -> list[News]:
        news = list(self.news)
        self.news.clear()
        return news

    def _take(self, entry: Entry) -> None:
        self._has_begun = True
        if entry.type in _TASKS and entry.scope[-1] == "]" and not _is_telling(entry):
            return
        self.view.apply(entry)
        if not self.is_job:
            handler = _STEP_NEWS.get(entry.type)
            run = self.view.run(step_run_of(entry.scope)) if handler is not None else None
            if handler is not None and run is not None:
                handler(self, run, entry)
        elif "/" not in entry.scope:  # Else it lies in an execution that one of the components runs.
            news_of = _JOB_NEWS.get(entry.type)
            if news_of is not None:
                news_of(self, entry)

    # ---- steps

    def failures(self) -> list[Run]:
        """The step runs of the playbook itself that failed."""
        runs = self.root.runs.values() if self.root is not None else ()
        failed = [run for run in runs if run.status == "failed" and run.end_seq is not None]
        return sorted(failed, key=lambda run: run.end_seq or 0)

    def done(self) -> list[Run]:
        """Those that were done, in the order in which they ended."""
        runs = self.root.runs.values() if self.root is not None else ()
        return sorted((run for run in runs if run.status == "ok"), key=lambda run: run.end_seq or 0)

    def _step_printed(self, printed: PrintedLine, now: float) -> None:
        run, line = self.view.run(step_run_of(printed.scope)), printed.line
        around, _, component = printed.scope.rpartition("/")  # Else it is a component of a job that a task runs.
        while (run is None or run.visit is None) and around:
            run, line = self.view.run(step_run_of(around)), f"{component} | {printed.line}"
            around = around.rpartition("/")[0]
        if run is not None and run.visit is not None:
            self.lines[run.id] = line
            self.news.append(News("line", run.node, now, run, line))

    def _scheduled(self, run: Run, entry: Entry) -> None:
        self.runs[run.id] = run
        self.news.append(News("started", run.id, entry.ts, run))
        if len(self.runs) > KEPT_RUNS:
            for run_id, one in list(self.runs.items())[: len(self.runs) - KEPT_RUNS]:
                if one.ended_at is not None:
                    for known in (self.runs, self.lines, self._told):
                        known.pop(run_id, None)

    def _step_ended(self, run: Run, entry: Entry) -> None:
        self.runs.setdefault(run.id, run)
        self.ended += 1
        self.news.append(News("ended", run.id, entry.ts, run))

    def _refused(self, run: Run, entry: Entry) -> None:
        self.runs[run.id] = run
        self.news.append(News("refused", run.id, entry.ts, run))

    def _task_done(self, run: Run, entry: Entry) -> None:
        is_retry = _RETRY in entry.payload
        if run.ended_at is not None or not (is_retry or (_UNMATCHED in entry.payload and _ERROR in entry.payload)):
            return
        from penstock.views.payload import payload_of  # Only what goes wrong needs it.

        data = payload_of(entry)
        outcome = data.outcome
        if outcome is None:
            return
        error = outcome.error if isinstance(outcome.error, dict) else {}
        start = f"task {data.task}{entry.scope[len(run.id) :]} attempt {data.attempt}:"
        if data.do == "retry":
            text = f"{start} {error.get('message', 'error')}; again in {data.delay:g} s"
            self.news.append(News("retry", run.id, entry.ts, run, text))
        elif data.rule is None and outcome.status == "error" and data.do != "fail":
            # An error that no rule matched ends nothing, and is probably not intended.
            message = error.get("message", "error")
            self._tell(run, entry.ts, f"{start} no rule of its policy matches, so it goes on: {message}")

    def _shard_failed(self, run: Run, entry: Entry) -> None:
        from penstock.views.payload import payload_of  # Only what goes wrong needs it.

        data = payload_of(entry)
        if data.again:
            error = data.error if isinstance(data.error, dict) else {}
            text = f"element [{data.iter_index}] failed: {error.get('message', 'error')}; it comes again"
            self._tell(run, entry.ts, text)

    def _shards_returned(self, run: Run, entry: Entry) -> None:
        if b'"reason":"lost"' not in entry.payload:
            return
        from penstock.views.payload import payload_of  # Only what goes wrong needs it.

        data = payload_of(entry)
        if entry.scope in (run.id, f"{run.id}[{data.lo}]"):  # It may be reported for each element: once is enough.
            whose = f" {data.worker}" if data.worker else ""
            text = f"worker{whose} was lost with range {data.range}; {elements(data.lo, data.hi)} again"
            self._tell(run, entry.ts, text)

    def _tell(self, run: Run, at: float, text: str) -> None:
        """Reports a handled failure. Of thousands the first few are enough: `show` has the count."""
        self._told[run.id] = self._told.get(run.id, 0) + 1
        if self._told[run.id] <= MOST_TOLD:
            self.news.append(News("retry", run.id, at, run, text))

    # ---- components

    def _component_printed(self, printed: PrintedLine, now: float) -> None:
        news = News("line", printed.scope, now, None, printed.line)
        self.news.append(news)
        self.printed.append(news)

    def _component_changed(self, entry: Entry) -> None:
        scope, what = entry.scope, entry.type.partition(".")[2]
        if "[#" in scope:
            if what == "started":  # The outermost iterator shows where its body is.
                owner = scope[: scope.index("[#")]
                self.inside[node_of(owner)] = scope[len(owner) :]
            return
        if what == "started":
            for key in [key for key in self._counted if key[0] == scope]:
                del self._counted[key]
        change = what if what in ("started", "skipped") else "ended"
        self.news.append(News(change, scope, entry.ts, self.view.run(scope)))

    def _subjob_ended(self, entry: Entry) -> None:
        if "[#" not in entry.scope:
            state = {"ok": "OK", "error": "ERROR"}.get(entry.type.partition(".")[2], "SKIPPED")
            self.news.append(News("subjob", subjob_name(entry.scope), entry.ts, None, state))

    def _iteration_failed(self, entry: Entry) -> None:
        from penstock.views.links import message_of  # Only what goes wrong needs it.
        from penstock.views.payload import payload_of  # Only what goes wrong needs it.

        self.news.append(News("iteration", entry.scope, entry.ts, None, message_of(payload_of(entry).error)))

    def _count(self, counted: Rows, now: float) -> None:
        if "[#" in counted.component or "/" in counted.component:  # Of those in a body the sum is kept.
            return
        key = counted.component, counted.port
        self._counted[key] = counted.rows
        if key not in self._flowing:
            run = self.view.run(counted.component)
            self._flowing[key] = Flowing(0, run.started_at or now if run is not None else now)
        self._flowing[key].seen(counted.rows, now)

    def parts(self) -> dict[str, Part]:
        """The components of a job by their names in the document, as they stand now."""

        nodes = self.net.nodes if self.net is not None else {}
        found = {name: Part(name, node.tasks[0].kind if node.tasks else "joblet") for name, node in nodes.items()}
        if self.root is None:
            return found
        repeated: dict[str, list[Run]] = {}
        for name, run in self.root.runs.items():
            if "[#" in name:
                repeated.setdefault(run.node, []).append(run)
            else:
                found[name] = self._part(run)
        totals = self.root.totals() if repeated or self.root.gone else {}
        for node in {*repeated, *self.root.gone}:
            part = found.setdefault(node, Part(node))
            self._add_up(part, totals.get(node, Totals()), repeated.get(node, []))
        return found

    def _part(self, run: Run) -> Part:
        rows = run.rows_out
        if run.status == "running":
            rows = {port: rows for (name, port), rows in self._counted.items() if name == run.name}
        part = Part(run.name, run.type, run.status, run.started_at, run.ended_at, run.ms, rows)
        part.error, part.reason, part.kept, part.fan = run.error, run.reason, run.kept, run.fan
        return part

    def _add_up(self, part: Part, totals: Any, runs: list[Run]) -> None:
        ended = totals.ended
        part.status = next((status for status in ("failed", "ok", "skipped") if ended.get(status)), "waiting")
        if any(run.status == "running" for run in runs):
            part.status = "running"
        part.ms = totals.ms
        part.rows_out = {port: rows for port, (_, rows) in totals.rows_out.items()}
        part.started_at = min((run.started_at for run in runs if run.started_at is not None), default=None)

    def data_links(self, name: str) -> list[Link]:
        """Where the rows of a component go."""
        links = self.net.links if self.net is not None else ()
        return [one for one in links if one.source == name and one.on.value == "data" and not one.hidden]

    def rate(self, part: Part, port: str, parts: dict[str, Part]) -> float | None:
        """Rows a second: now while it works, on the whole when it has ended."""
        if part.ended_at is not None and port in part.rows_out:
            took = self._took(part, parts)
            return part.rows_out[port] * 1000 / took if took > 0 else None
        known = self._flowing.get((part.name, port))
        return known.rate if known is not None and known.rate else None

    def _took(self, part: Part, parts: dict[str, Part]) -> float:
        """Components that ran as one query took the time of that query, whichever of them it was recorded for."""
        node = self.net.nodes.get(part.name) if self.net is not None else None
        group = node.part.group if node is not None and node.part is not None else None
        members = self.net.groups.get(group, ()) if self.net is not None and group is not None else ()
        return max([part.ms, *(parts[name].ms for name in members)])


def _is_telling(entry: Entry) -> bool:
    """Of a loop's tasks, thousands a second, only those that failed or retried are examined."""
    payload = entry.payload
    return entry.type == "task.done" and (_ERROR in payload or _RETRY in payload or _FAIL in payload)


_STEP_NEWS: dict[str, Callable[[Progress, Run, Entry], None]] = {
    "step.scheduled": Progress._scheduled,
    **dict.fromkeys(("step.done", "step.failed", "loop.done"), Progress._step_ended),
    "token.refused": Progress._refused,
    "task.done": Progress._task_done,
    "loop.shard.failed": Progress._shard_failed,
    "loop.shard.returned": Progress._shards_returned,
}

_JOB_NEWS: dict[str, Callable[[Progress, Entry], None]] = {
    **{f"component.{what}": Progress._component_changed for what in ("started", "ok", "error", "skipped")},
    **{f"subjob.{what}": Progress._subjob_ended for what in ("ok", "error", "skipped")},
    "iteration.error": Progress._iteration_failed,
}
