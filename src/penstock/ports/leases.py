"""Leases: the right to run one step run, what comes with it, and how its holder reports.

A scope has one decider, its lease holder. The server grants; a worker runs the pipeline or the loop on one lease and reports
facts; only the server starts steps. In one process the hand-over is a function call, on a fleet a queue; the words are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.kernel.facts import ComponentEnded, Fact, IteratorStarted, RunEnded
from penstock.kernel.net import Net, Node
from penstock.kernel.outcome import Outcome
from penstock.kernel.places import LogicalClock
from penstock.kernel.state import ExecutionState, PipelineState, RunState
from penstock.kernel.values import Json, JsonMap
from penstock.ports.folders import Base

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Ended, Flow
    from penstock.kernel.flow.state import ComponentState, RegionState
    from penstock.ports.ranges import RangeLease, RangeReports


@dataclass(frozen=True, slots=True)
class Setting:
    """What all leases of one execution scope share."""

    execution_id: str
    net: Net
    scope: ExecutionState
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
    setting: Setting
    node: Node
    run: RunState
    stop_reason: str | None = None
    """Set before the holder is cancelled: `cancel` and `abort` end the run as failed, `interrupt` leaves it as it is."""
    children: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class SubjobLease:
    """The right to run one sub-job of a job, with all that its components open."""

    setting: Setting
    flow: Flow
    region: RegionState
    stop_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for an execution within the execution: a task of a pipeline, or a component of a job."""

    setting: Setting
    run_id: str
    """The task run, or the component as it is called in this run."""
    clock: LogicalClock
    """When it started: all that the child does lies between this and its end."""
    children: dict[str, ExecutionState]
    stop_reason: Callable[[], str | None]
    iteration: Any = None
    folder: Path | None = None
    """What the child's path is relative to, when that is not the folder of the setting."""
    context: str | None = None
    """Of a job: the group of its context that lies under the values it is given."""


class JobReports(Protocol):
    """Where the holder of a sub-job says what happened."""

    def ended(self, lease: SubjobLease, component: ComponentState, end: Ended) -> None: ...

    def iterate(
        self, lease: SubjobLease, component: ComponentState, total: int | None, items: Json, parallel: int, mode: str
    ) -> None: ...

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Any: ...

    async def durable(self) -> None: ...

    @property
    def backlog(self) -> int: ...

    def now(self) -> float: ...

    def broke(self, error: BaseException) -> None: ...


class Reports(Protocol):
    """Where a lease holder says what happened. Recording is immediate for its own scope, durable when asked for."""

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

    async def end(self, lease: Lease, body: RunEnded, counter: int) -> None: ...

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Any:
        """Run a playbook or a job as a child scope of the caller. The server starts its steps and sub-jobs, never the worker."""
        ...

    def forsake(self, pipeline: PipelineState) -> None:
        """The task under way is being given up: a sub-playbook of it that nobody drives any more is ended too."""
        ...

    def now(self) -> float: ...

    def broke(self, error: BaseException) -> None:
        """The holder hit an error of the engine itself: the execution cannot go on."""
        ...


DEFAULT_POOL = "default"
"""The workers that take whatever names no other pool."""


class LeaseLost(Exception):
    """The lease was given up at this point: by a time limit, a cancel, or another step's failure."""

    def __init__(self, failure: JsonMap) -> None:
        super().__init__(failure.get("message"))
        self.failure = failure


PATIENT_TURNS = 100
"""In a replay: so many turns of the event loop is an end held back for one that the record has before it."""


class Memory(Protocol):
    """What a recorded run says happened at each place."""

    def outcome(self, task_run_id: str) -> Outcome | None:
        """The recorded outcome; None when the task never ended. Raises LeaseLost when it was given up."""
        ...

    def started(self, task_run_id: str) -> bool: ...

    def looped(self, scope: str) -> bool: ...

    def collection(self, scope: str) -> Json:
        """What the loop at `scope` ran over, where that had been read page by page."""
        ...

    def unopened_loop(self, scope: str) -> JsonMap | None:
        """Why the loop at `scope` could not begin, if it could not."""
        ...

    def iterated(self, scope: str) -> bool: ...

    def opened(self, scope: str) -> bool:
        """Did an execution start at `scope`?"""
        ...

    def given_up(self, scope: str) -> JsonMap | None:
        """Why the step run at `scope` was given up, if it was."""
        ...

    def component(self, scope: str) -> tuple[ComponentEnded | None, dict[str, Json], frozenset[str], tuple[str, ...]]:
        """How the component ended, the globals it wrote, which of them are sets, and those it deleted; None when it never did."""
        ...

    def is_next(self, scope: str) -> bool:
        """Have all components that ended before this one been told of?"""
        ...

    def told(self, scope: str) -> None:
        """The end of this component has been told to the server."""
        ...

    @property
    def told_so_far(self) -> int: ...

    def iterator(self, scope: str) -> IteratorStarted | None: ...


class Workforce(Protocol):
    """Whoever takes leases."""

    def start(self, lease: Lease, reports: Reports) -> None: ...

    def say(self, scope: str, line: str) -> None:
        """A line of the run's own, about what the server decided there."""
        ...

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        """Make the holder let go. Returns when it has."""
        ...

    def start_component(self, lease: SubjobLease, component: ComponentState, reports: JobReports) -> None:
        """A component of a sub-job that is held here has been started: do its work."""
        ...

    async def stop_subjob(self, lease: SubjobLease, reason: str, grace_s: float = 0.0) -> None:
        """Make the holder let go of all its components. Returns when it has."""
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
