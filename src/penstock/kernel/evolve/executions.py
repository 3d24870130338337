"""Transitions for executions: how they start, stop, resume and end."""

from __future__ import annotations

from penstock.kernel import facts
from penstock.kernel.errors import Bug
from penstock.kernel.evolve.restart import apply_resume, continue_in
from penstock.kernel.facts import Fact
from penstock.kernel.kept import STATE, part
from penstock.kernel.places import Place, child_place
from penstock.kernel.state import RUNNING, Execution, State, StepRun, Subjob


def execution_of(state: State, scope: str) -> Execution:
    """The execution that a scope id belongs to. Its own id is everything up to and including the last slash."""
    execution = state.executions.get(scope[: scope.rfind("/") + 1])
    if execution is None:
        raise Bug(f"a fact names the scope `{scope}`, in an execution that was never opened")
    return execution


def find_or_open_subjob(state: State, scope: str, name: str, number: int, around: str) -> Subjob:
    """The sub-job `scope`; created if it is not known yet.

    It first appears when it starts or when one of its members is skipped; that of a playbook, with its execution.
    """
    subjob = state.subjobs.get(scope)
    if subjob is None:
        container = state.scopes.get(around)
        if container is None:
            raise Bug(f"a fact names the scope `{around}`, which was never opened")
        place, counter = Place(scope, (*container.place.clock, (number,))), state.counter(scope)
        state.counters.pop(scope, None)
        subjob = Subjob(name, number, place, container, counter=counter, handles=bool(container.body))
        container.subjobs[scope] = state.subjobs[scope] = subjob
    return subjob


def started(state: State, fact: Fact, body: facts.ExecutionStarted, ts: float) -> None:
    execution, before = state.executions.get(fact.scope), None
    if execution is None:
        execution, before = _open_child(state, fact, body.continues)
    if body.resumed and execution.status != "new":
        execution.status, execution.error, execution.ended_at, execution.exit_code = "running", None, None, None
        execution.counter += 1
        apply_resume(state, execution, body)
        return
    if execution.status != "new":
        raise Bug(f"scope `{fact.scope}` starts twice")
    execution.status, execution.started_at, execution.counter = "running", ts, 1
    execution.name, execution.digest, execution.workload = body.name, body.digest, body.workload
    execution.document, execution.trace_id = body.document, body.trace_id
    execution.kind, execution.rules = body.kind, body.rules
    execution.continues, execution.kept = body.continues, body.state
    if body.state is not None and before is None:
        execution.ctx.values = {STATE: part(body.state, "values")}
    if body.kind == "playbook":
        find_or_open_subjob(state, fact.scope, body.name, 0, fact.scope).status = RUNNING
    elif before is not None:
        continue_in(state, before, execution, body.kept)


def _open_child(state: State, fact: Fact, continues: str | None) -> tuple[Execution, Execution | None]:
    """Open a child execution. Also returns the failed child it continues, if any."""
    task_run_id = fact.scope.removesuffix("/")
    holder = state.component(task_run_id) or state.pipelines.get(task_run_id.rpartition("/")[0])
    if holder is None:
        raise Bug(f"no task is under way that could run `{fact.scope}`")
    children = holder.children
    child, before = Execution(place=child_place(task_run_id, fact.clock[:-2])), None
    if continues is not None:
        before = children.pop(continues, None) or state.executions.get(f"{continues}/")
        if before is None:
            raise Bug(f"`{fact.scope}` continues `{continues}`, which never ran")
        # What that child has finished is kept, and what failed there can be reopened.
        child.ctx, child.results, child.visits = before.ctx, before.results, before.visits
        child.result, child.result_path = before.result, before.result_path
        child.tokens, child.unhandled, child.top = before.tokens, before.unhandled, before.top
    children[task_run_id] = state.executions[fact.scope] = child
    state.scopes[fact.scope] = child
    return child, before


def interrupted(state: State, fact: Fact, body: facts.ExecutionInterrupted, ts: float) -> None:
    execution = execution_of(state, fact.scope)
    execution.counter += 1
    execution.status = "interrupted"


def resumed(state: State, fact: Fact, body: facts.ExecutionResumed, ts: float) -> None:
    execution = execution_of(state, fact.scope)
    execution.counter += 1
    execution.status, execution.error, execution.ended_at = "running", None, None
    for one in state.executions.values():
        one.resumed_at = ts
    if body.reopened:
        execution.deaths = []


def cancel_asked(state: State, fact: Fact, body: facts.CancelAsked, ts: float) -> None:
    execution = execution_of(state, fact.scope)
    execution.counter += 1
    execution.cancelling = True


def ended(state: State, fact: Fact, body: facts.ExecutionEnded, ts: float) -> None:
    execution = execution_of(state, fact.scope)
    execution.counter += 1
    execution.status, execution.error, execution.ended_at = body.status, body.error, ts
    execution.exit_code, execution.failed_iterations = body.exit_code, body.failed_iterations


def close_child(state: State, task_run_id: str, *, is_over: bool) -> None:
    """The task has reported the outcome of its child execution: nothing more is recorded in the child."""
    scope = f"{task_run_id}/"
    for key in [key for key in state.pipelines if key.startswith(scope)]:
        del state.pipelines[key]
    for key in [key for key, run in state.runs.items() if key.startswith(scope) and (is_over or type(run) is StepRun)]:
        del state.runs[key]
    for index in (state.executions, state.scopes, state.subjobs, state.counters) if is_over else ():
        for key in [key for key in index if key.startswith(scope)]:
            del index[key]
