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
    kind: str = "playbook"
    resumed: bool = False
    """A job goes on after a stop: a new start, which keeps the sub-jobs in `kept` as they are (D30)."""
    kept: list[str] = field(default_factory=list)


@frozen
class ExecutionInterrupted:
    reason: str
    kind: str = "playbook"


@frozen
class ExecutionResumed:
    """`restarted` task runs were under way when the run stopped; `reopened` step runs had failed and get another run."""

    restarted: list[str] = field(default_factory=list)
    reopened: list[str] = field(default_factory=list)


@frozen
class CancelAsked:
    reason: str
    kind: str = "playbook"


@frozen
class ExecutionEnded:
    status: Literal["completed", "failed", "cancelled"]
    error: Json = None
    kind: str = "playbook"
    exit_code: int | None = None
    """What the process is to exit with, where the document asks for a code of its own (D38)."""


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


@frozen
class SubjobStarted:
    subjob: str
    index: int
    container: str = ""
    """The scope of the joblet call or iteration that it lies in; that of the execution for one of the job's own."""


@frozen
class SubjobEnded:
    """`aborts`: the job's policy lets nothing else start after this error."""

    subjob: str
    status: Literal["ok", "error", "skipped"]
    index: int = 0
    container: str = ""
    error: Json = None
    aborts: bool = False


@frozen
class CheckpointSaved:
    """What a resume stands on. `outputs`: component -> port -> hash of its rows."""

    subjob: str
    bytes: int
    status: str = "ok"
    globals: JsonMap = field(default_factory=dict)
    outputs: JsonMap = field(default_factory=dict)
    context: Json = None


@frozen
class ComponentStarted:
    """`sees`: the scopes whose globals it finds. `opens`: it is a joblet call, and this is the scope of its inside."""

    component: str
    type: str
    subjob: str
    sees: list[str] = field(default_factory=list)
    rows_in: JsonMap = field(default_factory=dict)
    opens: str | None = None


@frozen
class ComponentEnded:
    """`dies`: the job ends once its error path has run (D18, D38)."""

    component: str
    status: Literal["ok", "error"]
    rows_in: JsonMap = field(default_factory=dict)
    rows_out: JsonMap = field(default_factory=dict)
    outputs: JsonMap = field(default_factory=dict)
    after: JsonMap = field(default_factory=dict)
    result: Json = None
    error: Json = None
    ms: float = 0.0
    dies: bool = False
    exit_code: int | None = None


@frozen
class ComponentSkipped:
    """`cause` is for people; `upstream` and `link` say which of its links decided it."""

    component: str
    subjob: str
    cause: str
    upstream: str | None = None
    link: str | None = None
    subjob_name: str = ""
    index: int = 0
    container: str = ""


@frozen
class LinkFired:
    """In the log the source is called `from`, the target `to`."""

    source: str
    target: str
    on: str
    order: int
    link: int


@frozen
class GlobalSet:
    """`local`: another sub-job made the key and the writer may not export it, so only its own sub-job sees the new value."""

    key: str
    old: Json
    new: Json
    writer: str
    scope: str
    local: bool = False
    creator: str = ""
    is_set: bool = False


@frozen
class IteratorStarted:
    """`items` is what the run is pinned to: a resume goes on over the same elements, whatever the source holds by then."""

    iterator: str
    total: int | None
    items: Json = None
    parallel: int = 1
    mode: str = "accumulate"


@frozen
class ElementStarted:
    """`subjobs`: so many lie in the body. With one, the iteration itself is that sub-job."""

    iterator: str
    index: int
    item: Json = None
    subjobs: int = 1


@frozen
class ElementEnded:
    """`handlers`: so many sub-jobs of the same iteration are still to come, led to by iteration_ok or iteration_error."""

    iterator: str
    index: int
    status: Literal["ok", "error"]
    error: Json = None
    handlers: int = 0


