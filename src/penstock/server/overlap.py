"""What happens to a slot when earlier runs of its schedule are still going. Pure: no clock, no store.

Law: `allow` lets all run. With the other rules at most one run of a schedule is going at a time, backfills included:

    skip      the slot makes no run.
    queue     it waits, and the oldest goes first.
    cancel    the current run is cancelled, and the newest waiting slot runs when it has ended; older ones are skipped.

A backfill displaces no slot: a slot that comes during a backfill waits for the backfill's current run, and then goes before the
backfill's remaining slots. Nor is a run of a backfill ever cancelled for another slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.ports.control import Overlap, Schedule, Slot, SlotState
from penstock.server.cron import iso


def decided(schedule: Schedule, at: float, known: Sequence[Slot]) -> Slot:
    """What is to happen to a slot that is due; `known`: the open slots of its schedule."""
    slot = Slot(schedule.name, at, SlotState.DUE)
    others = [one for one in known if one.at != at]
    of_schedule = [one for one in others if one.backfill is None]
    is_going = any(one.state is not SlotState.QUEUED for one in others)
    if schedule.overlap is Overlap.ALLOW or not (of_schedule or is_going):
        return slot
    if schedule.overlap is Overlap.SKIP and of_schedule:
        return replace(slot, state=SlotState.SKIPPED, note=f"skipped: {_still(of_schedule)}")
    return replace(slot, state=SlotState.QUEUED, note=f"waits: {_still(of_schedule or others)}")


def in_turn(schedule: Schedule, known: Iterable[Slot]) -> list[Slot]:
    """The slots that may be submitted now, in order."""
    going = [one for one in known if one.state is not SlotState.QUEUED]
    waiting = sorted(
        (one for one in known if one.state is SlotState.QUEUED), key=lambda one: (one.backfill is not None, one.at)
    )
    if schedule.overlap is not Overlap.ALLOW:
        return [] if going else waiting[:1]
    backfilled = sum(one.backfill is not None for one in going)
    chosen = []
    for one in waiting:
        if one.backfill is not None:
            if backfilled >= one.at_once:
                break
            backfilled += 1
        chosen.append(one)
    return chosen


def replaced(schedule: Schedule, known: Iterable[Slot]) -> list[Slot]:
    """The waiting slots that will never run, in the state they change to."""
    waiting = [one for one in known if one.state is SlotState.QUEUED and one.backfill is None]
    if not schedule.is_on:
        return [_skipped(one, "the schedule was switched off while it waited") for one in waiting]
    if schedule.overlap is Overlap.CANCEL:
        return [_skipped(one, f"the slot {iso(waiting[-1].at)} took its place") for one in waiting[:-1]]
    return []


def to_cancel(schedule: Schedule, known: Sequence[Slot]) -> list[Slot]:
    """The slots whose runs have to make way."""
    if schedule.overlap is not Overlap.CANCEL or not schedule.is_on:
        return []
    if not any(one.state is SlotState.QUEUED and one.backfill is None for one in known):
        return []
    return [one for one in known if one.state is SlotState.STARTED and one.backfill is None]


def _skipped(slot: Slot, why: str) -> Slot:
    return replace(slot, state=SlotState.SKIPPED, note=f"skipped: {why}")


def _still(known: Sequence[Slot]) -> str:
    for one in known:
        if one.run is not None:
            return f"run {one.run} of the slot {iso(one.at)} is still running"
    return f"the slot {iso(known[0].at)} has not run yet"
