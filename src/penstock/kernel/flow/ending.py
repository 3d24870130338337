"""What a component run came to, and what is asked about it: the words between the decider, its judge and its runners."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
    deletes: tuple[str, ...] = ()
    """Globals that it deleted, by their full names."""
    exports_all: bool = False
    """Its writes have been allowed already: an iterator passes on what its iterations were allowed to write."""
    exit_code: int | None = None
    dies: bool = False


def stopped(component: ComponentState) -> Ended:
    """It did not end by itself: the run was cancelled."""
    message = f"`{component.name}` was stopped: the run was cancelled"
    return Ended(ERROR, error={"kind": "cancelled", "message": message, "retryable": True})


def with_after(component: ComponentState, end: Ended, elapsed_ms: float) -> Ended:
    """With the variables that each component has when it is over; what it says itself stands above them."""
    after: JsonMap = {"NB_LINE": lines(component, end.rows_out)}
    after.update({f"NB_LINE_OUT_{port}": rows for port, rows in end.rows_out.items()})
    after["ERROR_MESSAGE"] = message_of(end.error) if end.error is not None else None
    after["DURATION_MS"] = elapsed_ms
    after.update(end.after)
    return replace(end, after=after)


def lines(component: ComponentState, rows_out: JsonMap) -> int:
    """NB_LINE: the rows that came in; of a component without inputs, those that went out."""
    counts = component.rows_in or rows_out
    if not component.rows_in and "main" in rows_out:
        counts = {"main": rows_out["main"]}
    return sum(rows for rows in counts.values() if isinstance(rows, int))


def message_of(error: Json) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


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
