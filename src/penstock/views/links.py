"""What became of the links between nodes: how often each fired, how many rows it carried, whether it may still fire; and why a
component is in the state it is in, in one line.

Every control link that fires has an event. A data link has none: it fired when its source component ended OK and handed over rows
on its port. Into a body it is counted once for each iteration that was fed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.kernel.net import Link, Net, On
from penstock.kernel.values import JsonMap
from penstock.views.model import FAILED, OK, RUNNING, SETTLED, SKIPPED, WAITING, Execution, Fire, Run, Totals
from penstock.views.names import caller_of, iteration_of, node_of, shown_links
from penstock.views.wording import listed


@dataclass(frozen=True, slots=True)
class LinkView:
    """A link of a job or an arc of a playbook. `state`: fired, dead when it did not and will not, unsettled.

    Of something that runs many times it is the state of the whole: fired once is fired.
    """

    source: str
    target: str
    on: str
    """`arc` of a playbook's."""
    index: int
    state: str
    fired: int
    rows: int | None = None
    link: Link | None = None
    guard: str | None = None


def links_of(execution: Execution, net: Net) -> list[LinkView]:
    """Every link that the author wrote, in the order of the document."""
    return _arcs(execution, net) if net.kind == "playbook" else _job_links(execution, net.links)


def _arcs(execution: Execution, net: Net) -> list[LinkView]:
    found: list[LinkView] = []
    for node in net.nodes.values():
        fired = execution.arcs.get(node.name, {})
        runs = [run for run in execution.runs.values() if run.node == node.name]
        is_open = not execution.is_over and (
            not runs or any(run.selected is None and run.status in (WAITING, RUNNING, OK, FAILED) for run in runs)
        )
        for edge in node.edges:
            times = fired.get(edge.index, 0)
            state = "fired" if times else "unsettled" if is_open else "dead"
            found.append(LinkView(node.name, edge.target, "arc", edge.index, state, times, guard=edge.guard))
    return found


def _job_links(execution: Execution, links: Sequence[Link]) -> list[LinkView]:
    fired = Counter(fire.link for fire in execution.every_fire())
    fired.update(execution.fired)
    opened = Counter(node_of(one.iterator) for one in execution.groups.values() if one.iterator is not None)
    opened.update(execution.opened)
    totals = execution.totals()
    found: list[LinkView] = []
    for link in shown_links(links):
        rows = None
        times = fired[link.index]
        if link.on is On.DATA:
            times, rows = _carried(link, totals)
        elif link.on is On.ITERATE:  # An iteration that begins is what it does; it has no other event.
            times += opened[link.source]
        state = "fired" if times else "dead" if execution.is_over or _is_settled(execution, link) else "unsettled"
        ends = link.source, link.target, link.on.value
        found.append(LinkView(*ends, link.index, state, times, rows=rows, link=link, guard=link.when))
    return found


OF_SUBJOB = frozenset({On.SUBJOB_OK, On.SUBJOB_ERROR, On.SUBJOB_DONE, On.SYNCHRONISE})
OF_ITERATION = frozenset({On.ITERATION_OK, On.ITERATION_ERROR})


def _is_settled(execution: Execution, link: Link) -> bool:
    run = execution.runs.get(link.source)
    if run is None or run.status not in SETTLED:
        return False
    group = execution.groups.get(run.group)
    return link.on not in OF_SUBJOB or (group is not None and group.status in SETTLED)


_NOTHING = Totals()


def _carried(link: Link, totals: dict[str, Totals]) -> tuple[int, int]:
    """How often a data link fired, and its rows in all."""
    source, target = totals.get(link.source, _NOTHING), totals.get(link.target, _NOTHING)
    if link.target.startswith(f"{link.source}.__") and target.depth == source.depth:
        ports, port = source.rows_in, link.port  # Into a joblet: what its call was given is handed on inside.
    elif target.depth > source.depth:
        ports, port = target.rows_in, link.to_port
    else:
        ports, port = source.rows_out, link.port
    times, rows = ports.get(port, (0, 0))
    return times, rows


def edges_of(execution: Execution, links: Sequence[Link] | None) -> list[JsonMap]:
    """The links of a job for programs; without the document, those that fired."""
    if links is not None:
        return [_edge(one) for one in _job_links(execution, links)]
    fired = Counter((fire.link, node_of(fire.source), node_of(fire.target), fire.on) for fire in execution.every_fire())
    return [
        {"from": source, "to": target, "on": on, "fired": times}
        for (_, source, target, on), times in sorted(fired.items())
    ]


