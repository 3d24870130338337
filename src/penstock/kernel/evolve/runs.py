"""The part of `evolve` that knows of runs, be they of steps or of components: how they start and end, and what they leave."""

from __future__ import annotations

from typing import Any

from penstock.kernel import facts
from penstock.kernel.errors import Bug
from penstock.kernel.evolve.executions import execution_of, subjob_at
from penstock.kernel.evolve.fans import reopen_loop, take_up
from penstock.kernel.evolve.pipelines import reopened
from penstock.kernel.facts import Fact
from penstock.kernel.kept import WATERMARK, WATERMARK_KEY, mark
from penstock.kernel.places import Place
from penstock.kernel.shards import Shards, reopen
from penstock.kernel.state import (
    DEAD,
    OK,
    RUNNING,
    SETTLED,
    SKIPPED,
    STATUSES,
    ComponentRun,
    Death,
    Execution,
    Loop,
    Pipeline,
    Run,
    Scope,
    State,
    StepRun,
    Unhandled,
    deaths_in,
    last_outcome,
    number_after,
    root_of,
    with_inside,
)
from penstock.kernel.views import View, Written, exported, joined

# ---- the start


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
        loop_name=fact.scope,
    )
    if body.continues is not None:
        _inherit(execution, run, body.continues)
    _enter(state, run)


def _enter(state: State, run: Run) -> None:
    scope = run.place.id
    run.subjob.members[scope] = run.subjob.scope.runs[scope] = state.runs[scope] = run


def _inherit(execution: Execution, run: StepRun, continued: str) -> None:
    """A reopened run goes on where the failed one stopped: what ended OK there is not run again."""
    for at, unhandled in enumerate(execution.unhandled):
        if unhandled.run is not None and unhandled.run.place.id == continued:
            failed = unhandled.run
            del execution.unhandled[at]
            break
    else:
        raise Bug(f"`{run.place.id}` continues `{continued}`, which did not fail")
    run.ctx, run.continued, run.loop_name = failed.ctx, failed.path, failed.loop_name
    if failed.pipeline is not None:
        run.pipeline = reopened(failed.pipeline, run.place)
    if isinstance(failed.fan, Loop):
        reopen_loop(failed.fan)
    elif isinstance(failed.fan, Shards):
        reopen(failed.fan)
    run.fan = failed.fan


def started(state: State, fact: Fact, body: facts.RunStarted | facts.ComponentStarted, ts: float) -> None:
    """A step run was scheduled before. A component is first known here, or when it is skipped, or a join of it is reached."""
    run: Any = state.runs[fact.scope] if isinstance(body, facts.RunStarted) else _let_in(state, fact, body.subjob)
    run.status, run.started_at, run.counter = RUNNING, ts, number_after(fact)
    if isinstance(body, facts.ComponentStarted):
        _prepare(state, run, fact, body)
    elif run.fan is None:
        if run.pipeline is None:
            run.pipeline = Pipeline(run.place, run.ctx)
        run.pipeline.counter = run.counter
        state.pipelines[fact.scope] = run.pipeline


def _let_in(state: State, fact: Fact, name: str) -> ComponentRun:
    """After a resume a component starts anew, and goes on counting."""
    known: ComponentRun | None = state.runs.get(fact.scope)
    subjob = state.subjobs.get(name)
    if subjob is None:
        raise Bug(f"component `{fact.scope}` lies in `{name}`, which was never opened")
    counter = state.counter(fact.scope)
    state.counters.pop(fact.scope, None)
    state.joined.pop(fact.scope, None)
    if known is not None and known.subjob is subjob and known.status not in SETTLED:
        return known
    run = ComponentRun(Place(fact.scope, fact.clock[:-1]), subjob, counter=counter)
    _enter(state, run)
    return run


