"""The terms of an offer: who may take the work and when, how much at a time, and what must not run concurrently."""

from __future__ import annotations

from penstock.kernel.net import Node
from penstock.kernel.values import Json
from penstock.ports.leases import DEFAULT_POOL


def pool_of(node: Node, executor: object) -> str:
    """The pool that a step's work goes to: its own, otherwise the playbook's. A mapping is a setting of the SQL tools, not a
    name."""
    pool = node.spec.get("pool")
    return pool if pool and isinstance(pool, str) else pool_named(executor)


def pool_named(executor: object) -> str:
    spec = executor.get("spec") if isinstance(executor, dict) else None
    pool = spec.get("pool") if isinstance(spec, dict) else None
    return pool if pool and isinstance(pool, str) else DEFAULT_POOL


def needs_of(node: Node, brought: frozenset[str]) -> frozenset[str]:
    """What a worker must be able to do: the tools of the step, except those that its document brings along, and the labels
    it asks for."""
    return frozenset([*(task.kind for task in node.tasks if task.kind not in brought), *labels_of(node)])


def labels_of(node: Node) -> list[str]:
    asked = node.spec.get("needs")
    return [str(one) for one in asked] if isinstance(asked, list) else [str(asked)] if asked else []


def sought(node: Node, executor: object) -> str:
    """Which workers the work waited for, in words: the pool, and the labels that a step asks for."""
    labels = sorted(set(labels_of(node)))
    pool = f"a worker of pool `{pool_of(node, executor)}`"
    tools = sorted({task.kind for task in node.tasks})
    needed = [f"the label{'s' if len(labels) > 1 else ''} {_quoted(labels)}"] if labels else []
    needed += [f"the tool{'s' if len(tools) > 1 else ''} {_quoted(tools)}"] if tools else []
    return f"{pool} with {' and '.join(needed)}" if needed else pool


def untaken(node: Node, executor: object) -> str:
    """Why a step timed out without a worker; follows the message that says it did."""
    return f": no worker has taken it, and it needs {sought(node, executor)}"


def _quoted(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def limits_of(node: Node) -> tuple[tuple[str, int], ...]:
    """`concurrency`: name -> how many leases with that name may be held at a time, over all runs."""
    asked = node.spec.get("concurrency")
    if not isinstance(asked, dict):
        return ()
    return tuple((name, most) for name, most in sorted(asked.items()) if isinstance(most, int))


def stall_of(node: Node) -> float | None:
    """`lifecycle.stall_s`: a live worker that shows no progress for this long loses the step."""
    policy = node.spec.get("policy")
    lifecycle: Json = policy.get("lifecycle") if isinstance(policy, dict) else None
    stall = lifecycle.get("stall_s") if isinstance(lifecycle, dict) else None
    return float(stall) if isinstance(stall, int | float) else None


# ---- how much at a time

TARGET_S = 10.0
"""How long a worker should be busy with one range."""
LEAST_S = 0.1
"""Minimum duration of a range, even at the end: handing out a smaller one would take longer than its work."""
HAND_OUT_S = 0.0007
"""What a range costs the server, about. With thousands of slots, shorter ranges would be done faster than they are handed out."""
LARGEST_RANGE = 65_536
FIRST_RANGE = 32
"""Size of a range while the duration of an element is unknown."""


class Pace:
    """How many elements go into a range: enough to keep a worker busy for some seconds, and fewer near the end, so that all
    workers finish together. It learns how long an element takes."""

    def __init__(self, fixed: int | None, first: int = FIRST_RANGE) -> None:
        self._fixed = fixed
        self._first = first
        self._each_s: float | None = None

    def saw(self, elements: int, ms: float) -> None:
        if elements > 0 and ms > 0:
            each = ms / 1000 / elements
            self._each_s = each if self._each_s is None else 0.7 * self._each_s + 0.3 * each

    def size(self, remaining: int | None, slots: int) -> int:
        if self._fixed is not None:
            return self._fixed
        size = self._first
        if self._each_s is not None:
            size = int(min(LARGEST_RANGE, max(1.0, TARGET_S / max(self._each_s, 1e-9))))
        if remaining is not None:
            least_s = max(LEAST_S, slots * HAND_OUT_S)
            least = 1 if self._each_s is None else int(least_s / max(self._each_s, 1e-9))
            size = min(size, max(least, -(-remaining // (2 * slots))))
        return max(1, min(size, LARGEST_RANGE))


# ---- what not beside each other

SUSPECT_LOSSES = 2


def suspect_limits(execution_id: str, losses: int) -> tuple[tuple[str, int], ...]:
    """Limits for elements that were lost with their worker more than once, since one of them may bring workers down.

    Per execution, one worker at a time holds such elements, so that they do not take down others that came back as often
    through no fault of their own. Elements that were lost once are not held up: workers die for other reasons as well. Steps
    and sub-jobs are never held up: they may wait for others, which would then wait for them."""
    return ((f"{execution_id} suspects", 1),) if losses >= SUSPECT_LOSSES else ()


class LostElements:
    """How often elements of a loop were lost."""

    def __init__(self) -> None:
        self._lost: list[tuple[int, int, int]] = []
        """(lo, hi, times): elements `lo` up to `hi` were lost this often."""

    def add(self, lo: int, hi: int) -> None:
        times = self.most(lo, hi) + 1
        self._lost = [one for one in self._lost if not (lo <= one[0] and one[1] <= hi)]
        self._lost.append((lo, hi, times))

    def most(self, lo: int, hi: int) -> int:
        return max((times for start, end, times in self._lost if start < hi and lo < end), default=0)
