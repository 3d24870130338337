"""What the kernel is told, and what it asks: ends of runs, and verdicts on the expressions that it carries as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from penstock.kernel.facts import RunEnded
from penstock.kernel.net import Arc, Link, Node
from penstock.kernel.state import ERROR, OK, ComponentRun, StepRun, Token
from penstock.kernel.values import Json, JsonMap


@dataclass(slots=True)
class Ended:
    """What a component came to, as its runner says."""

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


def stopped_component(component: ComponentRun) -> Ended:
    """It did not end by itself: the run was cancelled."""
    message = f"`{component.place.id}` was stopped: the run was cancelled"
    return Ended(ERROR, error={"kind": "cancelled", "message": message, "retryable": True})


def stopped(step: str, why: str) -> JsonMap:
    """The failure of a step run that did not end by itself: the execution was cancelled, or another step failed."""
    reason = "the run was cancelled" if why == "cancel" else "another step failed and the run is fail_fast"
    return {"kind": "cancelled", "message": f"step `{step}` was stopped: {reason}", "retryable": True}


def located(error: Json, others: int = 0, **where: str) -> JsonMap:
    """An error with where it happened, unless it says so itself, and how many more there were."""
    said: JsonMap = dict(error) if isinstance(error, dict) else {"message": str(error)}
    for key, name in where.items():
        said.setdefault(key, name)
    if others:
        said["others"] = others
    return said


def message_of(error: Json) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


@dataclass(frozen=True, slots=True)
class Admission:
    allow: bool
    rule: int | None = None
    error: Json = None


@dataclass(frozen=True, slots=True)
class Selection:
    fired: list[tuple[Arc, JsonMap]] = field(default_factory=list)
    """With the args of their tokens."""
    writes: JsonMap = field(default_factory=dict)
    error: Json = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which `if` links fire, by index; or why they cannot be judged."""

    fired: tuple[int, ...] = ()
    error: Json = None


class Judge(Protocol):
    """Evaluates what the kernel carries as text."""

    def admit(self, node: Node, token: Token) -> Admission: ...

    def select(self, node: Node, run: StepRun, end: RunEnded) -> Selection: ...

    def conditions(self, node: Node, links: list[Link], component: ComponentRun, end: Ended) -> Verdict: ...

    def again(self, node: Node, component: ComponentRun, index: int) -> bool | JsonMap:
        """Is there to be an iteration `index` of a while? A mapping is the error that keeps it from being known."""
        ...


class Unasked:
    """The judge of what is being stopped: nothing starts and nothing ends by itself, so no expression is evaluated."""

    def admit(self, node: Node, token: Token) -> Admission:
        raise AssertionError(f"a token asks to be let into `{node.name}` while the run is being stopped")

    def select(self, node: Node, run: StepRun, end: RunEnded) -> Selection:
        raise AssertionError(f"the arcs of `{node.name}` are asked about while the run is being stopped")

    def conditions(self, node: Node, links: list[Link], component: ComponentRun, end: Ended) -> Verdict:
        return Verdict()

    def again(self, node: Node, component: ComponentRun, index: int) -> bool | JsonMap:
        return False


class Witness(Protocol):
    """What a record says of a run that is decided again: what had begun by the time that a stop was known there.

    `subjob` is the one of the execution itself that the scope lies in: on a fleet its holder may have been lost.
    """

    def has_begun(self, scope: str, subjob: str) -> bool:
        """Did the component start there, or the iteration?"""
        ...

    def stopped(self, scope: str, subjob: str) -> str | None:
        """The reason, where a component was skipped because the job was to stop."""
        ...

    def was_lost(self, scope: str, subjob: str) -> bool:
        """Was the holder of the sub-job lost before anything was decided there?"""
        ...
