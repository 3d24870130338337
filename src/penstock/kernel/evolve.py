"""evolve: the only code that writes State. One fact in, one transition, no expression evaluated and no decision made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel import facts, progress
from penstock.kernel import fanout as fanouts
from penstock.kernel.errors import Bug
from penstock.kernel.facts import Fact
from penstock.kernel.flow.index import FlowIndex
from penstock.kernel.kept import STATE, part
from penstock.kernel.places import Place, child_place, run_place
from penstock.kernel.state import (
    ExecutionState,
    LoopState,
    PipelineState,
    RunState,
    Token,
    Unhandled,
    last_outcome,
)


@dataclass(slots=True)
class Execution:
    """The whole tree of scopes of one execution, with an index from scope id to state so that a fact finds its owner at once."""

    root: ExecutionState = field(default_factory=ExecutionState)
    executions: dict[str, ExecutionState] = field(default_factory=dict)
    owners: dict[str, ExecutionState] = field(default_factory=dict)
    """Run place id -> the execution state it belongs to."""
    runs: dict[str, RunState] = field(default_factory=dict)
    iterations: dict[str, tuple[RunState, PipelineState]] = field(default_factory=dict)
    flow: FlowIndex = field(default_factory=FlowIndex)
    on_iteration_closed: Callable[[RunState, facts.IterationEnded, PipelineState], None] | None = None
    on_shards: Callable[[RunState, facts.Body], None] | None = None
    """Told of every fact of a fanned-out loop, once it is in the state."""

    def __post_init__(self) -> None:
        self.executions.setdefault("", self.root)


def evolve(tree: Execution, fact: Fact, ts: float) -> None:
    handler = _HANDLERS.get(type(fact.body))
    if handler is not None:
        handler(tree, fact, fact.body, ts)
        return
    from penstock.kernel.flow import evolve as flows  # A playbook without jobs starts without them.

    if not flows.evolve(tree.flow, fact, ts):
        raise Bug(f"no transition for {type(fact.body).__name__}")


# ---- execution scope


def _execution(tree: Execution, scope: str) -> ExecutionState:
    state = tree.executions.get(scope)
    if state is None:
        raise Bug(f"a fact names the execution scope `{scope}`, which was never opened")
    return state


def _started(tree: Execution, fact: Fact, body: facts.ExecutionStarted, ts: float) -> None:
    state = tree.executions.get(fact.scope)
    if state is None:
        state = _open_child(tree, fact, body.continues)
    if body.resumed and state.flow is not None:
        from penstock.kernel.flow import evolve as flows

        state.status, state.error, state.ended_at, state.exit_code = "running", None, None, None
        _bump(state)
        flows.start_over(tree.flow, state.flow, body)
        return
    if state.status != "new":
        raise Bug(f"scope `{fact.scope}` starts twice")
    state.status = "running"
    state.name, state.digest, state.workload = body.name, body.digest, body.workload
    state.started_at, state.counter = ts, 1
    state.document, state.trace_id = body.document, body.trace_id
    state.kind, state.rules = body.kind, body.rules
    state.continues = body.continues
    state.kept = body.state
    if body.kind == "playbook" and body.state is not None and body.continues is None:
        state.ctx.values = {STATE: part(body.state, "values")}
    if body.kind == "job":
        from penstock.kernel.flow import evolve as flows

        before = state.flow
        state.flow = flows.open_root(tree.flow, state.place, body.rules)
        if before is not None:
            flows.continue_in(tree.flow, before, state.flow, body.kept)


def _open_child(tree: Execution, fact: Fact, continues: str | None) -> ExecutionState:
    task_run_id = fact.scope.removesuffix("/")
    component = tree.flow.components.get(task_run_id)
    children = (
        component.children if component is not None else pipeline_of(tree, task_run_id.rpartition("/")[0]).children
    )
    child = ExecutionState(place=child_place(task_run_id, fact.clock[:-2]))
    if continues is not None:
        before = children.pop(continues, None) or tree.executions.get(f"{continues}/")
        if before is None:
            raise Bug(f"`{fact.scope}` continues `{continues}`, which never ran")
        _carry_over(before, child)
    children[task_run_id] = child
    tree.executions[fact.scope] = child
    return child


def _carry_over(old: ExecutionState, child: ExecutionState) -> None:
    """A failed child goes on under its task's next run: what it finished stands, what failed is there to be reopened."""
    child.ctx, child.results, child.visits = old.ctx, old.results, old.visits
    child.result, child.result_path = old.result, old.result_path
    child.tokens, child.unhandled, child.top = old.tokens, old.unhandled, old.top
    child.flow = old.flow


