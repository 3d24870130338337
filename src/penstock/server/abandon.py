"""Giving up scopes that nobody works on: every start in the log gets its end, and then the execution does.

A worker that is told to stop closes its own scopes; this does the same for scopes whose worker is gone. No tool is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from penstock.kernel.decide import Admission, Decider, Selection, stopped
from penstock.kernel.errors import Bug
from penstock.kernel.evolve import Execution
from penstock.kernel.facts import Body, ExecutionResumed, Fact, RunEnded, TaskEnded
from penstock.kernel.loop import given_up
from penstock.kernel.net import Do, Net, Node
from penstock.kernel.pipeline import END
from penstock.kernel.places import event_name
from penstock.kernel.state import ExecutionState, PipelineState, RunState, Token
from penstock.kernel.values import Json, JsonMap

if TYPE_CHECKING:
    from penstock.kernel.flow.state import ComponentState

NetOf: TypeAlias = Callable[[Json], Net]
"""From the document that a child execution is pinned to, to its net."""
PART_OF_IT = "the run that it is part of was stopped"


class NobodyAsked:
    """While an execution is being cancelled no token moves and no arc is looked at, so no expression is evaluated."""

    def admit(self, node: Node, token: Token) -> Admission:
        raise Bug(f"a token asks to be let into `{node.name}` while the run is being cancelled")

    def select(self, node: Node, run: RunState, end: RunEnded) -> Selection:
        raise Bug(f"the arcs of `{node.name}` are asked about while the run is being cancelled")


def cancel_job(
    tree: Execution, state: ExecutionState, net: Net, record: Callable[[Fact], None], reason: str, net_of: NetOf
) -> None:
    """Cancel a job that was folded from its log, with what its components run."""
    from penstock.kernel.flow.abandoning import cancel as cancel_flow
    from penstock.kernel.flow.decide import Flow
    from penstock.server.job_judge import NobodyJudges

    def end_child_of(component: ComponentState) -> None:
        end_child(tree, tree.executions.get(f"{component.place.id}/"), record, net_of)

    cancel_flow(Flow(tree, state, net, NobodyJudges(), record), reason, end_child_of)


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
        end_run(decider, run, stopped(run.step, why), net_of)


def end_run(decider: Decider, run: RunState, failure: JsonMap, net_of: NetOf) -> None:
    """End one run that nobody works on, with all that it had begun."""
    pipeline, loop = run.pipeline, run.loop
    fan = decider.net.nodes[run.step].fan
    is_fanned_out = fan is not None and fan.fanout is not None
    if is_fanned_out:
        writes, counter = {}, run.counter
    elif loop is not None:
        for index, one in sorted(loop.open.items()):
            _stop(decider, one, failure, net_of)
            _record(decider, one, given_up(loop, index, one, failure))
        writes, counter = loop.staged.as_writes(), run.counter
    elif pipeline is not None:
        _stop(decider, pipeline, failure, net_of)
        writes, counter = pipeline.staged.as_writes(), pipeline.counter
    else:
        raise Bug(f"`{run.place.id}` was scheduled and has nothing to run")
    looped = fan is not None
    body = RunEnded(run.step, "failed", None, failure, writes, looped=looped, given_up=True, fanned_out=is_fanned_out)
    decider.end_run(run.place.id, body, counter)


def forsake(tree: Execution, pipeline: PipelineState, record: Callable[[Fact], None], net_of: NetOf) -> None:
    """End the playbook or job that the task under way runs, if there is one that nobody drives any more."""
    end_child(tree, pipeline.children.get(pipeline.under_way or ""), record, net_of)


def end_child(tree: Execution, child: ExecutionState | None, record: Callable[[Fact], None], net_of: NetOf) -> None:
    if child is None or child.status != "running":
        return
    net = net_of(child.document)
    if child.kind == "job":
        cancel_job(tree, child, net, record, PART_OF_IT, net_of)
        return
    inner = Decider(tree, child, net, NobodyAsked(), record)
    inner.cancel(PART_OF_IT)
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
