"""The request for a child execution, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from penstock.kernel.errors import Refused
from penstock.kernel.net import Net, On
from penstock.kernel.places import Place
from penstock.kernel.plan import plan_of
from penstock.kernel.resume import kept_of
from penstock.kernel.state import Execution, State
from penstock.kernel.values import Json, JsonMap, merge_deeply
from penstock.ports.leases import Caller


@dataclass(frozen=True, slots=True)
class Played:
    """How a child execution ended, for its caller."""

    status: str
    result: Any = None
    error: Json = None
    kind: str = "playbook"
    exit_code: int | None = None


def ports_to_keep(names: Sequence[str], net: Net, compiled: Any) -> list[str]:
    """`COMPONENT.PORT` for each of these ports of a job, given as `COMPONENT[.PORT]`; for a joblet call, the port inside the
    joblet that produces the rows. Refused if the job has no such port."""
    if not names:
        return []
    if net.kind != "job":
        raise Refused("`keep` is for jobs: a playbook has no rows to keep")
    from penstock.server.preview import component_and_port  # Imported only when rows are kept: start-up time.

    found, gives_out = [], getattr(compiled, "gives_out", {})
    for name in names:
        component, port = component_and_port(name, net)
        linked = [link.port for link in net.links if link.source == component and link.on is On.DATA]
        port = port or ("main" if "main" in linked or not linked else linked[0])
        while component in gives_out:
            known = list(gives_out[component])
            if port not in known:
                raise Refused(f"`{component}` has no output `{port}`", f"its outputs are {', '.join(known)}")
            component, port = gives_out[component][port]
        found.append(f"{component}.{port}")
    return found


def asked_for(net: Net, outputs: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """`component.port`, or a component's name for its port `main`."""
    found = set()
    for name in outputs:
        component, _, port = name.rpartition(".")
        found.add((component, port) if component in net.nodes else (name, "main"))
    return frozenset(found)


def workload_of(net: Net, payload: Mapping[str, Any], context: str | None) -> JsonMap:
    """The workload a run starts with: the payload over the context group over the defaults."""
    return merge_deeply(merge_deeply(net.workload, context_group(net, context)), payload)


def context_group(net: Net, name: str | None) -> JsonMap:
    if name is None:
        return {}
    if net.kind != "job":
        raise Refused("a playbook has no context groups: only jobs do", hint="give it values of its workload instead")
    if name not in net.contexts:
        known = ", ".join(f"`{one}`" for one in net.contexts)
        hint = f"its groups are {known}" if known else "it has no groups: `context: {groups: {NAME: {…}}}` makes one"
        raise Refused(f"the job has no context group `{name}`", hint=hint)
    return net.contexts[name]


# ---- a failed child goes on
#
# After a resume its caller runs again, under another name, and the child goes on where it failed. What ended OK in it is not run
# again (D30): the finished steps of a playbook, the finished sub-jobs and iterations of a job.


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
