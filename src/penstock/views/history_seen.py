"""What is remembered of a playbook's log: task runs, loops, step runs and executions. `history` folds the log into these."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from penstock.kernel.places import LogicalClock
from penstock.kernel.values import Json
from penstock.ports.results import decode
from penstock.ports.wire import to_clock
from penstock.views.fanouts import FanoutSeen

KEPT_ATTEMPTS = 50


@dataclass(slots=True)
class Attempt:
    """One task run. `do` is what its policy made of the outcome; None while it is under way."""

    task_run_id: str
    task: str
    kind: str
    number: int
    started_at: float
    ended_at: float | None = None
    status: str | None = None
    error: Json = None
    do: str | None = None
    next: int = -1
    rule: int | None = None
    delay: float = 0.0
    failure: Json = None
    """Why the pipeline failed here, when it did."""


@dataclass(slots=True)
class TaskSeen:
    name: str
    kind: str = ""
    runs: int = 0
    attempts: int = 0
    status: str = "running"
    error: Json = None


@dataclass(slots=True)
class Iterations:
    total: int
    mode: str = "sequential"
    done: int = 0
    failed: int = 0
    open: set[int] = field(default_factory=set)
    failures: list[tuple[int, Json]] = field(default_factory=list)


@dataclass(slots=True)
class Selected:
    """What was decided about the arcs when the run had ended."""

    seq: int
    on: str
    arcs: list[int]
    steps: list[str]
    unhandled: bool
    was_stopped: bool
    """The execution was being cancelled or aborted, so that no arc was looked at."""
    error: Json


@dataclass(slots=True)
class StepRun:
    """A token and, once it was let in, the step run it became.

    `status`: waiting, refused, stranded, joined (consumed together with others), running, done, failed.
    """

    id: str
    step: str
    execution: str
    clock: str
    created_at: float
    created_seq: int
    origin: str | None = None
    arc: int | None = None
    parent: str | None = None
    cause: str | None = None
    status: str = "waiting"
    visit: int | None = None
    rule: int | None = None
    error: Json = None
    tokens: list[str] = field(default_factory=list)
    """Of a join: the places of all tokens it consumed."""
    missing: list[str] = field(default_factory=list)
    joined: str | None = None
    continues: str | None = None
    continued_by: str | None = None
    scheduled_seq: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    end_seq: int | None = None
    tasks: dict[str, TaskSeen] = field(default_factory=dict)
    attempts: deque[Attempt] = field(default_factory=lambda: deque(maxlen=KEPT_ATTEMPTS))
    under_way: dict[str, Attempt] = field(default_factory=dict)
    iterations: Iterations | None = None
    fanout: FanoutSeen | None = None
    """Set when its loop is fanned out; `iterations` counts its elements then."""
    selected: Selected | None = None

    @property
    def order(self) -> LogicalClock:
        return to_clock(decode(self.clock.encode()))


@dataclass(slots=True)
class ExecutionSeen:
    """One execution scope: the run itself, or a playbook or job that one of its tasks or components runs."""

    scope: str
    name: str
    entry: str
    started_at: float
    document: Json = None
    parent: str | None = None
    status: str = "running"
    error: Json = None
    ended_at: float | None = None
    cancel_reason: str | None = None
    stopped_seq: int | None = None
    """The entry from which on no arc is looked at: a cancel, or a failure in a fail_fast execution."""
    stops: list[tuple[float, str]] = field(default_factory=list)
    resumes: list[float] = field(default_factory=list)
    kind: str = "playbook"
    continues: str | None = None
    """The task run whose failed child this one goes on from."""
