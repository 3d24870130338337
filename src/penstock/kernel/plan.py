"""What can be derived from a net before anything runs: where each node lies, and which links lead to it and from it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from penstock.kernel.net import Container, Link, Location, Net, Node, On, Opening, Region

OF_REGION = frozenset({On.SUBJOB_OK, On.SUBJOB_ERROR, On.SUBJOB_DONE, On.SYNCHRONISE})
OF_ITERATION = frozenset({On.ITERATION_OK, On.ITERATION_ERROR})
OF_ERROR = frozenset({On.ERROR, On.SUBJOB_ERROR, On.ITERATION_ERROR})
_INDEX = re.compile(r"\[#\d+\]")


def plan_of(net: Net) -> Plan:
    """The plan of a net; built once and kept with the net."""
    plan: Plan | None = net.__dict__.get("plan")
    if plan is None:
        plan = net.__dict__["plan"] = Plan(net)
    return plan


class Plan:
    def __init__(self, net: Net) -> None:
        self.net = net
        self.moves_tokens = net.kind == "playbook"
        """Nodes run once per token. Otherwise each runs once in its scope, when its links have settled."""
        # A playbook's steps lie in one scope and form one sub-job.
        steps = Container("", Opening.PLAYBOOK, (Region(0, net.name, tuple(net.nodes)),))
        self.containers = net.containers or {"": steps}
        self.locations = {
            name: node.part or Location("", 0, rank, name) for rank, (name, node) in enumerate(net.nodes.items())
        }
        self.inbound: dict[str, list[Link]] = defaultdict(list)
        """Target -> the links to it, from its own container and from outside."""
        self.outbound: dict[str, list[Link]] = defaultdict(list)
        """Source -> the links to targets in its own container that settle when it ends."""
        self.of_region: dict[tuple[str, int], list[Link]] = defaultdict(list)
        """(Container, sub-job) -> the links that settle when the sub-job ends."""
        self.proxies: dict[str, list[Link]] = defaultdict(list)
        """Joblet call -> the data links from inside it that feed its output ports."""
        self.awaited: dict[str, list[Link]] = defaultdict(list)
        """Iterator -> data links into its body from nodes beside it: it does not start before these have settled."""
        self.awaiting: dict[str, list[str]] = defaultdict(list)
        """Source of such a link -> the iterators that wait for it, once for each link."""
        self.rows_from: dict[str, list[Link]] = defaultdict(list)
        """Source -> all data links from it, including those into joblets and bodies."""
        for link in net.links:
            self._place(link)
            if link.on is On.DATA:
                self.rows_from[link.source].append(link)
        self.joins: dict[str, list[Link]] = defaultdict(list)
        """Target -> its links from the branches that it joins."""
        for link in net.links:
            if link.on is On.SYNCHRONISE:
                self.joins[link.target].append(link)
        self.handles: dict[tuple[str, int], frozenset[On]] = {}
        """(Container, sub-job) -> the ends of an iteration that it handles; empty for a sub-job of the body itself."""
        self.bodies: dict[str, tuple[Region, ...]] = {}
        """Container -> its sub-jobs, without the handlers of an iteration's end."""
        self.data = {name: [link for link in self.inbound[name] if link.on is On.DATA] for name in net.nodes}
        """Target -> its data links."""
        self.control = {name: [link for link in self.inbound[name] if link.on is not On.DATA] for name in net.nodes}
        self.stems = {key: self._stem(key) for key in self.containers}
        for key, container in self.containers.items():
            for region in container.regions:
                inbound = [link.on for name in region.members for link in self.inbound[name]]
                self.handles[key, region.index] = frozenset(on for on in inbound if on in OF_ITERATION)
            self.bodies[key] = tuple(one for one in container.regions if not self.handles[key, one.index])
        self._nodes: dict[str, str] = {}

    def node_of(self, scope: str) -> str:
        """The node that `scope` is a run of: `fetch` for `fetch@2`, `write` for `each[#3].write`."""
        local = scope[scope.rfind("/") + 1 :]
        if self.moves_tokens:
            return local.rpartition("@")[0]
        if "[" not in local:
            return local
        shape = _INDEX.sub("[]", local)
        name = self._nodes.get(shape)
        if name is None:
            iterator, _, rest = shape.rpartition("[].")
            inner = f"{self.node_of(iterator.replace('[]', '[#0]'))}.{rest}"  # If the body is a joblet.
            name = self._nodes[shape] = inner if inner in self.net.nodes else rest
        return name

    def _stem(self, key: str) -> str:
        while key and self.containers[key].opening is not Opening.BODY:
            key = self.locations[key].container
        return f"{key}." if key else ""

    def node(self, name: str) -> Node:
        return self.net.nodes[name]

    def region(self, name: str) -> Region:
        part = self.locations[name]
        return self.containers[part.container].regions[part.region]

    def _place(self, link: Link) -> None:
        source, target = self.locations[link.source], self.locations[link.target]
        if link.on in OF_REGION:
            self.of_region[source.container, source.region].append(link)
            self.inbound[link.target].append(link)
        elif source.opens is not None and source.opens == target.container:  # From the opener into what it opens.
            self.inbound[link.target].append(link)
        elif target.opens is not None and target.opens == source.container:  # From inside a joblet to its call.
            self.proxies[link.target].append(link)
        elif source.container == target.container:
            self.outbound[link.source].append(link)
            self.inbound[link.target].append(link)
        else:
            self.inbound[link.target].append(link)
            self._await(link, source, target)

    def _await(self, link: Link, source: Location, target: Location) -> None:
        """Data from outside a body: the iterator that opens the body waits for it on the body's behalf."""
        container = target.container
        while container and self.locations[container].container != source.container:
            container = self.locations[container].container
        if container:
            self.awaited[container].append(link)
            self.awaiting[link.source].append(container)

    def is_body(self, container: str) -> bool:
        return self.containers[container].opening is Opening.BODY

    def error_path(self, names: Iterable[str]) -> frozenset[str]:
        """The nodes reachable through error links of these nodes, and of the sub-jobs and scopes around them (D38)."""
        reached: set[str] = set()
        failing: set[tuple[str, int]] = set()
        """The sub-jobs that the failure happened in: links from their end are no error path, even if they handled the error."""
        todo: list[str] = []
        for name in names:
            around: str | None = name
            while around:
                part = self.locations[around]
                failing.add((part.container, part.region))
                links = [link for link in self.outbound[around] if link.on in OF_ERROR]
                links += [one for one in self.of_region[part.container, part.region] if one.on in OF_ERROR]
                links += [one for one in self._into(around) if one.on in OF_ERROR]
                todo += [link.target for link in links]
                around = part.container
        while todo:
            name = todo.pop()
            if name in reached:
                continue
            reached.add(name)
            part = self.locations[name]
            if part.opens:
                todo += [one for region in self.containers[part.opens].regions for one in region.members]
            todo += [link.target for link in self.outbound[name]]
            if (part.container, part.region) not in failing:
                todo += [link.target for link in self.of_region[part.container, part.region]]
        return frozenset(reached)

    def _into(self, name: str) -> list[Link]:
        opens = self.locations[name].opens
        if opens is None:
            return []
        return [
            link
            for region in self.containers[opens].regions
            for member in region.members
            for link in self.inbound[member]
            if link.source == name
        ]
