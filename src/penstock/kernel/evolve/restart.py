"""Transitions for a resume: what it keeps of the state before it, and how scopes are registered and unregistered."""

from __future__ import annotations

from collections.abc import Callable

from penstock.kernel.facts import ExecutionStarted
from penstock.kernel.merging import reopen
from penstock.kernel.places import LogicalClock
from penstock.kernel.state import (
    ERROR,
    NOT_OPENED,
    OK,
    PENDING,
    RUNNING,
    SETTLED,
    SKIPPED,
    ComponentRun,
    Iterations,
    Scope,
    State,
    Subjob,
    add_rows,
    deaths_in,
    dying,
    failed_iterations,
)


def apply_resume(state: State, job: Scope, body: ExecutionStarted) -> None:
    """A job continues after a stop; or, with `lost`, one of its sub-jobs starts over while the others continue."""
    lost = job.subjobs.get(body.lost) if body.lost is not None else None
    dead = set(lost.members) if lost is not None else set()
    restart(state, job, frozenset([*body.kept, *body.kept_components]), frozenset(body.reopened))
    if body.lost is not None:
        job.deaths = [death for death in job.deaths if _outermost(death.scope) not in dead]
        place = lost.place if lost is not None else None
        for scope in [name for name, clock in state.joined.items() if place and _lies_in(clock, place.clock)]:
            del state.joined[scope]
        return
    job.deaths = deaths_in(job)
    inside = len(job.prefix)
    for scope in [one for one in state.joined if one.startswith(job.prefix) and "/" not in one[inside:]]:
        del state.joined[scope]


def _lies_in(clock: LogicalClock, subjob: LogicalClock) -> bool:
    """Whether a component's clock lies in a sub-job: the clock ends in (number, rank), the sub-job's in (number,)."""
    at, own = clock[-1], subjob[-1]
    return clock[:-1] == subjob[:-1] and isinstance(at, tuple) and isinstance(own, tuple) and at[0] == own[0]


def _outermost(scope: str) -> str:
    """The component of the job itself that the component `scope` lies in, however deep."""
    begin = scope.rfind("/") + 1
    return scope[:begin] + scope[begin:].partition("[#")[0].partition(".__")[0]


def restart(state: State, scope: Scope, kept: frozenset[str], reopened: frozenset[str] = frozenset()) -> None:
    """Keep the sub-jobs and components in `kept`, and remove everything else except iterations that have ended. Of these, the
    ones in `reopened` run again."""
    if scope.opener is not None:
        scope.status = RUNNING
    for name, subjob in list(scope.subjobs.items()):
        if name in kept:
            continue
        for member, component in list(subjob.members.items()):
            if member in kept:
                component.kept = True
                continue
            del subjob.members[member]
            _detach_for_restart(state, scope, member, component, kept, reopened)
        if subjob.members:  # Only iterations and what follows from them run again in it.
            subjob.status, subjob.error, subjob.aborts = PENDING, None, False
            subjob.ended = len(subjob.members)
            continue
        state.counters[name] = subjob.counter
        del scope.subjobs[name]
        state.subjobs.pop(name, None)
    scope.closed = sum(one.status in SETTLED and not one.handles for one in scope.subjobs.values())


def continue_in(state: State, old: Scope, new: Scope, kept: list[str]) -> None:
    """A failed job continues under another name. What is kept is found under the new name; its places stay as they were."""
    restart(state, old, frozenset(old.prefix + scope.removeprefix(new.prefix) for scope in kept))
    _hand_over(old, new, lambda scope: new.prefix + scope.removeprefix(old.prefix))
    new.deaths = deaths_in(new)


def _hand_over(old: Scope, new: Scope, renamed: Callable[[str], str]) -> None:
    new.subjobs = {renamed(scope): subjob for scope, subjob in old.subjobs.items()}
    for subjob in new.subjobs.values():
        subjob.scope = new
        subjob.members = {renamed(scope): component for scope, component in subjob.members.items()}
    new.runs = {renamed(scope): component for scope, component in old.runs.items()}
    new.marks, new.closed = old.marks, old.closed
    new.kept_iterators = {renamed(scope): iterator for scope, iterator in old.kept_iterators.items()}
    for scope, inside in old.kept_insides.items():
        # Its real place is set when the call starts.
        again = new.kept_insides[renamed(scope)] = Scope(renamed(inside.id), new.prefix, new.place)
        _hand_over(inside, again, renamed)
    for iterator in new.kept_iterators.values():
        iterator.partial = {}  # Only the job they ran in can reopen them.
        for iteration in iterator.open.values():
            iteration.id, iteration.prefix = renamed(iteration.id), renamed(iteration.prefix)
            _hand_over(iteration, iteration, renamed)


