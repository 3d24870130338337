"""Which links fire, what is fed, why a node is skipped, and what a scope amounts to. Questions only: nothing is recorded here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.kernel.facts import CheckpointSaved
from penstock.kernel.flow import reasons
from penstock.kernel.flow.gathering import writes_in
from penstock.kernel.flow.plan import OF_ERROR, OF_ITERATION, OF_REGION, FlowPlan
from penstock.kernel.flow.reasons import Skip
from penstock.kernel.flow.scope import Scope, leading
from penstock.kernel.flow.state import (
    ERROR,
    OK,
    SETTLED,
    SKIPPED,
    ComponentState,
    ContainerState,
    RegionState,
    rules_of,
)
from penstock.kernel.net import Link, On, Opening, Part, Region
from penstock.kernel.values import Json, JsonMap

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow


# ---- readiness


def settled(flow: Flow, scope: Scope, link: Link) -> bool | None:
    """Did the link fire? None: that is not decided yet, since what it comes from has not ended."""
    if link.on in OF_REGION:
        region = scope.region_of(link.source)
        if region is None or region.status not in SETTLED:
            return None
        return joins(scope, link) if link.on is On.SYNCHRONISE else region_fires(link, region.status)
    if link.on in OF_ITERATION:
        return link.on is leading(scope.state.body) if scope.state.body else None
    if (
        scope.plan.part(link.source).container != scope.key
    ):  # What leads in from outside has ended before the scope opened.
        return is_fed(flow, scope, link)
    component = scope.component(link.source)
    if component is None or component.status not in SETTLED:
        return None
    return has_fired(link, component)


def joins(scope: Scope, link: Link) -> bool | None:
    """A join waits for all of its branches, then all of its links fire or none (D35)."""
    branches = [scope.region_of(one.source) for one in scope.plan.joins[link.target]]
    ends = [branch.status for branch in branches if branch is not None and branch.status in SETTLED]
    if len(ends) < len(branches):
        return None
    return ERROR not in ends and any(end != SKIPPED for end in ends)


def settlements(flow: Flow, scope: Scope, name: str) -> dict[int, bool] | None:
    """Which links of a node have fired. None: not all have settled, or not all that bring rows into the body that it opens."""
    found: dict[int, bool] = {}
    for link in scope.plan.inbound[name]:
        fired = settled(flow, scope, link)
        if fired is None:
            return None
        found[link.index] = fired
    for link in scope.plan.awaited.get(name, ()):
        source = scope.component(link.source)
        if source is None or source.status not in SETTLED:
            return None
    return found


def why_skipped(flow: Flow, scope: Scope, name: str, fired: dict[int, bool]) -> Skip | None:
    """All links of `name` have settled, and these have fired: None if it is to run."""
    part = scope.plan.part(name)
    if flow.state.cancelling:
        return Skip(reasons.CANCELLED, stops=True)
    if not may_start(flow, name):
        return Skip(f"{reasons.ENDING}{flow.deaths[0].why}", stops=True)
    unfed = _unfed(scope, name, part, fired)
    if unfed is not None:
        return reasons.unfed(scope, unfed, around(flow, scope, unfed))
    control = scope.control(name)
    if part.startable or not control or any(fired[link.index] for link in _counting(control, fired)):
        return None
    return reasons.not_led_to(scope, control)


def _counting(control: list[Link], fired: dict[int, bool]) -> list[Link]:
    """A join whose branches did not all come through is skipped, unless an error link leads there (rulebook 2.1.4)."""
    joined = [link for link in control if link.on is On.SYNCHRONISE]
    if not joined or fired[joined[0].index]:
        return control
    return [link for link in control if link.on in OF_ERROR]


def may_start(flow: Flow, name: str) -> bool:
    """A dying job starts only its error path and what runs always, with all that these open."""
    allowed = flow.allowed
    around = name
    while allowed is not None and around:
        part = flow.plan.part(around)
        if around in allowed or part.always:
            return True
        around = part.container
    return allowed is None


def _unfed(scope: Scope, name: str, part: Part, fired: dict[int, bool]) -> Link | None:
    """All that is expected must be there (rulebook 10.3), also on a port that takes several links: some of the rows are not
    the rows."""
    required = (link for link in scope.data(name) if link.to_port in part.required)
    return next((link for link in required if not fired[link.index]), None)


# ---- what flows in


def is_fed(flow: Flow, scope: Scope, link: Link) -> bool:
    if link.on is not On.DATA:
        return True
    source = around(flow, scope, link)
    if source is None:
        return False
    if source is scope.state.opener:
        return source.iterator is not None or link.port in source.rows_in
    return source.status == OK and link.port in source.outputs


def around(flow: Flow, scope: Scope, link: Link) -> ComponentState | None:
    """The component that a link begins at, in this scope or in one around it."""
    home = scope.plan.part(link.source).container
    while scope.key != home:
        if scope.state.opener is None:
            return None
        scope = flow.scope_of(scope.state.opener)
    return scope.component(link.source)


def sees(scope: Scope, name: str) -> list[str]:
    """The scopes whose globals a node finds, each once, in the order of its links."""
    found: dict[str, None] = {}
    for link in scope.plan.inbound[name]:
        if link.on in OF_ITERATION:
            ended = (region for region in scope.state.regions.values() if region.status in (OK, ERROR))
            found.update(dict.fromkeys(region.place.id for region in ended if not region.handles))
        elif scope.plan.part(link.source).container != scope.key:
            continue
        elif link.on in OF_REGION:
            region = scope.region(scope.plan.region(link.source))
            if region is not None and region.status in (OK, ERROR):
                found[region.place.id] = None
        else:
            component = scope.component(link.source)
            if component is not None and component.status in (OK, ERROR):
                found[component.place.id] = None
    return list(found)


def feeds(flow: Flow, scope: Scope, name: str) -> Iterator[tuple[Link, ComponentState]]:
    """The data links of a node that carry rows, with the components they come from."""
    for link in scope.data(name):
        if settled(flow, scope, link):
            source = around(flow, scope, link)
            if source is not None:
                yield link, source


def rows_in(flow: Flow, scope: Scope, name: str) -> JsonMap:
    counts: JsonMap = {}
    for link, source in feeds(flow, scope, name):
        if source is scope.state.opener:
            rows = _element_rows(scope) if source.iterator is not None else source.rows_in.get(link.port, 0)
        else:
            rows = source.rows_out.get(link.port, 0)
        before = counts.get(link.to_port, 0)
        assert isinstance(before, int)
        assert isinstance(rows, int)
        counts[link.to_port] = before + rows
    return counts


def element(scope_state: ContainerState) -> Json:
    """The element of an iteration, or of the iteration that surrounds this scope."""
    container: ContainerState | None = scope_state
    while container is not None and container.index is None:
        container = container.opener.region.container if container.opener is not None else None
    if container is None or container.opener is None or container.opener.iterator is None:
        return None
    items = container.opener.iterator.items
    assert container.index is not None
    return items[container.index] if items is not None else None


def _element_rows(scope: Scope) -> int:
    item = element(scope.state)
    rows = item.get("rows") if isinstance(item, dict) else None
    if isinstance(rows, list):
        return len(rows)
    return len(item) if isinstance(item, list) else 1


# ---- what flows out


def fired_by(plan: FlowPlan, name: str, component: ComponentState, ifs: tuple[int, ...]) -> list[Link]:
    """The control links that a component fires by its end: others in the order of the document, then `if` in its own."""
    shown = [link for link in plan.outbound[name] if not link.hidden]
    fired = [link for link in shown if link.on is not On.IF and _fires(link, component)]
    return fired + [link for index in ifs for link in plan.outbound[name] if link.index == index]


def _fires(link: Link, component: ComponentState) -> bool:
    match link.on:
        case On.OK | On.PARALLELISE:
            return component.status == OK
        case On.ERROR:
            return component.status == ERROR
        case On.ITERATOR_COMPLETE:
            return component.iterator is not None
    return False


def has_fired(link: Link, component: ComponentState) -> bool:
    if link.on is On.DATA:
        return component.status == OK and link.port in component.outputs
    is_unsaid = (
        link.hidden and link.on is not On.IF
    )  # Nothing is recorded of it: it fires with the link it stands beside.
    return _fires(link, component) if is_unsaid else link.index in component.fired


def region_fires(link: Link, status: str) -> bool:
    match link.on:
        case On.SUBJOB_OK:
            return status == OK
        case On.SUBJOB_ERROR:
            return status == ERROR
    return link.on is On.SUBJOB_DONE


# ---- globals


def global_name(name: str, part: Part, bare: str) -> str:
    """What a component writes inside a joblet is called `caller.__inner__NAME` (D14)."""
    if not part.prefix or bare.startswith(f"{part.prefix[0]}."):
        return bare
    return f"{name}__{bare}"


# ---- what a scope amounts to


def aggregate(flow: Flow, scope: Scope, region: Region) -> tuple[str, Json]:
    """OK, unless a component ended in ERROR and no error link inside the sub-job took it; SKIPPED if all members were."""
    unhandled: ComponentState | None = None
    all_skipped = True
    for name in region.members:
        component = scope.component(name)
        if component is None or component.status == SKIPPED:
            continue
        all_skipped = False
        if component.status == ERROR and unhandled is None and not _is_handled(scope, name, component):
            unhandled = component
    if unhandled is not None:
        return ERROR, with_component(unhandled)
    return (SKIPPED if all_skipped else OK), None


def failed_in(scope: Scope, region: Region) -> dict[str, bool]:
    """The components of a sub-job that are in ERROR, and whether an error link inside of it took that."""
    found = ((name, scope.component(name)) for name in region.members)
    return {name: _is_handled(scope, name, one) for name, one in found if one is not None and one.status == ERROR}


def _is_handled(scope: Scope, name: str, component: ComponentState) -> bool:
    part = scope.plan.part(name)
    for link in scope.plan.outbound[name]:
        target = scope.plan.part(link.target)
        if link.on is On.ERROR and link.index in component.fired and target.region == part.region:
            handler = scope.component(link.target)
            if handler is not None and handler.status in (OK, ERROR):
                return True
    return False


def with_component(component: ComponentState) -> JsonMap:
    error = component.error
    said: JsonMap = dict(error) if isinstance(error, dict) else {"message": str(error)}
    said.setdefault("component", component.name)
    return said


def failures(scope: Scope) -> list[RegionState]:
    """The sub-jobs of a scope that ended in ERROR and whose subjob_error led to no handler that ended OK (D37). In a joblet that
    link is confined to its inside, and does not keep the call from failing (D64)."""
    is_confined = _is_joblet(scope) and rules_of(scope.state) >= 2
    return [
        state
        for region in scope.spec.regions
        if (state := scope.region(region)) is not None
        and state.status == ERROR
        and (is_confined or not _is_taken(scope, region))
    ]


def _is_joblet(scope: Scope) -> bool:
    """A call, or an iteration whose body is a joblet: there its members are named after the iterator."""
    if scope.spec.opening is Opening.BODY:
        first = scope.spec.regions[0].members if scope.spec.regions else ()
        return any(name.startswith(f"{scope.key}.__") for name in first)
    return scope.spec.opening is Opening.JOBLET


def _is_taken(scope: Scope, region: Region) -> bool:
    """A handler has dealt with an error when it ran and its own sub-job ended OK. One that tells of it and then dies has not."""
    for link in scope.plan.of_region[scope.key, region.index]:
        handler = scope.component(link.target) if link.on is On.SUBJOB_ERROR else None
        if handler is not None and handler.status in (OK, ERROR) and handler.region.status == OK:
            return True
    return False


def first_error(failed: list[RegionState]) -> Json:
    error = failed[0].error
    said: JsonMap = dict(error) if isinstance(error, dict) else {"message": str(error)}
    if len(failed) > 1:
        said["others"] = len(failed) - 1
    return said


def checkpoint(context: Json, state: RegionState, status: str) -> CheckpointSaved:
    outputs: JsonMap = {}
    for _, component in sorted(state.members.items()):
        hashes: JsonMap = {
            port: output.get("hash") for port, output in component.outputs.items() if isinstance(output, dict)
        }
        if hashes:
            outputs[component.name] = hashes
    if state.container.index is not None:
        values: JsonMap = {key: one.value for key, one in writes_in(state).items() if not one.deleted}
        context = None
    else:
        values = state.out().shared_values()
    size = len(json.dumps([values, outputs, context], default=str))
    return CheckpointSaved(state.name, size, status.lower(), values, outputs, context)


__all__ = [
    "Skip",
    "aggregate",
    "around",
    "checkpoint",
    "element",
    "failures",
    "feeds",
    "fired_by",
    "first_error",
    "global_name",
    "has_fired",
    "joins",
    "may_start",
    "region_fires",
    "rows_in",
    "sees",
    "settled",
    "settlements",
    "why_skipped",
]
