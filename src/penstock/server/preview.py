"""The part of a job that is needed to see the rows of one port: the components that rows come from, and nothing they would do
on the way to somewhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.kernel.errors import Refused
from penstock.kernel.net import Container, Link, Net, Node, On, Opening, Region

ACTING = frozenset({"write", "file", "orchestrate", "iterate"})


def previewed(net: Net, component: str, port: str | None, family: Callable[[str], str | None]) -> tuple[Net, str, str]:
    """A net with the upstream of one port, and that port. Of a component that does something with its rows other than
    making new ones, it is the port that feeds it: looking must not write. `family` says what a type is."""
    name, port = _port(net, component, port, family)
    needed = _upstream(net, name)
    links = [link for link in net.links if _is_needed(net, link, needed)]
    order = [one for region in net.containers[""].regions for one in region.members if one in needed]
    members = tuple(_sorted(order, links))
    nodes: dict[str, Node] = {}
    for node_name, node in net.nodes.items():
        part = node.part
        assert part is not None
        if part.container == "" and node_name in needed:
            placed = replace(
                part, region=0, rank=members.index(node_name), startable=True, group=None, die_on_error=False
            )
            nodes[node_name] = replace(node, part=placed)
        elif _home(net, node_name) in needed:
            nodes[node_name] = node
    containers = {key: one for key, one in net.containers.items() if key in nodes}
    containers[""] = Container("", Opening.JOB, (Region(0, members[0], members),))
    numbered = tuple(replace(link, index=number, crosses=False) for number, link in enumerate(links))
    return replace(net, nodes=nodes, containers=containers, links=numbered, groups={}, aborts=False), name, port


def _port(net: Net, component: str, port: str | None, family: Callable[[str], str | None]) -> tuple[str, str]:
    node = net.nodes.get(component)
    if node is None or node.part is None:
        known = ", ".join(f"`{name}`" for name in net.nodes)
        raise Refused(f"the job has no component `{component}`", hint=f"it has {known}")
    if node.part.container or node.iterates is not None:
        raise Refused(
            f"`{component}` has no rows of its own outside its iterations or its joblet", hint="preview what feeds it"
        )
    if family(node.tasks[0].kind) in ACTING:
        fed = [link for link in net.links if link.target == component and link.on is On.DATA]
        if not fed:
            raise Refused(
                f"`{component}` has no rows to show: it reads none", hint="preview a component that makes rows"
            )
        return fed[0].source, port or fed[0].port
    out = [link.port for link in net.links if link.source == component and link.on is On.DATA]
    return component, port or ("main" if "main" in out or not out else out[0])


def _upstream(net: Net, name: str) -> set[str]:
    found: set[str] = set()
    todo = [name]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += [_home(net, link.source) for link in net.links if link.target == one and link.on is On.DATA]
    return found


def _home(net: Net, name: str) -> str:
    """The component of the job itself that a node lies in."""
    while (part := net.nodes[name].part) is not None and part.container:
        name = part.container
    return name


def _is_needed(net: Net, link: Link, needed: set[str]) -> bool:
    source, target = net.nodes[link.source].part, net.nodes[link.target].part
    assert source is not None
    assert target is not None
    if source.container == "" and target.container == "":
        return link.on is On.DATA and link.source in needed and link.target in needed
    return _home(net, link.source) in needed and _home(net, link.target) in needed


def _sorted(names: list[str], links: list[Link]) -> list[str]:
    left, done = list(names), []
    while left:
        free = [name for name in left if not any(link.target == name and link.source in left for link in links)]
        done.append(free[0])
        left.remove(free[0])
    return done
