"""Leases: the right to run one part of an execution, what comes with it, and how its holder reports.

A part has one decider, its lease holder. The server grants; a worker runs what a lease is for (a step run, a sub-job, elements of
a loop or of an iterator) and reports; only the server starts steps. In one process the hand-over is a function call, on a fleet a
queue; the words are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from penstock.kernel.decide import Decider
from penstock.kernel.facts import Fact, TaskEnded, TaskStarted
from penstock.kernel.net import Net, Node
from penstock.kernel.places import LogicalClock
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import ComponentRun, Execution, Run, StepRun, Subjob
from penstock.kernel.values import Json, JsonMap
from penstock.ports.folders import Base


@dataclass(frozen=True, slots=True)
class ScopeContext:
    """What all leases of one execution scope share."""

    execution_id: str
    net: Net
    scope: Execution
    workload: Any
    keychain: Keys
    folder: Path
    file: str
    lines: Mapping[tuple[str, str], Mapping[str, int]]
    """(step, task label) -> parameter -> the line of the document on which its text begins."""
    iter_parent: Any = None
    """The iteration that surrounds the whole scope, when a loop runs it as a sub-playbook."""
    depth: int = 0
    outputs: frozenset[tuple[str, str]] = frozenset()
    """Of a job: (component, port) whose rows are wanted although no link reads them."""
    sample: int | None = None
    """Of these no more than so many rows are wanted."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Component -> the file it is written in, where that is not the job's own: its line numbers are that file's."""
    bases: Mapping[str, Base] = field(default_factory=dict)
    """Component -> where its relative paths begin, where that is not `folder`."""
    brought: frozenset[str] = frozenset()
    """The kinds of tools that the document's own plug-ins have: any worker has these, once it has the document."""


class Keys(Protocol):
    """The resolved keychain, as a worker needs it."""

    def view(self) -> Mapping[str, Any]: ...

    def reveal(self, value: Any) -> Any: ...

    def credential(self, name: str) -> dict[str, Any]: ...

    def is_stale(self) -> bool: ...

    async def fresh(self) -> None:
        """Renew what is about to run out, such as tokens."""
        ...

    def hide_tree(self, value: Any) -> Any: ...

    def hide(self, text: str) -> str: ...

    def hide_bytes(self, data: bytes) -> bytes: ...


@dataclass(slots=True)
class FanRange:
    """Some elements of one fan: of a loop that is fanned out, or of an iterator whose iterations are spread. `elements` is as the
    range stood when the lease was made: its holder keeps count of its own."""

    run: StepRun | ComponentRun
    """Whose fan it is."""
    elements: ElementRange
    opened_at: int
    collection: Json = None
    """Of a loop: what the elements are."""
    lanes: int = 1
    """So many elements at a time."""
    emits: bool = False
    """Is each element's end to be reported by itself?"""
    report_s: float = 3.0
    losses: int = 0
    """So often some of its elements were lost with their worker."""
    progress: int = 0
    """So many elements have come to their ends here: a sign that work goes on."""

    @property
    def key(self) -> str:
        elements = self.elements
        if isinstance(self.run, StepRun):
            return f"{self.run.place.id}#{elements.number}"
        return f"{spread_stem(self.run)}{elements.lo}:{elements.hi}"


def spread_stem(iterator: ComponentRun) -> str:
    """How the keys of its ranges begin. It names the start of the iterator as well: what an earlier one handed out is nothing to
    a later one."""
    assert iterator.fan is not None
    return f"{iterator.place.id}@{iterator.fan.opened_at}#"


