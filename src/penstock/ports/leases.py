"""Leases: the right to run one step run, what comes with it, and how its holder reports.

A scope has one decider, its lease holder. The server grants; a worker runs the pipeline or the loop on one lease and reports
facts; only the server starts steps. In one process the hand-over is a function call, on a fleet a queue; the words are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from penstock.kernel.decide import Decider
from penstock.kernel.facts import Fact, TaskEnded, TaskStarted
from penstock.kernel.net import Net, Node
from penstock.kernel.places import LogicalClock, iteration_place
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import Execution, Run, StepRun, Subjob
from penstock.kernel.values import Json, JsonMap
from penstock.ports.folders import Base


@dataclass(frozen=True, slots=True)
class Setting:
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
class Lease:
    """The right to run one part of an execution, with all that it opens: a step run, or a sub-job of a job."""

    setting: Setting
    decider: Decider
    """Decides inside of the part: on the server's side the one of the whole execution, on a worker's one for this part alone."""
    held: StepRun | Subjob
    stop_reason: str | None = None
    """Set before the holder is cancelled: `cancel` and `abort` end the run as failed, `interrupt` leaves it as it is."""

    @property
    def key(self) -> str:
        return self.held.place.id

    @property
    def run(self) -> StepRun:
        assert isinstance(self.held, StepRun)
        return self.held

    @property
    def subjob(self) -> Subjob:
        assert isinstance(self.held, Subjob)
        return self.held

    @property
    def node(self) -> Node:
        return self.setting.net.nodes[self.run.step]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for an execution within the execution: a task of a pipeline, or a component of a job."""

    setting: Setting
    run_id: str
    """The task run, or the component as it is called in this run."""
    clock: LogicalClock
    """When it started: all that the child does lies between this and its end."""
    children: dict[str, Execution]
    stop_reason: Callable[[], str | None]
    iteration: Any = None
    folder: Path | None = None
    """What the child's path is relative to, when that is not the folder of the setting."""
    context: str | None = None
    """Of a job: the group of its context that lies under the values it is given."""


class StepLease(Protocol):
    """What the tasks of a step need to know of their lease, be it of the whole run or of some elements of its loop."""

    @property
    def setting(self) -> Setting: ...

    @property
    def run(self) -> StepRun: ...

    @property
    def node(self) -> Node: ...

    @property
    def stop_reason(self) -> str | None: ...


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


DEFAULT_POOL = "default"
"""The workers that take whatever names no other pool."""


@dataclass(slots=True)
class RangeLease:
    """`shards` is as the range stood when the lease was made: its holder keeps count of its own."""

    setting: Setting
    node: Node
    run: StepRun
    shards: ElementRange
    collection: Json
    opened_at: int
    lanes: int = 1
    """So many elements at a time."""
    emits: bool = False
    """Is each element's end to be told by itself?"""
    reducers: dict[str, str] = field(default_factory=dict)
    report_s: float = 3.0
    losses: int = 0
    """So often some of its elements were lost with their worker."""
    stop_reason: str | None = None

    @property
    def key(self) -> str:
        return range_key(self.run.place.id, self.shards.number)

    def shard_id(self, index: int) -> str:
        return iteration_place(self.run.place, self.opened_at, index).id


def range_key(run: str, number: int) -> str:
    return f"{run}#{number}"


class Failed(NamedTuple):
    element: int
    key: str
    error: Json


class TaskTold(NamedTuple):
    """An event of a task of one element. `kind` is its type."""

    element: int
    task: str | None
    kind: str
    body: TaskStarted | TaskEnded


@dataclass(frozen=True, slots=True)
class RangeReport:
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
    """One for each, where they have keys of their own and each one's end is told by itself."""
    tasks: list[TaskTold] = field(default_factory=list)
    """What their tasks did, in order for each element; told only where each element is told of by itself."""


class RangeReports(Protocol):
    """Where the holder of a range says what happened."""

    def opened(self, lease: RangeLease, hi: int | None, next: Json, is_end: bool) -> None:
        """Work on it begins. Of a page: how far it goes and where the next one begins."""
        ...

    def reported(self, lease: RangeLease, report: RangeReport) -> None:
        """More of its elements have come to their ends. The lease is over when all have."""
        ...

    def gave_back(self, lease: RangeLease, reason: str) -> None:
        """The holder lets go of what it has not reported: it was told to stop, or has to make room."""
        ...

    def failed(self, lease: RangeLease, error: JsonMap) -> None:
        """The collection could not be opened, so that none of its elements can be had."""
        ...

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Any: ...

    async def durable(self) -> None:
        """Return when all that was said is kept."""
        ...

    def now(self) -> float: ...

    def broke(self, error: BaseException) -> None: ...


class Workforce(Protocol):
    """Whoever takes leases."""

    def start(self, lease: Lease, run: Run, reports: Reports) -> None:
        """A run of the part that is held has been started: do its work. It is the step run itself, or a component."""
        ...

    def say(self, scope: str, line: str) -> None:
        """A line of the run's own, about what the server decided there."""
        ...

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        """Make the holder let go. Returns when it has."""
        ...

    async def close_job(self, setting: Setting, *, is_over: bool) -> None:
        """Nobody will read the job's rows any more. `is_over`: nor will a resume."""
        ...

    def start_range(self, lease: RangeLease, reports: RangeReports) -> None:
        """Some elements of a fanned-out loop have been handed out: have them run."""
        ...

    async def stop_range(self, lease: RangeLease, reason: str) -> None:
        """Make the holder let go. Returns when it has, or once it is certain that nothing more of it will be heard."""
        ...

    def slots(self, node: Node) -> int:
        """How many ranges of this node can be worked on at a time, by all who could take one."""
        ...

    def ahead(self) -> int:
        """How many ranges per slot are handed out, so that nobody waits for the next one."""
        ...


def execution_view(setting: Setting) -> JsonMap:
    """What expressions see as `execution`."""
    return {
        "id": setting.execution_id,
        "name": setting.net.name,
        "started_at": setting.scope.started_at,
        "trace_id": setting.scope.trace_id,
    }
