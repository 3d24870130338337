"""Leases: the right to run one part of an execution, what comes with it, and how its holder reports.

A part has one decider, its lease holder. The server grants; a worker runs what a lease is for (a step run, a sub-job,
elements of a loop or of an iterator) and reports; only the server starts steps. In one process the lease is handed over by a
function call, on a fleet through a queue; the interface is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from penstock.kernel.decide import Decider
from penstock.kernel.facts import Fact, RunEnded
from penstock.kernel.net import Net, Node
from penstock.kernel.places import LogicalClock
from penstock.kernel.ranges import RangeReport
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
    """The iteration around the whole scope, if a loop runs it as a sub-playbook."""
    depth: int = 0
    outputs: frozenset[tuple[str, str]] = frozenset()
    """For a job: (component, port) whose rows are wanted although no link reads them."""
    sample: int | None = None
    """Maximum number of rows wanted of each of these."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Component -> the file it is written in, if not the job's own: its line numbers refer to that file."""
    bases: Mapping[str, Base] = field(default_factory=dict)
    """Component -> where its relative paths start, if not in `folder`."""
    brought: frozenset[str] = frozenset()
    """The kinds of tools in the document's own plug-ins: any worker that has the document has these."""


class Keys(Protocol):
    """The resolved keychain, as a worker needs it."""

    def view(self) -> Mapping[str, Any]: ...

    def reveal(self, value: Any) -> Any: ...

    def credential(self, name: str) -> dict[str, Any]: ...

    def is_stale(self) -> bool: ...

    async def fresh(self) -> None:
        """Renew what is about to expire, such as tokens."""
        ...

    @property
    def hides(self) -> bool:
        """Is there anything to hide?"""
        ...

    def hide_tree(self, value: Any) -> Any: ...

    def hide(self, text: str) -> str: ...

    def hide_bytes(self, data: bytes) -> bytes: ...


@dataclass(slots=True)
class FanRange:
    """Some elements of one fan: of a fanned-out loop, or of a spread iterator. `elements` is the range as it was when the
    lease was made: its holder keeps its own count."""

    run: StepRun | ComponentRun
    """The run that the fan belongs to."""
    elements: ElementRange
    opened_at: int
    collection: Json = None
    """For a loop: the collection of the elements."""
    lanes: int = 1
    """How many elements run at a time."""
    emits: bool = False
    """Whether the end of each element is reported by itself."""
    report_s: float = 3.0
    losses: int = 0
    """How often some of its elements were lost with their worker."""
    progress: int = 0
    """How many elements have ended here: evidence that work goes on."""

    @property
    def key(self) -> str:
        elements = self.elements
        if isinstance(self.run, StepRun):
            return f"{self.run.place.id}#{elements.number}"
        return f"{spread_stem(self.run)}{elements.lo}:{elements.hi}"


def spread_stem(iterator: ComponentRun) -> str:
    """The prefix of the keys of its ranges. It includes the start of the iterator: ranges of an earlier start mean nothing
    to a later one."""
    assert iterator.fan is not None
    return f"{iterator.place.id}@{iterator.fan.opened_at}#"


@dataclass(slots=True)
class Lease:
    """The right to run one part of an execution, with everything it opens: a step run, a sub-job of a job, or elements of a
    fan."""

    context: ScopeContext
    decider: Decider
    """Decides inside the part: on the server, the decider of the whole execution; on a worker, one for this part alone."""
    part: StepRun | Subjob | FanRange
    stop_reason: str | None = None
    """Set before the holder is cancelled: `cancel` and `abort` end the run as failed, `interrupt` leaves it as it is."""

    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.part.key if isinstance(self.part, FanRange) else self.part.place.id

    @property
    def run(self) -> StepRun:
        """The step run that is held, or the one whose loop the elements belong to."""
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
    """The caller of a child execution: a task of a pipeline, or a component of a job."""

    context: ScopeContext
    run_id: str
    """The task run, or the component as it is called in this run."""
    clock: LogicalClock
    """When it started: everything that the child does lies between this and its end."""
    children: dict[str, Execution]
    stop_reason: Callable[[], str | None]
    iteration: Any = None
    folder: Path | None = None
    """What the child's path is relative to, if not the folder of the caller's scope."""
    context_group: str | None = None
    """For a job: the context group that lies under the values it is given."""


