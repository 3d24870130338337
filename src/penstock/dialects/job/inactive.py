"""Components that are left out: `active: false`.

A deactivated component passes its rows through, from its first input to its main output, and its control links are spliced:
what let it start lets those start that it would have let start. A fork stays one: what it would have forked into are branches
still. What can then never run, because its rows or its only trigger came from a component that is gone, is left out as well,
with a warning.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.dialects.job.level import ITEM, MERGING, PROXY, Level, Member, Wire
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Severity
from penstock.kernel.net import On

_SPLICED = (On.OK, On.ITERATOR_COMPLETE, On.PARALLELISE)
_OF_SUBJOBS = (On.SUBJOB_OK, On.SUBJOB_ERROR, On.SYNCHRONISE)


def leave_out(reading: Reading, level: Level) -> None:
    for member in [member for member in level.members.values() if not member.draft.active]:
        if member.name not in level.members:
            continue
        lost = _spliced(level, member)
        _forget(level, member.name)
        _starve(reading, level, lost, member.name)


def _passes(member: Member) -> tuple[str, str] | None:
    if member.ports is None or member.is_iterator:
        return None
    outputs = [port for port in member.ports.outputs if not port.reject]
    if not member.ports.inputs or not outputs:
        return None
    return member.ports.inputs[0].name, outputs[0].name


def _spliced(level: Level, member: Member) -> list[Wire]:
    """Take the member out of the wires; those that nothing could take the place of are returned."""
    name = member.name
    before = [wire for wire in level.into(name) if wire.source != name]
    after = [wire for wire in level.out_of(name) if wire.target != name]
    kept = [wire for wire in level.wires if name not in (wire.source, wire.target)]
    lost: list[Wire] = []
    for wire in after:
        instead = _rows(member, before, wire) if wire.is_data else _control(level, before, after, wire)
        kept += [new for new in instead if new.source != new.target]
        if not instead and not _merely_starts(wire, before):
            lost.append(wire)
    _keep_branches(level, name, (before, after), kept)
    level.wires = kept
    return lost


def _keep_branches(level: Level, name: str, ends: tuple[list[Wire], list[Wire]], kept: list[Wire]) -> None:
    """A branch is one still when its fork is left out; and when its root is, it begins at what came after that."""
    before, after = ends
    forked = {wire.target for wire in kept if wire.on is On.PARALLELISE}
    branches = {wire.target for wire in after if wire.on is On.PARALLELISE} - forked
    if branches:
        level.former_forks[name] = branches
    roots = {wire.target for wire in after if wire.target != PROXY and (wire.is_data or wire.on in _SPLICED)} - forked
    forks = {wire.source for wire in before if wire.on is On.PARALLELISE}
    forks |= {fork for fork, targets in level.former_forks.items() if name in targets}
    for fork in forks if roots else ():
        level.former_forks.setdefault(fork, set()).update(roots)


def _forget(level: Level, name: str) -> None:
    del level.members[name]
    for targets in level.former_forks.values():
        targets.discard(name)


def _merely_starts(wire: Wire, before: list[Wire]) -> bool:
    """Nothing came before the member, so what it let start may start at once."""
    return wire.on in _SPLICED and not before


def _rows(member: Member, before: list[Wire], wire: Wire) -> list[Wire]:
    pair = _passes(member)
    if pair is None or wire.port != pair[1]:
        return []
    # A wild-card stands first where all inputs are alike; then everything passes.
    arrivals = [come for come in before if come.is_data and _is_port(come.to_port, pair[0])]
    return [replace(wire, source=come.source, port=come.port) for come in arrivals]


def _is_port(name: str, port: str) -> bool:
    return name.startswith(port[:-1]) if port.endswith("*") else name == port


def _control(level: Level, before: list[Wire], after: list[Wire], wire: Wire) -> list[Wire]:
    triggers = [come for come in before if not come.is_data]
    feeders = [come for come in before if come.is_data and come.source != PROXY and come.port != ITEM]
    if wire.on in _SPLICED:
        if triggers:
            return [_relayed(come, wire) for come in triggers]
        fires = On.PARALLELISE if wire.on is On.PARALLELISE else On.OK
        return [replace(wire, source=come.source, on=fires) for come in feeders]
    return _of_neighbours(level, before, after, wire) if wire.on in _OF_SUBJOBS else []


def _of_neighbours(level: Level, before: list[Wire], after: list[Wire], wire: Wire) -> list[Wire]:
    """A link of the sub-job begins at any other member of it. A branch without its root may come apart, and a join waits for
    all that is left of it."""
    roots = level.branch_roots()
    near = [come.source for come in before if come.on in MERGING and come.source != PROXY and come.target not in roots]
    near += [go.target for go in after if go.on in MERGING and go.target != PROXY and go.target not in roots]
    chosen = near if wire.on is On.SYNCHRONISE and wire.source in roots else near[:1]
    return [replace(wire, source=source, moved=True) for source in dict.fromkeys(chosen)]


def _relayed(come: Wire, wire: Wire) -> Wire:
    """What fired the member now fires what the member would have: a fork stays a fork."""
    if wire.on is On.PARALLELISE and come.on is On.OK:
        return replace(wire, source=come.source)
    return replace(come, target=wire.target)


def _starve(reading: Reading, level: Level, lost: list[Wire], cause: str) -> None:
    waiting = list(lost)
    while waiting:
        wire = waiting.pop(0)
        member = level.members.get(wire.target)
        if member is None or not _is_starved(level, member, wire):
            continue
        if member.draft.active:
            message = f"`{member.name}` is left out too: it needs `{wire.source}`, which {_why(wire.source, cause)}"
            reading.report("LEFT_OUT", message, member.draft.place, severity=Severity.WARNING)
        waiting += [go for go in level.out_of(member.name) if go.target != member.name]
        level.wires = [other for other in level.wires if member.name not in (other.source, other.target)]
        _forget(level, member.name)


def _why(source: str, cause: str) -> str:
    return "is inactive" if source == cause else f"is left out because `{cause}` is inactive"


def _is_starved(level: Level, member: Member, wire: Wire) -> bool:
    others = list(level.into(member.name))
    if wire.is_data:
        if any(other.is_data and other.to_port == wire.to_port for other in others):
            return False
        port = None if member.ports is None else member.ports.input(wire.to_port)
        is_needed = port is None or port.required or wire.port == ITEM
        return is_needed and not (port is not None and port.is_wild and _is_fed(others, port.name))
    return all(other.is_data for other in others) and not member.draft.startable


def _is_fed(wires: list[Wire], port: str) -> bool:
    return any(wire.is_data and _is_port(wire.to_port, port) for wire in wires)
