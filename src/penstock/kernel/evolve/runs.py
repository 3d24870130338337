"""Transitions for step runs and components: how they start and end, and what remains of them."""

from __future__ import annotations

from typing import Any

from penstock.kernel import facts
from penstock.kernel.errors import Bug
from penstock.kernel.evolve.executions import execution_of, find_or_open_subjob
from penstock.kernel.evolve.fans import adopt_kept, reopen_loop
from penstock.kernel.evolve.pipelines import reopened
from penstock.kernel.facts import Fact
from penstock.kernel.globals import View, Written, exported, joined
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
    _register(state, run)


def _register(state: State, run: Run) -> None:
    scope = run.place.id
    run.subjob.members[scope] = run.subjob.scope.runs[scope] = state.runs[scope] = run


def _inherit(execution: Execution, run: StepRun, continued: str) -> None:
    """A reopened run continues where the failed one stopped: what ended OK there is not run again."""
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
    """A step run has been scheduled before. A component first appears here, or when it is skipped."""
    run: Any = (
        state.runs[fact.scope] if isinstance(body, facts.RunStarted) else _find_or_create(state, fact, body.subjob)
    )
    run.status, run.started_at, run.counter = RUNNING, ts, number_after(fact)
    if isinstance(body, facts.ComponentStarted):
        _prepare(state, run, fact, body)
    elif run.fan is None:
        if run.pipeline is None:
            run.pipeline = Pipeline(run.place, run.ctx)
        run.pipeline.counter = run.counter
        state.pipelines[fact.scope] = run.pipeline


def _find_or_create(state: State, fact: Fact, name: str) -> ComponentRun:
    """The run of a component. After a resume it is a new one, which continues the event numbers of the old."""
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
    _register(state, run)
    return run


def _prepare(state: State, run: ComponentRun, fact: Fact, body: facts.ComponentStarted) -> None:
    """Set the globals it sees, and attach what a resume has kept of it or what it opens."""
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
        adopt_kept(state, kept, run, fact)
    if body.opens is not None:
        place = Place(body.opens, fact.clock)
        inside = scope.kept_insides.pop(fact.scope, None) or Scope(body.opens, scope.prefix, place)
        inside.opener, inside.view, inside.status, inside.place = run, run.view, RUNNING, place
        run.inside = state.scopes[body.opens] = inside
        root_of(scope).deaths += deaths_in(inside)


def skipped(state: State, fact: Fact, body: facts.ComponentSkipped, ts: float) -> None:
    find_or_open_subjob(state, body.subjob, body.subjob_name, body.index, body.container)
    run = _find_or_create(state, fact, body.subjob)
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
        # Its sub-job collects the watermarks: its own, and those of its iterations or of the joblet it calls.
        for scope in (run.fan, run.inside):
            mark(run.subjob.marks, scope.marks if scope is not None else {})
        if WATERMARK in body.after:
            mark(run.subjob.marks, {str(body.after.get(WATERMARK_KEY)): body.after[WATERMARK]})
    after = body.after if body.result is None else {**body.after, "RESULT": body.result}
    # Within an iteration, after-variables are found by the component's bare name.
    run.view.set_after(run.place.id.removeprefix(run.subjob.scope.prefix), after)
    if run.fan is not None:
        run.fan.gathered.clear()


def _note_death(run: ComponentRun) -> None:
    """Record a death in the execution and in all iterators around it, since iterations are dropped when they close. If there
    are several deaths, an iterator keeps the first by place."""
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
