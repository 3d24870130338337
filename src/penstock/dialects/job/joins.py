"""Forks and joins: a fork has two targets or more, a join knows its branches (rulebook 2.1, 4.3; D34)."""

from __future__ import annotations

from penstock.dialects.job.level import PROXY, Level, Wire
from penstock.dialects.job.reader import Reading, listed
from penstock.kernel.net import On


def check_forks(reading: Reading, level: Level) -> None:
    """Asked of the links as they are written, so that a branch may be deactivated."""
    targets: dict[str, list[Wire]] = {}
    for wire in level.wires:
        if wire.on is On.PARALLELISE:
            targets.setdefault(wire.source, []).append(wire)
    for source, wires in targets.items():
        if len({wire.target for wire in wires}) < 2:
            message = f"`{source}` forks into one branch only, `{wires[0].target}`"
            hint = f"list two targets or more, `{source} (parallelise) {wires[0].target}, …`, or use `ok`"
            reading.report("PARALLELISE_ARITY", message, wires[0].place, hint=hint)


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
            reading.report("AMBIGUOUS_JOIN", message, wires[-1].place, hint=hint)
        elif not _lists_one_branch_twice(reading, level, target, wires):
            _check_stem(reading, level, target, wires, stems)


def _without_moved_doubles(level: Level) -> list[Wire]:
    """What is left of a branch whose root is left out may hang together all the same, and is then listed once."""
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
            reading.report("AMBIGUOUS_JOIN", message, wire.place, hint="list one component of each branch")
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
        reading.report("AMBIGUOUS_JOIN", message, wires[0].place, hint=hint)
