"""The order of execution: sub-jobs, and one topological order of a level or the cycle that forbids it.

Some links wait for more than their source: those of a sub-job for all of its members, those of an iterator for its body. The
graph has nodes of its own for these ends, so that a component that waits for the end of its own sub-job is found like any
other cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from penstock.dialects.job.level import INTO_BODY, ITEM, MERGING, PROXY, Level, Subjob, Wire
from penstock.dialects.job.reader import Reading
from penstock.kernel.net import On

# ---- A topological order, in which ties keep the order of the document


def ordered(after: Mapping[str, Iterable[str]], rank: Callable[[str], int]) -> list[str]:
    """The keys of `after` in such an order, without those on or behind a cycle."""
    waits = dict.fromkeys(after, 0)
    for following in after.values():
        for name in following:
            waits[name] += 1
    ready = [(rank(name), name) for name, count in waits.items() if not count]
    heapify(ready)
    found: list[str] = []
    while ready:
        _, name = heappop(ready)
        found.append(name)
        for other in after[name]:
            waits[other] -= 1
            if not waits[other]:
                heappush(ready, (rank(other), other))
    return found


def reached(name: str, after: Mapping[str, Iterable[str]]) -> set[str]:
    """All that comes after a name, however far; itself only if it lies on a cycle."""
    found: set[str] = set()
    todo = [name]
    while todo:
        for target in after.get(todo.pop(), ()):
            if target not in found:
                found.add(target)
                todo.append(target)
    return found


_OF_SUBJOBS = (On.SUBJOB_OK, On.SUBJOB_ERROR, On.SYNCHRONISE)


@dataclass(slots=True)
class _Graph:
    after: dict[str, list[tuple[str, Wire | None]]] = field(default_factory=dict)
    end_names: dict[str, str] = field(default_factory=dict)
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
            graph.end_names[_body(name)] = f"the body of `{name}`"
            graph.end_names[_end(name)] = f"the end of `{name}`"
            graph.add(name, _body(name))
            graph.add(_body(name), _end(name))
    for subjob in level.subjobs:
        end = _subjob(subjob.number)
        graph.end_names[end] = f"the end of the sub-job `{subjob.first(level)}`"
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
    reported: set[str] = set()
    for name in sorted((each for each in left if each in level.members), key=lambda each: level.members[each].index):
        if name in reported:
            continue
        cycle = _shortest(graph, name, left)
        if cycle is None:
            continue
        reported |= _entangled(graph, name, left)
        shown = " -> ".join(graph.end_names.get(step, f"`{step}`") for step in [*(step for step, _ in cycle), name])
        wire = next((wire for _, wire in reversed(cycle) if wire is not None), None)
        position = level.members[name].draft.position if wire is None else wire.position
        waits = [graph.end_names[step] for step, _ in cycle if step in graph.end_names]
        hint = (
            f"`{wire.target}` would wait for {waits[-1]}, which waits for it"
            if waits and wire is not None
            else "take one of these links away; to repeat something, use an iterator"
        )
        reading.report("CYCLE_DETECTED", f"the links lead in a circle: {shown}", position, hint=hint)


def _entangled(graph: _Graph, start: str, left: set[str]) -> set[str]:
    """Everything on some cycle through a node: one message is enough for them."""
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
    """The shortest cycle through a node: each step with the link that leaves it."""
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


# ---- Boundaries of sub-jobs
#
# Law (rulebook 3.1, D27, D35): data, ok, error, if and iterator_complete links make their ends members of one sub-job;
# parallelise, synchronise, subjob_ok and subjob_error never do, and neither does any link into the target of a parallelise
# or into a join.


def find_subjobs(level: Level) -> None:
    cuts = level.branch_roots()
    roots = {name: name for name in level.members}
    for wire in level.wires:
        if _merges(level, wire, cuts):
            roots[_root(roots, wire.source)] = _root(roots, wire.target)
    together: dict[str, list[str]] = {}
    for name in level.members:
        together.setdefault(_root(roots, name), []).append(name)
    # Bodies come before what handles their end; apart from that the document decides.
    found = sorted(together.values(), key=lambda names: (names[0] in level.handlers, level.members[names[0]].index))
    level.subjobs = [_as_subjob(level, names, number) for number, names in enumerate(found)]
    level.subjob_of = {name: subjob for subjob in level.subjobs for name in subjob.members}


def _merges(level: Level, wire: Wire, cuts: set[str]) -> bool:
    if wire.on not in MERGING or wire.target in cuts or PROXY in (wire.source, wire.target):
        return False
    is_same_home = level.homes[wire.source] == level.homes[wire.target]
    return is_same_home and (wire.source in level.handlers) == (wire.target in level.handlers)


def _root(roots: dict[str, str], name: str) -> str:
    while roots[name] != name:
        roots[name] = roots[roots[name]]
        name = roots[name]
    return name


def _as_subjob(level: Level, names: list[str], number: int) -> Subjob:
    handles = next((level.handlers[name] for name in names if name in level.handlers), None)
    return Subjob(level.homes[names[0]], _ranked(level, names), handles, number)


def _ranked(level: Level, names: list[str]) -> list[str]:
    """Topological order within the sub-job, ties in the order of the document; what lies on a cycle comes last."""
    inside = set(names)
    after = {
        name: [wire.target for wire in level.out_of(name) if wire.target in inside and wire.target != name]
        for name in names
    }
    order = ordered(after, lambda name: level.members[name].index)
    done = set(order)
    return [*order, *(name for name in names if name not in done)]
