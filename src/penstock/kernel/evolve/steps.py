"""The part of `evolve` that knows of steps: tokens, step runs with their tasks, and the arcs that lead on."""

from __future__ import annotations

from penstock.kernel import facts, shards
from penstock.kernel.errors import Bug
from penstock.kernel.evolve import pipelines
from penstock.kernel.evolve.executions import close_child, execution_of
from penstock.kernel.evolve.fans import reopen_loop
from penstock.kernel.facts import Fact
from penstock.kernel.places import Place
from penstock.kernel.state import (
    FAILED_FAST,
    OK,
    RUNNING,
    Death,
    Execution,
    Pipeline,
    State,
    StepRun,
    Token,
    Unhandled,
    last_outcome,
    number_after,
)

# ---- tokens


def token_created(state: State, fact: Fact, body: facts.TokenCreated, ts: float) -> None:
    execution, path = execution_of(state, fact.scope), tuple(body.path)
    execution.tokens[path] = Token(body.step, path, body.args, body.origin, body.parent_step_run_id)
    execution.top = max(execution.top, path[0])


def token_refused(state: State, fact: Fact, body: facts.TokenRefused, ts: float) -> None:
    execution = execution_of(state, fact.scope)
    execution.tokens.pop(tuple(body.path), None)
    if body.error is not None:
        execution.unhandled.append(Unhandled(body.step, None, body.error))


def token_stranded(state: State, fact: Fact, body: facts.TokenStranded, ts: float) -> None:
    execution_of(state, fact.scope).tokens[tuple(body.path)].counter += 1


# ---- runs


def scheduled(state: State, fact: Fact, body: facts.RunScheduled, ts: float) -> None:
    execution, path = execution_of(state, fact.scope), tuple(body.path)
    for consumed in body.tokens or [list(path)]:
        execution.tokens.pop(tuple(consumed), None)
    execution.visits[body.step] = body.visit
    run = StepRun(
        Place(fact.scope, fact.clock[:-1]),
        execution.subjobs[execution.id],
        counter=number_after(fact),
        step=body.step,
        path=path,
        visit=body.visit,
        args=body.args,
        ctx=execution.ctx.values,
        scheduled_at=ts,
    )
    if body.continues is not None:
        _inherit(execution, run, body.continues)
    execution.runs[fact.scope] = state.runs[fact.scope] = run


def _inherit(execution: Execution, run: StepRun, continued: str) -> None:
    """A reopened run goes on where the failed one stopped: what ended OK there is not run again."""
    for at, unhandled in enumerate(execution.unhandled):
        if unhandled.run is not None and unhandled.run.place.id == continued:
            failed = unhandled.run
            del execution.unhandled[at]
            break
    else:
        raise Bug(f"`{run.place.id}` continues `{continued}`, which did not fail")
    run.ctx, run.continued, run.loop_id = failed.ctx, failed.path, failed.loop_name
    if failed.pipeline is not None:
        run.pipeline = pipelines.reopened(failed.pipeline, run.place)
    if failed.loop is not None:
        reopen_loop(failed.loop)
    elif (fanned_out := shards.shards_of(failed)) is not None:
        shards.reopen(fanned_out)
    run.fan = failed.fan


def started(state: State, fact: Fact, body: facts.RunStarted, ts: float) -> None:
    run: StepRun = state.runs[fact.scope]
    run.status, run.started_at, run.counter = RUNNING, ts, number_after(fact)
    if run.fan is not None:
        return
    if run.pipeline is None:
        run.pipeline = Pipeline(run.place, run.ctx)
    run.pipeline.counter = run.counter


def ended(state: State, run: StepRun, body: facts.RunEnded) -> None:
    execution = run.subjob.scope
    assert isinstance(execution, Execution)
    del state.runs[run.place.id], execution.runs[run.place.id]
    run.ended, run.outcome = body, last_outcome(run, body)
    execution.ending[run.place.id] = run
    execution.ctx.merge(body.writes, run.path, run.continued)
    if run.status == OK:
        execution.results[body.step] = body.result
        if run.path >= execution.result_path:
            execution.result, execution.result_path = body.result, run.path
        run.pipeline = None
        if run.loop is not None:
            run.fan = None
        return
    execution.unhandled.append(Unhandled(body.step, run, body.error))
    for pipeline in run.loop.open.values() if run.loop is not None else ():
        state.iterations.pop(pipeline.place.id, None)


def arcs_selected(state: State, fact: Fact, body: facts.ArcsSelected, ts: float) -> None:
    execution = execution_of(state, fact.scope)
    run = execution.ending[fact.scope]
    run.counter += 1
    execution.ctx.merge(body.writes, run.path)
    run.awaiting = len(body.arcs)
    if not run.awaiting:
        del execution.ending[fact.scope]
    if not body.unhandled:
        execution.unhandled = [one for one in execution.unhandled if one.run is not run]
    if body.error is not None:
        execution.unhandled.append(Unhandled(run.step, None, body.error))
    if body.abort:
        execution.deaths.append(Death(fact.scope, FAILED_FAST.format(run.step)))


def arc_enqueued(state: State, fact: Fact, body: facts.ArcEnqueued, ts: float) -> None:
    execution = execution_of(state, fact.scope)
    run = execution.ending[fact.scope]
    run.counter += 1
    run.awaiting -= 1
    if not run.awaiting:
        del execution.ending[fact.scope]


# ---- tasks


def task_started(state: State, fact: Fact, body: facts.TaskStarted, ts: float) -> None:
    pipeline = _pipeline(state, fact.scope)
    if pipeline is not None:
        pipelines.task_started(pipeline, body, fact.task)


def task_ended(state: State, fact: Fact, body: facts.TaskEnded, ts: float) -> None:
    pipeline = _pipeline(state, fact.scope)
    if pipeline is None:
        return
    if pipeline.children:
        # Of a failed pipeline the child's state is kept, and that of its own, so that a resume can go on in them.
        is_over = body.do != "fail"
        for child in list(pipeline.children):
            close_child(state, child, is_over=is_over)
        if is_over:
            pipeline.children.clear()
    pipelines.task_ended(pipeline, body, ts)
    held = state.iterations.get(fact.scope) if pipeline.ended is not None else None
    if held is not None:
        assert held[0].fan is not None
        held[0].fan.waiting += 1


def _pipeline(state: State, scope: str) -> Pipeline | None:
    """None of an element of a fanned-out loop: its worker alone has a state of its pipeline."""
    held = state.iterations.get(scope)
    if held is not None:
        return held[1]
    run = state.runs.get(scope)
    if run is None and scope.endswith("]") and isinstance(state.runs[scope[: scope.rfind("[")]].fan, shards.Shards):
        return None
    if run is None or run.pipeline is None:
        raise Bug(f"no pipeline is open at `{scope}`")
    return run.pipeline  # type: ignore[no-any-return]
