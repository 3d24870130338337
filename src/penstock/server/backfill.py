"""Runs for past slots: which slots of a period are requested, and what is stored for the scheduler to submit.

Law: a slot that is waiting or running is left alone, and a repeated request has no further effect. A backfill is identified
by its name: it does not queue again the slots that it has queued before, unless only failed ones are requested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from penstock.kernel.errors import Refused
from penstock.ports.control import ControlStore, Overlap, Schedule, Slot, SlotState
from penstock.server.cron import iso, timetable
from penstock.server.schedules import Runs, key_of

MOST_SLOTS = 10_000


class Which(str, Enum):
    ALL = "all"
    MISSING = "missing"
    """Slots that never had a run."""
    FAILED = "failed"
    """Slots whose last run failed, was cancelled or interrupted."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """From `since` to `until`, both included. `at_once`: how many of its runs may be going at a time, if the schedule lets
    its runs overlap."""

    schedule: str
    since: float
    until: float
    which: Which = Which.ALL
    at_once: int = 1
    name: str | None = None

    @property
    def id(self) -> str:
        return self.name or f"{iso(self.since)}/{iso(self.until)}"


@dataclass(frozen=True, slots=True)
class Planned:
    """`slot`: its stored state, None if there is none. `why`: why it is left out; None if it is to run."""

    at: float
    slot: Slot | None
    status: str | None
    why: str | None = None


def plan(control: ControlStore, runs: Runs, asked: Backfill, now: float) -> list[Planned]:
    """Every slot of the period, oldest first, and whether it is to run."""
    schedule = control.schedule(asked.schedule)
    if schedule is None:
        raise Refused(f"there is no schedule `{asked.schedule}`", "`penstock schedule list` shows those there are")
    if asked.until < asked.since:
        raise Refused("the period ends before it begins", "give `--from` a time before that of `--to`")
    if asked.since > now:
        raise Refused("the period has not begun yet", "slots of the future run by themselves")
    times = _times(schedule, asked.since, min(asked.until, now))
    known = {one.at: one for one in control.slots(schedule.name, asked.since, asked.until, MOST_SLOTS + 1)}
    return [_planned(schedule, asked, at, known.get(at), runs) for at in times]


def queue(control: ControlStore, planned: list[Planned], asked: Backfill) -> list[Planned]:
    """Store the slots that are to run. A slot that another process has begun in the meantime is left to it."""
    return [one if one.why is not None else _queued(control, asked, one) for one in planned]


def status_of(slot: Slot | None, header_status: Callable[[str], str | None]) -> str | None:
    """The state of a slot in one word; for a run that has been resumed since, its current status."""
    if slot is None:
        return None
    if slot.state is not SlotState.STARTED or slot.run is None:
        return slot.state.value
    return header_status(slot.run) or slot.ended or "gone"


def _times(schedule: Schedule, since: float, until: float) -> list[float]:
    found: list[float] = []
    for at in timetable(schedule).backwards(until):
        if at < since:
            break
        found.append(at)
        if len(found) > MOST_SLOTS:
            raise Refused(
                f"there are more than {MOST_SLOTS} slots in this period", "do it in parts, with a shorter period each"
            )
    return found[::-1]


def _planned(schedule: Schedule, asked: Backfill, at: float, slot: Slot | None, runs: Runs) -> Planned:
    if slot is None:
        # Slots from before slots were stored: only the log knows of their runs.
        run = runs.submitted(key_of(schedule.name, at))
        slot = None if run is None else Slot(schedule.name, at, SlotState.STARTED, run, revision=-1)
    status = status_of(slot, lambda run: None if (header := runs.header(run)) is None else header.status)
    return Planned(at, slot, status, _why_not(asked, slot, status))


def _why_not(asked: Backfill, slot: Slot | None, status: str | None) -> str | None:
    if status in ("due", "queued"):
        return "it waits already"
    if status == "running":
        return "it is running"
    match asked.which:
        case Which.FAILED:
            return None if status in ("failed", "cancelled", "interrupted", "refused") else "it did not fail"
        case Which.MISSING:
            return "it had a run" if slot is not None and slot.run is not None else None
        case Which.ALL:
            return "this backfill has run it" if slot is not None and slot.backfill == asked.id else None


def _queued(control: ControlStore, asked: Backfill, one: Planned) -> Planned:
    wanted = Slot(
        asked.schedule, one.at, SlotState.QUEUED, note="waits: backfill", backfill=asked.id, at_once=asked.at_once
    )
    slot = one.slot
    if slot is not None and slot.run is not None:
        wanted = replace(wanted, attempt=slot.attempt + 1)
    if slot is None or slot.revision < 0:
        there = control.claim_slot(wanted)
        is_ours = (there.backfill, there.attempt) == (wanted.backfill, wanted.attempt)
        return replace(one, slot=there, why=None if is_ours else "another has begun it")
    wanted = replace(wanted, revision=slot.revision)
    if control.change_slot(wanted):
        return replace(one, slot=replace(wanted, revision=wanted.revision + 1))
    return replace(one, why="another has begun it")


def at_once_for(schedule: Schedule, asked: int) -> int:
    """How many runs of a backfill may be going at a time: one, if runs of the schedule must not overlap."""
    return asked if schedule.overlap is Overlap.ALLOW else 1
