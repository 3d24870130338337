"""What is asked of a child execution, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.kernel.errors import Refused
from penstock.kernel.net import Net
from penstock.kernel.values import Json, JsonMap


@dataclass(frozen=True, slots=True)
class Played:
    """How a child execution ended, for whoever asked for it."""

    status: str
    result: Any = None
    error: Json = None
    kind: str = "playbook"
    exit_code: int | None = None


def asked_for(net: Net, outputs: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """`component.port`, or a component's name for its port `main`."""
    found = set()
    for name in outputs:
        component, _, port = name.rpartition(".")
        found.add((component, port) if component in net.nodes else (name, "main"))
    return frozenset(found)


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
