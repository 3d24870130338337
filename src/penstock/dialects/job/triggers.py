"""Sub-jobs that a trigger starts, and the sources in them that do not wait for it.

Law (rulebook A6, D58): a component that no control link leads to starts at T=0, also in a sub-job that another one triggers. With
`job_config.start: subjob` such a sub-job starts as a whole: its triggers lead to these sources, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.dialects.job.expand import Expanded, ExpandedSubjob, Unit
from penstock.dialects.job.level import Wire
from penstock.dialects.job.topology import reached
from penstock.kernel.net import On

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
    """What a joblet's inputs and outputs pass through is no component of anybody's."""
    return unit.member.description is None and unit.member.joblet is None


def _ways(expanded: Expanded, homes: dict[str, ExpandedSubjob]) -> dict[str, set[str]]:
    """Component -> what waits for it; whoever waits for a sub-job waits for each of its members."""
    found: dict[str, set[str]] = {}
    for wire in expanded.wires:
        sources = homes[wire.source].members if wire.on in OF_SUBJOB and wire.source in homes else [wire.source]
        for source in sources:
            found.setdefault(source, set()).add(wire.target)
    return found
