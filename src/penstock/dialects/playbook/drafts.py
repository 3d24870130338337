"""A document, read but not yet lowered: typed values, each with its position.

Where nothing is left to lower (rules, arcs, writes) a draft holds the net's own types.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from penstock.dialects.problems import Position
from penstock.dialects.source.node import SourceNode
from penstock.kernel.net import AdmitRule, Arc, Durability, FailureMode, Limits, LoopMode, Rule, Writes
from penstock.kernel.values import Condition, Json, JsonMap, Template, merge_deeply


class Where(Enum):
    """Where an expression stands, which decides what it sees."""

    KEYCHAIN = "keychain"
    ADMIT = "admission"
    COLLECTION = "loop.in"
    CLAIM = "loop.in.claim"
    PARAM = "a tool parameter"
    POLICY = "a task policy"
    CHECK = "a condition of choose, while or until"
    ON_OK = "a task's `set`"
    ON_DONE = "a step's `set`"
    ARC = "an arc"


@dataclass(frozen=True, slots=True)
class Site:
    """A value with expressions in it."""

    node: SourceNode
    where: Where
    is_condition: bool = False


@dataclass(frozen=True, slots=True)
class Shared:
    """One key of a `set_shared`. `operation` is None where `reducers` has to say it."""

    key: str
    operation: str | None
    position: Position


@dataclass(slots=True)
class FanoutDraft:
    """What one `spec` says about fan-out. `given` has the canonical keys, and only those that are given."""

    mode: str | None = None
    given: JsonMap = field(default_factory=dict)
    positions: dict[str, Position] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParamDraft:
    key: Position
    node: SourceNode


@dataclass(slots=True)
class TaskDraft:
    """One entry of a pipeline. `sugar` is set for choose, while and until, which have no tool of their own."""

    label: str
    position: Position
    kind: str = ""
    kind_position: Position | None = None
    params: dict[str, ParamDraft] = field(default_factory=dict)
    values: JsonMap = field(default_factory=dict)
    spec: JsonMap = field(default_factory=dict)
    rules: tuple[Rule, ...] | None = None
    jumps: dict[int, Position] = field(default_factory=dict)
    """Rule number -> where its `to` stands."""
    on_ok: Writes = field(default_factory=Writes)
    shared: list[Shared] = field(default_factory=list)
    """What it shares after an ok outcome."""
    shared_rules: list[Shared] = field(default_factory=list)
    """What its rules share."""
    sites: list[Site] = field(default_factory=list)
    calls: tuple[str, Position] | None = None
    """The workbook task it calls, for `kind: workbook`."""
    sugar: Choose | While | Until | None = None
    is_generated: bool = False


@dataclass(slots=True)
class Branch:
    when: Condition | None
    tasks: list[TaskDraft]


@dataclass(slots=True)
class Choose:
    branches: list[Branch]


@dataclass(slots=True)
class While:
    when: Condition
    body: list[TaskDraft]
    limit: int | None


@dataclass(slots=True)
class Until:
    when: Condition
    body: list[TaskDraft]
    limit: int | None


@dataclass(slots=True)
class LoopDraft:
    position: Position
    collection: Template
    iterator: str
    mode: LoopMode = LoopMode.SEQUENTIAL
    max_in_flight: int | None = None
    failure: FailureMode | None = None
    spec: JsonMap = field(default_factory=dict)
    reducers: Json = None
    fanout: FanoutDraft = field(default_factory=FanoutDraft)


@dataclass(frozen=True, slots=True)
class ArcPositions:
    target: Position
    guard: Position


@dataclass(slots=True)
class StepDraft:
    name: str
    position: Position
    span: tuple[int, int] = (0, 0)
    """Its first and its last line."""
    spec: JsonMap = field(default_factory=dict)
    tasks: list[TaskDraft] = field(default_factory=list)
    loop: LoopDraft | None = None
    joins: dict[str, Position] = field(default_factory=dict)
    admit: tuple[AdmitRule, ...] | None = None
    timeout_s: float | None = None
    deadline_s: float | None = None
    failure: FailureMode | None = None
    fanout: FanoutDraft = field(default_factory=FanoutDraft)
    edges: list[Arc] = field(default_factory=list)
    arc_positions: list[ArcPositions] = field(default_factory=list)
    first_only: bool = True
    is_unclear: bool = False
    """Its routing uses refused words, so where its tokens go is unknown."""
    on_done: Writes = field(default_factory=Writes)
    sites: list[Site] = field(default_factory=list)


@dataclass(slots=True)
class ExecutorDraft:
    document: JsonMap = field(default_factory=dict)
    spec: JsonMap = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    failure: FailureMode = FailureMode.BEST_EFFORT
    loop_failure: FailureMode | None = None
    """The same as it was written, which is what the loops inside inherit: None when nothing was."""
    durability: Durability = Durability.GROUPED
    strict: bool = False
    fanout: FanoutDraft = field(default_factory=FanoutDraft)
    entry: tuple[str, Position] | None = None
    open_inputs: bool = False


@dataclass(slots=True)
class PlaybookDraft:
    name: str
    position: Position
    metadata: JsonMap = field(default_factory=dict)
    workload: JsonMap = field(default_factory=dict)
    state: JsonMap | None = None
    keychain: list[JsonMap] = field(default_factory=list)
    keychain_sites: list[Site] = field(default_factory=list)
    keychain_positions: dict[str, Position] = field(default_factory=dict)
    """Entry -> where it is declared, or first used."""
    executor: ExecutorDraft = field(default_factory=ExecutorDraft)
    steps: list[StepDraft] = field(default_factory=list)


# ---- Spec layering: kind defaults < executor < step < loop < task. Scalars and lists replace, mappings merge deeply. `policy`
# takes no part: what a policy means depends on the scope it stands in, so each scope reads its own.


def effective(*layers: JsonMap) -> JsonMap:
    """The spec a task runs with, from the outermost layer to the innermost."""
    result: JsonMap = {}
    for layer in layers:
        result = merge_deeply(result, without_policy(layer))
    return result


# Words of a spec that are the engine's and say nothing to a tool.
_ENGINE_WORDS = ("strict", "loop_mode", "fanout", "reducers", "shared", "concurrency", "inputs")


def without_engine_words(spec: JsonMap) -> JsonMap:
    return {key: value for key, value in spec.items() if key not in _ENGINE_WORDS and not key.startswith("fanout.")}


def without_policy(spec: JsonMap) -> JsonMap:
    return {key: value for key, value in spec.items() if key != "policy"}
