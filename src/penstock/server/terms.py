"""On which terms work is handed out: what a step's `spec` says about who may take it, and when."""

from __future__ import annotations

from penstock.kernel.net import Node
from penstock.kernel.values import Json
from penstock.ports.leases import DEFAULT_POOL


def pool_of(node: Node, executor: object) -> str:
    """The pool that a step's work goes to: its own, else the playbook's. A mapping is a knob of the SQL tools, and no name."""
    pool = node.spec.get("pool")
    return pool if pool and isinstance(pool, str) else pool_named(executor)


def pool_named(executor: object) -> str:
    spec = executor.get("spec") if isinstance(executor, dict) else None
    pool = spec.get("pool") if isinstance(spec, dict) else None
    return pool if pool and isinstance(pool, str) else DEFAULT_POOL


def needs_of(node: Node, brought: frozenset[str]) -> frozenset[str]:
    """What a worker must be able to do: the tools of the step, but for those that its document brings along, and the labels that
    it asks for."""
    return frozenset([*(task.kind for task in node.tasks if task.kind not in brought), *labels_of(node)])


def labels_of(node: Node) -> list[str]:
    asked = node.spec.get("needs")
    return [str(one) for one in asked] if isinstance(asked, list) else [str(asked)] if asked else []


def sought(node: Node, executor: object) -> str:
    """Whom work waited for, in words: the pool, and the labels that a step asks for."""
    labels = sorted(set(labels_of(node)))
    pool = f"a worker of pool `{pool_of(node, executor)}`"
    tools = sorted({task.kind for task in node.tasks})
    needed = [f"the label{'s' if len(labels) > 1 else ''} {_quoted(labels)}"] if labels else []
    needed += [f"the tool{'s' if len(tools) > 1 else ''} {_quoted(tools)}"] if tools else []
    return f"{pool} with {' and '.join(needed)}" if needed else pool


def untaken(node: Node, executor: object) -> str:
    """Why a step is out of time on which nobody has worked; follows the words that say so."""
    return f": no worker has taken it, and it needs {sought(node, executor)}"


def _quoted(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def limits_of(node: Node) -> tuple[tuple[str, int], ...]:
    """`concurrency`: name -> how many leases with that name may be held at a time, in whatever run."""
    asked = node.spec.get("concurrency")
    if not isinstance(asked, dict):
        return ()
    return tuple((name, most) for name, most in sorted(asked.items()) if isinstance(most, int))


def stall_of(node: Node) -> float | None:
    """`lifecycle.stall_s`: a worker that is alive and shows no progress for so long loses the step."""
    policy = node.spec.get("policy")
    lifecycle: Json = policy.get("lifecycle") if isinstance(policy, dict) else None
    stall = lifecycle.get("stall_s") if isinstance(lifecycle, dict) else None
    return float(stall) if isinstance(stall, int | float) else None
