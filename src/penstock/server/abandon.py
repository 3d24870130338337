"""Giving up scopes that nobody works on: every start in the log gets its end, and then the execution does.

A worker that is told to stop closes its own scopes; this does the same for scopes whose worker is gone. No tool is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from penstock.kernel.decide import Admission, Decider, Selection, stopped
from penstock.kernel.errors import Bug
from penstock.kernel.evolve import Execution
from penstock.kernel.facts import Body, ExecutionResumed, Fact, RunEnded, TaskEnded
from penstock.kernel.loop import given_up
from penstock.kernel.net import Do, Net, Node
from penstock.kernel.pipeline import END
from penstock.kernel.places import event_name
from penstock.kernel.state import PipelineState, RunState, Token
from penstock.kernel.values import Json, JsonMap

NetOf: TypeAlias = Callable[[Json], Net]
"""From the document that a sub-playbook is pinned to, to its net."""


class NobodyAsked:
    """While an execution is being cancelled no token moves and no arc is looked at, so no expression is evaluated."""

    def admit(self, node: Node, token: Token) -> Admission:
        raise Bug(f"a token asks to be let into `{node.name}` while the run is being cancelled")

    def select(self, node: Node, run: RunState, end: RunEnded) -> Selection:
        raise Bug(f"the arcs of `{node.name}` are asked about while the run is being cancelled")


def cancel(decider: Decider, reason: str, net_of: NetOf) -> None:
    """Cancel an execution that was folded from its log, down to its last fact."""
    state = decider.state
    if state.status == "interrupted":  # It is taken up once more, in order to be ended.
        place = state.place
        decider.record(Fact(place.id, (*place.clock, (), state.counter), ExecutionResumed()))
    decider.cancel(reason)
    give_up(decider, net_of)


def give_up(decider: Decider, net_of: NetOf) -> None:
    """End all runs of an execution that is being cancelled or aborted, and of the sub-playbooks in them."""
    why = "cancel" if decider.state.cancelling else "abort"
    for run in sorted(decider.state.runs.values(), key=lambda run: run.path):
        _end(decider, run, stopped(run.step, why), net_of)


def _end(decider: Decider, run: RunState, failure: JsonMap, net_of: NetOf) -> None:
    pipeline, loop = run.pipeline, run.loop
    if loop is not None:
        for index, one in sorted(loop.open.items()):
            _stop(decider, one, failure, net_of)
            _record(decider, one, given_up(loop, index, one, failure))
        writes, counter = loop.staged.as_writes(), run.counter
    elif pipeline is not None:
        _stop(decider, pipeline, failure, net_of)
        writes, counter = pipeline.staged.as_writes(), pipeline.counter
    else:
        raise Bug(f"`{run.place.id}` was scheduled and has nothing to run")
    looped = decider.net.nodes[run.step].fan is not None
    body = RunEnded(run.step, "failed", None, failure, writes, looped=looped, given_up=True)
    decider.end_run(run.place.id, body, counter)


def forsake(tree: Execution, pipeline: PipelineState, record: Callable[[Fact], None], net_of: NetOf) -> None:
    """End the sub-playbook of the task under way, if there is one that nobody drives any more."""
    child = pipeline.children.get(pipeline.under_way or "")
    if child is not None and child.status == "running":
        inner = Decider(tree, child, net_of(child.document), NobodyAsked(), record)
        inner.cancel("the run that it is part of was stopped")
        give_up(inner, net_of)


def _stop(decider: Decider, pipeline: PipelineState, failure: JsonMap, net_of: NetOf) -> None:
    """A task that was under way gets the outcome it never gave."""
    task_run_id = pipeline.under_way
    if task_run_id is None:
        return
    forsake(decider.tree, pipeline, decider.record, net_of)
    label = task_run_id.rpartition("/")[2].rpartition("#")[0]
    outcome: JsonMap = {"status": "error", "error": failure, "meta": {"attempt": pipeline.attempt}}
    body = TaskEnded(label, pipeline.attempt, outcome, Do.FAIL.value, END, error=failure, given_up=True)
    _record(decider, pipeline, body, task_run_id)


def _record(decider: Decider, pipeline: PipelineState, body: Body, task: str | None = None) -> None:
    place = pipeline.place
    cause = event_name(place.id, pipeline.counter - 1)
    decider.record(Fact(place.id, (*place.clock, pipeline.counter), body, cause, task))