def _bump(state: ExecutionState) -> None:
    state.counter += 1


def _interrupted(tree: Execution, fact: Fact, body: facts.ExecutionInterrupted, ts: float) -> None:
    state = _execution(tree, fact.scope)
    _bump(state)
    state.status = "interrupted"


def _resumed(tree: Execution, fact: Fact, body: facts.ExecutionResumed, ts: float) -> None:
    state = _execution(tree, fact.scope)
    _bump(state)
    state.status, state.error, state.ended_at = "running", None, None
    for one in tree.executions.values():
        one.resumed_at = ts
    if body.reopened:
        state.aborting = False


def _cancel_asked(tree: Execution, fact: Fact, body: facts.CancelAsked, ts: float) -> None:
    state = _execution(tree, fact.scope)
    _bump(state)
    state.cancelling = True


def _ended(tree: Execution, fact: Fact, body: facts.ExecutionEnded, ts: float) -> None:
    state = _execution(tree, fact.scope)
    _bump(state)
    state.status, state.error, state.ended_at = body.status, body.error, ts
    state.exit_code, state.failed_iterations = body.exit_code, body.failed_iterations


# ---- tokens


def _token_created(tree: Execution, fact: Fact, body: facts.TokenCreated, ts: float) -> None:
    state = _execution(tree, _execution_scope(fact.scope))
    path = tuple(body.path)
    state.tokens[path] = Token(body.step, path, body.args, body.origin, body.parent_step_run_id)
    state.top = max(state.top, path[0])


def _token_refused(tree: Execution, fact: Fact, body: facts.TokenRefused, ts: float) -> None:
    state = _execution(tree, _execution_scope(fact.scope))
    state.tokens.pop(tuple(body.path), None)
    if body.error is not None:
        state.unhandled.append(Unhandled(body.step, None, body.error))


def _token_stranded(tree: Execution, fact: Fact, body: facts.TokenStranded, ts: float) -> None:
    state = _execution(tree, _execution_scope(fact.scope))
    token = state.tokens[tuple(body.path)]
    token.counter += 1


# ---- runs


def _run_scheduled(tree: Execution, fact: Fact, body: facts.RunScheduled, ts: float) -> None:
    state = _execution(tree, _execution_scope(fact.scope))
    path = tuple(body.path)
    counter = 1
    for consumed in body.tokens or [list(path)]:
        token = state.tokens.pop(tuple(consumed), None)
        if token is not None and tuple(consumed) == path:
            counter = token.counter
    state.visits[body.step] = body.visit
    place = run_place(state.place, body.step, path)
    run = RunState(body.step, path, body.visit, place, body.args, state.ctx.values, ts, counter=counter + 1)
    if body.continues is not None:
        _inherit(state, run, body.continues)
    state.runs[place.id] = run
    tree.owners[place.id] = state
    tree.runs[place.id] = run


def _inherit(state: ExecutionState, run: RunState, continued: str) -> None:
    """A reopened run goes on where the failed one stopped: what ended OK there is not run again."""
    for at, unhandled in enumerate(state.unhandled):
        if unhandled.run is not None and unhandled.run.place.id == continued:
            failed = unhandled.run
            del state.unhandled[at]
            break
    else:
        raise Bug(f"`{run.place.id}` continues `{continued}`, which did not fail")
    run.ctx, run.continued, run.loop_id = failed.ctx, failed.path, failed.loop_name
    if failed.pipeline is not None:
        run.pipeline = progress.reopened(failed.pipeline, run)
    if failed.loop is not None:
        progress.reopen_loop(failed.loop, run)
    if failed.fanout is not None:
        fanouts.reopen(failed.fanout, run)


