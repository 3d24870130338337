"""One document, built: its components, its links with their ports, its sub-jobs.

A job and each joblet is a level of its own. Boundaries, order and joins are the same for every call of a level, so they are
computed once per document and copied once per call.

    Level ── Member          a component in use
          ├─ Wire            a link whose ports are known
          └─ Subjob          members that belong together, in the level itself or in the body of one of its iterators
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.dialects.job.drafts import ComponentDraft, Excerpt, JobDraft
from penstock.dialects.problems import Position
from penstock.kernel.net import On
from penstock.ports.components import ComponentDescription, Port, Ports

PROXY = ""
"""The name of a joblet's own boundary: rows that come in begin there, rows that go out end there."""
ITEM = "item"
"""The output port of an iterator that carries the element into its body."""
MERGING = frozenset((On.DATA, On.OK, On.ERROR, On.IF, On.ITERATOR_COMPLETE))
"""Links that make two components members of one sub-job."""
INTO_BODY = frozenset((On.ITERATE, On.ITERATION_OK, On.ITERATION_ERROR))
PRE_JOB, POST_JOB, SET_GLOBAL = "pre_job", "post_job", "set_global"
RUN_SQL, WRITE_SQL = "run_sql", "write_sql"
"""Types that the planner itself knows."""


@dataclass(slots=True)
class Member:
    draft: ComponentDraft
    index: int
    """Its place in the document."""
    ports: Ports | None
    """None when nothing is known of its type."""
    description: ComponentDescription | None = None
    joblet: Level | None = None
    """Of a call: what it calls."""
    body: Level | None = None
    """Of an iterator: the joblet in its parameter `body`."""
    body_inputs: frozenset[str] = frozenset()
    """Inputs of that joblet, besides the element, that are fed through the iterator."""

    @property
    def name(self) -> str:
        return self.draft.name

    @property
    def is_iterator(self) -> bool:
        return self.description is not None and self.description.is_iterator

    @property
    def is_relational(self) -> bool:
        return self.description is not None and self.description.is_relational


@dataclass(frozen=True, slots=True)
class Wire:
    source: str
    target: str
    on: On
    position: Position
    port: str = ""
    to_port: str = ""
    order: int = 0
    when: Excerpt | None = None
    statement: int = 0
    written: int = 0
    """Its number among the links as they are written."""
    hidden: bool = False
    moved: bool = False
    """It begins elsewhere than the author wrote, where a component is left out."""

    @property
    def is_data(self) -> bool:
        return self.on is On.DATA

    def __str__(self) -> str:
        if self.is_data:
            return f"{self.source}.{self.port} -> {self.target}.{self.to_port}"
        return f"{self.source} ({self.on.value}) {self.target}"


@dataclass(slots=True)
class Subjob:
    home: str
    """The iterator in whose body it lies, or "" for the level itself."""
    members: list[str]
    """In topological order."""
    handles: On | None = None
    number: int = 0
    """Its place among all sub-jobs of the level."""

    def first(self, level: Level) -> str:
        """The member that stands first in the document: it gives the sub-job its name."""
        return min(self.members, key=lambda name: level.members[name].index)


@dataclass(slots=True)
class Level:
    draft: JobDraft
    text: str
    members: dict[str, Member] = field(default_factory=dict)
    wires: list[Wire] = field(default_factory=list)
    homes: dict[str, str] = field(default_factory=dict)
    """Member -> the iterator in whose body it lies, or ""."""
    handlers: dict[str, On] = field(default_factory=dict)
    """Members that run after the body of their iteration has closed."""
    former_forks: dict[str, set[str]] = field(default_factory=dict)
    """Fork -> roots of branches that it no longer starts itself, because it or what led to them is left out."""
    subjobs: list[Subjob] = field(default_factory=list)
    subjob_of: dict[str, Subjob] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    """All members in one topological order; empty when there is none."""
    depth: int = 0
    """How deep the joblets in it are nested."""
    size: int = 0
    """How many components it has with all its joblets."""
    _indexed: tuple[list[Wire], tuple[dict[str, list[Wire]], dict[str, list[Wire]]]] | None = None

    @property
    def file(self) -> str:
        return self.draft.file

    def into(self, name: str) -> list[Wire]:
        return self._ends()[1].get(name, [])

    def out_of(self, name: str) -> list[Wire]:
        return self._ends()[0].get(name, [])

    def _ends(self) -> tuple[dict[str, list[Wire]], dict[str, list[Wire]]]:
        """Wires by source and by target. The list is replaced, never changed, so its identity says when to look again."""
        if self._indexed is None or self._indexed[0] is not self.wires:
            sources: dict[str, list[Wire]] = {}
            targets: dict[str, list[Wire]] = {}
            for wire in self.wires:
                sources.setdefault(wire.source, []).append(wire)
                targets.setdefault(wire.target, []).append(wire)
            self._indexed = self.wires, (sources, targets)
        return self._indexed[1]

    def branch_roots(self) -> set[str]:
        """Targets of forks, and joins: no link makes them members of a sub-job that begins before them (D35)."""
        found = {wire.target for wire in self.wires if wire.on in (On.PARALLELISE, On.SYNCHRONISE)}
        return found.union(*self.former_forks.values())

    def homes_around(self, home: str) -> Iterator[str]:
        """The scopes around a home, innermost first, the level itself last."""
        seen: set[str] = set()
        while home and home not in seen:
            seen.add(home)
            home = self.homes.get(home, "")
            yield home

    def ports(self) -> Ports:
        """What a caller of this joblet connects to. An input is required when what it feeds is."""
        inputs = [
            Port(outer, required=any(self._is_required(wire) for wire in self.wires if _is_input(wire, outer)))
            for outer in self.draft.inputs
        ]
        outputs = [Port(outer, reject=self._is_reject(outer)) for outer in self.draft.outputs]
        return Ports(tuple(inputs), tuple(outputs))

    def _is_required(self, wire: Wire) -> bool:
        ports = self.members[wire.target].ports
        port = None if ports is None else ports.input(wire.to_port)
        return port is None or port.required

    def _is_reject(self, outer: str) -> bool:
        for wire in self.wires:
            if wire.target == PROXY and wire.to_port == outer:
                ports = self.members[wire.source].ports
                port = None if ports is None else ports.output(wire.port)
                return port is not None and port.reject
        return False


def _is_input(wire: Wire, outer: str) -> bool:
    return wire.source == PROXY and wire.port == outer
