"""A failed child that goes on: whoever ran it runs again after a resume, under another name, and takes it up where it failed.

What ended OK in it is not run again (D30): of a playbook its finished steps, of a job its finished sub-jobs and iterations.
"""

from __future__ import annotations

from typing import TypedDict

from penstock.kernel.net import Net
from penstock.kernel.places import Place
from penstock.kernel.plan import plan_of
from penstock.kernel.resume import kept_of
from penstock.kernel.state import Execution, State
from penstock.ports.leases import Caller


class GoingOn(TypedDict):
    continues: str | None
    kept: list[str]


def failed_before(caller: Caller, tree: State) -> Execution | None:
    """The child that an earlier run of this caller had, if it failed. In a job that goes on itself, it is a child of the one
    that failed before it."""
    for child in caller.children.values():
        if _can_go_on(child):
            return child
    around = caller.context.scope
    name = caller.run_id.removeprefix(around.place.id)
    while around.kind == "job" and around.continues is not None:
        scope = f"{around.continues}/"
        before = tree.executions.get(f"{scope}{name}/")
        if before is not None:
            return before if _can_go_on(before) else None
        if scope not in tree.executions:
            return None
        around = tree.executions[scope]
    return None


def _can_go_on(child: Execution) -> bool:
    """It failed, or it was stopped because its caller's time was over."""
    return bool(child.unhandled) if child.kind == "playbook" else child.status in ("failed", "cancelled")


def going_on(before: Execution | None, net: Net, place: Place) -> GoingOn:
    """What the first fact of the new child says of the failed one."""
    if before is None:
        return {"continues": None, "kept": []}
    kept: list[str] = []
    if before.kind == "job":
        found = kept_of(plan_of(net), before, has_failed=True)
        kept = [place.id + scope.removeprefix(before.place.id) for scope in found]
    return {"continues": before.place.id.removesuffix("/"), "kept": kept}