def _run_started(tree: Execution, fact: Fact, body: facts.RunStarted, ts: float) -> None:
    run = tree.runs[fact.scope]
    run.counter += 1
    run.started_at = ts
    if run.loop is not None or run.fanout is not None:
        return
    if run.pipeline is None:
        run.pipeline = PipelineState(place=run.place, ctx=run.ctx)
    run.pipeline.counter = run.counter


def _run_ended(tree: Execution, fact: Fact, body: facts.RunEnded, ts: float) -> None:
    run = tree.runs.pop(fact.scope)
    state = tree.owners.pop(fact.scope)
    state.runs.pop(fact.scope)
    run.counter = _last(fact) + 1
    run.ended, run.outcome = body, last_outcome(run, body)
    state.ending[fact.scope] = run
    state.ctx.merge(body.writes, run.path, run.continued)
    if body.status == "done":
        state.results[body.step] = body.result
        if run.path >= state.result_path:
            state.result, state.result_path = body.result, run.path
        run.pipeline = None
        run.loop = None
    else:
        state.unhandled.append(Unhandled(body.step, run, body.error))
    if run.loop is not None:
        _drop_iterations(tree, run.loop)


def _drop_iterations(tree: Execution, loop: LoopState) -> None:
    for pipeline in loop.open.values():
        tree.iterations.pop(pipeline.place.id, None)


def _arcs_selected(tree: Execution, fact: Fact, body: facts.ArcsSelected, ts: float) -> None:
    state = _execution(tree, _execution_scope(fact.scope))
    run = state.ending[fact.scope]
    run.counter += 1
    state.ctx.merge(body.writes, run.path)
    run.awaiting = len(body.arcs)
    if not run.awaiting:
        del state.ending[fact.scope]
    if not body.unhandled:
        state.unhandled = [one for one in state.unhandled if one.run is not run]
    if body.error is not None:
        state.unhandled.append(Unhandled(run.step, None, body.error))
    if body.abort:
        state.aborting = True


def _arc_enqueued(tree: Execution, fact: Fact, body: facts.ArcEnqueued, ts: float) -> None:
    state = _execution(tree, _execution_scope(fact.scope))
    run = state.ending[fact.scope]
    run.counter += 1
    run.awaiting -= 1
    if not run.awaiting:
        del state.ending[fact.scope]


# ---- pipelines


def pipeline_of(tree: Execution, scope: str) -> PipelineState:
    """The pipeline whose place is `scope`: a step run's, or an iteration's."""
    held = tree.iterations.get(scope)
    if held is not None:
        return held[1]
    run = tree.runs.get(scope)
    if run is None or run.pipeline is None:
        raise Bug(f"no pipeline is open at `{scope}`")
    return run.pipeline


def _is_of_shard(tree: Execution, scope: str) -> bool:
    """Of an element of a fanned-out loop: its worker alone has a state of its pipeline."""
    if not scope.endswith("]") or scope in tree.iterations:
        return False
    run = tree.runs.get(scope[: scope.rfind("[")])
    return run is not None and run.fanout is not None


def _task_started(tree: Execution, fact: Fact, body: facts.TaskStarted, ts: float) -> None:
    if _is_of_shard(tree, fact.scope):
        return
    progress.task_started(pipeline_of(tree, fact.scope), body, fact.task)


