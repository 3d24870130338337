"""What a component run came to, and what is asked about it: the words between the decider, its judge and its runners."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from penstock.kernel.flow.state import ERROR, OK, ComponentState
from penstock.kernel.net import Link, Node
from penstock.kernel.values import Json, JsonMap


@dataclass(slots=True)
class Ended:
    """What a component run came to, as its runner says."""

    status: str = OK
    rows_out: JsonMap = field(default_factory=dict)
    outputs: JsonMap = field(default_factory=dict)
    after: JsonMap = field(default_factory=dict)
    result: Json = None
    error: Json = None
    writes: dict[str, Json] = field(default_factory=dict)
    sets: frozenset[str] = frozenset()
    """Written keys whose values stand for sets."""
    exports_all: bool = False
    """Its writes have been allowed already: an iterator passes on what its iterations were allowed to write."""
    exit_code: int | None = None
    dies: bool = False


def stopped(component: ComponentState) -> Ended:
    """It did not end by itself: the run was cancelled."""
    message = f"`{component.name}` was stopped: the run was cancelled"
    return Ended(ERROR, error={"kind": "cancelled", "message": message, "retryable": True})


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which `if` links fire, by index; or why they cannot be judged."""

    fired: tuple[int, ...] = ()
    error: Json = None


class FlowJudge(Protocol):
    """Evaluates what the kernel carries as text, and says how long a component took."""

    def conditions(self, node: Node, links: list[Link], component: ComponentState, end: Ended) -> Verdict: ...

    def again(self, node: Node, component: ComponentState, index: int) -> bool | JsonMap:
        """Is there to be an iteration `index` of a while? A mapping is the error that keeps it from being known."""
        ...

    def elapsed_ms(self, component: ComponentState) -> float: ...


class Witness(Protocol):
    """What a record says of a run that is decided again: what had begun by the time that a stop was known there."""

    def has_begun(self, scope: str) -> bool:
        """Did the component start there, or the iteration?"""
        ...

    def stopped(self, scope: str) -> str | None:
        """The reason, where a component was skipped because the job was to stop."""
        ...
