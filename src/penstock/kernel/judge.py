"""The kernel's inputs: how runs ended, and verdicts on the expressions that it carries as text."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

from penstock.kernel.facts import RunEnded
from penstock.kernel.net import Arc, Link, Node
from penstock.kernel.state import ERROR, OK, ComponentRun, StepRun, Token
from penstock.kernel.values import Json, JsonMap, frozen, mutable


@mutable
class Ended:
    """How a component ended, as its runner reports it."""

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
    """The full names of the globals it deleted."""
    exports_all: bool = False
    """Its writes have already been checked: an iterator passes on what its iterations were allowed to write."""
    exit_code: int | None = None
    dies: bool = False


def stopped_component(component: ComponentRun) -> Ended:
    """The end of a component that did not end by itself, because the run was cancelled."""
    message = f"`{component.place.id}` was stopped: the run was cancelled"
    return Ended(ERROR, error={"kind": "cancelled", "message": message, "retryable": True})


def stopped(step: str, why: str) -> JsonMap:
    """The failure of a step run that did not end by itself: the execution was cancelled, or another step failed."""
    reason = "the run was cancelled" if why == "cancel" else "another step failed and the run is fail_fast"
    return {"kind": "cancelled", "message": f"step `{step}` was stopped: {reason}", "retryable": True}


def located(error: Json, others: int = 0, **where: str) -> JsonMap:
    """The error with its location added, unless it has one, and the number of other errors."""
    said: JsonMap = dict(error) if isinstance(error, dict) else {"message": str(error)}
    for key, name in where.items():
        said.setdefault(key, name)
    if others:
        said["others"] = others
    return said


def message_of(error: Json) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


@frozen
class Admission:
    allow: bool
    rule: int | None = None
    error: Json = None


@frozen
class Selection:
    fired: list[tuple[Arc, JsonMap]] = field(default_factory=list)
    """The arcs that fire, with the args of their tokens."""
    writes: JsonMap = field(default_factory=dict)
    error: Json = None


@frozen
class Verdict:
    """The indexes of the `if` links that fire; or the error that kept them from being evaluated."""

    fired: tuple[int, ...] = ()
    error: Json = None


class Judge(Protocol):
    """Evaluates the expressions that the kernel carries as text."""

    def admit(self, node: Node, token: Token) -> Admission: ...

    def select(self, node: Node, run: StepRun, end: RunEnded) -> Selection: ...

    def conditions(self, node: Node, links: list[Link], component: ComponentRun, end: Ended) -> Verdict: ...

    def again(self, node: Node, component: ComponentRun, index: int) -> bool | JsonMap:
        """Whether a `while` gets an iteration `index`. A mapping is the error that the evaluation failed with."""
        ...


class Unasked:
    """The judge of an execution that is being stopped: nothing starts or ends by itself, so no expression is evaluated."""

    def admit(self, node: Node, token: Token) -> Admission:
        raise AssertionError(f"a token asks to be let into `{node.name}` while the run is being stopped")

    def select(self, node: Node, run: StepRun, end: RunEnded) -> Selection:
        raise AssertionError(f"the arcs of `{node.name}` are asked about while the run is being stopped")

    def conditions(self, node: Node, links: list[Link], component: ComponentRun, end: Ended) -> Verdict:
        return Verdict()

    def again(self, node: Node, component: ComponentRun, index: int) -> bool | JsonMap:
        return False


class Witness(Protocol):
    """What the record of a run says when the run is replayed: what had begun by the time a stop was known.

    `subjob` is the sub-job of the execution itself that the scope lies in: on a fleet its holder may have been lost.
    """

    def has_begun(self, scope: str, subjob: str) -> bool:
        """Whether the component or iteration was started."""
        ...

    def stopped(self, scope: str, subjob: str) -> str | None:
        """The reason, if the component was skipped because the job was stopping."""
        ...

    def was_lost(self, scope: str, subjob: str) -> bool:
        """Whether the holder of the sub-job was lost before it decided anything about this scope."""
        ...
