"""What the templates and conditions of a component see, assembled from the state of its job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.expr.scope import GlobalsView, JobNames
from penstock.kernel.globals import View
from penstock.kernel.kept import part
from penstock.kernel.links import element
from penstock.kernel.net import Node
from penstock.kernel.state import ComponentRun, Scope
from penstock.kernel.values import Json, JsonMap
from penstock.ports.leases import ScopeContext, execution_view


def job_names(
    context: ScopeContext,
    node: Node,
    component: ComponentRun,
    view: View,
    after: JsonMap | None = None,
    iteration: JsonMap | None = None,
    keychain: Mapping[str, Any] | None = None,
) -> JobNames:
    prefixes = node.part.prefix if node.part is not None else ()
    return JobNames(
        context.workload,
        GlobalsView(view, prefixes),
        iteration=iteration if iteration is not None else iteration_of(component.subjob.scope),
        execution=execution_view(context),
        after=after,
        keychain=keychain,
        state=part(context.scope.kept, "values") if context.net.state is not None else None,
    )


def iteration_of(container: Scope) -> JsonMap | None:
    """The iteration that a scope lies in: its element, its number, and the iteration around it."""
    found: Scope | None = container
    while found is not None and found.index is None:
        found = found.opener.subjob.scope if found.opener is not None else None
    if found is None or found.index is None or found.opener is None:
        return None
    item: Json = element(found)
    if found.opener.fan is not None and found.opener.fan.items is None:
        item = found.index
    around = iteration_of(found.opener.subjob.scope)
    total = found.opener.fan.total if found.opener.fan is not None else None
    return {"item": item, "index": found.index, "total": total, **({"parent": around} if around is not None else {})}
