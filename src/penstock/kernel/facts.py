"""Facts: what the log holds. One class per event type; the fields are the event's payload.

Law: a fact carries every verdict it rests on (which rule matched, what was written, where the cursor goes), so that folding
facts into state needs neither the document nor an expression, and a log of any release can be folded for ever.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, NamedTuple, TypeAlias

from penstock.kernel.frozen import frozen
from penstock.kernel.places import LogicalClock
from penstock.kernel.values import Json, JsonMap


@frozen
class ExecutionStarted:
    name: str
    digest: str
    workload: Json
    entry: str
    trace_id: str | None = None
    parent: str | None = None
    document: Json = None
    continues: str | None = None


@frozen
class ExecutionInterrupted:
    reason: str


@frozen
class ExecutionResumed:
    """`restarted` task runs were under way when the run stopped; `reopened` step runs had failed and get another run."""

    restarted: list[str] = field(default_factory=list)
    reopened: list[str] = field(default_factory=list)


@frozen
class CancelAsked:
    reason: str


@frozen
class ExecutionEnded:
    status: Literal["completed", "failed", "cancelled"]
    error: Json = None


@frozen
class TokenCreated:
    step: str
    path: list[int]
    args: JsonMap
    parent_step_run_id: str | None = None
    origin: str | None = None
    arc: int | None = None


@frozen
class TokenRefused:
    step: str
    path: list[int]
    rule: int | None = None
    error: Json = None


@frozen
class TokenStranded:
    step: str
    path: list[int]
    missing: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)


@frozen
class RunScheduled:
    step: str
    path: list[int]
    visit: int
    args: JsonMap
    rule: int | None = None
    tokens: list[list[int]] = field(default_factory=list)
    continues: str | None = None


@frozen
class RunStarted:
    step: str


@frozen
class ArcsSelected:
    """`unhandled`: the run failed and no arc took the failure. `abort`: the execution stops its other runs because of that."""

    on: str
    arcs: list[int] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    writes: JsonMap = field(default_factory=dict)
    unhandled: bool = False
    abort: bool = False
    error: Json = None


@frozen
class ArcEnqueued:
    step: str
    token: list[int]
    arc: int


@frozen
class TaskStarted:
    task: str
    kind: str
    attempt: int


@frozen
class TaskEnded:
    """`next` is where the cursor goes; -1 ends the pipeline. `writes` has the keys iter, ctx and append, each optional."""

    task: str
    attempt: int
    outcome: JsonMap
    do: str
    next: int
    rule: int | None = None
    delay: float = 0.0
    writes: JsonMap = field(default_factory=dict)
    error: Json = None
    given_up: bool = False


@frozen
class LoopStarted:
    total: int
    mode: str
    max_in_flight: int


@frozen
class IterationStarted:
    index: int
    item: Json = None


@frozen
class IterationEnded:
    index: int
    status: Literal["done", "failed"]
    error: Json = None
    writes: JsonMap = field(default_factory=dict)


@frozen
class RunEnded:
    """The end of a step run, and the moment its writes to ctx become everyone's.

    `given_up`: it did not end by itself; a time limit, a cancel or another step's failure ended it.
    """

    step: str
    status: Literal["done", "failed"]
    result: Json = None
    error: Json = None
    writes: JsonMap = field(default_factory=dict)
    looped: bool = False
    given_up: bool = False


Body: TypeAlias = (
    ExecutionStarted
    | ExecutionInterrupted
    | ExecutionResumed
    | CancelAsked
    | ExecutionEnded
    | TokenCreated
    | TokenRefused
    | TokenStranded
    | RunScheduled
    | RunStarted
    | ArcsSelected
    | ArcEnqueued
    | TaskStarted
    | TaskEnded
    | LoopStarted
    | IterationStarted
    | IterationEnded
    | RunEnded
)


class Fact(NamedTuple):
    scope: str
    clock: LogicalClock
    body: Body
    cause: str | None = None
    task: str | None = None


FIXED_TYPES: dict[type[object], str] = {
    ExecutionStarted: "playbook.started",
    ExecutionInterrupted: "playbook.interrupted",
    ExecutionResumed: "playbook.resumed",
    CancelAsked: "playbook.cancelling",
    TokenCreated: "token.created",
    TokenRefused: "token.refused",
    TokenStranded: "token.stranded",
    RunScheduled: "step.scheduled",
    RunStarted: "step.started",
    ArcsSelected: "next.selected",
    ArcEnqueued: "next.enqueued",
    TaskStarted: "task.started",
    TaskEnded: "task.done",
    LoopStarted: "loop.started",
    IterationStarted: "loop.iteration.started",
}

CLASSES: dict[str, type[object]] = {
    **{name: body for body, name in FIXED_TYPES.items()},
    "playbook.completed": ExecutionEnded,
    "playbook.failed": ExecutionEnded,
    "playbook.cancelled": ExecutionEnded,
    "loop.iteration.done": IterationEnded,
    "loop.iteration.failed": IterationEnded,
    "step.done": RunEnded,
    "step.failed": RunEnded,
    "loop.done": RunEnded,
}

WORKER_TYPES = frozenset(
    {
        "task.started",
        "task.done",
        "loop.started",
        "loop.iteration.started",
        "loop.iteration.done",
        "loop.iteration.failed",
        "loop.done",
        "step.done",
        "step.failed",
    }
)


def event_type(body: Body) -> str:
    """The name of the event in the documents' words. A loop step ends in loop.done or step.failed, never in step.done (D50)."""
    fixed = FIXED_TYPES.get(type(body))
    if fixed is not None:
        return fixed
    if isinstance(body, ExecutionEnded):
        return f"playbook.{body.status}"
    if isinstance(body, IterationEnded):
        return f"loop.iteration.{body.status}"
    if isinstance(body, RunEnded):
        return boundary(body)
    raise TypeError(f"not a fact: {body!r}")


def boundary(body: RunEnded) -> str:
    if body.status == "failed":
        return "step.failed"
    return "loop.done" if body.looped else "step.done"
