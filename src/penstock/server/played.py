"""What is asked of a child execution, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.kernel.net import Net
from penstock.kernel.values import Json


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