def _edge(view: LinkView) -> JsonMap:
    link = view.link
    assert link is not None
    edge: JsonMap = {"from": link.source, "to": link.target, "on": link.on.value}
    if link.on is On.DATA:
        return {**edge, "port": link.port, "to_port": link.to_port, "fired": view.fired, "rows": view.rows}
    if link.on is On.IF:
        edge.update(order=link.order, when=link.when)
    return {**edge, "fired": view.fired}


def edge_name(edge: JsonMap) -> str:
    if edge["on"] == On.DATA.value:
        return f"{edge['from']}.{edge['port']} -> {edge['to']}.{edge['to_port']}"
    order = f" {edge['order']}" if "order" in edge else ""
    return f"{edge['from']} ({edge['on']}{order}) {edge['to']}"


# ---- causes, in one line


class Causes:
    """Why the components of a job are in the states they are in."""

    def __init__(self, execution: Execution, links: Sequence[Link] | None) -> None:
        self._execution = execution
        self._into: defaultdict[str, list[Fire]] = defaultdict(list)
        for fire in execution.every_fire():
            self._into[fire.target].append(fire)
        self._data: defaultdict[str, list[Link]] = defaultdict(list)
        self._control: defaultdict[str, list[Link]] = defaultdict(list)
        for link in links or ():
            (self._data if link.on is On.DATA else self._control)[link.target].append(link)

    def fires_into(self, name: str) -> list[Fire]:
        """The control links that fired for it, in the order in which they did."""
        return sorted(self._into.get(name, ()), key=lambda fire: (fire.at, fire.link))

    def of(self, run: Run) -> str:
        """The reason of a skip, the message of an error, else what started it."""
        if run.status == SKIPPED:
            return run.reason
        if run.status == FAILED:
            return message_of(run.error)
        fires = self.fires_into(run.name)
        if fires:
            kinds = dict.fromkeys(fire.on for fire in fires)
            return " and ".join(_fired(on, [fire.source for fire in fires if fire.on == on]) for on in kinds)
        return self._without_control(run)

    def _without_control(self, run: Run) -> str:
        fed = [link.source for link in self._data.get(run.node, ()) if link.to_port in run.rows_in]
        iteration, call = iteration_of(run.name), caller_of(run.name)
        if iteration is not None and not [one for one in fed if one != node_of(iteration.rpartition("[#")[0])]:
            return f"iteration `{iteration}` began"
        if call is not None and not [one for one in fed if one != caller_of(run.node)]:
            return f"`{call}` was called"
        if fed:
            return f"its data came from {listed(list(dict.fromkeys(fed)))}"
        return "its data had come" if run.rows_in else "the job started"

    def waits(self, node: str) -> str:
        """What a component that has not started is waiting for, as far as the document says."""
        sources = [link.source for link in (*self._control.get(node, ()), *self._data.get(node, ()))]
        open_ones = [one for one in dict.fromkeys(sources) if not self._has_settled(one)]
        if open_ones:
            return f"it waits for {listed(open_ones)}"
        call = caller_of(node)
        return f"`{call}` has not been called" if call is not None else "it has not started"

    def _has_settled(self, name: str) -> bool:
        run = self._execution.runs.get(name)
        return run is not None and run.status in SETTLED


def _fired(on: str, sources: list[str]) -> str:
    link = "link" if len(sources) == 1 else "links"
    return f"the `{on}` {link} from {listed(list(dict.fromkeys(sources)))} fired"


def message_of(error: Any) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


# ---- the ids by which a graph and the state of a run speak of the same edges and frames


def arc_id(step: str, index: int) -> str:
    return f"{step}:{index}"


def subjob_frame(name: str) -> str:
    return f"<{name}>"


def frame_of(net: Net, node: str) -> str | None:
    """The frame that a node lies in: the body or joblet around it, else its sub-job if there is more than one."""
    part = net.nodes[node].part
    if part is None:
        return None
    if part.container:
        return part.container
    regions = net.containers[""].regions
    return subjob_frame(regions[part.region].name) if len(regions) > 1 else None
