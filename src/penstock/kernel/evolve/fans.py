"""The part of `evolve` that knows of fans: how loops and iterators start, and how their parts open, close and are let go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.kernel import facts
from penstock.kernel.evolve.pipelines import reopened
from penstock.kernel.evolve.restart import forget, remember
from penstock.kernel.facts import Fact
from penstock.kernel.kept import mark
from penstock.kernel.merging import gather, last_values, seen_by_next
from penstock.kernel.net import Fanout
from penstock.kernel.patches import Staged
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
    ComponentRun,
    Fan,
    Iterations,
    Loop,
    Pipeline,
    Scope,
    State,
    Subjob,
    deaths_in,
    failed_iterations,
    number_after,
    owner,
    root_of,
)

ENDS = ("iteration_ok", "iteration_error")
"""The links that the end of an iteration fires."""


def started(
    state: State, fact: Fact, body: facts.LoopStarted | facts.IteratorStarted | facts.FanoutStarted, ts: float
) -> None:
    """Of one that is reopened, or that a resume starts anew, what has settled stands."""
    run = state.runs[fact.scope]
    run.counter = number_after(fact)
    if run.fan is None:
        run.fan = _fan(run, body)
    run.fan.goes_on(run.counter - 1)
    if isinstance(body, facts.IteratorStarted):
        run.fan.base, run.fan.spread = run.view, body.spread
        if (items := _items(body)) is not None:
            run.fan.items = items
    else:
        run.pipeline = None


def _fan(run: Any, body: facts.LoopStarted | facts.IteratorStarted | facts.FanoutStarted) -> Fan:
    match body:
        case facts.LoopStarted():
            is_parallel = body.mode == "parallel"
            loop = Loop(NOT_OPENED, body.total, body.max_in_flight if is_parallel else 1, isolated=is_parallel)
            loop.ctx, loop.collection = run.ctx, body.collection
            loop.reducers = {key: str(operation) for key, operation in body.reducers.items()}
            return loop
        case facts.IteratorStarted():
            return Iterations(NOT_OPENED, body.total, body.parallel, items=_items(body), mode=body.mode)
        case facts.FanoutStarted():
            policy = Fanout.from_json(body.policy)
            return Shards(NOT_OPENED, body.total, collection=body.collection, policy=policy, is_paged=body.is_paged)


def _items(body: facts.IteratorStarted) -> Sequence[Any] | None:
    return body.items if isinstance(body.items, Sequence) and not isinstance(body.items, str) else None


# ---- parts


def part_started(state: State, fact: Fact, body: facts.IterationStarted | facts.ElementStarted, ts: float) -> None:
    run = state.runs[fact.scope[: fact.scope.rindex("[")]]
    if isinstance(body, facts.IterationStarted):
        pipeline = _pipeline(run.fan, fact, body.index)
        run.fan.opens(body.index, pipeline)
        state.iterations[fact.scope] = (run, pipeline)
    else:
        run.fan.opens(body.index, _scope(state, run, run.fan, fact, body))


def _pipeline(loop: Loop, fact: Fact, index: int) -> Pipeline:
    place = Place(fact.scope, fact.clock[:-1])
    before = loop.failed_open.pop(index, None)
    pipeline = Pipeline(place, loop.ctx) if before is None else reopened(before, place)
    pipeline.counter = 1
    return pipeline


def _scope(
    state: State, component: ComponentRun, iterator: Iterations, fact: Fact, body: facts.ElementStarted
) -> Scope:
    """The iteration's scope. Unless its body has several sub-jobs, the iteration is one itself. One that had ended OK goes on:
    what was kept of it is there, at the places that it had."""
    scope = iterator.reopened.pop(body.index, None)
    if scope is None:
        place = Place(fact.scope, fact.clock[:-2])
        scope = Scope(f"{fact.scope}.", f"{fact.scope}.", place, opener=component, index=body.index)
        scope.view = seen_by_next(iterator, owner(component.subjob), (fact.clock, component.name))
    scope.opener, scope.status, scope.counter = component, RUNNING, number_after(fact)
    subjob = scope.subjobs.get(fact.scope)
    if body.subjobs == 1 and subjob is None:
        subjob = Subjob(fact.scope, 0, Place(fact.scope, (*scope.place.clock, (0,))), scope)
        scope.subjobs[fact.scope] = state.subjobs[fact.scope] = subjob
    if subjob is not None:
        subjob.status, subjob.counter = RUNNING, scope.counter
    state.scopes[scope.id] = scope
    state.counters.pop(fact.scope, None)
    return scope


def iteration_ended(state: State, fact: Fact, body: facts.IterationEnded, ts: float) -> None:
    run, pipeline = state.iterations.pop(fact.scope)
    loop = run.fan
    assert isinstance(loop, Loop)
    is_ok = STATUSES[body.status] == OK
    if pipeline.ended is not None:
        loop.waiting -= 1
    loop.closes(body.index, body.error, is_ok=is_ok)
    if not is_ok and len(loop.failed_open) < KEPT_FAILURES:
        loop.failed_open[body.index] = pipeline
    if body.writes:
        again = loop.take(body.index, body.writes, is_ok=is_ok)
        if not loop.isolated and again:
            loop.ctx = loop.staged.applied_to(run.ctx)
        elif not loop.isolated:
            patch = Staged()
            patch.add(body.writes)
            loop.ctx = patch.applied_to(loop.ctx)
    if state.on_iteration_closed is not None:
        state.on_iteration_closed(run, body, pipeline)


def reopen_loop(old: Loop) -> None:
    for index in old.failed_open:
        old.settled.discard(index)
    old.failed -= len(old.failed_open)
    old.failed_open.update(old.open)
    for pipeline in old.failed_open.values():
        # It had come to its end, and what it wrote was in conflict. Its last task runs again, and writes again.
        if pipeline.ended == "done" and pipeline.before_end is not None:
            pipeline.iter, pipeline.ctx, pipeline.staged = pipeline.before_end
    old.open.clear()
    old.waiting = 0
    old.first_error, old.first_failed = None, None
    old.opened_at = NOT_OPENED


def element_ended(state: State, fact: Fact, body: facts.ElementEnded, ts: float) -> None:
    scope = state.scopes[f"{fact.scope}."]
    subjob = scope.subjobs.get(fact.scope)
    scope.counter = number_after(fact)
    scope.status, scope.error = STATUSES[body.status], body.error
    if subjob is not None:
        subjob.counter, subjob.status, subjob.error = scope.counter, scope.status, body.error
        if subjob.status == OK:
            mark(scope.marks, subjob.marks)
    scope.body, scope.handlers = scope.status, body.handlers
    if not body.handlers:
        close_iteration(state, scope)


def end_fired(state: State, fact: Fact, body: facts.LinkFired) -> None:
    """The end of an iteration leads to a handler."""
    scope = state.scopes[f"{fact.scope}."]
    scope.fired.add(body.link)
    scope.counter = number_after(fact)
    subjob = scope.subjobs.get(fact.scope)
    if subjob is not None:
        subjob.counter = scope.counter


def close_iteration(state: State, scope: Scope) -> None:
    component = scope.opener
    assert component is not None
    iterator, index = component.iterations, scope.index
    assert iterator is not None
    assert index is not None
    iterator.closes(index, scope.error, is_ok=scope.status == OK)
    if scope.status == OK:
        failed_inside = failed_iterations(scope)
        iterator.failed_inside += failed_inside
        if failed_inside and len(iterator.partial) < KEPT_PARTIAL:
            iterator.partial[index] = scope
        mark(iterator.marks, scope.marks)
        gather(iterator, index, last_values(scope.subjobs.values()))
    else:
        iterator.not_ok.add(index)
        if len(iterator.failures) < TOLD_FAILURES:
            iterator.failures[index] = scope.error
        if scope.body == OK:
            iterator.mishandled[index] = scope
        # What its body wrote is lost with it; what handled the end took note of that.
        is_told = scope.body == ERROR and root_of(scope).rules >= 2
        handlers = [subjob for subjob in scope.subjobs.values() if subjob.handles and is_told]
        gather(iterator, index, last_values(handlers))
    if index not in iterator.partial:
        iterator.top = max(iterator.top, forget(state, scope, is_over=scope.status == OK))


def completed(state: State, fact: Fact, body: facts.IteratorCompleted, ts: float) -> None:
    state.runs[fact.scope].counter = number_after(fact)


def take_up(state: State, iterator: Iterations, component: ComponentRun, fact: Fact) -> None:
    """An iterator starts anew, and is what a resume has kept of it: of iterations that are open, their bodies."""
    component.fan = iterator
    deaths = root_of(component.subjob.scope).deaths
    for number, scope in iterator.open.items():
        scope.opener = component
        deaths += deaths_in(scope)
        name = f"{fact.scope}[#{number}]"
        if scope.place.id != name:
            # Only under another name: of what is written beside each other the later place wins, whichever start it is of.
            scope.place = Place(name, (*fact.clock, number))
        remember(state, scope)
