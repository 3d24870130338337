"""Transitions for fans: how loops and iterators start, and how their parts open and close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.kernel import facts
from penstock.kernel.evolve.pipelines import reopened
from penstock.kernel.evolve.restart import register, unregister
from penstock.kernel.facts import Fact
from penstock.kernel.kept import mark
from penstock.kernel.merging import gather, last_values, seen_by_next
from penstock.kernel.net import Fanout
from penstock.kernel.patches import applied
from penstock.kernel.places import Place
from penstock.kernel.shards import Shards
from penstock.kernel.state import (
    ERROR,
    KEPT_FAILURES,
    KEPT_PARTIAL,
    NOT_OPENED,
    OK,
    RUNNING,
    STATUSES,
    TOLD_FAILURES,
    Claimed,
    ComponentRun,
    Fan,
    Iterations,
    Loop,
    Pipeline,
    Run,
    Scope,
    State,
    StepRun,
    Subjob,
    add_rows,
    deaths_in,
    failed_iterations,
    number_after,
    root_of,
)


def started(
    state: State, fact: Fact, body: facts.LoopStarted | facts.IteratorStarted | facts.FanoutStarted, ts: float
) -> None:
    """If the fan is reopened or resumed, its settled parts are kept."""
    run = state.runs[fact.scope]
    run.counter = number_after(fact)
    if run.fan is None:
        run.fan = _fan(run, body)
    run.fan.begin(run.counter - 1)
    if isinstance(body, facts.IteratorStarted):
        run.fan.base, run.fan.is_elsewhere = run.view, body.spread
        if isinstance(body.items, Sequence) and not isinstance(body.items, str):
            run.fan.items = body.items
    else:
        run.pipeline = None
        state.pipelines.pop(fact.scope, None)


def _fan(run: Any, body: facts.LoopStarted | facts.IteratorStarted | facts.FanoutStarted) -> Fan:
    match body:
        case facts.LoopStarted():
            is_parallel = body.mode == "parallel"
            loop = Loop(NOT_OPENED, body.total or 0, body.max_in_flight if is_parallel else 1, isolated=is_parallel)
            loop.ctx, loop.collection, loop.claims = run.ctx, body.collection, body.total is None
            loop.reducers = {key: str(operation) for key, operation in body.reducers.items()}
            return loop
        case facts.IteratorStarted():
            return Iterations(NOT_OPENED, body.total, body.parallel, mode=body.mode)
        case facts.FanoutStarted():
            policy = Fanout.from_json(body.policy)
            shards = Shards(NOT_OPENED, body.total, collection=body.collection, policy=policy)
            shards.is_paged, shards.claims = body.is_paged, body.claims
            return shards


def claimed(state: State, fact: Fact, body: facts.ElementsClaimed, ts: float) -> None:
    run = state.runs[fact.scope]
    run.counter = number_after(fact)
    run.fan.total = body.hi
    run.fan.claimed.update(dict.fromkeys(range(body.lo, body.hi), Claimed(body.lo, body.items, body.keys)))


# ---- parts


def part_started(state: State, fact: Fact, body: facts.IterationStarted | facts.ElementStarted, ts: float) -> None:
    """A part of a loop is a pipeline, a part of an iterator a scope. A part that runs again starts from its kept state."""
    scope = fact.scope
    run = state.runs[scope[: scope.rindex("[")]]
    fan = run.fan
    if type(body) is facts.IterationStarted:
        place = Place(scope, fact.clock[:-1])
        before = fan.failed_open.pop(body.index, None) if fan.failed_open else None
        part: Any = Pipeline(place, fan.ctx) if before is None else reopened(before, place)
        part.opener, part.counter = run, 1
        state.pipelines[scope] = part
    else:
        part = _scope(state, run, fact, body)  # type: ignore[arg-type]
        state.counters.pop(scope, None)
    fan.add_part(body.index, part)


def _scope(state: State, component: ComponentRun, fact: Fact, body: facts.ElementStarted) -> Scope:
    """The scope of an iteration, which is a sub-job itself unless its body has several. A reopened one keeps its place."""
    iterator = component.fan
    assert iterator is not None
    scope = iterator.reopened.pop(body.index, None)
    if scope is None:
        place = Place(fact.scope, fact.clock[:-2])
        scope = Scope(f"{fact.scope}.", f"{fact.scope}.", place, opener=component, index=body.index)
        scope.view = seen_by_next(iterator, component.subjob.owner, (fact.clock, component.place.id))
    scope.opener, scope.status, scope.counter = component, RUNNING, number_after(fact)
    subjob = scope.subjobs.get(fact.scope)
    if body.subjobs == 1 and subjob is None:
        subjob = Subjob(fact.scope, 0, Place(fact.scope, (*scope.place.clock, (0,))), scope)
        scope.subjobs[fact.scope] = state.subjobs[fact.scope] = subjob
    if subjob is not None:
        subjob.status, subjob.counter = RUNNING, scope.counter
    state.scopes[scope.id] = scope
    return scope


def part_ended(state: State, fact: Fact, body: facts.IterationEnded | facts.ElementEnded, ts: float) -> None:
    scope = fact.scope
    run = state.runs[scope[: scope.rindex("[")]]
    part = run.fan.open[body.index]
    part.counter, part.status, part.error = number_after(fact), STATUSES[body.status], body.error
    if isinstance(body, facts.ElementEnded):
        part.body, part.handlers = part.status, body.handlers
        subjob = part.subjobs.get(scope)
        if subjob is not None:
            subjob.counter, subjob.status, subjob.error = part.counter, part.status, body.error
            if subjob.status == OK:
                mark(part.marks, subjob.marks)
        if body.handlers:
            return
    elif body.writes:
        _gather(run, run.fan, body)
    close_part(state, run, body.index, part)


def close_part(state: State, run: Run, index: int, part: Pipeline | Scope) -> None:
    """Reduce a closed part to a bit and a count; keep what a resume needs of a failed one."""
    fan = run.fan
    assert fan is not None
    fan.close_part(index, part.error, is_ok=part.status == OK)
    if isinstance(part, Scope):
        _leave_iterator(state, fan, index, part)  # type: ignore[arg-type]
        return
    del state.pipelines[part.place.id]
    fan.waiting -= part.ended is not None
    assert isinstance(fan, Loop)
    came_with = fan.claimed.pop(index, None)
    if part.status == ERROR and len(fan.failed_open) < KEPT_FAILURES:
        fan.failed_open[index] = part
        if came_with is not None:
            fan.claimed[index] = came_with.alone(index)
    if state.on_iteration_closed is not None:
        state.on_iteration_closed(run, index, part)  # type: ignore[arg-type]


def _gather(run: StepRun, loop: Loop, end: facts.IterationEnded) -> None:
    again = loop.take(end.index, end.writes, is_ok=end.status == "done")
    if not loop.isolated:
        loop.ctx = loop.staged.applied_to(run.ctx) if again else applied(loop.ctx, end.writes)


def _leave_iterator(state: State, iterator: Iterations, index: int, scope: Scope) -> None:
    if scope.status == OK:
        failed_inside = failed_iterations(scope)
        iterator.failed_inside += failed_inside
        if failed_inside and len(iterator.partial) < KEPT_PARTIAL:
            iterator.partial[index] = scope
        mark(iterator.marks, scope.marks)
        add_rows(iterator.rows_out, scope)
        gather(iterator, index, last_values(scope.subjobs.values()))
    else:
        iterator.not_ok.add(index)
        if len(iterator.failures) < TOLD_FAILURES:
            iterator.failures[index] = scope.error
        if scope.body == OK:
            iterator.mishandled[index] = scope
        # The writes of a failed body are discarded, those of the handlers of its end are kept (D60).
        counts = scope.body == ERROR and root_of(scope).rules >= 2
        handlers = [subjob for subjob in scope.subjobs.values() if subjob.handles and counts]
        gather(iterator, index, last_values(handlers))
    if index not in iterator.partial:
        iterator.top = max(iterator.top, unregister(state, scope, is_over=scope.status == OK))


def reopen_loop(old: Loop) -> None:
    """Prepare the loop of a failed run for the run that continues it: failed and open iterations run again."""
    for index in old.failed_open:
        old.settled.discard(index)
    old.failed -= len(old.failed_open)
    old.failed_open.update(old.open)
    for pipeline in old.failed_open.values():
        # It had ended, but its writes were in conflict: its last task runs again, and writes again.
        if pipeline.ended == "done" and pipeline.before_end is not None:
            pipeline.iter, pipeline.ctx, pipeline.staged = pipeline.before_end
    old.open.clear()
    old.waiting = 0
    old.first_error, old.first_failed = None, None
    old.opened_at = NOT_OPENED


def adopt_kept(state: State, iterator: Iterations, component: ComponentRun, fact: Fact) -> None:
    """Attach the iterator state kept by a resume to its new run; open iterations keep their finished bodies."""
    component.fan = iterator
    deaths = root_of(component.subjob.scope).deaths
    for number, scope in iterator.open.items():
        scope.opener = component
        deaths += deaths_in(scope)
        name = f"{fact.scope}[#{number}]"
        if scope.place.id != name:
            # Only if the name has changed: among concurrent writes the later place wins, whichever start it belongs to.
            scope.place = Place(name, (*fact.clock, number))
        register(state, scope)
