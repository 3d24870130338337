"""Small component nets by hand, and a scene to play them in: the kernel alone, with outcomes that the test decides."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.kernel.decide import Begin, Decider, Resume, RunOver, opening
from penstock.kernel.evolve import evolve
from penstock.kernel.facts import ComponentStarted, Fact, event_type
from penstock.kernel.fans import Elements
from penstock.kernel.judge import Ended, Unasked, Verdict
from penstock.kernel.net import (
    Container,
    Iteration,
    Limits,
    Link,
    Location,
    Net,
    Node,
    On,
    Opening,
    Region,
    Task,
)
from penstock.kernel.places import ROOT
from penstock.kernel.state import ERROR, ComponentRun, State

CONTROL = re.compile(r"^(.+?) \((\w+)(?: (\d+): \"(.*)\")?\) (.+)$")
MERGING = (On.DATA, On.OK, On.ERROR, On.IF, On.ITERATOR_COMPLETE)


def job(*links: str, alone: str = "", **more: Any) -> Net:
    """`a (ok) b`, `a.main -> b.input`, `a, b (synchronise) c`, `a (if 1: "x") b`; `alone`: components without links.

    Bodies of iterators are what `iterate` reaches. Sub-jobs are found as the planner finds them, without joblets.
    """
    made: list[Link] = []
    for text in links:
        if "->" in text:
            source, _, target = text.partition(" -> ")
            (a, _, port), (b, _, to) = source.partition("."), target.partition(".")
            made.append(Link(len(made), b, a, On.DATA, port=port or "main", to_port=to or "input"))
            continue
        match = CONTROL.match(text)
        assert match is not None, text
        sources, on, order, when, targets = match.groups()
        for a in sources.split(", "):
            for b in targets.split(", "):
                made.append(Link(len(made), b, a, On(on), int(order or 0), when))
    names = list(dict.fromkeys([name for link in made for name in (link.source, link.target)] + alone.split()))
    return _net(names, made, **more)


def _net(names: list[str], links: list[Link], **more: Any) -> Net:
    iterators = {link.source for link in links if link.on in (On.ITERATE, On.ITERATION_OK, On.ITERATION_ERROR)}
    container = dict.fromkeys(names, "")
    for iterator in iterators:
        for start in [
            link.target
            for link in links
            if link.source == iterator and link.on in (On.ITERATE, On.ITERATION_OK, On.ITERATION_ERROR)
        ]:
            for name in _reached(start, links):
                container[name] = iterator
    nodes: dict[str, Node] = {}
    containers: dict[str, Container] = {}
    for key in ["", *sorted(iterators)]:
        members = [name for name in names if container[name] == key]
        regions = _regions(members, links)
        containers[key] = Container(key, Opening.BODY if key else Opening.JOB, regions)
        for region in regions:
            for rank, name in enumerate(region.members):
                control = [link for link in links if link.target == name and link.on is not On.DATA]
                part = Location(
                    key,
                    region.index,
                    rank,
                    name,
                    startable=not control,
                    required=tuple({link.to_port for link in links if link.target == name and link.on is On.DATA}),
                    opens=name if name in iterators else None,
                    **more.get("parts", {}).get(name, {}),
                )
                iterates = (
                    replace(Iteration(), **more.get("iterations", {}).get(name, {})) if name in iterators else None
                )
                nodes[name] = Node(name, (Task(name, "noop"),), part=part, iterates=iterates)
    return Net(
        "job",
        "",
        nodes,
        kind="job",
        containers=containers,
        links=tuple(links),
        limits=more.get("limits", Limits()),
        aborts=more.get("aborts", False),
    )


def _reached(start: str, links: list[Link]) -> set[str]:
    found, todo = set(), [start]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [
                link.target for link in links if link.source == name and link.on in (On.DATA, On.OK, On.ERROR, On.IF)
            ]
    return found


def _regions(members: list[str], links: list[Link]) -> tuple[Region, ...]:
    parent = {name: name for name in members}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    cuts = {link.target for link in links if link.on in (On.PARALLELISE, On.SYNCHRONISE)}
    for link in links:
        if link.on in MERGING and link.source in parent and link.target in parent and link.target not in cuts:
            parent[root(link.target)] = root(link.source)
    groups: dict[str, list[str]] = {}
    for name in members:
        groups.setdefault(root(name), []).append(name)
    ordered = sorted(groups.values(), key=lambda group: members.index(group[0]))
    return tuple(Region(index, group[0], tuple(_topological(group, links))) for index, group in enumerate(ordered))


def _topological(group: list[str], links: list[Link]) -> list[str]:
    left, order = list(group), []
    while left:
        for name in left:
            if not any(link.target == name and link.source in left for link in links):
                order.append(name)
                left.remove(name)
                break
        else:
            raise AssertionError("a cycle")
    return order


@dataclass
class Told(Unasked):
    """The judge of a test: conditions are what the test says they are."""

    truths: Mapping[str, bool | dict[str, Any]] = field(default_factory=dict)
    rounds: int = 3

    def conditions(self, node: Node, links: list[Link], component: ComponentRun, end: Ended) -> Verdict:
        fired = []
        for link in links:
            truth = self.truths.get(str(link.when), False)
            if isinstance(truth, dict):
                return Verdict(error=truth)
            if truth:
                fired.append(link.index)
        return Verdict(tuple(fired))

    def again(self, node: Node, component: ComponentRun, index: int) -> bool:
        return index < self.rounds


Outcome = Callable[[str], Ended]


class Play:
    """One job played to its end. `outcomes` maps a component's name in the run to what it comes to; others end OK."""

    def __init__(
        self,
        net: Net,
        outcomes: Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        judge: Told | None = None,
        log: list[Fact] | None = None,
    ) -> None:
        self.net = net
        self.outcomes = outcomes or {}
        self.facts: list[Fact] = []
        self.tree = State()
        self.random = random.Random(seed) if seed is not None else None
        self.judge = judge or Told()
        self.ran: list[str] = []
        self.boundaries: list[int] = []
        """After how many facts a decision was complete: the log can be cut there and nowhere else."""
        for fact in log or ():
            evolve(self.tree, fact, 0.0)
            self.facts.append(fact)
        if not self.facts:
            first = opening(net, ROOT, {})
            evolve(self.tree, first, 0.0)
            self.facts.append(first)
        self.decider = Decider(self.tree, self.tree.root, net, self.judge)
        self.ready: list[ComponentRun] = []

    def when(self, stimulus: object) -> list[Fact]:
        facts = self.decider.decide(stimulus, 0.0)
        self.facts += facts
        started = [one.scope for one in facts if isinstance(one.body, ComponentStarted) and one.body.opens is None]
        self.ready += [self.tree.runs[scope] for scope in started]
        return facts

    def run(self, stop_after: int | None = None) -> Play:
        self.when(Begin())
        return self.go_on(stop_after)

    def resume(self, *, failed_only: bool = False) -> Play:
        self.when(Resume([], failed_only))
        return self.go_on()

    def go_on(self, stop_after: int | None = None) -> Play:
        while self.ready:
            self.boundaries.append(len(self.facts))
            if stop_after is not None and len(self.facts) >= stop_after:
                break
            at = self.random.randrange(len(self.ready)) if self.random is not None else 0
            component = self.ready.pop(at)
            self._perform(component)
        return self

    def _perform(self, component: ComponentRun) -> None:
        self.ran.append(component.place.id)
        node = self.decider.node_of(component)
        if node.iterates is not None:
            items = self.outcomes.get(f"items of {node.name}", ["x", "y", "z"])
            parallel, mode = self.outcomes.get(f"how of {node.name}", (1, "accumulate"))
            total = None if node.iterates.while_ else len(items)
            self.when(Elements(component, total, None if total is None else list(items), parallel, mode))
            return
        end = self.outcomes.get(component.place.id, self.outcomes.get(node.name, Ended()))
        end = end(component) if callable(end) else end
        outputs = {link.port: {"rows": 1} for link in self.net.links if link.source == node.name and link.on is On.DATA}
        self.when(RunOver(component, replace(end, outputs=outputs if end.status == "OK" else {}, after={})))

    # ---- what is looked at

    @property
    def status(self) -> str:
        return self.tree.root.status

    def states(self) -> dict[str, str]:
        """The last state of every component, iterations included."""
        found: dict[str, str] = {}
        for fact in self.facts:
            kind, _, end = event_type(fact.body).partition(".")
            if kind == "component":
                found[fact.scope] = {"started": "RUNNING"}.get(end, end.upper())
        return found

    def subjobs(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for fact in self.facts:
            kind, _, end = event_type(fact.body).partition(".")
            if kind == "subjob":
                found[fact.scope.strip("<>")] = {"started": "RUNNING"}.get(end, end.upper())
        return found

    def fired(self) -> list[str]:
        return [
            f"{f.body.source} ({f.body.on}) {f.body.target}" for f in self.facts if event_type(f.body) == "edge.fired"
        ]  # type: ignore[union-attr]

    def types(self) -> list[str]:
        return [f"{event_type(fact.body)} {fact.scope}" for fact in self.facts]

    def canonical(self) -> list[tuple[Any, ...]]:
        return sorted((fact.clock, fact.scope, repr(fact.body), fact.cause) for fact in self.facts)


def error(kind: str = "broken", **more: Any) -> Ended:
    return Ended(ERROR, error={"kind": kind, "message": kind}, **more)


def sets(**values: Any) -> Ended:
    return Ended(writes=values)
