"""evolve: the only code that writes State. One fact in, one transition, no expression evaluated and no decision made.

No fact needs the document to be understood: a start says which scopes' globals it sees, a sub-job says where it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.kernel import facts, shards
from penstock.kernel.errors import Bug
from penstock.kernel.evolve import components, executions, fans, steps
from penstock.kernel.facts import Fact
from penstock.kernel.state import STATUSES, State, StepRun, number_after


def evolve(state: State, fact: Fact, ts: float) -> None:
    handler = _HANDLERS.get(type(fact.body))
    if handler is None:
        raise Bug(f"no transition for {type(fact.body).__name__}")
    handler(state, fact, fact.body, ts)


def _run_ended(state: State, fact: Fact, body: facts.RunEnded | facts.ComponentEnded, ts: float) -> None:
    run = state.runs[fact.scope]
    run.counter = number_after(fact)
    run.status, run.error = STATUSES[body.status], body.error
    run.subjob.ended += 1
    if isinstance(run, StepRun):
        steps.ended(state, run, body)  # type: ignore[arg-type]
    else:
        components.ended(state, run, body)  # type: ignore[arg-type]


_HANDLERS: dict[type[object], Callable[[State, Fact, Any, float], None]] = {
    facts.ExecutionStarted: executions.started,
    facts.ExecutionInterrupted: executions.interrupted,
    facts.ExecutionResumed: executions.resumed,
    facts.CancelAsked: executions.cancel_asked,
    facts.ExecutionEnded: executions.ended,
    facts.TokenCreated: steps.token_created,
    facts.TokenRefused: steps.token_refused,
    facts.TokenStranded: steps.token_stranded,
    facts.RunScheduled: steps.scheduled,
    facts.RunStarted: steps.started,
    facts.RunEnded: _run_ended,
    facts.ArcsSelected: steps.arcs_selected,
    facts.ArcEnqueued: steps.arc_enqueued,
    facts.TaskStarted: steps.task_started,
    facts.TaskEnded: steps.task_ended,
    facts.LoopStarted: fans.started,
    facts.IterationStarted: fans.part_started,
    facts.IterationEnded: fans.iteration_ended,
    facts.FanoutStarted: fans.started,
    facts.ShardsEnqueued: shards.moved,
    facts.ShardsStarted: shards.moved,
    facts.ShardsReported: shards.moved,
    facts.ShardsDone: shards.moved,
    facts.ShardFailed: shards.moved,
    facts.ShardsReturned: shards.moved,
    facts.FaninCompleted: shards.moved,
    facts.SubjobStarted: components.subjob_started,
    facts.SubjobEnded: components.subjob_ended,
    facts.CheckpointSaved: components.checkpoint_saved,
    facts.ComponentStarted: components.started,
    facts.ComponentEnded: _run_ended,
    facts.ComponentSkipped: components.skipped,
    facts.LinkFired: components.link_fired,
    facts.GlobalSet: components.global_set,
    facts.IteratorStarted: fans.started,
    facts.ElementStarted: fans.part_started,
    facts.ElementEnded: fans.element_ended,
    facts.IteratorCompleted: fans.completed,
}
