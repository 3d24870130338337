"""Links with their ports: default ports, wild-cards, how many links may end at an input, forks and joins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.dialects.job.drafts import End, LinkDraft
from penstock.dialects.job.level import PROXY, Level, Member, Wire
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Severity
from penstock.dialects.reader import did_you_mean, listed
from penstock.kernel.net import On
from penstock.ports.components import Port

_FROM_ITERATORS = (On.ITERATE, On.ITERATION_OK, On.ITERATION_ERROR, On.ITERATOR_COMPLETE)


def wire_up(reading: Reading, level: Level) -> list[Wire]:
    wiring = _Wiring(reading, level)
    found: list[Wire] = []
    for number, link in enumerate(level.draft.links):
        wire = wiring.wire(link, number)
        if wire is not None:
            found.append(wire)
    return [*wiring.proxies(), *_without_doubles(reading, found)]


def _without_doubles(reading: Reading, wires: list[Wire]) -> list[Wire]:
    """Drops duplicate control links; duplicate data links may be intended, and `check_arity` judges them."""
    seen: set[tuple[str, str, On, int, str]] = set()
    found: list[Wire] = []
    for wire in wires:
        key = (wire.source, wire.target, wire.on, wire.order, "" if wire.when is None else wire.when.text)
        if not wire.is_data and wire.on is not On.SYNCHRONISE and key in seen:
            message = f"`{wire}` is there already"
            reading.report("DUPLICATE_LINK", message, wire.position, severity=Severity.WARNING)
            continue
        seen.add(key)
        found.append(wire)
    return found


class _Wiring:
    def __init__(self, reading: Reading, level: Level) -> None:
        self.reading = reading
        self.level = level

    def wire(self, link: LinkDraft, number: int) -> Wire | None:
        source, target = self._member(link.source), self._member(link.target)
        if source is None or target is None:
            return None
        wire = Wire(
            source.name, target.name, link.on, link.position,
            order=link.order, when=link.when, statement=link.statement, written=number,
        )  # fmt: skip
        if link.on is On.DATA:
            port = self._output(source, link.source)
            to_port = self._input(target, link.target, source.name)
            return None if port is None or to_port is None else replace(wire, port=port, to_port=to_port)
        if link.on in _FROM_ITERATORS and not source.is_iterator and source.ports is not None:
            message = f"`{source.name}` is not an iterator, so nothing fires on `{link.on.value}`"
            hint = "iterators are the types that begin with `iterate_`"
            self.reading.report("NOT_AN_ITERATOR", message, link.source.position, hint=hint)
            return None
        return wire

    def proxies(self) -> list[Wire]:
        """The boundary of a joblet: what its `inputs` and `outputs` lead to."""
        found: list[Wire] = []
        for outer in self.level.draft.inputs.keys() & self.level.draft.outputs.keys():
            end = self.level.draft.outputs[outer]
            message = f"`{outer}` is an input and an output of the joblet"
            self.reading.report("JOBLET_PORT", message, end.position, hint="give one of the two another name")
        for outer, ends in self.level.draft.inputs.items():
            for end in ends:
                member = self._inner(end, outer)
                port = None if member is None else self._input(member, end, outer)
                if member is not None and port is not None:
                    found.append(Wire(PROXY, member.name, On.DATA, end.position, outer, port))
        for outer, end in self.level.draft.outputs.items():
            member = self._inner(end, outer)
            port = None if member is None else self._output(member, end)
            if member is not None and port is not None:
                found.append(Wire(member.name, PROXY, On.DATA, end.position, port, outer))
        return found

    def _inner(self, end: End, outer: str) -> Member | None:
        found = self.level.members.get(end.name)
        if found is None:
            message = f"`{outer}` leads to `{end.name}`, and the joblet has no such component"
            label = did_you_mean(end.name, self.level.members)
            self.reading.report("JOBLET_PORT", message, end.position, label=label)
        return found

    def _member(self, end: End) -> Member | None:
        found = self.level.members.get(end.name)
        if found is None and end.name not in self.level.draft.components:
            label = did_you_mean(end.name, self.level.members)
            hint = "" if label or not self.level.members else f"there are {listed(self.level.members)}"
            message = f"there is no component `{end.name}`"
            self.reading.report("UNKNOWN_COMPONENT", message, end.position, label=label, hint=hint)
        return found

    def _output(self, member: Member, end: End) -> str | None:
        if member.ports is None:
            return end.port or "main"
        ports = member.ports.outputs
        if end.port is None:
            return self._default(member, end, "output", _main_output(ports), ports, "1")
        if member.ports.output(end.port) is None:
            self._unknown_port(member, end, "output", ports, member.ports.input(end.port) is not None)
            return None
        return end.port

    def _input(self, member: Member, end: End, source: str) -> str | None:
        if member.ports is None:
            return end.port or "input"
        ports = member.ports.inputs
        if end.port is None:
            return self._default(member, end, "input", _main_input(ports), ports, source)
        if member.ports.input(end.port) is None:
            self._unknown_port(member, end, "input", ports, member.ports.output(end.port) is not None)
            return None
        return end.port

    def _default(
        self, member: Member, end: End, word: str, found: str | None, ports: tuple[Port, ...], example: str
    ) -> str | None:
        if found is not None:
            return found
        if not ports:
            what = "gives no rows" if word == "output" else "takes no rows"
            message = f"`{member.name}` of type `{member.draft.type}` {what}"
            hint = "join it by a control link, such as `a (ok) b`"
            self.reading.report("UNKNOWN_PORT", message, end.position, hint=hint)
            return None
        names = [port.name for port in ports]
        shown = next((f"{name[:-1]}{example}" for name in names if name.endswith("*")), names[0])
        message = f"which {word} of `{member.name}` is meant? it has {listed(names)}"
        self.reading.report("UNKNOWN_PORT", message, end.position, hint=f"such as `{member.name}.{shown}`")
        return None

    def _unknown_port(self, member: Member, end: End, word: str, ports: tuple[Port, ...], is_other: bool) -> None:
        names = [port.name for port in ports]
        other = "input" if word == "output" else "output"
        hint = (
            f"it is an {other}" if is_other else f"its {word}s are {listed(names)}" if names else f"it has no {word}s"
        )
        message = f"`{member.name}` has no {word} `{end.port}`"
        label = did_you_mean(end.port or "", names)
        self.reading.report("UNKNOWN_PORT", message, end.position, label=label, hint=hint)


def _main_output(ports: Iterable[Port]) -> str | None:
    named = [port for port in ports if not port.is_wild]
    accepted = [port for port in named if not port.reject]
    for found in (*(port for port in named if port.name == "main"), *_single(accepted), *_single(named)):
        return found.name
    return None


def _main_input(ports: Iterable[Port]) -> str | None:
    named = [port for port in ports if not port.is_wild]
    required = [port for port in named if port.required]
    wanted = ("input", "main")
    for found in (
        *(port for name in wanted for port in named if port.name == name),
        *_single(required),
        *_single(named),
    ):
        return found.name
    return None


def _single(ports: list[Port]) -> list[Port]:
    return ports if len(ports) == 1 else []


def check_arity(reading: Reading, level: Level) -> None:
    """Every required input is fed, and by one link unless it takes many (rulebook 10.2)."""
    linked = {name for wire in level.wires for name in (wire.source, wire.target)}
    for member in level.members.values():
        if member.ports is None:
            continue
        arrivals: dict[str, list[Wire]] = {}
        for wire in level.into(member.name):
            if wire.is_data:
                arrivals.setdefault(wire.to_port, []).append(wire)
        _check_doubles(reading, member, arrivals)
        missing = [
            port for port in member.ports.inputs if port.required and not any(port.accepts(name) for name in arrivals)
        ]
        if missing and member.name not in linked:
            _unconnected(reading, member)
        elif missing:
            _unfed(reading, member, missing)


def _unconnected(reading: Reading, member: Member) -> None:
    message = f"`{member.name}` cannot be reached from any startable component: no link leads to it or away from it"
    hint = f"feed it, such as `a.main -> {member.name}`, or leave it out with `active: false`"
    reading.report("UNCONNECTED_NODE", message, member.draft.position, hint=hint)


def _unfed(reading: Reading, member: Member, missing: list[Port]) -> None:
    for port in missing:
        message = f"nothing feeds the input `{port.name}` of `{member.name}`"
        example = port.name.replace("*", "1")
        hint = f"add a data link, such as `a.main -> {member.name}.{example}`"
        reading.report("PORT_ARITY", message, member.draft.position, hint=hint)


def _check_doubles(reading: Reading, member: Member, arrivals: dict[str, list[Wire]]) -> None:
    assert member.ports is not None
    for name, wires in arrivals.items():
        port = member.ports.input(name)
        if port is None or port.many or len(wires) < 2:
            continue
        sources = listed(f"{wire.source}.{wire.port}" if wire.source else wire.port for wire in wires)
        message = f"{len(wires)} links end at the input `{name}` of `{member.name}`, which takes one: from {sources}"
        reading.report("PORT_ARITY", message, wires[1].position, hint="bring them together with a `union` before it")


# ---- Forks and joins: a fork has two targets or more, a join knows its branches (rulebook 2.1, 4.3; D34)


def check_forks(reading: Reading, level: Level) -> None:
    """Checks the links as they are written, so that a branch may be deactivated."""
    targets: dict[str, list[Wire]] = {}
    for wire in level.wires:
        if wire.on is On.PARALLELISE:
            targets.setdefault(wire.source, []).append(wire)
    for source, wires in targets.items():
        if len({wire.target for wire in wires}) < 2:
            message = f"`{source}` forks into one branch only, `{wires[0].target}`"
            hint = f"list two targets or more, `{source} (parallelise) {wires[0].target}, …`, or use `ok`"
            reading.report("PARALLELISE_ARITY", message, wires[0].position, hint=hint)


def check_joins(reading: Reading, level: Level) -> None:
    level.wires = _without_moved_doubles(level)
    joins: dict[str, list[Wire]] = {}
    for wire in level.wires:
        if wire.on is On.SYNCHRONISE:
            joins.setdefault(wire.target, []).append(wire)
    stems = _stems(level) if joins else {}
    for target, wires in joins.items():
        if len({wire.statement for wire in wires}) > 1:
            message = f"`{target}` has two synchronise links, and it is not clear which branches it waits for"
            hint = f"list all branches in one link: `{', '.join(wire.source for wire in wires)} (synchronise) {target}`"
            reading.report("AMBIGUOUS_JOIN", message, wires[-1].position, hint=hint)
        elif not _lists_one_branch_twice(reading, level, target, wires):
            _check_stem(reading, level, target, wires, stems)


def _without_moved_doubles(level: Level) -> list[Wire]:
    """What remains of a branch without its root may still be connected, and is then listed once."""
    joins = [wire for wire in level.wires if wire.on is On.SYNCHRONISE]
    listed_once = {(wire.target, level.subjob_of[wire.source].number) for wire in joins if not wire.moved}
    doubles: list[Wire] = []
    for wire in joins:
        branch = wire.target, level.subjob_of[wire.source].number
        if wire.moved and branch in listed_once:
            doubles.append(wire)
        listed_once.add(branch)
    return [wire for wire in level.wires if wire not in doubles] if doubles else level.wires


def _lists_one_branch_twice(reading: Reading, level: Level, target: str, wires: list[Wire]) -> bool:
    seen: dict[int, str] = {}
    for wire in wires:
        branch = level.subjob_of[wire.source].number
        if branch not in seen:
            seen[branch] = wire.source
        else:
            first = seen[branch]
            also = "is listed twice" if first == wire.source else f"lies in the same branch as `{first}`"
            message = f"`{wire.source}` {also}, so the join `{target}` would wait for one branch twice"
            reading.report("AMBIGUOUS_JOIN", message, wire.position, hint="list one component of each branch")
            return True
    return False


def _stems(level: Level) -> dict[int, set[str]]:
    """Sub-job -> the forks that it stems from, directly or through sub-jobs between."""
    after: dict[int, set[int]] = {}
    for wire in level.wires:
        if PROXY not in (wire.source, wire.target):
            after.setdefault(level.subjob_of[wire.source].number, set()).add(level.subjob_of[wire.target].number)
    forks = [(wire.source, wire.target) for wire in level.wires if wire.on is On.PARALLELISE]
    forks += [(fork, target) for fork, targets in level.former_forks.items() for target in targets]
    found: dict[int, set[str]] = {}
    for fork, target in forks:
        waiting = [level.subjob_of[target].number]
        while waiting:
            number = waiting.pop()
            stems = found.setdefault(number, set())
            if fork not in stems:
                stems.add(fork)
                waiting += after.get(number, ())
    return found


def _check_stem(reading: Reading, level: Level, target: str, wires: list[Wire], stems: dict[int, set[str]]) -> None:
    common: set[str] | None = None
    for wire in wires:
        own = stems.get(level.subjob_of[wire.source].number, set())
        common = own if common is None else common & own
    if not common:
        branches = listed(wire.source for wire in wires)
        message = f"the branches of the join `{target}` do not stem from one parallelise: {branches}"
        hint = "a join brings together branches that one `a (parallelise) b, c` has started"
        reading.report("AMBIGUOUS_JOIN", message, wires[0].position, hint=hint)
