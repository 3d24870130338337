"""Facts: what the log holds. One class per event type; the fields are the event's payload.

Law: a fact carries every verdict it depends on (which rule matched, what was written, where the cursor goes), so that folding
facts into state needs neither the document nor an expression, and a log of any release can always be folded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias, cast

from penstock.kernel.facts.components import (
    CheckpointSaved,
    ComponentEnded,
    ComponentSkipped,
    ComponentStarted,
    ElementEnded,
    ElementStarted,
    GlobalSet,
    IteratorCompleted,
    IteratorStarted,
    LinkFired,
    SubjobEnded,
    SubjobStarted,
)
from penstock.kernel.facts.executions import (
    RULES,
    CancelAsked,
    ExecutionEnded,
    ExecutionInterrupted,
    ExecutionResumed,
    ExecutionStarted,
)
from penstock.kernel.facts.fanouts import (
    FaninCompleted,
    FanoutStarted,
    ShardFailed,
    ShardsDone,
    ShardsEnqueued,
    ShardsReported,
    ShardsReturned,
    ShardsStarted,
)
from penstock.kernel.facts.steps import (
    ArcEnqueued,
    ArcsSelected,
    ElementsClaimed,
    IterationEnded,
    IterationStarted,
    LoopStarted,
    RunEnded,
    RunScheduled,
    RunStarted,
    TaskEnded,
    TaskStarted,
    TokenCreated,
    TokenRefused,
    TokenStranded,
)
from penstock.kernel.places import LogicalClock

__all__ = [
    "CLASSES",
    "FIXED_TYPES",
    "RULES",
    "WORKER_TYPES",
    "ArcEnqueued",
    "ArcsSelected",
    "Body",
    "CancelAsked",
    "CheckpointSaved",
    "ComponentEnded",
    "ComponentSkipped",
    "ComponentStarted",
    "ElementEnded",
    "ElementStarted",
    "ElementsClaimed",
    "ExecutionEnded",
    "ExecutionInterrupted",
    "ExecutionResumed",
    "ExecutionStarted",
    "Fact",
    "FaninCompleted",
    "FanoutStarted",
    "GlobalSet",
    "IterationEnded",
    "IterationStarted",
    "IteratorCompleted",
    "IteratorStarted",
    "LinkFired",
    "LoopStarted",
    "RunEnded",
    "RunScheduled",
    "RunStarted",
    "ShardFailed",
    "ShardsDone",
    "ShardsEnqueued",
    "ShardsReported",
    "ShardsReturned",
    "ShardsStarted",
    "SubjobEnded",
    "SubjobStarted",
    "TaskEnded",
    "TaskStarted",
    "TokenCreated",
    "TokenRefused",
    "TokenStranded",
    "event_type",
]

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
    | ElementsClaimed
    | IterationStarted
    | IterationEnded
    | RunEnded
    | FanoutStarted
    | ShardsEnqueued
    | ShardsStarted
    | ShardsReported
    | ShardsDone
    | ShardFailed
    | ShardsReturned
    | FaninCompleted
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


# `Fact(…)` without the names of its fields, and so in half the time: one is made for every event.
as_fact = cast("Callable[[tuple[str, LogicalClock, Body, str | None, str | None]], Fact]", partial(tuple.__new__, Fact))

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
    ElementsClaimed: "loop.claimed",
    IterationStarted: "loop.iteration.started",
    FanoutStarted: "loop.fanout.started",
    ShardsEnqueued: "loop.shard.enqueued",
    ShardsStarted: "loop.shard.started",
    ShardsReported: "loop.shard.reported",
    ShardsDone: "loop.shard.done",
    ShardFailed: "loop.shard.failed",
    ShardsReturned: "loop.shard.returned",
    FaninCompleted: "loop.fanin.completed",
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

# Recorded by the holder of a lease: the pipeline or loop of a step run; the components of a sub-job and their links.
WORKER_TYPES = frozenset(
    {
        "task.started",
        "task.done",
        "loop.started",
        "loop.claimed",
        "loop.iteration.started",
        "loop.iteration.done",
        "loop.iteration.failed",
        "loop.shard.started",
        "loop.shard.reported",
        "loop.shard.done",
        "loop.shard.failed",
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
    """The type of the event in the log. A loop step ends in loop.done or step.failed, never in step.done (D50)."""
    fixed = FIXED_TYPES.get(type(body))
    if fixed is not None:
        return fixed
    prefix = _BY_STATUS.get(type(body))
    if prefix is not None:
        return f"{prefix}.{body.status}"  # type: ignore[union-attr]
    if isinstance(body, RunEnded):
        return "step.failed" if body.status == "failed" else "loop.done" if body.looped else "step.done"
    if isinstance(body, ExecutionEnded):
        return f"{body.kind}.{body.status}"
    if isinstance(body, ExecutionStarted):
        return f"{body.kind}.started"
    if isinstance(body, ExecutionInterrupted):
        return f"{body.kind}.interrupted"
    if isinstance(body, CancelAsked):
        return f"{body.kind}.cancelling"
    raise TypeError(f"not a fact: {body!r}")
