"""From the expanded job to the net: links, fused groups and sources that start early. Joblets, wild-cards, spellings and roles
do not exist after this step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.dialects.digest import with_digest
from penstock.dialects.job.checks.names import WHILE
from penstock.dialects.job.drafts import JobDraft
from penstock.dialects.job.expand import Expanded, ExpandedSubjob, Unit
from penstock.dialects.job.level import ITEM, POST_JOB, PRE_JOB, Wire
from penstock.dialects.job.order import reached
from penstock.dialects.reader import texts_in
from penstock.dialects.source.node import to_json
from penstock.dialects.source.positions import SourceMap
from penstock.expr.errors import ExpressionError
from penstock.expr.template import roots
from penstock.kernel.net import Container, Gate, Iteration, Link, Location, Net, Node, On, Region, Task
from penstock.kernel.values import Json, JsonMap

_RANKS = {on: number for number, on in enumerate(On)}


def lowered(
    draft: JobDraft, expanded: Expanded, context: JsonMap, keychain: list[JsonMap], engines: dict[str, JsonMap]
) -> tuple[Net, SourceMap]:
    lowering = _Lowering(draft, expanded, engines)
    positions = source_map(draft, expanded)
    for index, wire in enumerate(lowering.wires):
        positions.arcs[wire.source, index] = wire.position
    return lowering.net(context, keychain), positions


def source_map(draft: JobDraft, expanded: Expanded) -> SourceMap:
    """A component is both the step and the task; a link is found under its source and its index."""
    found = SourceMap(draft.file)
    for name, unit in expanded.units.items():
        found.steps[name] = found.tasks[name, name] = unit.member.draft.position
        found.spans[name] = unit.member.draft.span
        found.lines[name, name] = {param: node.text_line or node.position.line for param, node in unit.params.items()}
    return found


def _by_target(wires: Iterable[Wire]) -> dict[str, list[Wire]]:
    found: dict[str, list[Wire]] = {}
    for wire in wires:
        found.setdefault(wire.target, []).append(wire)
    return found


class _Lowering:
    def __init__(self, draft: JobDraft, expanded: Expanded, engines: dict[str, JsonMap]) -> None:
        self.draft = draft
        self.engines = engines
        self.expanded = expanded
        self.index = {name: number for number, name in enumerate(expanded.units)}
        self.regions: dict[str, tuple[str, int]] = {}
        self.rank: dict[str, int] = {}
        for scope in expanded.scopes.values():
            for number, subjob in enumerate(scope.subjobs):
                for rank, name in enumerate(subjob.members):
                    self.regions[name], self.rank[name] = (scope.key, number), rank
        self.always: set[str] = set()
        self.into = _by_target(expanded.wires)
        self.wires = self._sorted([*expanded.wires, *self._hidden()])
        self.into = _by_target(self.wires)
        whole = draft.config.engine.words
        groups = fused(expanded, self.wires)
        self.groups = {name: one for name, one in groups.items() if engines.get(name, whole).get("fuse") is not False}
        self.group_of = {name: last for last, names in self.groups.items() for name in names}

    def net(self, context: JsonMap, keychain: list[JsonMap]) -> Net:
        config = self.draft.config
        return with_digest(
            Net(
                name=self.draft.name,
                entry=next(iter(self.expanded.units)),
                nodes={name: self._node(unit) for name, unit in self.expanded.units.items()},
                workload=context,
                keychain=tuple(keychain),
                limits=config.limits,
                durability=config.durability,
                metadata=self.draft.metadata,
                kind="job",
                containers={key: self._container(key) for key in self.expanded.scopes},
                links=tuple(self._link(wire, index) for index, wire in enumerate(self.wires)),
                groups=self.groups,
                aborts=config.aborts,
                contexts=self.draft.contexts,
                open_inputs=config.open_inputs,
                state=self.draft.state,
                engine=config.engine.as_json(),
                engines=self.engines,
            )
        )

    # ---- links

    def _sorted(self, wires: list[Wire]) -> list[Wire]:
        """One order whatever the spelling: rows first, then triggers; by source, and for rows by port."""

        def key(wire: Wire) -> tuple[bool, bool, int, str, int, int, int, str, int]:
            source, target = self.index[wire.source], self.index[wire.target]
            written = wire.written if wire.on is On.IF else 0
            kind = 0 if wire.is_data else _RANKS[wire.on]
            return wire.hidden, not wire.is_data, source, wire.port, kind, wire.order, written, wire.to_port, target

        return sorted(wires, key=key)

    def _hidden(self) -> list[Wire]:
        """A pre-job lets every other sub-job of the job start; a post-job waits for every other to end."""
        found = self._gates() if self.draft.config.starts_whole else []
        pre, post = self._role(PRE_JOB), self._role(POST_JOB)
        if pre is None and post is None:
            return found
        subjobs = self.expanded.scopes[""].subjobs
        gated = {wire.target for wire in found}
        position = self.draft.position
        for subjob in subjobs:
            roots = [name for name in subjob.members if self._is_root(self.expanded.units[name]) and name not in gated]
            if post in subjob.members:
                self.always |= set(subjob.members)
                others = [other.members[0] for other in subjobs if other is not subjob]
                found += [
                    Wire(other, name, On.SUBJOB_DONE, position, hidden=True) for other in others for name in roots
                ]
            elif pre is not None and pre not in subjob.members:
                found += [Wire(pre, name, On.SUBJOB_OK, position, hidden=True) for name in roots]
        return found

    def _gates(self) -> list[Wire]:
        """With `start: subjob` what triggers a sub-job leads to its sources as well."""
        return [
            replace(trigger, target=early.source.name, hidden=True)
            for early in early_starts(self.expanded)
            for trigger in early.triggers
            if not early.is_needed
        ]

    def _is_root(self, unit: Unit) -> bool:
        """It would start at once. What needs rows waits for those who give them, and needs no gate of its own."""
        return self._is_startable(unit) and not self._required(unit, self.into.get(unit.name, []))

    def _role(self, role: str) -> str | None:
        return next((name for name, unit in self.expanded.units.items() if unit.type == role), None)

    def _link(self, wire: Wire, index: int) -> Link:
        return Link(
            index=index,
            source=wire.source,
            target=wire.target,
            on=wire.on,
            order=wire.order,
            when=None if wire.when is None else wire.when.text,
            port=wire.port,
            to_port=wire.to_port,
            crosses=self._crosses(wire),
            hidden=wire.hidden,
        )

    def _crosses(self, wire: Wire) -> bool:
        """Rows of the element are made inside the iteration that reads them; all others that change scope are handed over."""
        if not wire.is_data or (wire.port == ITEM and self.expanded.units[wire.source].member.is_iterator):
            return False
        return self.regions[wire.source] != self.regions[wire.target]

    # ---- nodes

    def _is_startable(self, unit: Unit) -> bool:
        """Marked so in the document or by its type, or no control link leads to it (rulebook 13.1)."""
        inbound = self.into.get(unit.name, ())
        if any(wire.hidden for wire in inbound):
            return False
        description = unit.member.description
        is_marked = unit.member.draft.startable or (description is not None and description.startable)
        return is_marked or all(wire.is_data for wire in inbound)

    def _node(self, unit: Unit) -> Node:
        inbound = self.into.get(unit.name, [])
        joins = tuple(wire.source for wire in inbound if wire.on in (On.SYNCHRONISE, On.SUBJOB_DONE))
        is_call = unit.member.joblet is not None
        params: JsonMap = {name: to_json(node) for name, node in unit.params.items()}
        if is_call:
            params = {"joblet": unit.member.draft.calls, **({"params": params} if params else {})}
        iterates: Iteration | None = None
        if unit.member.is_iterator:
            iterates = Iteration(
                halts=self.draft.config.halts, fails=self.draft.config.fails, while_=unit.type == WHILE
            )
        return Node(
            name=unit.name,
            tasks=(Task(label=unit.name, kind=unit.type, params=params),),
            gate=Gate.BARRIER if joins else Gate.GREEN,
            joins=joins,
            part=self._part(unit, inbound),
            iterates=iterates,
        )

    def _part(self, unit: Unit, inbound: list[Wire]) -> Location:
        draft = unit.member.draft
        key, region = self.regions[unit.name]
        schemas: dict[str, Json] = {
            port: [column.as_json() for column in declared.schema] for port, declared in draft.schemas.items()
        }
        return Location(
            container=key,
            region=region,
            rank=self.rank[unit.name],
            local=unit.local,
            startable=self._is_startable(unit),
            required=self._required(unit, inbound),
            die_on_error=draft.die_on_error,
            exports=draft.exports,
            opens=unit.opens,
            prefix=unit.prefix,
            group=self.group_of.get(unit.name),
            schemas=schemas,
            always=unit.name in self.always,
        )

    def _required(self, unit: Unit, inbound: list[Wire]) -> tuple[str, ...]:
        ports = unit.member.ports
        assert ports is not None
        # What comes from the inside of a call ends at its outputs.
        outside = (wire for wire in inbound if wire.is_data and not wire.source.startswith(f"{unit.name}.__"))
        # A port that need not be connected must be fed once it is: a component starts when all its rows are there (J1.7).
        return tuple(sorted({wire.to_port for wire in outside if ports.input(wire.to_port) is not None}))

    def _container(self, key: str) -> Container:
        scope = self.expanded.scopes[key]
        regions = tuple(
            Region(number, subjob.name, tuple(subjob.members), subjob.handles)
            for number, subjob in enumerate(scope.subjobs)
        )
        return Container(key, scope.opening, regions)


# ---- Fused groups: chains and trees of relational components whose queries may run as one
#
# Law: within a group nothing waits for anything but the rows of other members. So a component joins the groups of all that
# feed it, or of none. It may join when each of these gives its rows to it alone, when nothing but their `ok` gates it, and
# when at most one component waits for anything outside the group.


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


# ---- Sources that start before the trigger of their sub-job
#
# Law (rulebook A6, D58): a component that no control link leads to starts at T=0, also in a sub-job that another one
# triggers. With `job_config.start: subjob` such a sub-job starts as a whole: its triggers lead to these sources, too.


OF_SUBJOB = (On.SUBJOB_OK, On.SUBJOB_ERROR, On.SYNCHRONISE)


class EarlyStart(NamedTuple):
    """A source that starts before a trigger of its sub-job. `is_needed`: the trigger depends on it, so it cannot wait."""

    source: Unit
    subjob: ExpandedSubjob
    triggers: tuple[Wire, ...]
    is_needed: bool


def early_starts(expanded: Expanded) -> Iterator[EarlyStart]:
    into: dict[str, list[Wire]] = {}
    for wire in expanded.wires:
        into.setdefault(wire.target, []).append(wire)
    homes = {name: subjob for scope in expanded.scopes.values() for subjob in scope.subjobs for name in subjob.members}
    ways = _ways(expanded, homes)
    for scope in expanded.scopes.values():
        for subjob in scope.subjobs:
            if subjob.handles is not None:  # It begins after the body, all of it.
                continue
            triggers = [wire for name in subjob.members for wire in into.get(name, ()) if _triggers(wire, homes)]
            for name in subjob.members if triggers else ():
                unit = expanded.units[name]
                if not into.get(name) and not unit.member.draft.startable and not _is_part_of_call(unit):
                    needed = reached(name, ways)
                    is_needed = any(wire.source in needed for wire in triggers)
                    yield EarlyStart(unit, subjob, tuple(triggers), is_needed)


def _triggers(wire: Wire, homes: dict[str, ExpandedSubjob]) -> bool:
    """Does it come from another sub-job of the same scope, and is it a control link?"""
    if wire.is_data or wire.on in (On.ITERATE, On.ITERATION_OK, On.ITERATION_ERROR):
        return False
    return homes.get(wire.source) is not homes[wire.target]


def _is_part_of_call(unit: Unit) -> bool:
    """The unit is the boundary of a joblet, not a component that an author wrote."""
    return unit.member.description is None and unit.member.joblet is None


def _ways(expanded: Expanded, homes: dict[str, ExpandedSubjob]) -> dict[str, set[str]]:
    """Component -> what waits for it. What waits for a sub-job waits for each of its members."""
    found: dict[str, set[str]] = {}
    for wire in expanded.wires:
        sources = homes[wire.source].members if wire.on in OF_SUBJOB and wire.source in homes else [wire.source]
        for source in sources:
            found.setdefault(source, set()).add(wire.target)
    return found
