"""What can be worked out from a component net once, before anything runs: which links end and begin where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from penstock.kernel.net import Container, Link, Net, Node, On, Opening, Part, Region

OF_REGION = frozenset({On.SUBJOB_OK, On.SUBJOB_ERROR, On.SUBJOB_DONE, On.SYNCHRONISE})
OF_ITERATION = frozenset({On.ITERATION_OK, On.ITERATION_ERROR})
OF_ERROR = frozenset({On.ERROR, On.SUBJOB_ERROR, On.ITERATION_ERROR})


class FlowPlan:
    def __init__(self, net: Net) -> None:
        self.net = net
        self.inbound: dict[str, list[Link]] = defaultdict(list)
        """Target -> its links, those of its own container and those from around it."""
        self.outbound: dict[str, list[Link]] = defaultdict(list)
        """Source -> the links to targets in its own container that it settles by its own end."""
        self.of_region: dict[tuple[str, int], list[Link]] = defaultdict(list)
        """(Container, sub-job) -> the links that its end settles."""
        self.proxies: dict[str, list[Link]] = defaultdict(list)
        """Joblet call -> the data links from inside it that feed its output ports."""
        self.awaited: dict[str, list[Link]] = defaultdict(list)
        """Iterator -> data links into its body from beside it: it does not start before these are settled."""
        self.awaiting: dict[str, list[str]] = defaultdict(list)
        """Source of such a link -> the iterators that wait for it, once for each link."""
        self.rows_from: dict[str, list[Link]] = defaultdict(list)
        """Source -> all data links that begin there, into joblets and bodies too."""
        for link in net.links:
            self._place(link)
            if link.on is On.DATA:
                self.rows_from[link.source].append(link)

    def part(self, name: str) -> Part:
        part = self.net.nodes[name].part
        assert part is not None
        return part

    def node(self, name: str) -> Node:
        return self.net.nodes[name]

    def container(self, name: str) -> Container:
        return self.net.containers[self.part(name).container]

    def region(self, name: str) -> Region:
        return self.container(name).regions[self.part(name).region]

    def _place(self, link: Link) -> None:
        source, target = self.part(link.source), self.part(link.target)
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

    def _await(self, link: Link, source: Part, target: Part) -> None:
        """Data from around a body: whoever opens the body beside the source waits for it on the body's behalf."""
        container = target.container
        while container and self.part(container).container != source.container:
            container = self.part(container).container
        if container:
            self.awaited[container].append(link)
            self.awaiting[link.source].append(container)

    def is_body(self, container: str) -> bool:
        return self.net.containers[container].opening is Opening.BODY

    def is_handler(self, region: Region) -> bool:
        """Is this sub-job of a body what the end of an iteration leads to?"""
        return any(link.on in OF_ITERATION for name in region.members for link in self.inbound[name])

    def error_path(self, names: Iterable[str]) -> frozenset[str]:
        """What the error links of these nodes, and of the sub-jobs and scopes around them, reach (D38)."""
        reached: set[str] = set()
        failing: set[tuple[str, int]] = set()
        """The sub-jobs that the failure happened in: what their end leads to is no error path, even if they mended themselves."""
        todo: list[str] = []
        for name in names:
            around: str | None = name
            while around:
                part = self.part(around)
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
            part = self.part(name)
            if part.opens:
                todo += [one for region in self.net.containers[part.opens].regions for one in region.members]
            todo += [link.target for link in self.outbound[name]]
            if (part.container, part.region) not in failing:
                todo += [link.target for link in self.of_region[part.container, part.region]]
        return frozenset(reached)

    def _into(self, name: str) -> list[Link]:
        opens = self.part(name).opens
        if opens is None:
            return []
        return [
            link
            for region in self.net.containers[opens].regions
            for member in region.members
            for link in self.inbound[member]
            if link.source == name
        ]