class TaskReports(Protocol):
    """What a pipeline reports to. Recording is immediate for its own scope, durable on request."""

    def record(self, fact: Fact) -> None: ...

    def flush(self) -> None:
        """Hand over everything recorded for writing, without waiting."""
        ...

    def gathered_enough(self) -> bool:
        """Whether enough is recorded to make handing it over worthwhile."""
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
    """What a lease holder reports to; decides what follows from the reports inside the lease."""

    def decide(self, stimulus: object, *, is_durable_first: bool = False) -> list[Fact]:
        """Decide, and return the facts. What they start inside the lease is started; with `is_durable_first`, after they are
        on disk."""
        ...

    async def end_run(self, run: StepRun, end: RunEnded) -> None:
        """Decide what follows from the end of a step run. Returns when it has been started or handed over."""
        ...

    def give_up(self, run: StepRun, failure: JsonMap) -> None:
        """End a step run that did not end by itself, with everything it had begun."""
        ...

    def report(self, lease: Lease, report: RangeReport) -> None:
        """Report on elements of a fanned-out loop. The lease is over when all have ended, or none can."""
        ...

    def give_back(self, lease: Lease, reason: str = "returned") -> None:
        """Give back the elements that were not reported: the holder was told to stop, or has to make room."""
        ...

    def gives_way(self) -> bool:
        """Asked by the holders of parts of something large: whether other work needs the slot."""
        ...


DEFAULT_POOL = "default"
"""The pool for work that names no other."""


class Workforce(Protocol):
    """Takes leases and runs them."""

    def start(self, lease: Lease, run: Run, reports: Reports) -> None:
        """Do the work of a run that was started in the part that is held: the step run itself, or a component; for a range,
        the run whose loop it is."""
        ...

    def say(self, scope: str, line: str) -> None:
        """Write a line to the run's log about what the server decided there."""
        ...

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        """Make the holder let go. Returns when it has, or when it is certain that no more reports of it will be received."""
        ...

    async def close_job(self, context: ScopeContext, *, is_over: bool) -> None:
        """Nobody will read the job's rows any more. `is_over`: nor will a resume."""
        ...

    def slots(self, context: ScopeContext, node: Node) -> int:
        """How many ranges of this node can be worked on at a time, by all workers that could take one."""
        ...

    def ahead(self) -> int:
        """How many ranges per slot are handed out, so that no worker waits for the next one."""
        ...


def execution_view(context: ScopeContext) -> JsonMap:
    """What expressions see as `execution`."""
    return {
        "id": context.execution_id,
        "name": context.net.name,
        "started_at": context.scope.started_at,
        "trace_id": context.scope.trace_id,
    }


# ---- how long a step run still has: `lifecycle.timeout_s` and `lifecycle.deadline_s`
#
# Law: both count from the moment the run was scheduled, whether a worker has taken it or not (D68). A run that a resume
# continues gets its whole time-out again, but keeps its deadline.


class TimeLeft(NamedTuple):
    """The tighter of the two limits."""

    seconds: float
    which: str
    limit: float


def time_left(node: Node, run: StepRun, resumed_at: float, now: float) -> TimeLeft | None:
    limits: list[TimeLeft] = []
    if node.timeout_s is not None:
        since = max(run.scheduled_at, resumed_at)
        limits.append(TimeLeft(max(0.0, since + node.timeout_s - now), "timeout", node.timeout_s))
    if node.deadline_s is not None:
        limits.append(TimeLeft(max(0.0, run.scheduled_at + node.deadline_s - now), "deadline", node.deadline_s))
    return min(limits, default=None)


def out_of_time(node: Node, left: TimeLeft, why: str = "") -> JsonMap:
    message = f"step `{node.name}` did not end within its `lifecycle.{left.which}_s` of {left.limit:g} s{why}"
    return {"kind": left.which, "message": message, "retryable": True}
