"""Which links fire, which inputs are fed, and what the status of a scope is. Queries only: nothing is recorded here."""

from __future__ import annotations

import json
from collections.abc import Iterator

from penstock.kernel.facts import CheckpointSaved
from penstock.kernel.judge import located
from penstock.kernel.merging import last_values
from penstock.kernel.net import Link, Location, On, Opening, Region
from penstock.kernel.plan import OF_ITERATION, OF_REGION, Plan
from penstock.kernel.scopes import LEADS, ScopeView
from penstock.kernel.state import (
    ERROR,
    OK,
    SETTLED,
    SKIPPED,
    ComponentRun,
    Scope,
    Subjob,
    root_of,
)
from penstock.kernel.values import Json, JsonMap

# ---- has a link fired?


def fires(view: ScopeView, link: Link) -> bool | None:
    """Whether the link fired. None if it has not settled yet, because its source has not ended."""
    if link.on in OF_REGION:
        subjob = view.subjob(view.plan.region(link.source))
        if subjob is None or subjob.status not in SETTLED:
            return None
        return joins(view, link) if link.on is On.SYNCHRONISE else subjob_fires(link, subjob.status)
    if link.on in OF_ITERATION:
        return link.on is LEADS[view.state.body] if view.state.body else None
    if view.plan.locations[link.source].container != view.key:  # The source ended before this scope opened.
        return link.on is not On.DATA or _is_fed(view, link)
    component = view.component(link.source)
    if component is None or component.status not in SETTLED:
        return None
    if link.on is On.DATA:
        return component.status == OK and link.port in component.outputs
    if link.hidden and link.on is not On.IF:  # No fact is recorded for it, so it is derived.
        return _fires(link, component)
    return link.index in component.fired


def joins(view: ScopeView, link: Link) -> bool | None:
    """Whether a join's links fire: all or none, once all of its branches have ended (D35). None until then."""
    branches = [view.subjob(view.plan.region(one.source)) for one in view.plan.joins[link.target]]
    ends = [branch.status for branch in branches if branch is not None and branch.status in SETTLED]
    if len(ends) < len(branches):
        return None
    return ERROR not in ends and any(end != SKIPPED for end in ends)


def inbound_fires(view: ScopeView, name: str) -> dict[int, bool] | None:
    """Link index -> whether it fired, for all links into a node. None if one of them has not settled, or one of those that
    bring rows into the body it opens."""
    found: dict[int, bool] = {}
    for link in view.plan.inbound[name]:
        fired = fires(view, link)
        if fired is None:
            return None
        found[link.index] = fired
    for link in view.plan.awaited.get(name, ()):
        source = view.component(link.source)
        if source is None or source.status not in SETTLED:
            return None
    return found


def subjob_fires(link: Link, status: str) -> bool:
    match link.on:
        case On.SUBJOB_OK:
            return status == OK
        case On.SUBJOB_ERROR:
            return status == ERROR
    return link.on is On.SUBJOB_DONE


def fired_by(plan: Plan, name: str, component: ComponentRun, ifs: tuple[int, ...]) -> list[Link]:
    """The control links that fire when a component ends: `if` links last, in their own order; the others in document order."""
    shown = [link for link in plan.outbound[name] if not link.hidden]
    fired = [link for link in shown if link.on is not On.IF and _fires(link, component)]
    return fired + [link for index in ifs for link in plan.outbound[name] if link.index == index]


def _fires(link: Link, component: ComponentRun) -> bool:
    match link.on:
        case On.OK | On.PARALLELISE:
            return component.status == OK
        case On.ERROR:
            return component.status == ERROR
        case On.ITERATOR_COMPLETE:
            return component.fan is not None
    return False


# ---- inputs


def _is_fed(view: ScopeView, link: Link) -> bool:
    source = around(view, link)
    if source is None:
        return False
    if source is view.state.opener:
        return source.fan is not None or link.port in source.rows_in
    return source.status == OK and link.port in source.outputs


def around(view: ScopeView, link: Link) -> ComponentRun | None:
    """The component a link comes from, in this scope or in one around it."""
    home = view.plan.locations[link.source].container
    while view.key != home:
        if view.state.opener is None:
            return None
        view = ScopeView(view.plan, view.state.opener.subjob.scope)
    return view.component(link.source)


def sees(view: ScopeView, name: str) -> list[ComponentRun | Subjob]:
    """The components and sub-jobs whose globals a node sees, each once, in the order of its links."""
    found: dict[str, ComponentRun | Subjob] = {}
    for link in view.plan.inbound[name]:
        if link.on in OF_ITERATION:
            ended = (subjob for subjob in view.state.subjobs.values() if subjob.status in (OK, ERROR))
            found.update({subjob.place.id: subjob for subjob in ended if not subjob.handles})
            continue
        if view.plan.locations[link.source].container != view.key:
            continue
        source = view.subjob(view.plan.region(link.source)) if link.on in OF_REGION else view.component(link.source)
        if source is not None and source.status in (OK, ERROR):
            found[source.place.id] = source
    return list(found.values())


