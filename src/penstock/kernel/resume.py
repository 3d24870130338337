"""What a resume keeps of a job, and what runs again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from penstock.kernel import facts
from penstock.kernel.decision import Decision
from penstock.kernel.errors import Refused
from penstock.kernel.links import failures
from penstock.kernel.net import On, Region
from penstock.kernel.plan import Plan
from penstock.kernel.scopes import ScopeView
from penstock.kernel.state import (
    ERROR,
    OK,
    PENDING,
    RUNNING,
    ComponentRun,
    Execution,
    Iterations,
    Scope,
    Subjob,
    dying,
)


def resume(d: Decision, *, failed_only: bool = False, lost: str | None = None) -> None:
    """Record the new start. After a crash, every closed sub-job is kept; after a failure, those that ended OK or whose error was
    handled (D30).

    `failed_only`: resume even a completed job, to rerun its failed iterations. `lost`: the holder of this sub-job is gone; it
    starts over, and all others stay as they are.
    """
    state = d.execution
    if lost is not None:
        kept = [other for other in state.subjobs if other != lost]
        kept_components, reopened = _going_on(state, kept)
    elif state.status == "completed" and failed_only:
        kept, kept_components, reopened = _besides_failed(d)
    elif state.status in ("completed", "cancelled"):
        failed, noun = state.failed_iterations, "iteration" if state.failed_iterations == 1 else "iterations"
        if failed and state.status == "completed":
            raise Refused(
                f"the run is completed, and {failed:,} {noun} of it failed",
                hint="`penstock resume --failed` runs only the failed iterations again",
            )
        raise Refused(f"the run is {state.status}; there is nothing to resume")
    else:
        kept = kept_of(d.plan, state, has_failed=state.status == "failed")
        kept_components, reopened = _going_on(state, kept)
    body = facts.ExecutionStarted(
        state.name,
        state.digest,
        state.workload,
        "",
        state.trace_id,
        kind="job",
        resumed=True,
        kept=kept,
        lost=lost,
        kept_components=kept_components,
        reopened=reopened,
        rules=state.rules,
    )
    d.record_own(body)


def _going_on(execution: Execution, kept: list[str]) -> tuple[list[str], list[str]]:
    """The components to keep in sub-jobs that start over, and the iterations to continue."""
    components = list(_kept_members(execution, frozenset(kept)))
    return components, list(_reopened(execution, components, frozenset(kept)))


# ---- rerunning failed iterations only


class _Sorted(NamedTuple):
    """What is kept when only failed iterations run again (D60), and which iterations that ended OK are reopened."""

    kept: list[str]
    """The sub-jobs that are kept."""
    components: list[str]
    """The components that are kept in sub-jobs that start over."""
    reopened: list[str]


def _besides_failed(d: Decision) -> _Sorted:
    if not _has_failed_iterations(d.execution):
        raise Refused("no iteration of the run failed that could be run again")
    found = _Sorted([], [], [])
    _sort_out(d, d.execution, found)
    return found


def _sort_out(d: Decision, scope: Scope, found: _Sorted) -> None:
    view = ScopeView(d.plan, scope)
    again = _again(view)
    for region in view.spec.regions:
        state = view.subjob(region)
        if state is None or state.handles:  # Handlers run again after the iteration's new end.
            continue
        if again.isdisjoint(region.members):
            found.kept.append(view.subjob_scope(region))
            continue
        for name in region.members:
            component = view.component(name)
            if component is None:
                continue
            if name not in again:
                found.components.append(view.scope(name))
            elif component.inside is not None:
                _sort_out(d, component.inside, found)
            elif component.fan is not None:
                # In the order of the elements, whichever of those that ran side by side ended first.
                for _, iteration in sorted(component.fan.partial.items()):
                    found.reopened.append(iteration.place.id)
                    _sort_out(d, iteration, found)


def _has_failed(iterator: Iterations | None) -> bool:
    return iterator is not None and bool(iterator.failed or iterator.partial)


def _has_failed_iterations(scope: Scope) -> bool:
    return any(
        _has_failed(component.fan) or (component.inside is not None and _has_failed_iterations(component.inside))
        for component in scope.runs.values()
    )


def _again(view: ScopeView) -> set[str]:
    """The nodes of a scope that start again: iterators with failed iterations, the nodes that depend on their ends, and the
    sources of rows that these need and that are no longer stored."""
    plan, found = view.plan, set[str]()
    todo = [
        name
        for region in view.spec.regions
        for name in region.members
        if (component := view.component(name)) is not None
        and (_has_failed(component.fan) or (component.inside is not None and _has_failed_iterations(component.inside)))
    ]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        part, component = plan.locations[name], view.component(name)
        todo += [link.target for link in (*plan.outbound[name], *plan.of_region[part.container, part.region])]
        todo += plan.awaiting.get(name, ())
        goes_on = component is not None and component.fan is not None  # It continues over the same elements.
        given = plan.awaited[name] if goes_on else [*plan.awaited[name], *plan.data[name]]
        todo += [
            link.source for link in given if plan.locations[link.source].region == part.region and not link.crosses
        ]
    return {name for name in found if plan.locations[name].container == view.key}


def _kept_members(scope: Scope, kept: frozenset[str]) -> Iterator[str]:
    """The components that an earlier resume kept in sub-jobs that start over once more."""
    for subjob_name, subjob in scope.subjobs.items():
        for name, component in subjob.members.items() if subjob_name not in kept else ():
            if component.kept:
                yield name
            elif component.inside is not None:
                yield from _kept_members(component.inside, kept)


def _reopened(scope: Scope, components: list[str], kept: Collection[str] = frozenset()) -> Iterator[str]:
    """The iterations that an earlier resume had reopened and that have not ended: they are reopened again. What is kept of them
    is added to `components`. `kept`: the sub-jobs that stay as they are."""
    members = [one for one in scope.runs.values() if one.subjob.place.id not in kept]
    iterators = [one.fan for one in members if one.fan is not None]
    for iterator in (*iterators, *scope.kept_iterators.values()):
        for _, iteration in sorted({**iterator.open, **iterator.reopened}.items()):
            if iteration.is_reopened and not iteration.body:
                yield iteration.place.id
                components += _still_kept(iteration)
                yield from _reopened(iteration, components)
    for inside in (*(one.inside for one in members), *scope.kept_insides.values()):
        if inside is not None:
            yield from _reopened(inside, components)


def _still_kept(scope: Scope) -> Iterator[str]:
    """What is kept of a reopened iteration: closed sub-jobs, and components that an earlier resume kept."""
    for subjob_name, subjob in scope.subjobs.items():
        if subjob.status not in (PENDING, RUNNING):
            yield subjob_name
            continue
        for name, component in subjob.members.items():
            if component.kept:
                yield name
            elif component.inside is not None:
                yield from _still_kept(component.inside)


def kept_of(plan: Plan, scope: Scope, *, has_failed: bool) -> list[str]:
    """The sub-jobs to keep, in this scope and inside joblet calls whose own sub-job starts over."""
    return list(_kept(ScopeView(plan, scope), has_failed=has_failed))


def _kept(view: ScopeView, *, has_failed: bool) -> Iterator[str]:
    for region in view.spec.regions:
        state = view.subjob(region)
        if state is None:
            continue
        if _is_kept(view, state.status, region, has_failed=has_failed):
            yield view.subjob_scope(region)
            continue
        for name in region.members:
            component = view.component(name)
            if component is not None and component.inside is not None:
                yield from _kept(ScopeView(view.plan, component.inside), has_failed=has_failed)


def _is_kept(view: ScopeView, status: str, region: Region, *, has_failed: bool) -> bool:
    """Whether a resume keeps a sub-job (D30). A sub-job that has not closed is never kept.

    If the job did not fail (it crashed or was interrupted), every closed sub-job is kept. If it failed, a sub-job runs again if
    it contains an `always` node or a component that made the job die, if its error was not handled, if it was skipped, or if it
    handled the error of a sub-job that runs again. With `on_subjob_error: abort` no error counts as handled.
    """
    if status in (PENDING, RUNNING):
        return False
    if not has_failed:
        return True
    members = [view.component(name) for name in region.members]
    if any(view.plan.locations[name].always for name in region.members):
        return False
    if any(component is not None and _has_died(component) for component in members):
        return False
    failed = failures(view)
    is_dealt_with = status == ERROR and view.subjob(region) not in failed and not view.plan.net.aborts
    return (status == OK and not _handles(view, region, failed)) or is_dealt_with


def _handles(view: ScopeView, region: Region, failed: list[Subjob]) -> bool:
    """Whether the sub-job handled the error of a sub-job that starts over. In a joblet it may have, and the call still failed."""
    links = [link for name in region.members for link in view.plan.inbound[name] if link.on is On.SUBJOB_ERROR]
    return any(view.subjob(view.plan.region(link.source)) in failed for link in links)


def _has_died(component: ComponentRun) -> bool:
    if component.dies:
        return True
    return component.inside is not None and dying(component.inside) is not None
