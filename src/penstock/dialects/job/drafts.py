"""One document, read but not yet built: typed values, each with its position.

JobDraft ── ComponentDraft ── params, declared columns
         └─ LinkDraft ── End, End, Excerpt        one written link; its ports may still be left out
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.dialects.problems import Position
from penstock.dialects.source.node import SourceNode
from penstock.dialects.source.positions import position_in_text
from penstock.kernel.net import Durability, Limits, On
from penstock.kernel.values import JsonMap
from penstock.ports.rows import Schema


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of text inside a scalar: a condition that stands in the middle of a link."""

    node: SourceNode
    text: str
    offset: int = 0

    def position(self, start: int, end: int, source: str) -> Position:
        return position_in_text(self.node, self.offset + start, self.offset + end, source)


@dataclass(frozen=True, slots=True)
class ParamDraft:
    key: Position
    node: SourceNode


@dataclass(frozen=True, slots=True)
class Declared:
    """Columns that the document declares for a port, and where each of them stands."""

    schema: Schema
    positions: tuple[Position, ...]
    port: Position


@dataclass(slots=True)
class ComponentDraft:
    name: str
    position: Position
    """Of its name."""
    type: str
    type_position: Position
    params: dict[str, ParamDraft] = field(default_factory=dict)
    die_on_error: bool = False
    exports: tuple[str, ...] = ()
    startable: bool = False
    active: bool = True
    engine: JsonMap = field(default_factory=dict)
    """The words about the engine of its sub-job."""
    engine_node: SourceNode | None = None
    schemas: dict[str, Declared] = field(default_factory=dict)
    span: tuple[int, int] = (0, 0)
    """Its first and its last line."""

    @property
    def calls(self) -> str | None:
        """The joblet that it calls, if it is a call."""
        return self.type[1:] if self.type.startswith("@") else None


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link as it is written; without a port, the main one is meant."""

    name: str
    port: str | None
    position: Position


@dataclass(frozen=True, slots=True)
class LinkDraft:
    source: End
    target: End
    on: On
    order: int = 0
    when: Excerpt | None = None
    position: Position = field(default_factory=lambda: Position.whole(""))
    statement: int = 0
    """Links that were written as one: the branches of a join, the targets of a fork."""


@dataclass(frozen=True, slots=True)
class Engine:
    """`job_config` as far as the data plane reads it."""

    words: JsonMap = field(default_factory=dict)
    """Of `engine`."""
    node: SourceNode | None = None
    memory_limit: str | None = None
    max_in_flight_rows: int | None = None
    max_in_flight_bytes: int | None = None

    def limits(self) -> JsonMap:
        found: JsonMap = {
            "memory_limit": self.memory_limit,
            "max_in_flight_rows": self.max_in_flight_rows,
            "max_in_flight_bytes": self.max_in_flight_bytes,
        }
        return {key: value for key, value in found.items() if value is not None}

    def as_json(self) -> JsonMap:
        return {"engine": "duckdb", "fuse": True, **self.words, **self.limits()}


@dataclass(frozen=True, slots=True)
class Config:
    halts: bool = True
    fails: bool = False
    starts_whole: bool = False
    """`start: subjob`: a triggered sub-job starts as a whole (D58)."""
    aborts: bool = False
    durability: Durability = Durability.GROUPED
    limits: Limits = field(default_factory=Limits)
    engine: Engine = field(default_factory=Engine)
    open_inputs: bool = False


@dataclass(slots=True)
class JobDraft:
    name: str
    file: str
    position: Position
    is_joblet: bool = False
    metadata: JsonMap = field(default_factory=dict)
    context: JsonMap = field(default_factory=dict)
    contexts: dict[str, JsonMap] = field(default_factory=dict)
    state: JsonMap | None = None
    keychain: list[JsonMap] = field(default_factory=list)
    keychain_nodes: list[SourceNode] = field(default_factory=list)
    config: Config = field(default_factory=Config)
    components: dict[str, ComponentDraft] = field(default_factory=dict)
    links: list[LinkDraft] = field(default_factory=list)
    inputs: dict[str, tuple[End, ...]] = field(default_factory=dict)
    """Of a joblet: outer port -> where its rows go inside."""
    outputs: dict[str, End] = field(default_factory=dict)
    params: dict[str, ParamDraft] = field(default_factory=dict)
    """Of a joblet: its parameters and their defaults."""
