"""What lies on a component's input ports, and who reads its output ports: data links followed through joblets and bodies."""

from __future__ import annotations

import re
from typing import Any

from penstock.kernel.flow.decide import Flow
from penstock.kernel.flow.plan import FlowPlan
from penstock.kernel.flow.routing import element, feeds
from penstock.kernel.flow.scope import Scope
from penstock.kernel.net import Link, Net, Part
from penstock.kernel.values import Json

_COUNT = "NB_LINE_OUT_"
_COUNTED = re.compile(rf"{_COUNT}(\w+)")


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


def arrivals(flow: Flow, scope: Scope, name: str) -> dict[str, list[dict[str, Any] | Element]]:
    """Input port -> what came over each of its links, in the order of the links."""
    found: dict[str, list[dict[str, Any] | Element]] = {}
    for link, source in sorted(feeds(flow, scope, name), key=lambda one: one[0].index):
        arrived = found.setdefault(link.to_port, [])
        if source is not scope.state.opener:
            output = source.outputs.get(link.port)
            assert isinstance(output, dict)
            arrived.append(output)
        elif source.iterator is not None:
            arrived.append(Element(element(scope.state)))
        else:
            arrived += arrivals(flow, flow.scope_of(source), flow.name_of(source)).get(link.port, [])
    return found


def connected(flow: Flow, name: str) -> dict[str, list[Link]]:
    """Output port -> the links that begin there, into joblets and bodies too."""
    found: dict[str, list[Link]] = {}
    for link in flow.plan.rows_from.get(name, ()):
        found.setdefault(link.port, []).append(link)
    return found


def counted_ports(net: Net) -> frozenset[str]:
    """The output ports whose row counts the document reads, as `NB_LINE_OUT_<port>`, whether a data link begins there or not."""
    texts = [link.when for link in net.links if link.when]
    texts += [repr(task.params) for node in net.nodes.values() for task in node.tasks]
    return frozenset(port for text in texts if _COUNT in text for port in _COUNTED.findall(text))


def readers(flow: Flow, links: list[Link]) -> int:
    """How many will read a port's rows, each once; -1 when they may be read any number of times."""
    plan = flow.plan
    for link in links:
        source, target = plan.part(link.source), plan.part(link.target)
        if source.container != target.container or target.opens is not None or link.crosses:
            return -1
    return len(links)


def must_last(flow: Flow, name: str, links: list[Link]) -> bool:
    """Do these rows go where a resume may have to fetch them? Of an iteration nothing is kept before its body has ended."""
    plan = flow.plan
    part = plan.part(name)
    if bodies := _bodies_around(plan, part.container):
        return bodies == 1 and any(_leads_to_handler(flow, part, link) for link in links)
    for link in links:
        target = plan.part(link.target)
        if target.container == part.container and target.region != part.region:
            return True
        if target.opens is not None and target.opens == part.container:  # An output of the joblet this lies in.
            return True
    return False


def _bodies_around(plan: FlowPlan, container: str) -> int:
    bodies = 0
    while container:
        bodies += plan.is_body(container)
        container = plan.part(container).container
    return bodies


def _leads_to_handler(flow: Flow, part: Part, link: Link) -> bool:
    """Out of the body of an iteration, to what handles its end: that may run after a stop, and the body not again."""
    plan = flow.plan
    target = plan.part(link.target)
    if target.opens is not None and target.opens == part.container:  # An output of the joblet that `part` lies in.
        return must_last(flow, link.target, connected(flow, link.target).get(link.to_port, []))
    name = link.target
    while plan.part(name).container not in ("", part.container):  # Into a joblet or a body that lies beside `part`.
        name = plan.part(name).container
    beside = plan.part(name)
    is_elsewhere = beside.container == part.container and beside.region != part.region
    return is_elsewhere and bool(plan.handles[beside.container, beside.region])