def _task_ended(tree: Execution, fact: Fact, body: facts.TaskEnded, ts: float) -> None:
    if _is_of_shard(tree, fact.scope):
        return
    pipeline = pipeline_of(tree, fact.scope)
    if pipeline.children:
        # Of a failed pipeline the child's state is kept, and that of its own, so that a resume can go on in them.
        is_over = body.do != "fail"
        for child in list(pipeline.children):
            _close_child(tree, child, is_over=is_over)
        if is_over:
            pipeline.children.clear()
    progress.task_ended(pipeline, body, ts)


def _close_child(tree: Execution, task_run_id: str, *, is_over: bool) -> None:
    """Nothing is recorded under a child any more: its task has said what came of it."""
    scope = f"{task_run_id}/"
    indexes: list[dict[str, Any]] = [tree.owners, tree.runs, tree.iterations]
    if is_over:
        flow = tree.flow
        indexes += [tree.executions, flow.containers, flow.regions, flow.components, flow.counters]
    for index in indexes:
        for key in [key for key in index if key.startswith(scope)]:
            del index[key]


# ---- loops


def _loop_started(tree: Execution, fact: Fact, body: facts.LoopStarted, ts: float) -> None:
    progress.loop_started(tree.runs[fact.scope], body, _last(fact))


def _iteration_started(tree: Execution, fact: Fact, body: facts.IterationStarted, ts: float) -> None:
    run_id = fact.scope.rpartition("[")[0]
    run = tree.runs[run_id]
    pipeline = progress.iteration_started(run, body.index, Place(fact.scope, fact.clock[:-1]))
    tree.iterations[fact.scope] = (run, pipeline)


def _iteration_ended(tree: Execution, fact: Fact, body: facts.IterationEnded, ts: float) -> None:
    run, _ = tree.iterations.pop(fact.scope)
    pipeline = progress.iteration_ended(run, body)
    if tree.on_iteration_closed is not None:
        tree.on_iteration_closed(run, body, pipeline)


# ---- fan-outs


def _fanout_started(tree: Execution, fact: Fact, body: facts.FanoutStarted, ts: float) -> None:
    fanouts.started(tree.runs[fact.scope], body, _last(fact))


def _fanout_moved(tree: Execution, fact: Fact, body: facts.Body, ts: float) -> None:
    run = tree.runs.get(fact.scope) or tree.runs[fact.scope.rpartition("[")[0]]
    fanouts.evolve(run, body)
    if tree.on_shards is not None:
        tree.on_shards(run, body)


# ---- finding one's way


def _last(fact: Fact) -> int:
    counter = fact.clock[-1]
    assert isinstance(counter, int)
    return counter


def _execution_scope(scope: str) -> str:
    """The execution that a run's place belongs to: what stands before its last slash, slash included."""
    return scope[: scope.rfind("/") + 1]


_HANDLERS: dict[type[object], Callable[[Execution, Fact, Any, float], None]] = {
    facts.ExecutionStarted: _started,
    facts.ExecutionInterrupted: _interrupted,
    facts.ExecutionResumed: _resumed,
    facts.CancelAsked: _cancel_asked,
    facts.ExecutionEnded: _ended,
    facts.TokenCreated: _token_created,
    facts.TokenRefused: _token_refused,
    facts.TokenStranded: _token_stranded,
    facts.RunScheduled: _run_scheduled,
    facts.RunStarted: _run_started,
    facts.RunEnded: _run_ended,
    facts.ArcsSelected: _arcs_selected,
    facts.ArcEnqueued: _arc_enqueued,
    facts.TaskStarted: _task_started,
    facts.TaskEnded: _task_ended,
    facts.LoopStarted: _loop_started,
    facts.IterationStarted: _iteration_started,
    facts.IterationEnded: _iteration_ended,
    facts.FanoutStarted: _fanout_started,
    facts.ShardsEnqueued: _fanout_moved,
    facts.ShardsStarted: _fanout_moved,
    facts.ShardsReported: _fanout_moved,
    facts.ShardsDone: _fanout_moved,
    facts.ShardFailed: _fanout_moved,
    facts.ShardsReturned: _fanout_moved,
    facts.FaninCompleted: _fanout_moved,
}