@frozen
class IteratorCompleted:
    iterator: str
    status: Literal["ok", "error"]
    total: int
    ok: int
    failed: int
    failures: list[int] = field(default_factory=list)
    """The first of the failed ones."""


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
    | SubjobStarted
    | SubjobEnded
    | CheckpointSaved
    | ComponentStarted
    | ComponentEnded
    | ComponentSkipped
    | LinkFired
    | GlobalSet
    | IteratorStarted
    | ElementStarted
    | ElementEnded
    | IteratorCompleted
)


class Fact(NamedTuple):
    scope: str
    clock: LogicalClock
    body: Body
    cause: str | None = None
    task: str | None = None


FIXED_TYPES: dict[type[object], str] = {
    ExecutionResumed: "playbook.resumed",
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
    SubjobStarted: "subjob.started",
    CheckpointSaved: "checkpoint.saved",
    ComponentStarted: "component.started",
    ComponentSkipped: "component.skipped",
    LinkFired: "edge.fired",
    GlobalSet: "global.set",
    IteratorStarted: "iterator.started",
    ElementStarted: "iteration.started",
    IteratorCompleted: "iterator.completed",
}

CLASSES: dict[str, type[object]] = {
    **{name: body for body, name in FIXED_TYPES.items()},
    "playbook.started": ExecutionStarted,
    "playbook.interrupted": ExecutionInterrupted,
    "playbook.cancelling": CancelAsked,
    "playbook.completed": ExecutionEnded,
    "playbook.failed": ExecutionEnded,
    "playbook.cancelled": ExecutionEnded,
    "loop.iteration.done": IterationEnded,
    "loop.iteration.failed": IterationEnded,
    "step.done": RunEnded,
    "step.failed": RunEnded,
    "loop.done": RunEnded,
    "job.started": ExecutionStarted,
    "job.interrupted": ExecutionInterrupted,
    "job.cancelling": CancelAsked,
    "job.completed": ExecutionEnded,
    "job.failed": ExecutionEnded,
    "job.cancelled": ExecutionEnded,
    "subjob.ok": SubjobEnded,
    "subjob.error": SubjobEnded,
    "subjob.skipped": SubjobEnded,
    "component.ok": ComponentEnded,
    "component.error": ComponentEnded,
    "iteration.ok": ElementEnded,
    "iteration.error": ElementEnded,
}

# What the holder of a lease decides: a pipeline or a loop of a step run; the components of a sub-job and their links.
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
        "component.started",
        "component.ok",
        "component.error",
        "component.skipped",
        "edge.fired",
        "global.set",
        "iterator.started",
        "iteration.started",
        "iteration.ok",
        "iteration.error",
        "iterator.completed",
    }
)

_BY_STATUS: dict[type[object], str] = {
    IterationEnded: "loop.iteration",
    SubjobEnded: "subjob",
    ComponentEnded: "component",
    ElementEnded: "iteration",
}


def event_type(body: Body) -> str:
    """The name of the event in the documents' words. A loop step ends in loop.done or step.failed, never in step.done (D50)."""
    fixed = FIXED_TYPES.get(type(body))
    if fixed is not None:
        return fixed
    prefix = _BY_STATUS.get(type(body))
    if prefix is not None:
        return f"{prefix}.{body.status}"  # type: ignore[union-attr]
    if isinstance(body, RunEnded):
        return boundary(body)
    if isinstance(body, ExecutionEnded):
        return f"{body.kind}.{body.status}"
    if isinstance(body, ExecutionStarted):
        return f"{body.kind}.started"
    if isinstance(body, ExecutionInterrupted):
        return f"{body.kind}.interrupted"
    if isinstance(body, CancelAsked):
        return f"{body.kind}.cancelling"
    raise TypeError(f"not a fact: {body!r}")


def boundary(body: RunEnded) -> str:
    if body.status == "failed":
        return "step.failed"
    return "loop.done" if body.looped else "step.done"
