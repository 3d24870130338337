"""How long a step run still has: `lifecycle.timeout_s` and `lifecycle.deadline_s`.

Law: both count from the moment the run was scheduled, whether a worker has taken it or not (D68). A run that a resume
continues gets its whole time-out again, but keeps its deadline.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.kernel.net import Node
from penstock.kernel.state import StepRun
from penstock.kernel.values import JsonMap


class TimeLeft(NamedTuple):
    """The tighter of the two limits."""

    seconds: float
    which: str
    limit: float


def time_left(node: Node, run: StepRun, resumed_at: float, now: float) -> TimeLeft | None:
    limits: list[TimeLeft] = []
    if node.timeout_s is not None:
        since = max(run.scheduled_at, resumed_at)
        limits.append(TimeLeft(max(0.0, since + node.timeout_s - now), "timeout", node.timeout_s))
    if node.deadline_s is not None:
        limits.append(TimeLeft(max(0.0, run.scheduled_at + node.deadline_s - now), "deadline", node.deadline_s))
    return min(limits, default=None)


def out_of_time(node: Node, left: TimeLeft, why: str = "") -> JsonMap:
    message = f"step `{node.name}` did not end within its `lifecycle.{left.which}_s` of {left.limit:g} s{why}"
    return {"kind": left.which, "message": message, "retryable": True}
