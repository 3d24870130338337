"""What a resume keeps of a job, and what starts over."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from penstock.kernel import facts
from penstock.kernel.errors import Refused
from penstock.kernel.flow import routing
from penstock.kernel.flow.scope import Scope
from penstock.kernel.flow.state import (
    ERROR,
    OK,
    PENDING,
    RUNNING,
    ComponentState,
    ContainerState,
    IteratorState,
    RegionState,
    dying,
)
from penstock.kernel.net import On, Region

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow


def resume(flow: Flow, *, failed_only: bool = False) -> None:
    """Record the new start. After a crash whatever has closed is kept; after a failure, what ended OK or was dealt with.

    `failed_only`: also a job that completed is resumed, for the sake of its failed iterations.
    """
    state = flow.state
    kept_components: list[str] = []
    reopened: list[str] = []
    if state.status == "completed" and failed_only:
        kept, kept_components, reopened = _besides_failed(flow)
    elif state.status in ("completed", "cancelled"):
        failed, noun = state.failed_iterations, "iteration" if state.failed_iterations == 1 else "iterations"
        if failed and state.status == "completed":
            raise Refused(
                f"the run is completed, and {failed:,} {noun} of it failed",
                hint="`penstock resume --failed` runs only the failed iterations again",
            )
        raise Refused(f"the run is {state.status}; there is nothing to resume")
    else:
        kept = kept_of(flow, has_failed=state.status == "failed")
        kept_components = list(kept_members(flow.root, frozenset(kept)))
        reopened = list(going_on(flow.root, kept_components, frozenset(kept)))
    body = facts.ExecutionStarted(
        state.name,
        state.digest,
        state.workload,
        "",
        state.trace_id,
        kind="job",
        resumed=True,
        kept=kept,
        kept_components=kept_components,
        reopened=reopened,
        rules=flow.root.rules,
    )
    flow.mark(body)


# ---- failed iterations of a job that went on


class _Sorted(NamedTuple):
    """What stays when only failed iterations run again (D60), and which iterations that had ended OK go on."""

    kept: list[str]
    """Sub-jobs."""
    components: list[str]
    """Of sub-jobs that start over."""
    reopened: list[str]


def _besides_failed(flow: Flow) -> _Sorted:
    if not _has_failed_iterations(flow.root):
        raise Refused("no iteration of the run failed that could be run again")
    found = _Sorted([], [], [])
    _sort_out(flow, flow.root, found)
    return found


def _sort_out(flow: Flow, container: ContainerState, found: _Sorted) -> None:
    scope = Scope(flow.plan, container)
    again = _again(flow, scope)
    for region in scope.spec.regions:
        state = scope.region(region)
        if state is None or state.handles:  # What the end of an iteration leads to follows from it once more.
            continue
        if again.isdisjoint(region.members):
            found.kept.append(scope.region_scope(region))
            continue
        for name in region.members:
            component = scope.component(name)
            if component is None:
                continue
            if name not in again:
                found.components.append(scope.scope(name))
            elif component.inside is not None:
                _sort_out(flow, component.inside, found)
            elif component.iterator is not None:
                for iteration in component.iterator.partial.values():
                    found.reopened.append(iteration.place.id)
                    _sort_out(flow, iteration, found)


def _has_failed(iterator: IteratorState | None) -> bool:
    return iterator is not None and bool(iterator.failed or iterator.partial)


def _has_failed_iterations(container: ContainerState) -> bool:
    return any(
        _has_failed(component.iterator) or (component.inside is not None and _has_failed_iterations(component.inside))
        for component in container.components.values()
    )


def _again(flow: Flow, scope: Scope) -> set[str]:
    """The nodes of a scope that start anew: iterators with failed iterations, what follows from their ends, and whoever gives
    these rows that are nowhere any more."""
    plan, found = flow.plan, set[str]()
    todo = [
        name
        for region in scope.spec.regions
        for name in region.members
        if (component := scope.component(name)) is not None
        and (
            _has_failed(component.iterator)
            or (component.inside is not None and _has_failed_iterations(component.inside))
        )
    ]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        part, component = plan.part(name), scope.component(name)
        todo += [link.target for link in (*plan.outbound[name], *plan.of_region[part.container, part.region])]
        todo += plan.awaiting.get(name, ())
        goes_on = component is not None and component.iterator is not None  # Over the elements that it had.
        given = plan.awaited[name] if goes_on else [*plan.awaited[name], *scope.data(name)]
        todo += [link.source for link in given if plan.part(link.source).region == part.region and not link.crosses]
    return {name for name in found if plan.part(name).container == scope.key}


def kept_members(container: ContainerState, kept: frozenset[str]) -> Iterator[str]:
    """Components that an earlier resume kept in sub-jobs that start over once more."""
    for scope, region in container.regions.items():
        for name, component in region.members.items() if scope not in kept else ():
            if component.kept:
                yield name
            elif component.inside is not None:
                yield from kept_members(component.inside, kept)


def going_on(container: ContainerState, components: list[str], kept: Collection[str] = frozenset()) -> Iterator[str]:
    """Iterations that an earlier resume had opened again and that have not ended: they go on once more. What is kept of them is
    added to `components`. `kept` are the sub-jobs that stay as they are."""
    members = [one for one in container.components.values() if one.region.place.id not in kept]
    iterators = [one.iterator for one in members if one.iterator is not None]
    for iterator in (*iterators, *container.kept_iterators.values()):
        for iteration in (*iterator.open.values(), *iterator.reopened.values()):
            if iteration.is_reopened and not iteration.body:
                yield iteration.place.id
                components += _still_kept(iteration)
                yield from going_on(iteration, components)
    for inside in (*(one.inside for one in members), *container.kept_insides.values()):
        if inside is not None:
            yield from going_on(inside, components)


def _still_kept(container: ContainerState) -> Iterator[str]:
    """Of an iteration that was opened again: what has closed, and what stayed as it was."""
    for scope, region in container.regions.items():
        if region.status not in (PENDING, RUNNING):
            yield scope
            continue
        for name, component in region.members.items():
            if component.kept:
                yield name
            elif component.inside is not None:
                yield from _still_kept(component.inside)


def kept_of(flow: Flow, *, has_failed: bool) -> list[str]:
    return list(_kept(flow, flow.root, has_failed=has_failed))


def _kept(flow: Flow, container: ContainerState, *, has_failed: bool) -> Iterator[str]:
    """The sub-jobs to keep, here and inside joblet calls whose own sub-job starts over."""
    scope = Scope(flow.plan, container)
    for region in scope.spec.regions:
        state = scope.region(region)
        if state is None:
            continue
        if _is_kept(scope, state.status, region, has_failed=has_failed):
            yield scope.region_scope(region)
            continue
        for name in region.members:
            component = scope.component(name)
            if component is not None and component.inside is not None:
                yield from _kept(flow, component.inside, has_failed=has_failed)


def _is_kept(scope: Scope, status: str, region: Region, *, has_failed: bool) -> bool:
    if status in (PENDING, RUNNING):
        return False
    if not has_failed:
        return True
    members = [scope.component(name) for name in region.members]
    if any(scope.plan.part(name).always for name in region.members):
        return False
    if any(component is not None and _has_died(component) for component in members):
        return False
    state = scope.region(region)
    failures = routing.failures(scope)
    is_dealt_with = status == ERROR and state not in failures and not scope.plan.net.aborts
    return (status == OK and not _handles(scope, region, failures)) or is_dealt_with


def _handles(scope: Scope, region: Region, failures: list[RegionState]) -> bool:
    """Was it led to by the failure of a sub-job that starts over? In a joblet it was, though the call failed all the same."""
    links = [link for name in region.members for link in scope.plan.inbound[name] if link.on is On.SUBJOB_ERROR]
    return any(scope.region(scope.plan.region(link.source)) in failures for link in links)


def _has_died(component: ComponentState) -> bool:
    if component.dies:
        return True
    return component.inside is not None and dying(component.inside) is not None
