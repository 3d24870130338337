"""Boundaries of sub-jobs.

Law (rulebook 3.1, D27, D35): data, ok, error, if and iterator_complete links make their ends members of one sub-job;
parallelise, synchronise, subjob_ok and subjob_error never do, and neither does any link into the target of a parallelise or
into a join.
"""

from __future__ import annotations

from penstock.dialects.job.level import MERGING, PROXY, Level, Subjob, Wire
from penstock.dialects.job.topology import ordered


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
    level.subjobs = [_subjob(level, names, number) for number, names in enumerate(found)]
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


def _subjob(level: Level, names: list[str], number: int) -> Subjob:
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
