"""The net: the immutable graph that a document is lowered to. All that may run is here, and nothing else is consulted.

    Net ── Node ── Pipeline ── Task ── Rule ── Then        what one run of a node does, on one lease
                ├─ Fan                                     the same pipeline once per element of a collection
                ├─ admit: Rule…                            may this token in?
                └─ Edge…                                   where tokens go when the run has ended

Expressions are carried as text: a judge outside the kernel evaluates them, and the verdict is what the facts record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from penstock.kernel.values import Condition, Json, JsonMap, Template


class Do(str, Enum):
    """What a task's policy makes of an outcome."""

    CONTINUE = "continue"
    RETRY = "retry"
    JUMP = "jump"
    BREAK = "break"
    FAIL = "fail"


class Backoff(str, Enum):
    NONE = "none"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


class Gate(str, Enum):
    """When a node may run: once per token, or once per full set of tokens from the nodes it joins."""

    TOKEN = "token"
    JOIN = "join"


class LoopMode(str, Enum):
    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"


class FailureMode(str, Enum):
    FAIL_FAST = "fail_fast"
    BEST_EFFORT = "best_effort"


@dataclass(frozen=True, slots=True)
class Writes:
    """Assignments still to be rendered: key -> template. Dotted keys reach into a mapping."""

    iter: dict[str, Template] = field(default_factory=dict)
    ctx: dict[str, Template] = field(default_factory=dict)
    append: dict[str, Template] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.iter or self.ctx or self.append)


@dataclass(frozen=True, slots=True)
class Then:
    do: Do = Do.CONTINUE
    attempts: Template = None
    backoff: Backoff = Backoff.NONE
    delay: Template = 0
    max_delay: float = 300.0
    jitter: float = 0.0
    to: str | None = None
    message: str = ""
    """With FAIL after an ok outcome: what the failure says, where the author's document implies it."""
    writes: Writes = field(default_factory=Writes)


@dataclass(frozen=True, slots=True)
class Rule:
    """`when` is None for `else`."""

    when: Condition | None
    then: Then


@dataclass(frozen=True, slots=True)
class AdmitRule:
    when: Condition | None
    allow: bool


@dataclass(frozen=True, slots=True)
class Task:
    """One tool call of a pipeline. `rules` is None when the author gave no policy, which differs from an empty one."""

    label: str
    kind: str
    params: dict[str, Template] = field(default_factory=dict)
    rules: tuple[Rule, ...] | None = None
    spec: JsonMap = field(default_factory=dict)
    on_ok: Writes = field(default_factory=Writes)


@dataclass(frozen=True, slots=True)
class Fan:
    """One node opened as many child scopes: a loop."""

    collection: Template
    iterator: str
    mode: LoopMode = LoopMode.SEQUENTIAL
    max_in_flight: int = 1
    failure: FailureMode = FailureMode.FAIL_FAST


@dataclass(frozen=True, slots=True)
class Edge:
    """An arc. Without a guard it fires on every end but a failure (D49)."""

    index: int
    target: str
    guard: Condition | None = None
    args: dict[str, Template] = field(default_factory=dict)
    writes: Writes = field(default_factory=Writes)


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    tasks: tuple[Task, ...] = ()
    fan: Fan | None = None
    gate: Gate = Gate.TOKEN
    joins: tuple[str, ...] = ()
    admit: tuple[AdmitRule, ...] | None = None
    edges: tuple[Edge, ...] = ()
    first_only: bool = True
    timeout_s: float | None = None
    deadline_s: float | None = None
    on_done: Writes = field(default_factory=Writes)
    spec: JsonMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    max_payload_bytes: int = 1_048_576
    max_step_visits: int = 10_000
    max_task_runs: int = 1_000_000


class Durability(str, Enum):
    """GROUPED: an outcome is durable before anything outside its lease depends on it. STRICT: also before the next task."""

    GROUPED = "grouped"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class Net:
    name: str
    entry: str
    nodes: dict[str, Node]
    workload: JsonMap = field(default_factory=dict)
    keychain: tuple[JsonMap, ...] = ()
    limits: Limits = field(default_factory=Limits)
    failure: FailureMode = FailureMode.BEST_EFFORT
    durability: Durability = Durability.GROUPED
    executor: JsonMap = field(default_factory=dict)
    metadata: JsonMap = field(default_factory=dict)
    digest: str = ""


def positions(tasks: tuple[Task, ...]) -> dict[str, int]:
    """Where each label stands in its pipeline: what a jump needs."""
    return {task.label: index for index, task in enumerate(tasks)}


__all__ = [
    "AdmitRule",
    "Backoff",
    "Condition",
    "Do",
    "Durability",
    "Edge",
    "FailureMode",
    "Fan",
    "Gate",
    "Json",
    "Limits",
    "LoopMode",
    "Net",
    "Node",
    "Rule",
    "Task",
    "Template",
    "Then",
    "Writes",
    "positions",
]
