"""What lies on a component's input ports, and who reads its output ports: data links followed through joblets and bodies."""

from __future__ import annotations

from typing import Any

from penstock.kernel.flow.decide import Flow
from penstock.kernel.flow.routing import element, feeds
from penstock.kernel.flow.scene import Scene
from penstock.kernel.net import Link, On
from penstock.kernel.values import Json


class Element:
    """The element of an iteration, where it is read as rows."""

    def __init__(self, item: Json) -> None:
        self.rows: list[dict[str, Any]] = _rows(item)


def _rows(item: Json) -> list[dict[str, Any]]:
    if isinstance(item, dict) and isinstance(item.get("rows"), list):
        return _rows(item["rows"])
    if isinstance(item, list):
        return [dict(one) if isinstance(one, dict) else {"item": one} for one in item]
    return [dict(item)] if isinstance(item, dict) else [{"item": item}]


def arrivals(flow: Flow, scene: Scene, name: str) -> dict[str, list[dict[str, Any] | Element]]:
    """Input port -> what came over each of its links, in the order of the links."""
    found: dict[str, list[dict[str, Any] | Element]] = {}
    for link, source in sorted(feeds(flow, scene, name), key=lambda one: one[0].index):
        arrived = found.setdefault(link.to_port, [])
        if source is not scene.state.opener:
            output = source.outputs.get(link.port)
            assert isinstance(output, dict)
            arrived.append(output)
        elif source.iterator is not None:
            arrived.append(Element(element(scene.state)))
        else:
            outer = flow.scenes[source.region.container.id]
            arrived += arrivals(flow, outer, outer.names[source.place.id]).get(link.port, [])
    return found


def connected(flow: Flow, name: str) -> dict[str, list[Link]]:
    """Output port -> the links that begin there, into joblets and bodies too."""
    found: dict[str, list[Link]] = {}
    for link in flow.net.links:
        if link.source == name and link.on is On.DATA:
            found.setdefault(link.port, []).append(link)
    return found


def readers(flow: Flow, links: list[Link]) -> int:
    """How many will read a port's rows, each once; -1 when they may be read any number of times."""
    plan = flow.plan
    for link in links:
        source, target = plan.part(link.source), plan.part(link.target)
        if source.container != target.container or target.opens is not None or link.crosses:
            return -1
    return len(links)


def must_last(flow: Flow, name: str, links: list[Link]) -> bool:
    """Do these rows go where a resume may have to fetch them? Within an iteration nothing is kept but its end."""
    plan = flow.plan
    part = plan.part(name)
    container = part.container
    while container:
        if plan.is_body(container):
            return False
        container = plan.part(container).container
    for link in links:
        target = plan.part(link.target)
        if target.container == part.container and target.region != part.region:
            return True
        if target.opens is not None and target.opens == part.container:  # An output of the joblet this lies in.
            return True
    return False