def _detach_for_restart(
    state: State, scope: Scope, name: str, component: ComponentRun, kept: frozenset[str], reopened: frozenset[str]
) -> None:
    """Remove a component from its scope, keeping what its next start continues: its iterations, the inside of its call."""
    del scope.runs[name]
    component.status = SKIPPED  # From here on only its counter is used: it may start again.
    if component.fan is not None:
        again = _iterations_to_go_on(state, component.fan, kept, reopened)
        if again.ok or again.open or again.reopened or again.items is not None:
            scope.kept_iterators[name] = again
    if component.inside is not None:
        restart(state, component.inside, kept, reopened)
        scope.kept_insides[name] = component.inside
        component.inside = None


def _iterations_to_go_on(state: State, old: Iterations, kept: frozenset[str], reopened: frozenset[str]) -> Iterations:
    """The state of an iterator that a resume keeps for its next start.

    iteration was                             after the resume
    OK                                        settled
    OK, in `reopened` (nested ones failed)    runs again where nested iterations failed
    open, body unfinished, in `reopened`      likewise
    reopened and not started yet              unchanged
    open, body ended                          open: only the handlers run that have not ended OK
    failed by a handler, body OK              likewise
    any other that failed or was open         runs again from the start
    """
    partial = {number: one for number, one in old.partial.items() if one.place.id in reopened}
    settled = old.settled.without(old.not_ok)
    for number in partial:
        settled.discard(number)
    again = Iterations(NOT_OPENED, old.total, old.parallel, settled=settled, items=old.items, mode=old.mode)
    again.ok, again.merged_up_to = old.ok - len(partial), old.merged_up_to
    again.failed_inside = old.failed_inside - sum(map(failed_iterations, partial.values()))
    again.reopened = dict(old.reopened)
    again.partial = {number: one for number, one in old.partial.items() if number not in partial}
    again.top = old.top
    again.rows_out = {name: dict(ports) for name, ports in old.rows_out.items()}
    for iteration in partial.values():  # It will be counted again when it has ended again.
        add_rows(again.rows_out, iteration, -1)
    reopen(old, again)
    for number, iteration in partial.items():
        iteration.body, iteration.error, iteration.handlers, iteration.is_reopened = "", None, 0, True
        iteration.fired.clear()
        restart(state, iteration, kept, reopened)
        again.reopened[number] = iteration
    for number, iteration in sorted({**old.open, **old.mishandled}.items()):
        if iteration.place.id in reopened and not iteration.body:
            restart(state, iteration, kept, reopened)
            again.reopened[number] = iteration
            continue
        if not iteration.body:
            unregister(state, iteration, is_over=False)
            continue
        _keep_body(state, iteration)
        again.open[number] = iteration
        dead = dying(iteration)
        if dead is not None and again.death is None:
            again.death = (dead.place.clock, dead.exit_code, dead.error)
    return again


def _keep_body(state: State, iteration: Scope) -> None:
    """Keep the finished body, and the handlers that ended OK; remove the other handlers."""
    for scope, subjob in list(iteration.subjobs.items()):
        if not subjob.handles or subjob.status == OK:
            continue
        iteration.handlers += subjob.status not in (PENDING, RUNNING)
        _unregister_subjob(state, scope, subjob, is_over=False)
        del iteration.subjobs[scope]
        for name in subjob.members:
            del iteration.runs[name]
    iteration.status = iteration.body
    iteration.error = iteration.error if iteration.body == ERROR else None


# ---- registering scopes


def unregister(state: State, scope: Scope, *, is_over: bool = True) -> int:
    """Unregister a closed scope and return one more than the highest event number used in it. Unless `is_over`, it may run
    again, and its counters are kept."""
    top = scope.counter
    if not is_over and scope.index is not None:
        state.counters[scope.place.id] = scope.counter
    for name, subjob in scope.subjobs.items():
        top = max(top, _unregister_subjob(state, name, subjob, is_over=is_over))
    state.scopes.pop(scope.id, None)
    return top


def _unregister_subjob(state: State, scope: str, subjob: Subjob, *, is_over: bool) -> int:
    """`scope` is its current name. In a job that continues under another name, the places of what was kept have the old one."""
    top = subjob.counter
    state.subjobs.pop(subjob.place.id, None)
    if not is_over:
        state.counters[scope] = max(subjob.counter, state.counters.get(scope, 0))
    for name, component in subjob.members.items():
        top = max(top, component.counter)
        state.runs.pop(component.place.id, None)
        if not is_over:
            state.counters[name] = component.counter
        if component.inside is not None:
            top = max(top, unregister(state, component.inside, is_over=is_over))
        if component.fan is not None:
            for inner in component.fan.held():
                top = max(top, unregister(state, inner, is_over=is_over))
            top = max(top, component.fan.top)
            if is_over:
                state.floors.pop(name, None)
            elif component.fan.top:
                state.floors[name] = max(component.fan.top, state.floors.get(name, 0))
    return top


def register(state: State, scope: Scope) -> None:
    """Register an iteration whose body has ended and which is open again, so that its handlers find it."""
    state.scopes[scope.id] = scope
    for name, subjob in scope.subjobs.items():
        state.subjobs[subjob.place.id] = subjob
        state.counters.pop(name, None)
        for member, component in subjob.members.items():
            state.runs[component.place.id] = component
            state.counters.pop(member, None)