def _prepare(state: State, run: ComponentRun, fact: Fact, body: facts.ComponentStarted) -> None:
    """What it sees, and what it goes on with or opens."""
    run.type, run.rows_in = body.type, body.rows_in
    scope, views = run.subjob.scope, list[View]()
    for seen in body.sees:
        source: Run | None = None if seen in state.subjobs else state.runs[seen]
        if isinstance(source, ComponentRun):
            views.append(source.view if source.subjob is run.subjob else exported(source.view))
        else:
            views.append(exported(state.subjobs[seen].out()))
    run.view = View((joined(views) if views else scope.view,))
    kept = scope.kept_iterators.pop(fact.scope, None)
    if kept is not None:
        take_up(state, kept, run, fact)
    if body.opens is not None:
        place = Place(body.opens, fact.clock)
        inside = scope.kept_insides.pop(fact.scope, None) or Scope(body.opens, scope.prefix, place)
        inside.opener, inside.view, inside.status, inside.place = run, run.view, RUNNING, place
        run.inside = state.scopes[body.opens] = inside
        root_of(scope).deaths += deaths_in(inside)


def skipped(state: State, fact: Fact, body: facts.ComponentSkipped, ts: float) -> None:
    subjob_at(state, body.subjob, body.subjob_name, body.index, body.container)
    run = _let_in(state, fact, body.subjob)
    run.status, run.counter = SKIPPED, number_after(fact)
    run.subjob.ended += 1


# ---- the end


def ended(state: State, fact: Fact, body: facts.RunEnded | facts.ComponentEnded, ts: float) -> None:
    run = state.runs[fact.scope]
    run.counter = number_after(fact)
    run.status, run.error = STATUSES[body.status], body.error
    run.subjob.ended += 1
    if isinstance(body, facts.RunEnded):
        _leave_step(state, run, body)
    else:
        _leave_component(state, run, body)


def _leave_step(state: State, run: StepRun, body: facts.RunEnded) -> None:
    scope, execution = run.place.id, root_of(run.subjob.scope)
    del state.runs[scope], execution.runs[scope], run.subjob.members[scope]
    state.pipelines.pop(scope, None)
    run.ended, run.outcome = body, last_outcome(run, body)
    execution.ending[scope] = run
    execution.ctx.merge(body.writes, run.path, run.continued)
    if run.status == OK:
        execution.results[body.step] = body.result
        if run.path >= execution.result_path:
            execution.result, execution.result_path = body.result, run.path
        run.pipeline = None
        if not isinstance(run.fan, Shards):
            run.fan = None
        return
    execution.unhandled.append(Unhandled(body.step, run, body.error))
    for part in run.fan.open.values() if run.fan is not None else ():
        state.pipelines.pop(part.place.id, None)


def _leave_component(state: State, run: ComponentRun, body: facts.ComponentEnded) -> None:
    run.rows_in, run.rows_out, run.outputs = body.rows_in, body.rows_out, body.outputs
    run.dies, run.exit_code = body.dies, body.exit_code
    if run.inside is not None:
        run.view = with_inside(run)
        state.scopes.pop(run.inside.id, None)
    if body.dies:
        _note_death(run)
    if run.status == OK:
        # Watermarks count for its sub-job, those of iterations and joblets that ended OK with its own.
        for scope in (run.fan, run.inside):
            mark(run.subjob.marks, scope.marks if scope is not None else {})
        if WATERMARK in body.after:
            mark(run.subjob.marks, {str(body.after.get(WATERMARK_KEY)): body.after[WATERMARK]})
    after = body.after if body.result is None else {**body.after, "RESULT": body.result}
    # Within its iteration its after-variables are called by its bare name.
    run.view.set_after(run.place.id.removeprefix(run.subjob.scope.prefix), after)
    if run.fan is not None:
        run.fan.gathered.clear()


def _note_death(run: ComponentRun) -> None:
    """Iterations are let go when they close, so the iterators around it remember: of several deaths the first by place."""
    root_of(run.subjob.scope).deaths.append(Death(run.place.id, DEAD.format(run.place.id)))
    death = (run.place.clock, run.exit_code, run.error)
    opener = run.subjob.scope.opener
    while opener is not None:
        iterator = opener.fan
        if iterator is not None and (iterator.death is None or death[0] < iterator.death[0]):
            iterator.death = death
        opener = opener.subjob.scope.opener


def global_set(state: State, fact: Fact, body: facts.GlobalSet, ts: float) -> None:
    component: ComponentRun = state.runs[fact.scope]
    component.counter = number_after(fact)
    before = component.view.get(body.key)
    past = before.past | {before.stamp} if before is not None else frozenset()
    written = Written(body.new, (fact.clock, body.writer), body.creator, past, body.is_set, body.deleted)
    component.view.write(body.key, written, local=body.local)
    if not body.local:
        component.written.append(body.key)