def feeds(view: ScopeView, name: str) -> Iterator[tuple[Link, ComponentRun]]:
    """The data links into a node that carry rows, with the components they come from."""
    for link in view.plan.data[name]:
        if fires(view, link):
            source = around(view, link)
            if source is not None:
                yield link, source


def rows_in(view: ScopeView, name: str) -> JsonMap:
    """Input port -> the number of rows that arrive there, summed over its links."""
    counts: JsonMap = {}
    for link, source in feeds(view, name):
        if source is view.state.opener:
            rows = _element_rows(view) if source.fan is not None else source.rows_in.get(link.port, 0)
        else:
            rows = source.rows_out.get(link.port, 0)
        before = counts.get(link.to_port, 0)
        assert isinstance(before, int)
        assert isinstance(rows, int)
        counts[link.to_port] = before + rows
    return counts


def element(scope: Scope) -> Json:
    """The element of an iteration, or of the iteration that surrounds this scope."""
    container: Scope | None = scope
    while container is not None and container.index is None:
        container = container.opener.subjob.scope if container.opener is not None else None
    if container is None or container.opener is None or container.opener.fan is None:
        return None
    items = container.opener.fan.items
    assert container.index is not None
    return items[container.index] if items is not None else None


def _element_rows(view: ScopeView) -> int:
    item = element(view.state)
    rows = item.get("rows") if isinstance(item, dict) else None
    if isinstance(rows, list):
        return len(rows)
    return len(item) if isinstance(item, list) else 1


# ---- globals


def global_name(name: str, part: Location, bare: str) -> str:
    """The full name of a global. What a component inside a joblet writes is called `caller.__inner__NAME` (D14)."""
    if not part.prefix or bare.startswith(f"{part.prefix[0]}."):
        return bare
    return f"{name}__{bare}"


# ---- the status of a scope


def aggregate(view: ScopeView, region: Region) -> tuple[str, Json]:
    """The status of a sub-job and its error: ERROR if a component ended in ERROR and no error link inside the sub-job handled it;
    SKIPPED if all members were skipped; OK otherwise."""
    members = [(name, view.component(name)) for name in region.members]
    ran = [(name, one) for name, one in members if one is not None and one.status != SKIPPED]
    for name, component in ran:
        if component.status == ERROR and not _is_handled(view, name, component):
            return ERROR, located(component.error, component=component.place.id)
    return (OK if ran else SKIPPED), None


def failed_in(view: ScopeView, region: Region) -> dict[str, bool]:
    """Component in ERROR -> whether an error link inside the sub-job handled it."""
    found = ((name, view.component(name)) for name in region.members)
    return {name: _is_handled(view, name, one) for name, one in found if one is not None and one.status == ERROR}


def _is_handled(view: ScopeView, name: str, component: ComponentRun) -> bool:
    part = view.plan.locations[name]
    for link in view.plan.outbound[name]:
        target = view.plan.locations[link.target]
        if link.on is On.ERROR and link.index in component.fired and target.region == part.region:
            handler = view.component(link.target)
            if handler is not None and handler.status in (OK, ERROR):
                return True
    return False


def failures(view: ScopeView) -> list[Subjob]:
    """The sub-jobs of a scope that ended in ERROR without a subjob_error link to a handler that ended OK (D37). In a joblet
    such a handler does not keep the call from failing (D64)."""
    first = view.spec.regions[0].members if view.spec.regions else ()
    # A call, or an iteration whose body is a joblet, whose members are named after the iterator.
    is_joblet = view.spec.opening is Opening.JOBLET or (
        view.spec.opening is Opening.BODY and any(name.startswith(f"{view.key}.__") for name in first)
    )
    is_confined = is_joblet and root_of(view.state).rules >= 2
    return [
        state
        for region in view.spec.regions
        if (state := view.subjob(region)) is not None
        and state.status == ERROR
        and (is_confined or not _is_taken(view, region))
    ]


def _is_taken(view: ScopeView, region: Region) -> bool:
    """Whether a handler has dealt with the error: it ran and its own sub-job ended OK, so it did not report the error and die."""
    for link in view.plan.of_region[view.key, region.index]:
        handler = view.component(link.target) if link.on is On.SUBJOB_ERROR else None
        if handler is not None and handler.status in (OK, ERROR) and handler.subjob.status == OK:
            return True
    return False


def checkpoint(context: Json, subjob: Subjob, status: str) -> CheckpointSaved:
    outputs: JsonMap = {}
    for _, component in sorted(subjob.members.items()):
        hashes: JsonMap = {
            port: output.get("hash") for port, output in component.outputs.items() if isinstance(output, dict)
        }
        if hashes:
            outputs[component.place.id] = hashes
    if subjob.scope.index is not None:
        values: JsonMap = {key: one.value for key, one in last_values((subjob,)).items() if not one.deleted}
        context = None
    else:
        values = subjob.out().values(is_shared=True)
    size = len(json.dumps([values, outputs, context], default=str))
    return CheckpointSaved(subjob.name, size, status.lower(), values, outputs, context)