@dataclass(slots=True)
class Lease:
    """The right to run one part of an execution, with all that it opens: a step run, a sub-job of a job, or elements of a fan."""

    context: ScopeContext
    decider: Decider
    """Decides inside of the part: on the server's side the one of the whole execution, on a worker's one for this part alone."""
    part: StepRun | Subjob | FanRange
    stop_reason: str | None = None
    """Set before the holder is cancelled: `cancel` and `abort` end the run as failed, `interrupt` leaves it as it is."""

    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.part.key if isinstance(self.part, FanRange) else self.part.place.id

    @property
    def run(self) -> StepRun:
        """The step run that is held, or the one whose loop it has elements of."""
        run = self.part.run if isinstance(self.part, FanRange) else self.part
        assert isinstance(run, StepRun)
        return run

    @property
    def subjob(self) -> Subjob:
        assert isinstance(self.part, Subjob)
        return self.part

    @property
    def range(self) -> FanRange:
        assert isinstance(self.part, FanRange)
        return self.part

    @property
    def node(self) -> Node:
        return self.context.net.nodes[self.run.step]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for an execution within the execution: a task of a pipeline, or a component of a job."""

    context: ScopeContext
    run_id: str
    """The task run, or the component as it is called in this run."""
    clock: LogicalClock
    """When it started: all that the child does lies between this and its end."""
    children: dict[str, Execution]
    stop_reason: Callable[[], str | None]
    iteration: Any = None
    folder: Path | None = None
    """What the child's path is relative to, when that is not the folder of the caller's scope."""
    context_group: str | None = None
    """Of a job: the group of its context that lies under the values it is given."""


class TaskReports(Protocol):
    """Where a pipeline says what happened. Recording is immediate for its own scope, durable when asked for."""

    def record(self, fact: Fact) -> None: ...

    def flush(self) -> None:
        """Hand all that was recorded over for writing, without waiting."""
        ...

    def gathered_enough(self) -> bool:
        """Is enough recorded that handing it over is worth while?"""
        ...

    async def durable(self) -> None: ...

    @property
    def backlog(self) -> int: ...

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Any:
        """Run a playbook or a job as a child scope of the caller. The server starts its steps and sub-jobs, never the worker."""
        ...

    def now(self) -> float: ...

    def broke(self, error: BaseException) -> None:
        """The holder hit an error of the engine itself: the execution cannot go on."""
        ...


class Reports(TaskReports, Protocol):
    """Where a lease holder says what happened, and what follows from it inside its lease is decided."""

    def decide(self, stimulus: object, *, is_durable_first: bool = False) -> list[Fact]:
        """The facts that follow; what they start inside the lease is started, after they are on disk if that is asked for."""
        ...

    def give_up(self, run: StepRun, failure: JsonMap) -> None:
        """End a step run that did not end by itself, with all that it had begun."""
        ...

    def report(self, lease: Lease, report: RangeReport) -> None:
        """Of elements of a loop that is fanned out. The lease is over when all have come to their ends, or none can."""
        ...

    def give_back(self, lease: Lease, reason: str = "returned") -> None:
        """The holder lets go of the elements that it has not reported: it was told to stop, or has to make room."""
        ...

    def gives_way(self) -> bool:
        """Asked by the holders of parts of something large: does somebody else need the place?"""
        ...


DEFAULT_POOL = "default"
"""The workers that take whatever names no other pool."""


class Failed(NamedTuple):
    element: int
    key: str
    error: Json


class TaskReport(NamedTuple):
    """An event of a task of one element. `kind` is its type."""

    element: int
    task: str | None
    kind: str
    body: TaskStarted | TaskEnded


@dataclass(frozen=True, slots=True)
class RangeOpened:
    """Work on a range begins. Of a page: how far it goes and where the next one begins."""

    hi: int | None = None
    next: Json = None
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class ElementsEnded:
    """What came of elements `lo` to `hi`. `results` has one value for each, `same` the one they all have."""

    lo: int
    hi: int
    failures: list[Failed] = field(default_factory=list)
    results: Json = None
    same: bool = False
    writes: list[Json] = field(default_factory=list)
    shared: JsonMap = field(default_factory=dict)
    ms: float = 0.0
    keys: list[str] | None = None
    """One for each, where they have keys of their own and each one's end is reported by itself."""
    tasks: list[TaskReport] = field(default_factory=list)
    """What their tasks did, in order for each element; only where each element is reported by itself."""


@dataclass(frozen=True, slots=True)
class RangeFailed:
    """The collection could not be opened, so that none of its elements can be had."""

    error: JsonMap


RangeReport: TypeAlias = RangeOpened | ElementsEnded | RangeFailed
"""What the holder of a range has to say."""


class Workforce(Protocol):
    """Whoever takes leases."""

    def start(self, lease: Lease, run: Run, reports: Reports) -> None:
        """A run of the part that is held has been started: do its work. It is the step run itself, or a component; of a range,
        the run whose loop it is."""
        ...

    def say(self, scope: str, line: str) -> None:
        """A line of the run's own, about what the server decided there."""
        ...

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        """Make the holder let go. Returns when it has, or once it is certain that nothing more of it will be received."""
        ...

    async def close_job(self, context: ScopeContext, *, is_over: bool) -> None:
        """Nobody will read the job's rows any more. `is_over`: nor will a resume."""
        ...

    def slots(self, context: ScopeContext, node: Node) -> int:
        """How many ranges of this node can be worked on at a time, by all who could take one."""
        ...

    def ahead(self) -> int:
        """How many ranges per slot are handed out, so that nobody waits for the next one."""
        ...


def execution_view(context: ScopeContext) -> JsonMap:
    """What expressions see as `execution`."""
    return {
        "id": context.execution_id,
        "name": context.net.name,
        "started_at": context.scope.started_at,
        "trace_id": context.scope.trace_id,
    }
