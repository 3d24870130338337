"""The order in which things can happen: one topological order of a level, or the cycle that forbids it.

Some links wait for more than their source: those of a sub-job for all of its members, those of an iterator for its body. The
graph has nodes of its own for these ends, so that a component that waits for the end of its own sub-job is found like any
other cycle.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from penstock.dialects.job.level import INTO_BODY, ITEM, PROXY, Level, Wire
from penstock.dialects.job.reader import Reading
from penstock.dialects.job.topology import ordered
from penstock.kernel.net import On

_OF_SUBJOBS = (On.SUBJOB_OK, On.SUBJOB_ERROR, On.SYNCHRONISE)


@dataclass(slots=True)
class _Graph:
    after: dict[str, list[tuple[str, Wire | None]]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    """Ends that are not components -> how they are called in a message."""

    def add(self, source: str, target: str, wire: Wire | None = None) -> None:
        self.after.setdefault(source, []).append((target, wire))
        self.after.setdefault(target, [])


def find_order(reading: Reading, level: Level) -> None:
    """Fill `level.order`; with a cycle it stays empty."""
    graph = _graph(level)
    after = {name: [target for target, _ in following] for name, following in graph.after.items()}
    order = ordered(after, lambda name: _rank(level, name))
    if len(order) == len(after):
        level.order = [name for name in order if name in level.members]
    else:
        _report_cycles(reading, level, graph, set(after) - set(order))


def _rank(level: Level, name: str) -> int:
    member = level.members.get(name)
    return -1 if member is None else member.index


def _graph(level: Level) -> _Graph:
    graph = _Graph()
    for name in level.members:
        graph.after.setdefault(name, [])
    for name, member in level.members.items():
        if member.is_iterator:
            graph.said[_body(name)] = f"the body of `{name}`"
            graph.said[_end(name)] = f"the end of `{name}`"
            graph.add(name, _body(name))
            graph.add(_body(name), _end(name))
    for subjob in level.subjobs:
        end = _subjob(subjob.number)
        graph.said[end] = f"the end of the sub-job `{subjob.first(level)}`"
        for name in subjob.members:
            graph.add(_end_of(level, name), end)
        if subjob.home:
            graph.add(end, _end(subjob.home) if subjob.handles else _body(subjob.home))
    for wire in level.wires:
        if PROXY not in (wire.source, wire.target):
            graph.add(_origin(level, wire), wire.target, wire)
    return graph


def _origin(level: Level, wire: Wire) -> str:
    if wire.on in _OF_SUBJOBS:
        return _subjob(level.subjob_of[wire.source].number)
    if not level.members[wire.source].is_iterator:
        return wire.source
    if wire.on is On.ITERATE or (wire.is_data and wire.port == ITEM):
        return wire.source
    return _body(wire.source) if wire.on in INTO_BODY else _end(wire.source)


def _end_of(level: Level, name: str) -> str:
    return _end(name) if level.members[name].is_iterator else name


# No component can be called like these.
def _body(name: str) -> str:
    return f"body:{name}"


def _end(name: str) -> str:
    return f"end:{name}"


def _subjob(number: int) -> str:
    return f"subjob:{number}"


def _report_cycles(reading: Reading, level: Level, graph: _Graph, left: set[str]) -> None:
    told: set[str] = set()
    for name in sorted((each for each in left if each in level.members), key=lambda each: level.members[each].index):
        if name in told:
            continue
        cycle = _shortest(graph, name, left)
        if cycle is None:
            continue
        told |= _entangled(graph, name, left)
        shown = " -> ".join(graph.said.get(step, f"`{step}`") for step in [*(step for step, _ in cycle), name])
        wire = next((wire for _, wire in reversed(cycle) if wire is not None), None)
        place = level.members[name].draft.place if wire is None else wire.place
        waits = [graph.said[step] for step, _ in cycle if step in graph.said]
        hint = (
            f"`{wire.target}` would wait for {waits[-1]}, which waits for it"
            if waits and wire is not None
            else "take one of these links away; to repeat something, use an iterator"
        )
        reading.report("CYCLE_DETECTED", f"the links lead in a circle: {shown}", place, hint=hint)


def _entangled(graph: _Graph, start: str, left: set[str]) -> set[str]:
    """All that lies on some circle through a node: one message is enough for them."""
    before: dict[str, list[str]] = {}
    for name in left:
        for target, _ in graph.after[name]:
            before.setdefault(target, []).append(name)
    after = {name: [target for target, _ in graph.after[name] if target in left] for name in left}
    return _reached(after, start) & _reached(before, start)


def _reached(following: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += following.get(name, ())
    return found


def _shortest(graph: _Graph, start: str, left: set[str]) -> list[tuple[str, Wire | None]] | None:
    """The shortest way from a node back to itself: each step with the link that leaves it."""
    came: dict[str, tuple[str, Wire | None]] = {}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        for target, wire in graph.after[name]:
            if target == start:
                way = [(name, wire)]
                while way[-1][0] != start:
                    way.append(came[way[-1][0]])
                return way[::-1]
            if target in left and target not in came:
                came[target] = (name, wire)
                waiting.append(target)
    return None
