"""The part of `evolve` that knows of components: sub-jobs, components and their links, globals."""

from __future__ import annotations

from penstock.kernel import facts
from penstock.kernel.errors import Bug
from penstock.kernel.evolve import fans
from penstock.kernel.facts import Fact
from penstock.kernel.kept import WATERMARK, WATERMARK_KEY, mark
from penstock.kernel.places import Place
from penstock.kernel.state import (
    ABORTED,
    DEAD,
    ERROR,
    OK,
    RUNNING,
    SETTLED,
    SKIPPED,
    STATUSES,
    ComponentRun,
    Death,
    Joined,
    Scope,
    State,
    Subjob,
    deaths_in,
    number_after,
    root_of,
    with_inside,
)
from penstock.kernel.views import View, Written, exported, joined

# ---- sub-jobs


def _subjob(state: State, scope: str, name: str, number: int, around: str) -> Subjob:
    """A sub-job is first heard of when it starts, or when one of its members is skipped."""
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


def subjob_started(state: State, fact: Fact, body: facts.SubjobStarted, ts: float) -> None:
    subjob = _subjob(state, fact.scope, body.subjob, body.index, body.container)
    subjob.status, subjob.counter = RUNNING, number_after(fact)


def subjob_ended(state: State, fact: Fact, body: facts.SubjobEnded, ts: float) -> None:
    subjob = _subjob(state, fact.scope, body.subjob, body.index, body.container)
    subjob.status, subjob.error, subjob.aborts = STATUSES[body.status], body.error, body.aborts
    subjob.counter = number_after(fact)
    scope = subjob.scope
    if not subjob.handles:
        scope.closed += 1
    if body.aborts:
        root_of(scope).deaths.append(Death(fact.scope, ABORTED.format(subjob.name)))
    if subjob.status == OK:
        mark(scope.marks, subjob.marks)
    if scope.handlers:
        scope.handlers -= 1
        if subjob.status == ERROR and scope.status == OK:
            scope.status, scope.error = ERROR, body.error  # What its end led to belongs to the iteration.
        if not scope.handlers:
            fans.close_iteration(state, scope)


def checkpoint_saved(state: State, fact: Fact, body: facts.CheckpointSaved, ts: float) -> None:
    subjob = state.subjobs.get(fact.scope)
    if subjob is not None:
        subjob.counter = number_after(fact)
    elif fact.scope in state.counters:  # The last of an iteration's handlers: with its end the scope was let go.
        state.counters[fact.scope] = number_after(fact)


# ---- components


def _component(state: State, fact: Fact, name: str) -> ComponentRun:
    """A component is first heard of when it starts, is skipped, or a join of it is reached. After a resume it starts anew."""
    component: ComponentRun | None = state.runs.get(fact.scope)
    subjob = state.subjobs.get(name)
    if subjob is None:
        raise Bug(f"component `{fact.scope}` lies in `{name}`, which was never opened")
    counter = max(component.counter if component is not None else 0, state.counter(fact.scope))
    state.counters.pop(fact.scope, None)
    state.joined.pop(fact.scope, None)
    if component is None or component.subjob is not subjob or component.status in SETTLED:
        component = ComponentRun(Place(fact.scope, fact.clock[:-1]), subjob, counter=counter)
        subjob.members[fact.scope] = subjob.scope.runs[fact.scope] = component
        state.runs[fact.scope] = component
    return component


def started(state: State, fact: Fact, body: facts.ComponentStarted, ts: float) -> None:
    run = _component(state, fact, body.subjob)
    run.status, run.started_at, run.counter = RUNNING, ts, number_after(fact)
    run.type, run.rows_in = body.type, body.rows_in
    run.view = View((_seen(state, run, body.sees),))
    scope = run.subjob.scope
    kept = scope.kept_iterators.pop(fact.scope, None)
    if kept is not None:
        fans.take_up(state, kept, run, fact)
    if body.opens is not None:
        place = Place(body.opens, fact.clock)
        inside = scope.kept_insides.pop(fact.scope, None) or Scope(body.opens, scope.prefix, place)
        inside.opener, inside.view, inside.status, inside.place = run, run.view, RUNNING, place
        run.inside = state.scopes[body.opens] = inside
        root_of(scope).deaths += deaths_in(inside)


