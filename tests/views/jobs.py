"""Jobs without an engine: a net from a few lines of links, and the kernel driven to its end; its facts become a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel.decide import Begin, Decider, Resume, RunOver
from penstock.kernel.evolve import evolve
from penstock.kernel.facts import ComponentStarted, ExecutionStarted, Fact
from penstock.kernel.fans import Elements
from penstock.kernel.judge import Ended, Unasked, Verdict
from penstock.kernel.net import (
    Container,
    Iteration,
    Link,
    Location,
    Net,
    Node,
    On,
    Opening,
    Region,
    Task,
)
from penstock.kernel.plan import plan_of
from penstock.kernel.state import ComponentRun, State
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.wire import to_entry

_DATA = re.compile(r"(\S+?)\.(\w+) -> (\S+)\.(\w+)")
_CONTROL = re.compile(r"(.+?) \((\w+)(?: (\d+): \"(.*)\")?\) (.+)")
_MERGING = (On.DATA, On.OK, On.ERROR, On.IF, On.ITERATOR_COMPLETE)


def links(lines: Iterable[str]) -> tuple[Link, ...]:
    found: list[Link] = []
    for line in lines:
        data, control = _DATA.fullmatch(line), _CONTROL.fullmatch(line)
        if data is not None:
            source, port, target, to_port = data.groups()
            found.append(Link(len(found), target, source, On.DATA, port=port, to_port=to_port))
            continue
        assert control is not None, line
        sources, on, order, when, targets = control.groups()
        found += [
            Link(len(found) + number, target, source, On(on), int(order or 0), when)
            for number, (source, target) in enumerate(
                (source, target) for source in sources.split(", ") for target in targets.split(", ")
            )
        ]
    return tuple(found)


def job(
    *lines: str,
    alone: tuple[str, ...] = (),
    inside: dict[str, list[str]] | None = None,
    halts: bool = True,
    die: tuple[str, ...] = (),
    **more: Any,
) -> Net:
    """`inside`: the members of an iterator's body, or of a joblet call when they are named `call.__x`."""
    every = links(lines)
    inside = inside or {}
    home = {name: key for key, names in inside.items() for name in names}
    names = list(dict.fromkeys([*alone, *(end for link in every for end in (link.source, link.target))]))
    containers = {}
    regions: dict[str, tuple[int, int]] = {}
    for key in ("", *inside):
        members = [name for name in names if home.get(name, "") == key]
        grouped = _regions(members, every)
        for region in grouped:
            regions.update({name: (region.index, rank) for rank, name in enumerate(region.members)})
        opening_ = Opening.JOB if not key else Opening.JOBLET if _is_call(key, inside) else Opening.BODY
        containers[key] = Container(key, opening_, grouped)
    nodes = {name: _node(name, home, regions, inside, every, halts, die) for name in names}
    return Net("job", "", nodes, kind="job", containers=containers, links=every, **more)


def _is_call(key: str, inside: dict[str, list[str]]) -> bool:
    return all(name.startswith(f"{key}.__") for name in inside[key])


def _node(
    name: str,
    home: dict[str, str],
    regions: dict[str, tuple[int, int]],
    inside: dict[str, list[str]],
    every: tuple[Link, ...],
    halts: bool,
    die: tuple[str, ...],
) -> Node:
    region, rank = regions[name]
    container = home.get(name, "")
    fed = tuple(dict.fromkeys(link.to_port for link in every if link.target == name and link.on is On.DATA))
    has_control = any(link.target == name and link.on is not On.DATA for link in every)
    opens = name if name in inside else None
    is_call = opens is not None and _is_call(name, inside)
    part = Location(
        container,
        region,
        rank,
        name,
        not has_control,
        tuple(port for port in fed if not port.startswith("out")),
        name in die,
        opens=opens,
        prefix=(container,) if name.startswith(f"{container}.__") else (),
    )
    iterates = Iteration(halts) if opens is not None and not is_call else None
    return Node(name, () if is_call else (Task(name, f"t_{name}"),), part=part, iterates=iterates)


