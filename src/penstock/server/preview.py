"""The part of a job that is needed to see the rows of one port: the components that the rows come from, without their other
outputs and effects.

Joblet calls are expanded: their members become members of the job and read directly from where the rows are produced. So what a
joblet writes, counts or says besides those rows is left out as well. What lies in the body of an iterator stays there, and is
shown for the first element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from penstock.expr.rules import did_you_mean
from penstock.kernel.errors import PenstockError, Refused
from penstock.kernel.net import Container, Gate, Link, Net, Node, On, Opening, Region
from penstock.ports.components import Ports

ACTING = frozenset({"write", "file", "orchestrate", "iterate"})
MOST_NAMED = 20

End = tuple[str, str]
"""(component, output port)"""
GivesOut = Mapping[str, Mapping[str, End]]
"""Joblet call -> output -> where in the joblet its rows are produced."""


@dataclass(frozen=True, slots=True)
class Make:
    """What a component does with rows: its family and its ports."""

    family: str
    ports: Ports


class PreviewFailed(PenstockError):
    """A component that the rows come from is in ERROR. `position`: its file, line and column, if known."""

    def __init__(self, component: str, kind: str, message: str, position: tuple[str, int, int] | None) -> None:
        super().__init__(message)
        self.component = component
        self.kind = kind
        self.position = position


def component_and_port(text: str, net: Net) -> tuple[str, str | None]:
    """`COMPONENT[.PORT]`. A component inside a joblet has dots in its name, so names are tried before ports."""
    if text in net.nodes:
        return text, None
    component, dot, port = text.rpartition(".")
    if dot and component in net.nodes and not port.startswith("__"):  # Otherwise it is a name inside a joblet.
        return component, port
    every = list(net.nodes)
    meant = _meant(text, every) or _meant(text.partition(".")[0], every)
    inside = component if port.startswith("__") and component in net.nodes else ""
    beside = [name for name in every if _container(net, name) == inside]
    more = f" and {len(beside) - MOST_NAMED:,} more" if len(beside) > MOST_NAMED else ""
    whose = f"those in `{inside}`" if inside else "the components"
    hint = f"{whose} are {_quoted(beside[:MOST_NAMED])}{more}" if beside else f"`{inside}` has none inside it"
    raise Refused(f"the job has no component `{text}`{meant}", hint)


def previewed(
    net: Net, gives_out: GivesOut, component: str, port: str | None, make: Callable[[Node], Make]
) -> tuple[Net, End, str]:
    """A net with the upstream of one port, the output where its rows are produced, and the name of the port. For a component
    that does something with its rows other than producing new ones, this is an input: a preview must not write."""
    flows = _Flows(net, gives_out)
    end, port = flows.port(component, port, make)
    links = flows.upstream(end[0])
    homes = {name: _home(net, name) for name in (end[0], *(link.source for link in links))}
    while missing := {home for home in homes.values() if home and home not in homes}:
        for iterator in missing:  # What it runs over is needed as well.
            more = [link for link in flows.upstream(iterator) if link not in links]
            links += more
            homes.update({name: _home(net, name) for name in (iterator, *(link.source for link in more))})
    links.sort(key=lambda link: link.index)
    keys = {home: net.nodes[home].part.opens or home if home else "" for home in set(homes.values())}  # type: ignore[union-attr]
    containers: dict[str, Container] = {}
    nodes: dict[str, Node] = {}
    for home, key in sorted(keys.items()):
        within = [name for name in net.nodes if homes.get(name) == home]
        members = tuple(_sorted(within, [link for link in links if link.target in within]))
        opening = Opening.BODY if home else Opening.JOB
        containers[key] = Container(key, opening, (Region(0, members[0], members),))
        nodes.update({name: _placed(net.nodes[name], members.index(name), key, keys.get(name)) for name in within})
    numbered = tuple(replace(link, index=number, crosses=False) for number, link in enumerate(links))
    return replace(net, nodes=nodes, containers=containers, links=numbered, groups={}, aborts=False), end, port


def cut_off(net: Net, part: Net) -> list[str]:
    """Ports whose readers were left out. They still count as read: if nothing reads `reject`, a bad row is a failure."""
    read = {(link.source, link.port) for link in part.links}
    ends = dict.fromkeys((one.source, one.port) for one in net.links if one.on is On.DATA and one.source in part.nodes)
    return [f"{name}.{port}" for name, port in ends if (name, port) not in read]


@dataclass(frozen=True, slots=True)
class _Flows:
    """Where rows come from, whichever joblets they pass through."""

    net: Net
    gives_out: GivesOut

    def port(self, component: str, port: str | None, make: Callable[[Node], Make]) -> tuple[End, str]:
        node = self.net.nodes[component]
        if node.iterates is not None:
            hint = "preview what feeds it, or a component of its body, which is shown for the first element"
            raise Refused(f"`{component}` has no rows of its own outside its iterations", hint=hint)
        if component in self.gives_out:
            port = _chosen(component, port, list(self.gives_out[component]))
            return self._made_at(component, port), port
        made = make(node)
        if made.family in ACTING or not made.ports.outputs:
            return self._feeding(component, port)
        if port is None or made.ports.output(port) is None:
            linked = [link.port for link in self.net.links if link.source == component and link.on is On.DATA]
            named = [one.name for one in made.ports.outputs if not one.is_wild]
            port = _chosen(component, port, list(dict.fromkeys([*linked, *named])))
        return (component, port), port

    def upstream(self, name: str) -> list[Link]:
        """The data links that lead to a component, each from where its rows are produced."""
        found: list[Link] = []
        seen, todo = {name}, [name]
        while todo:
            for link in self._into(todo.pop()):
                for source, port in self._origins(link):
                    found.append(replace(link, source=source, port=port))
                    if source not in seen:
                        seen.add(source)
                        todo.append(source)
        return sorted(found, key=lambda link: link.index)

    def _feeding(self, component: str, port: str | None) -> tuple[End, str]:
        fed = self._into(component)
        if not fed:
            hint = "preview a component that makes rows"
            raise Refused(f"`{component}` has no rows to show: it reads none", hint)
        found = fed[0] if port is None else next((link for link in fed if link.to_port == port), None)
        if found is None:
            raise Refused(
                f"`{component}` acts on its rows, so only what it reads can be shown, and it has no input `{port}`",
                hint=f"it reads {_quoted([link.to_port for link in fed])}",
            )
        return self._origins(found)[0], found.to_port

    def _made_at(self, name: str, port: str) -> End:
        """The component that really produces the rows of an output: for a joblet call, one of its members."""
        while name in self.gives_out:
            name, port = self.gives_out[name][port]
        return name, port

    def _origins(self, link: Link) -> list[End]:
        call = link.source
        if call not in self.gives_out or _container(self.net, link.target) != call:
            return [self._made_at(call, link.port)]
        outside = [one for one in self._into(call) if _container(self.net, one.source) != call]
        return [end for one in outside if one.to_port == link.port for end in self._origins(one)]

    def _into(self, name: str) -> list[Link]:
        return [link for link in self.net.links if link.target == name and link.on is On.DATA]


def _chosen(component: str, port: str | None, known: list[str]) -> str:
    if port in known:
        return port
    if port is None and known:
        return "main" if "main" in known else known[0]
    if port is None:
        raise Refused(f"`{component}` gives no rows out", "preview a component that does")
    raise Refused(
        f"`{component}` has no output `{port}`{_meant(port, known)}",
        f"its outputs are {_quoted(known)}" if known else "it has none",
    )


def _container(net: Net, name: str) -> str:
    part = net.nodes[name].part
    assert part is not None
    return part.container


def _home(net: Net, name: str) -> str:
    """The iterator in whose body it lies, through any joblets in between; "" for the job itself."""
    while key := _container(net, name):
        opener = next(one.name for one in net.nodes.values() if one.part is not None and one.part.opens == key)
        if net.containers[key].opening is Opening.BODY:
            return opener
        name = opener
    return ""


# ---- putting the part together


def _placed(node: Node, rank: int, container: str, opens: str | None) -> Node:
    assert node.part is not None
    part = replace(
        node.part,
        container=container,
        opens=opens,
        region=0,
        rank=rank,
        local=node.name,
        startable=True,
        group=None,
        die_on_error=False,
    )
    return replace(node, part=part, gate=Gate.GREEN)


def _sorted(names: list[str], links: list[Link]) -> list[str]:
    left, done = list(names), []
    while left:
        free = [name for name in left if not any(link.target == name and link.source in left for link in links)]
        done.append(free[0])
        left.remove(free[0])
    return done


# ---- words


def _meant(word: str, known: list[str]) -> str:
    close = did_you_mean(word, known)
    return f"; {close}" if close else ""


def _quoted(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