def _seen(state: State, run: ComponentRun, sees: list[str]) -> View:
    views = []
    for scope in sees:
        subjob = state.subjobs.get(scope)
        if subjob is not None:
            views.append(exported(subjob.out()))
            continue
        source: ComponentRun = state.runs[scope]
        is_inside = source.subjob is run.subjob
        views.append(source.view if is_inside else exported(source.view))
    return joined(views) if views else run.subjob.scope.view


def ended(state: State, run: ComponentRun, body: facts.ComponentEnded) -> None:
    run.rows_in, run.rows_out, run.outputs = body.rows_in, body.rows_out, body.outputs
    run.dies, run.exit_code = body.dies, body.exit_code
    if run.inside is not None:
        run.view = with_inside(run)
        state.scopes.pop(run.inside.id, None)
    if body.dies:
        _note_death(run)
    if run.status == OK:
        _note_watermarks(run, body)
    after = body.after if body.result is None else {**body.after, "RESULT": body.result}
    # Within its iteration its after-variables are called by its bare name.
    run.view.set_after(run.name.removeprefix(run.subjob.scope.prefix), after)
    if run.iterations is not None:
        run.iterations.gathered.clear()


def _note_watermarks(run: ComponentRun, body: facts.ComponentEnded) -> None:
    """They count for its sub-job; those of iterations and joblets that ended OK count for the component that ran these."""
    marks = run.subjob.marks
    if run.iterations is not None:
        mark(marks, run.iterations.marks)
    if run.inside is not None:
        mark(marks, run.inside.marks)
    if WATERMARK in body.after:
        mark(marks, {str(body.after.get(WATERMARK_KEY)): body.after[WATERMARK]})


def _note_death(run: ComponentRun) -> None:
    """Iterations are let go when they close, so the iterators around it remember: of several deaths the first by place."""
    root_of(run.subjob.scope).deaths.append(Death(run.place.id, DEAD.format(run.name)))
    death = (run.place.clock, run.exit_code, run.error)
    opener = run.subjob.scope.opener
    while opener is not None:
        iterator = opener.iterations
        if iterator is not None and (iterator.death is None or death[0] < iterator.death[0]):
            iterator.death = death
        opener = opener.subjob.scope.opener


def skipped(state: State, fact: Fact, body: facts.ComponentSkipped, ts: float) -> None:
    _subjob(state, body.subjob, body.subjob_name, body.index, body.container)
    run = _component(state, fact, body.subjob)
    run.status, run.counter = SKIPPED, number_after(fact)
    run.subjob.ended += 1


def link_fired(state: State, fact: Fact, body: facts.LinkFired, ts: float) -> None:
    if body.on in fans.ENDS:
        fans.end_fired(state, fact, body)
        return
    subjob = state.subjobs.get(fact.scope)
    if subjob is not None:
        subjob.counter = number_after(fact)
        return
    component: ComponentRun | None = state.runs.get(fact.scope)
    if component is None or (body.on == "synchronise" and component.status in SETTLED):
        # The links of a join are counted with its target, which is not there before they have fired.
        state.counters[fact.scope] = number_after(fact)
        if body.on == "synchronise":
            state.joined.setdefault(fact.scope, Joined(fact.clock[:-1])).links.add(body.link)
        return
    component.counter = number_after(fact)
    component.fired.add(body.link)


def global_set(state: State, fact: Fact, body: facts.GlobalSet, ts: float) -> None:
    component: ComponentRun = state.runs[fact.scope]
    component.counter = number_after(fact)
    before = component.view.get(body.key)
    past = before.past | {before.stamp} if before is not None else frozenset()
    written = Written(body.new, (fact.clock, body.writer), body.creator, past, body.is_set, body.deleted)
    component.view.write(body.key, written, local=body.local)
    if not body.local:
        component.written.append(body.key)