def _regions(members: list[str], every: tuple[Link, ...]) -> tuple[Region, ...]:
    cuts = {link.target for link in every if link.on in (On.PARALLELISE, On.SYNCHRONISE)}
    leader = {name: name for name in members}

    def root(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for link in every:
        ends = {link.source, link.target}
        if link.on in _MERGING and ends <= set(members) and link.target not in cuts:
            one, other = sorted((root(link.source), root(link.target)), key=members.index)
            leader[other] = one
    grouped: dict[str, list[str]] = {}
    for name in members:
        grouped.setdefault(root(name), []).append(name)
    handles = {link.target: link.on for link in every if link.on in (On.ITERATION_OK, On.ITERATION_ERROR)}
    return tuple(
        Region(
            index, names[0], tuple(_ranked(names, every)), next((handles[one] for one in names if one in handles), None)
        )
        for index, names in enumerate(grouped.values())
    )


def _ranked(names: list[str], every: tuple[Link, ...]) -> list[str]:
    order: list[str] = []
    while len(order) < len(names):
        order.append(
            next(
                name
                for name in names
                if name not in order
                and all(link.source in order or link.source not in names or link.target != name for link in every)
            )
        )
    return order


Outcome = Ended | Exception | dict[str, int] | list[Any] | None
"""An end; an error; rows by port; or the elements of an iterator."""


@dataclass
class Played(Unasked):
    net: Net
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    true: frozenset[str] = frozenset()
    """The conditions that hold."""
    context: JsonMap = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    tree: State = field(default_factory=State)
    ms: float = 2.0
    step_s: float = 0.001

    def __post_init__(self) -> None:
        self.ready: list[ComponentRun] = []

    def now(self) -> float:
        return 1000.0 + len(self.entries) * self.step_s

    def when(self, stimulus: object, now: float | None = None) -> None:
        """What is decided happens at one time, and is told one by one."""
        decider = Decider(self.tree, self.tree.root, self.net, self)
        for fact in decider.decide(stimulus, now if now is not None else self.now()):
            self.append(fact)
            if isinstance(fact.body, ComponentStarted) and fact.body.opens is None:
                self.ready.append(self.tree.runs[fact.scope])

    def append(self, fact: Fact) -> None:
        self.entries.append(to_entry(fact, len(self.entries) + 1, self.now(), "w"))

    def run(self, until: Callable[[Played], bool] | None = None) -> Played:
        started = ExecutionStarted(self.net.name, "", self.context, "", kind="job")
        first = Fact("", ((), 0), started)
        evolve(self.tree, first, self.now())
        self.append(first)
        self.when(Begin())
        return self.go_on(until)

    def go_on(self, until: Callable[[Played], bool] | None = None) -> Played:
        while self.ready and not (until is not None and until(self)):
            self.work(self.ready.pop(0))
        return self

    def resume(self, **outcomes: Outcome) -> Played:
        """In a new process: a decider that knows nothing but what was folded."""
        self.outcomes.update(outcomes)
        self.ready.clear()
        self.when(Resume([]))
        return self.go_on()

    def work(self, component: ComponentRun) -> None:
        name = component.place.id
        bare = re.sub(r"\[#\d+\]", "[#]", name)
        outcome = self.outcomes.get(name, self.outcomes.get(bare))
        if isinstance(outcome, list):
            self.when(Elements(component, len(outcome), list(outcome), 1, "accumulate"))
            return
        self.when(RunOver(component, self._end(component, outcome)), component.started_at + self.ms / 1000)

    def _end(self, component: ComponentRun, outcome: Any) -> Ended:
        if isinstance(outcome, Ended):
            return outcome
        if isinstance(outcome, Exception):
            return Ended("ERROR", error={"kind": "exception", "message": str(outcome)})
        node = plan_of(self.net).node_of(component.place.id)
        ports = {link.port for link in self.net.links if link.source == node and link.on is On.DATA}
        rows = outcome if outcome is not None else dict.fromkeys(sorted(ports), 1)
        return Ended(rows_out=dict(rows), outputs={port: {"hash": "h", "rows": count} for port, count in rows.items()})

    # ---- the judge

    def conditions(self, node: Node, links: list[Link], component: ComponentRun, end: Ended) -> Verdict:
        return Verdict(tuple(link.index for link in links if link.when in self.true))

    def again(self, node: Node, component: ComponentRun, index: int) -> bool | JsonMap:
        return index < 3


def play(net: Net, outcomes: dict[str, Outcome] | None = None, **more: Any) -> Played:
    return Played(net, outcomes or {}, **more).run()
