"""What a component's input ports receive, and who reads its output ports: follows data links through joblets and bodies."""

from __future__ import annotations

import re
from typing import Any

from penstock.kernel.decision import Decision
from penstock.kernel.links import element, feeds
from penstock.kernel.net import Link, Location, Net
from penstock.kernel.plan import Plan
from penstock.kernel.scopes import ScopeView
from penstock.kernel.values import Json

_COUNT = "NB_LINE_OUT_"
_COUNTED = re.compile(rf"{_COUNT}(\w+)")


class Element:
    """The element of an iteration that is read as rows."""

    def __init__(self, item: Json) -> None:
        self.rows: list[dict[str, Any]] = _rows(item)


def _rows(item: Json) -> list[dict[str, Any]]:
    if isinstance(item, dict) and isinstance(item.get("rows"), list):
        return _rows(item["rows"])
    if isinstance(item, list):
        return [dict(one) if isinstance(one, dict) else {"item": one} for one in item]
    return [dict(item)] if isinstance(item, dict) else [{"item": item}]


def arrivals(d: Decision, view: ScopeView, name: str) -> dict[str, list[dict[str, Any] | Element]]:
    """Input port -> what arrived over each of its links, in the order of the links."""
    found: dict[str, list[dict[str, Any] | Element]] = {}
    for link, source in sorted(feeds(view, name), key=lambda one: one[0].index):
        arrived = found.setdefault(link.to_port, [])
        if source is not view.state.opener:
            output = source.outputs.get(link.port)
            assert isinstance(output, dict)
            arrived.append(output)
        elif source.fan is not None:
            arrived.append(Element(element(view.state)))
        else:
            arrived += arrivals(d, d.view_of(source), d.name_of(source)).get(link.port, [])
    return found


def connected(plan: Plan, name: str) -> dict[str, list[Link]]:
    """Output port -> the links that start there, including those into joblets and bodies."""
    found: dict[str, list[Link]] = {}
    for link in plan.rows_from.get(name, ()):
        found.setdefault(link.port, []).append(link)
    return found


def counted_ports(net: Net) -> frozenset[str]:
    """The output ports whose row counts the document reads as `NB_LINE_OUT_<port>`, whether or not a data link starts there."""
    texts = [link.when for link in net.links if link.when]
    texts += [repr(task.params) for node in net.nodes.values() for task in node.tasks]
    return frozenset(port for text in texts if _COUNT in text for port in _COUNTED.findall(text))


def readers(plan: Plan, links: list[Link]) -> int:
    """How many readers a port's rows have, each reading once; -1 if they may be read any number of times."""
    for link in links:
        source, target = plan.locations[link.source], plan.locations[link.target]
        if source.container != target.container or target.opens is not None or link.crosses:
            return -1
    return len(links)


def must_last(plan: Plan, name: str, links: list[Link]) -> bool:
    """Whether a resume may have to fetch these rows. Inside an iteration nothing is kept before its body has ended."""
    part = plan.locations[name]
    if bodies := _bodies_around(plan, part.container):
        return bodies == 1 and any(_leads_to_handler(plan, part, link) for link in links)
    for link in links:
        target = plan.locations[link.target]
        if target.container == part.container and target.region != part.region:
            return True
        if target.opens is not None and target.opens == part.container:  # An output of the joblet that this lies in.
            return True
    return False


def _bodies_around(plan: Plan, container: str) -> int:
    bodies = 0
    while container:
        bodies += plan.is_body(container)
        container = plan.locations[container].container
    return bodies


def _leads_to_handler(plan: Plan, part: Location, link: Link) -> bool:
    """Whether it leads out of the body of an iteration to a handler of its end: the handler may run after a stop, without
    the body running again."""
    target = plan.locations[link.target]
    if target.opens is not None and target.opens == part.container:  # An output of the joblet that `part` lies in.
        return must_last(plan, link.target, connected(plan, link.target).get(link.to_port, []))
    name = link.target
    while plan.locations[name].container not in (
        "",
        part.container,
    ):  # Into a joblet or a body that lies beside `part`.
        name = plan.locations[name].container
    beside = plan.locations[name]
    is_elsewhere = beside.container == part.container and beside.region != part.region
    return is_elsewhere and bool(plan.handles[beside.container, beside.region])
