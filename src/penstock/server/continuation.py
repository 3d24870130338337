"""Continues a failed child: after a resume its caller runs again, under another name, and the child goes on where it failed.

What ended OK in the child is not run again (D30): the finished steps of a playbook, the finished sub-jobs and iterations of
a job.
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
    """The child of an earlier run of this caller, if that child failed. If the job itself continues a failed one, the child
    belongs to that one."""
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
    """Whether it failed, or was stopped because its caller ran out of time."""
    return bool(child.unhandled) if child.kind == "playbook" else child.status in ("failed", "cancelled")


def going_on(before: Execution | None, net: Net, place: Place) -> GoingOn:
    """What the first fact of the new child says about the failed one."""
    if before is None:
        return {"continues": None, "kept": []}
    kept: list[str] = []
    if before.kind == "job":
        found = kept_of(plan_of(net), before, has_failed=True)
        kept = [place.id + scope.removeprefix(before.place.id) for scope in found]
    return {"continues": before.place.id.removesuffix("/"), "kept": kept}
