"""Fused groups: chains and trees of relational components whose queries may run as one.

Law: within a group nothing waits for anything but the rows of other members. So a component joins the groups of all that feed
it, or of none. It may join when each of these gives its rows to it alone, when nothing but their `ok` gates it, and when what
the whole group waits for is one component's business, or nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.dialects.job.expand import Expanded, Unit
from penstock.dialects.job.level import Wire
from penstock.dialects.reader import texts_in
from penstock.expr.errors import ExpressionError
from penstock.expr.template import roots
from penstock.kernel.net import On

_GLOBALS = frozenset(("global", "globals"))


@dataclass(slots=True)
class _Tree:
    members: list[str]
    heads: list[str]


def fused(expanded: Expanded, links: Iterable[Wire]) -> dict[str, tuple[str, ...]]:
    """Name of the last member -> all members in topological order."""
    grouping = _Grouping(expanded, links)
    found: dict[str, tuple[str, ...]] = {}
    for scope in expanded.scopes.values():
        for subjob in scope.subjobs:
            inside = set(subjob.members)
            for name in subjob.members:
                grouping.add(name, inside)
            together: dict[int, list[str]] = {}
            for name in subjob.members:
                if name in grouping.tree_of:
                    together.setdefault(id(grouping.tree_of[name]), []).append(name)
            found.update({names[-1]: tuple(names) for names in together.values() if len(names) > 1})
    return found


class _Grouping:
    def __init__(self, expanded: Expanded, links: Iterable[Wire]) -> None:
        self.units = expanded.units
        self.into: dict[str, list[Wire]] = {}
        self.out: dict[str, list[Wire]] = {}
        for link in links:
            self.into.setdefault(link.target, []).append(link)
            self.out.setdefault(link.source, []).append(link)
        self.tree_of: dict[str, _Tree] = {}

    def add(self, name: str, subjob: set[str]) -> None:
        """Members come in topological order, so those that feed this one have their trees already."""
        unit = self.units[name]
        if not unit.member.is_relational:
            return
        feeders = list(dict.fromkeys(wire.source for wire in self.into.get(name, ()) if wire.is_data))
        trees = {id(tree): tree for source in feeders if source in subjob and (tree := self.tree_of.get(source))}
        is_fed_inside = bool(feeders) and all(source in subjob and source in self.tree_of for source in feeders)
        if not is_fed_inside or not self._joins(unit, feeders, trees):
            self.tree_of[name] = _Tree([name], [name])
            return
        # The largest takes in the others, so that a long chain costs one step per member.
        largest, *others = sorted(trees.values(), key=lambda tree: -len(tree.members))
        for tree in others:
            largest.members += tree.members
            largest.heads += tree.heads
            self.tree_of.update(dict.fromkeys(tree.members, largest))
        largest.members.append(name)
        self.tree_of[name] = largest

    def _joins(self, unit: Unit, feeders: list[str], trees: dict[int, _Tree]) -> bool:
        gives_alone = all(self._feeds_only(source, unit.name) for source in feeders)
        gates = [wire for wire in self.into[unit.name] if not wire.is_data]
        is_free = all(wire.on is On.OK and id(self.tree_of.get(wire.source)) in trees for wire in gates)
        if not (gives_alone and is_free) or _reads_globals(unit):
            return False
        heads = [name for tree in trees.values() for name in tree.heads]
        return len(heads) == 1 or self._start_alike(heads)

    def _feeds_only(self, source: str, target: str) -> bool:
        """Every connected output of the source has one link, and it leads to the target."""
        leaving = [wire for wire in self.out[source] if wire.is_data]
        return all(wire.target == target for wire in leaving) and len({wire.port for wire in leaving}) == len(leaving)

    def _start_alike(self, heads: list[str]) -> bool:
        """Several heads: nothing feeds them, what lets them start is the same for all, and none reads globals."""
        gates = []
        for name in heads:
            links = self.into.get(name, ())
            allowed = all(wire.on is On.ITERATE or (wire.hidden and wire.on is On.SUBJOB_OK) for wire in links)
            if not allowed or _reads_globals(self.units[name]):
                return False
            gates.append({(wire.source, wire.on) for wire in links})
        return all(gate == gates[0] for gate in gates)


def _reads_globals(unit: Unit) -> bool:
    return any(_mentions_globals(str(text.value)) for node in unit.params.values() for text in texts_in(node))


def _mentions_globals(text: str) -> bool:
    if "global" not in text:
        return False
    try:
        return bool(roots(text) & _GLOBALS)
    except ExpressionError:
        return True
