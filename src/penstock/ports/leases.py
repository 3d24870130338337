"""Leases: the right to run one step run, what comes with it, and how its holder reports.

A scope has one decider, its lease holder. The server grants; a worker runs the pipeline or the loop on one lease and reports
facts; only the server starts steps. In one process the hand-over is a function call, on a fleet a queue; the words are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.kernel.facts import Fact, RunEnded
from penstock.kernel.net import Net, Node
from penstock.kernel.outcome import Outcome
from penstock.kernel.state import ExecutionState, PipelineState, RunState
from penstock.kernel.values import JsonMap


@dataclass(frozen=True, slots=True)
class Setting:
    """What all leases of one execution scope share."""

    execution_id: str
    net: Net
    scope: ExecutionState
    workload: Any
    keychain: Keys
    folder: Path
    file: str
    lines: Mapping[tuple[str, str], Mapping[str, int]]
    """(step, task label) -> parameter -> the line of the document on which its text begins."""
    iter_parent: Any = None
    """The iteration that surrounds the whole scope, when a loop runs it as a sub-playbook."""
    depth: int = 0


class Keys(Protocol):
    """The resolved keychain, as a worker needs it."""

    def view(self) -> Mapping[str, Any]: ...

    def reveal(self, value: Any) -> Any: ...

    def credential(self, name: str) -> dict[str, Any]: ...

    def is_stale(self) -> bool: ...

    async def fresh(self) -> None:
        """Renew what is about to run out, such as tokens."""
        ...

    def hide_tree(self, value: Any) -> Any: ...

    def hide(self, text: str) -> str: ...

    def hide_bytes(self, data: bytes) -> bytes: ...


@dataclass(slots=True)
class Lease:
    setting: Setting
    node: Node
    run: RunState
    stop_reason: str | None = None
    """Set before the holder is cancelled: `cancel` and `abort` end the run as failed, `interrupt` leaves it as it is."""
    children: list[Any] = field(default_factory=list)


class Reports(Protocol):
    """Where a lease holder says what happened. Recording is immediate for its own scope, durable when asked for."""

    def record(self, fact: Fact) -> None: ...

    def flush(self) -> None:
        """Hand all that was recorded over for writing, without waiting."""
        ...

    def gathered_enough(self) -> bool:
        """Is enough recorded that handing it over is worth while?"""
        ...

    async def durable(self) -> None: ...

    @property
    def backlog(self) -> int: ...

    async def end(self, lease: Lease, body: RunEnded, counter: int) -> None: ...

    async def play(
        self,
        lease: Lease,
        pipeline: PipelineState,
        iteration: Any,
        path: str,
        workload: JsonMap,
        return_step: str | None,
    ) -> Any:
        """Run a playbook as a child scope of the task under way. The server starts its steps, never the worker."""
        ...

    def forsake(self, pipeline: PipelineState) -> None:
        """The task under way is being given up: a sub-playbook of it that nobody drives any more is ended too."""
        ...

    def now(self) -> float: ...

    def broke(self, error: BaseException) -> None:
        """The holder hit an error of the engine itself: the execution cannot go on."""
        ...


class LeaseLost(Exception):
    """The lease was given up at this point: by a time limit, a cancel, or another step's failure."""

    def __init__(self, failure: JsonMap) -> None:
        super().__init__(failure.get("message"))
        self.failure = failure


class Memory(Protocol):
    """What a recorded run says happened at each place."""

    def outcome(self, task_run_id: str) -> Outcome | None:
        """The recorded outcome; None when the task never ended. Raises LeaseLost when it was given up."""
        ...

    def started(self, task_run_id: str) -> bool: ...

    def looped(self, scope: str) -> bool: ...

    def iterated(self, scope: str) -> bool: ...

    def opened(self, scope: str) -> bool:
        """Did an execution start at `scope`?"""
        ...

    def given_up(self, scope: str) -> JsonMap | None:
        """Why the step run at `scope` was given up, if it was."""
        ...


class Workforce(Protocol):
    """Whoever takes leases."""

    def start(self, lease: Lease, reports: Reports) -> None: ...

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        """Make the holder let go. Returns when it has."""
        ...
