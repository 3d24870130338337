"""How often each link of a job fired, and how many rows it carried.

Control links say so themselves: one event each time. A data link has no event of its own: it fired when the component it begins
at ended OK and handed rows over on its port. Into a body it is counted once for each iteration that was fed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.kernel.net import Link, On
from penstock.kernel.values import JsonMap
from penstock.views.jobs_names import depth_of, node_of, shown_links
from penstock.views.jobs_seen import OK, JobSeen


def edges_of(seen: JobSeen, links: Sequence[Link] | None) -> list[JsonMap]:
    """Every link in the order of the document; without the document, those that fired."""
    if links is None:
        return _from_log(seen)
    fired = Counter(fire.link for fire in seen.fired())
    opened = Counter(node_of(one.iterator) for one in seen.subjobs.values() if one.iterator is not None)
    # An iteration that begins is what an `iterate` link does; it has no other event.
    fired.update({link.index: opened[link.source] for link in links if link.on is On.ITERATE})
    rows = Carried(seen)
    return [_edge(link, fired, rows) for link in shown_links(links)]


def _edge(link: Link, fired: Counter[int], rows: Carried) -> JsonMap:
    edge: JsonMap = {"from": link.source, "to": link.target, "on": link.on.value}
    if link.on is On.DATA:
        times, carried = rows.on(link)
        return {**edge, "port": link.port, "to_port": link.to_port, "fired": times, "rows": carried}
    if link.on is On.IF:
        edge.update(order=link.order, when=link.when)
    return {**edge, "fired": fired[link.index]}


def _from_log(seen: JobSeen) -> list[JsonMap]:
    fired = Counter((fire.link, node_of(fire.source), node_of(fire.target), fire.on) for fire in seen.fired())
    return [
        {"from": source, "to": target, "on": on, "fired": times}
        for (_, source, target, on), times in sorted(fired.items())
    ]


class Carried:
    """What components handed over and were given, by their names in the document."""

    def __init__(self, seen: JobSeen) -> None:
        self._out: Counter[tuple[str, str]] = Counter()
        self._out_rows: Counter[tuple[str, str]] = Counter()
        self._in: Counter[tuple[str, str]] = Counter()
        self._in_rows: Counter[tuple[str, str]] = Counter()
        self._depths: dict[str, int] = {}
        for component in seen.components.values():
            node = component.node
            self._depths.setdefault(node, depth_of(component.name))
            for port, rows in component.rows_in.items():
                self._in[node, port] += 1
                self._in_rows[node, port] += rows
            if component.state == OK:
                for port in component.outputs:
                    self._out[node, port] += 1
                    self._out_rows[node, port] += component.rows_out.get(port, 0)

    def on(self, link: Link) -> tuple[int, int]:
        """How often a data link fired, and its rows in all."""
        end = (link.target, link.to_port)
        if link.target.startswith(f"{link.source}.__") and self._depth(link.target) == self._depth(link.source):
            start = (link.source, link.port)  # Into a joblet: what its call was given is handed on inside.
            return self._in[start], self._in_rows[start]
        if self._depth(link.target) > self._depth(link.source):
            return self._in[end], self._in_rows[end]
        start = (link.source, link.port)
        return self._out[start], self._out_rows[start]

    def _depth(self, node: str) -> int:
        return self._depths.get(node, 0)
