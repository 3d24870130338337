"""evolve: applies one fact to the state. One fact in, one transition; no expression is evaluated and no decision made.

A fact can be understood without the document: a start names the scopes whose globals it sees, a sub-job names its container. The
transitions of a loop that is fanned out are in `penstock.kernel.shards`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.kernel import facts, shards
from penstock.kernel.errors import Bug
from penstock.kernel.evolve import edges, executions, fans, pipelines, runs, subjobs
from penstock.kernel.facts import Fact
from penstock.kernel.state import State


def evolve(state: State, fact: Fact, ts: float) -> None:
    body = fact.body
    handler = _HANDLERS.get(type(body))
    if handler is None:
        raise Bug(f"no transition for {type(body).__name__}")
    handler(state, fact, body, ts)


_HANDLERS: dict[type[object], Callable[[State, Fact, Any, float], None]] = {
    facts.ExecutionStarted: executions.started,
    facts.ExecutionInterrupted: executions.interrupted,
    facts.ExecutionResumed: executions.resumed,
    facts.CancelAsked: executions.cancel_asked,
    facts.ExecutionEnded: executions.ended,
    facts.TokenCreated: edges.token_created,
    facts.TokenRefused: edges.token_refused,
    facts.TokenStranded: edges.token_stranded,
    facts.RunScheduled: runs.scheduled,
    facts.RunStarted: runs.started,
    facts.RunEnded: runs.ended,
    facts.ArcsSelected: edges.arcs_selected,
    facts.ArcEnqueued: edges.fired,
    facts.TaskStarted: pipelines.moved,
    facts.TaskEnded: pipelines.moved,
    facts.LoopStarted: fans.started,
    facts.ElementsClaimed: fans.claimed,
    facts.IterationStarted: fans.part_started,
    facts.IterationEnded: fans.part_ended,
    facts.FanoutStarted: fans.started,
    facts.ShardsEnqueued: shards.moved,
    facts.ShardsStarted: shards.moved,
    facts.ShardsReported: shards.moved,
    facts.ShardsDone: shards.moved,
    facts.ShardFailed: shards.moved,
    facts.ShardsReturned: shards.moved,
    facts.FaninCompleted: shards.moved,
    facts.SubjobStarted: subjobs.started,
    facts.SubjobEnded: subjobs.ended,
    facts.CheckpointSaved: subjobs.counted,
    facts.ComponentStarted: runs.started,
    facts.ComponentEnded: runs.ended,
    facts.ComponentSkipped: runs.skipped,
    facts.LinkFired: edges.fired,
    facts.GlobalSet: runs.global_set,
    facts.IteratorStarted: fans.started,
    facts.ElementStarted: fans.part_started,
    facts.ElementEnded: fans.part_ended,
    facts.IteratorCompleted: subjobs.counted,
}
