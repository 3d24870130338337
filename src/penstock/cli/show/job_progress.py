"""The progress of a job, folded from its entries while they are made.

Law: it may cost the run almost nothing. Of what happens inside iterations only the counts are kept, and one name to show.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.show.watcher import Heard, Inbox, latest
from penstock.kernel.evolve import Execution
from penstock.kernel.net import Link, Net, On
from penstock.kernel.values import Json
from penstock.ports.log import Entry
from penstock.views import payloads
from penstock.views.names import node_of, subjob_name

STATES = {"ok": "OK", "error": "ERROR", "skipped": "SKIPPED"}


@dataclass(slots=True, eq=False)
class Part:
    """One component on the screen; of one in a body, all of its runs together."""

    name: str
    subjob: str = ""
    type: str = ""
    state: str = "WAIT"
    started_at: float = 0.0
    ended_at: float | None = None
    ms: float = 0.0
    rows_in: dict[str, int] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)
    error: Json = None
    reason: str = ""
    runs: int = 0
    kept: bool = False
    total: int | None = None
    done: int = 0
    failed: int = 0
    inside: str = ""
    """What goes on in the latest of its iterations."""
    line: str = ""


@dataclass(frozen=True, slots=True)
class News:
    """Something worth a line of its own. `what`: started, OK, ERROR, SKIPPED, subjob, iteration, line."""

    what: str
    name: str
    at: float
    part: Part | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """So many rows so far, on a port of a component that is at work."""

    component: str
    port: str
    rows: int


@dataclass(slots=True)
class Flowing:
    """A rate, from the last two looks at a count."""

    rows: int
    at: float
    rate: float = 0.0

    def seen(self, rows: int, now: float) -> None:
        if now > self.at:
            latest = max(0, rows - self.rows) / (now - self.at)
            self.rate = latest if not self.rate else 0.5 * self.rate + 0.5 * latest
            self.rows, self.at = rows, now


@dataclass(slots=True)
class JobProgress(Inbox[News]):
    net: Net | None = None
    parts: dict[str, Part] = field(default_factory=dict)
    """By the component's name in the document."""
    subjobs: dict[str, str] = field(default_factory=dict)
    """Name of a sub-job outside iterations -> its state."""
    heard: deque[News] = field(default_factory=latest)
    """Lines that components said, in the order in which they did."""
    flowing: dict[tuple[str, str], Flowing] = field(default_factory=dict)
    _begun: bool = False

    def __post_init__(self) -> None:
        for name, node in self.net.nodes.items() if self.net is not None else ():
            self.parts[name] = Part(name, type=node.tasks[0].kind if node.tasks else "joblet")

    def has_begun(self) -> bool:
        return self._begun or bool(self._waiting)

    def rows_observer(self) -> Callable[[str, str, int], None]:
        """May be called from any thread."""
        waiting = self._waiting

        def counted(component: str, port: str, rows: int) -> None:
            waiting.append(Rows(component, port, rows))

        return counted

    def _take(self, entry: Entry) -> None:
        if "/" not in entry.scope:  # Else it lies in an execution that one of the components runs.
            self._begun = True
            handler = _HANDLERS.get(entry.type)
            if handler is not None:
                handler(self, entry)

    def look_at(self, tree: Execution) -> None:
        """Nothing: a job's state has no more to say than its entries."""

    def _hear(self, heard: Heard, now: float) -> None:
        part = self.part(heard.scope.partition("/")[0])
        part.line = heard.line
        news = News("line", heard.scope, now, part, heard.line)
        self.news.append(news)
        self.heard.append(news)

    def _count(self, counted: object, now: float) -> None:
        assert isinstance(counted, Rows)
        if "[#" in counted.component or "/" in counted.component:  # Of those in a body the sum is kept.
            return
        part = self.part(counted.component)
        part.rows_out[counted.port] = counted.rows
        self.rated(part.name, counted.port, now).seen(counted.rows, now)

    def rated(self, name: str, port: str, now: float) -> Flowing:
        known = self.flowing.get((name, port))
        if known is None:
            part = self.parts[name]
            known = self.flowing[name, port] = Flowing(0, part.started_at or now)
        return known

    def part(self, scope: str) -> Part:
        node = node_of(scope)
        part = self.parts.get(node)
        if part is None:
            part = self.parts[node] = Part(node)
        return part

    def data_links(self, name: str) -> list[Link]:
        """Where the rows of a component go."""
        if self.net is None:
            return []
        return [one for one in self.net.links if one.source == name and one.on is On.DATA and not one.hidden]

    def rate(self, name: str, port: str) -> float | None:
        """Rows a second: now while it works, on the whole when it has ended."""
        part = self.parts[name]
        if part.ended_at is not None and port in part.rows_out:
            took = self._took(part)
            return part.rows_out[port] * 1000 / took if took > 0 else None
        known = self.flowing.get((name, port))
        return known.rate if known is not None and known.rate else None

    def _took(self, part: Part) -> float:
        """Components that ran as one query took the time of that query, whichever of them it was written down for."""
        node = self.net.nodes.get(part.name) if self.net is not None else None
        group = node.part.group if node is not None and node.part is not None else None
        members = self.net.groups.get(group, ()) if self.net is not None and group is not None else ()
        return max([part.ms, *(self.parts[name].ms for name in members)])

    # ---- events

    def _started(self, entry: Entry) -> None:
        data = payloads.ExecutionStarted.of(entry)
        if not data.resumed:
            return
        kept = {scope[1:-1] for scope in data.kept if scope.startswith("<")}
        for container in self.net.containers.values() if self.net is not None else ():
            for region in container.regions:
                if region.name in kept:
                    self.subjobs[region.name] = "kept"
                    for name in region.members:
                        self.parts[name].kept = True

    def _subjob_started(self, entry: Entry) -> None:
        if "[#" not in entry.scope:
            self.subjobs[subjob_name(entry.scope)] = "RUNNING"

    def _subjob_ended(self, entry: Entry) -> None:
        if "[#" in entry.scope:
            return
        data, name = payloads.SubjobEnded.of(entry), subjob_name(entry.scope)
        self.subjobs[name] = STATES[data.status]
        self.news.append(News("subjob", name, entry.ts, None, STATES[data.status]))

    def _component_started(self, entry: Entry) -> None:
        part = self.part(entry.scope)
        part.runs += 1
        part.state = "RUNNING"
        if "[#" in entry.scope:
            self._inside(entry.scope)
            part.started_at = part.started_at or entry.ts
            return
        data = payloads.ComponentStarted.of(entry)
        part.type, part.subjob, part.rows_in, part.started_at = data.type, data.subjob, data.rows_in, entry.ts
        part.ended_at, part.kept, part.rows_out = None, False, {}
        self.news.append(News("started", entry.scope, entry.ts, part))

    def _inside(self, scope: str) -> None:
        """The outermost iterator shows where its body is."""
        owner = scope[: scope.index("[#")]
        part = self.parts.get(node_of(owner))
        if part is not None:
            part.inside = scope[len(owner) :]

    def _component_ended(self, entry: Entry) -> None:
        part = self.part(entry.scope)
        data = payloads.ComponentEnded.of(entry)
        state = STATES[data.status]
        if "[#" in entry.scope:
            part.state = state if part.state != "ERROR" else "ERROR"
            part.ms += data.ms
            for port, rows in data.rows_out.items():
                part.rows_out[port] = part.rows_out.get(port, 0) + rows
            return
        part.state, part.ended_at, part.ms, part.error = state, entry.ts, data.ms, data.error
        part.rows_in, part.rows_out = data.rows_in or part.rows_in, data.rows_out
        part.line = ""
        self.news.append(News(state, entry.scope, entry.ts, part))

    def _component_skipped(self, entry: Entry) -> None:
        part = self.part(entry.scope)
        if "[#" in entry.scope:
            part.state = part.state if part.runs else "SKIPPED"
            return
        data = payloads.ComponentSkipped.of(entry)
        part.state, part.reason, part.subjob, part.ended_at = "SKIPPED", data.cause, data.subjob, entry.ts
        part.kept = False
        self.news.append(News("SKIPPED", entry.scope, entry.ts, part))

    def _iterator_started(self, entry: Entry) -> None:
        if "[#" in entry.scope:
            return
        part = self.part(entry.scope)
        part.total, part.done, part.failed = payloads.IteratorStarted.of(entry).total, 0, 0

    def _iteration_ended(self, entry: Entry) -> None:
        owner = entry.scope[: entry.scope.rindex("[#")]
        part = self.part(owner)
        if entry.type == "iteration.ok":
            part.done += 1
            return
        part.failed += 1
        error = payloads.ElementEnded.of(entry).error
        self.news.append(News("iteration", entry.scope, entry.ts, part, _message(error)))

    def _iterator_completed(self, entry: Entry) -> None:
        if "[#" not in entry.scope:
            data = payloads.IteratorCompleted.of(entry)
            part = self.part(entry.scope)
            part.done, part.failed = data.ok, data.failed


def _message(error: Any) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


_HANDLERS: dict[str, Callable[[JobProgress, Entry], None]] = {
    "job.started": JobProgress._started,
    "subjob.started": JobProgress._subjob_started,
    "subjob.ok": JobProgress._subjob_ended,
    "subjob.error": JobProgress._subjob_ended,
    "subjob.skipped": JobProgress._subjob_ended,
    "component.started": JobProgress._component_started,
    "component.ok": JobProgress._component_ended,
    "component.error": JobProgress._component_ended,
    "component.skipped": JobProgress._component_skipped,
    "iterator.started": JobProgress._iterator_started,
    "iterator.completed": JobProgress._iterator_completed,
    "iteration.ok": JobProgress._iteration_ended,
    "iteration.error": JobProgress._iteration_ended,
}
