"""The scheduler: every server looks at all schedules, and each slot makes one run.

Law: a slot is submitted under the key `schedule:NAME:SLOT`, and the log makes one run per key; then `fired_to` is moved past
the slot. A server that dies between the two leaves the slot due, and the server that submits it again gets the same run. If
a slot is refused (no such document, a document with errors), the reason is stored as `last_error`, and the slot is over. If
something is unavailable, it is as if no server had been there: the slot stays due, and counts as missed when it gets old.

The state of every slot is stored. If runs must not overlap, it is stored before anything is submitted, and the first
decision stands: every server follows it. A waiting slot is submitted by the first server that sees that it may run.

A run finds what it was started for in `workload.event`: `{schedule: NAME, slot: "2026-03-29T01:00:00Z"}`, laid over the
payload of the schedule.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Protocol

from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.kernel.values import JsonMap, merge_deeply
from penstock.ports.control import ControlStore, Overlap, Schedule, Slot, SlotState
from penstock.ports.log import Header
from penstock.ports.results import encode
from penstock.server.cron import Due, due, iso, let_go, next_slot, slots, upcoming
from penstock.server.overlap import decided, in_turn, replaced, to_cancel

__all__ = ["Due", "Runs", "Scheduler", "Submit", "due", "keep_schedule", "next_slot", "slots", "upcoming"]

Submit = Callable[[str, int | None, JsonMap, str | None, str, str | None], Awaitable[str]]
"""`await submit(path, version, payload, context, key, label)` returns the id of the run; the same key means the same run."""


class Runs(Protocol):
    """What a scheduler needs of the log."""

    def header(self, execution_id: str) -> Header | None: ...

    def ask(self, execution_id: str, what: str, payload: bytes = b"{}") -> None: ...

    def submitted(self, key: str) -> str | None: ...


LOOK_S = 5.0
"""Maximum interval between looks at the schedules, since another server may change them at any time."""
QUEUE_LOOK_S = 1.0
"""Interval between looks while slots wait for a run to end."""
SUBMIT_S = 60.0
KEPT_SLOTS = 100_000
"""How many slots of a schedule are remembered; whether older ones had a run is not known."""
TRIM_S = 3600.0
AT_ONCE = 8
"""How many schedules submit at the same time."""
LONGEST_ERROR = 4000
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def keep_schedule(control: ControlStore, schedule: Schedule, now: float) -> Schedule:
    """Check a schedule and store it. It starts now if it is new, was off, or has other slots than before."""
    if _NAME.fullmatch(schedule.name) is None:
        raise Refused(
            f"`{schedule.name[:200]}` cannot be the name of a schedule",
            "use up to 100 letters, digits, `.`, `_` and `-`, a letter or digit first",
        )
    if not upcoming(schedule, now):
        raise Refused(f"`{schedule.cron}` never comes: not once in fifty years", "look at its day and month")
    there = control.schedule(schedule.name)
    goes_on = there is not None and there.is_on and (there.cron, there.zone) == (schedule.cron, schedule.zone)
    control.put_schedule(replace(schedule, fired_to=0.0 if goes_on else now))
    return control.schedule(schedule.name) or schedule


def key_of(name: str, slot: float, attempt: int = 1) -> str:
    return f"schedule:{name}:{iso(slot)}" + (f":{attempt}" if attempt > 1 else "")


def payload_of(schedule: Schedule, slot: float) -> JsonMap:
    return merge_deeply(schedule.payload, {"event": {"schedule": schedule.name, "slot": iso(slot)}})


@dataclass(frozen=True, slots=True)
class _Became:
    """What happened to a slot: a run, or an error. If it is not over, the slot is still due."""

    run: str | None = None
    error: str | None = None
    is_over: bool = True


class Scheduler:
    """`now` is the fleet's clock; `report(name, error)` is called when a bug of ours affects a schedule. `wake` makes it
    look at once, after a schedule was stored or removed here."""

    def __init__(
        self,
        control: ControlStore,
        submit: Submit,
        now: Callable[[], float],
        runs: Runs,
        *,
        report: Callable[[str, BaseException], None] | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        self._control = control
        self._submit = submit
        self._now = now
        self._runs = runs
        self._report = report
        self._look_s = look_s
        self._woken = asyncio.Event()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._firing: dict[str, asyncio.Task[bool]] = {}
        self._pauses: dict[str, tuple[float, float]] = {}
        """Name -> how long it pauses after a failure, and until when by the loop's clock."""
        self._quiet: dict[str, tuple[Schedule, float, float]] = {}
        """Name -> the schedule and the period in which nothing of it is due, as long as the schedule does not change."""
        self._cancelled: set[str] = set()
        self._trimmed_at = -inf

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Fire what is due until cancelled. A submission interrupted by that counts as not begun."""
        try:
            while True:
                self._woken.clear()
                try:
                    wait_s = await self.look()
                except Unavailable:
                    wait_s = self._look_s
                # Not `wait_for`: before Python 3.12 it loses a cancellation that arrives together with the result.
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._woken.wait()
        finally:
            firing = list(self._firing.values())
            for task in firing:
                task.cancel()
            await asyncio.gather(*firing, return_exceptions=True)

    async def look(self) -> float:
        """Start firing what is due, and return the seconds until the next look."""
        due_now, wait_s = await asyncio.to_thread(self._plan, self._now())
        time = asyncio.get_running_loop().time()
        for name in due_now:
            pause, until = self._pauses.get(name, (0.0, 0.0))
            if time < until:
                wait_s = min(wait_s, until - time)
            elif name not in self._firing:
                task = self._firing[name] = asyncio.ensure_future(self._fire(name))
                task.add_done_callback(partial(self._fired, name, pause))
        return wait_s

    def _plan(self, now: float) -> tuple[list[str], float]:
        """The schedules that have something to do, and for how long the others have nothing."""
        due_now: list[str] = []
        quiet: dict[str, tuple[Schedule, float, float]] = {}
        known = self._control.schedules()
        waits = self._look_at_slots(known, now)
        for schedule in known:
            before, since, until = self._quiet.get(schedule.name, (None, now, now))
            if before == schedule and since <= now < until:
                quiet[schedule.name] = (schedule, since, until)
                continue
            try:
                if due(schedule, now).fired_to != schedule.fired_to:
                    due_now.append(schedule.name)
                until = next(iter(upcoming(schedule, max(now, schedule.fired_to))), inf)
            except Refused as error:  # It was stored without a check, or a time zone was abolished.
                self._tell(schedule, _words(error))
                until = inf
            quiet[schedule.name] = (schedule, now, until)
        self._quiet = {name: said for name, said in quiet.items() if name not in due_now}
        first = min((until for schedule, _, until in quiet.values() if schedule.is_on), default=inf)
        due_now += [name for name, is_due in waits.items() if is_due and name not in due_now]
        return due_now, min(first - now, QUEUE_LOOK_S if waits else inf, self._look_s)

    def _look_at_slots(self, schedules: Sequence[Schedule], now: float) -> dict[str, bool]:
        """Update the slots whose runs have ended or are late. Returns the schedules with waiting slots, and whether any of
        these may run."""
        if now - self._trimmed_at > TRIM_S:
            self._trimmed_at = now
            for schedule in schedules:
                self._control.trim_slots(schedule.name, KEPT_SLOTS)
        by_name: dict[str, list[Slot]] = defaultdict(list)
        for slot in self._control.open_slots():
            by_name[slot.schedule].append(slot)
        self._cancelled &= {slot.run for known in by_name.values() for slot in known if slot.run is not None}
        waits: dict[str, bool] = {}
        for schedule in schedules:
            known = [one for one in map(partial(self._seen, schedule, now), by_name[schedule.name]) if one.is_open]
            if any(_is_waiting(schedule, one) for one in known):
                waits[schedule.name] = bool(
                    any(_is_waiting(schedule, one) and one.state is SlotState.DUE for one in known)
                    or in_turn(schedule, known)
                    or replaced(schedule, known)
                    or any(one.run not in self._cancelled for one in to_cancel(schedule, known))
                )
        return waits

    def _seen(self, schedule: Schedule, now: float, slot: Slot) -> Slot:
        """A slot as the log shows it now."""
        header = None if slot.run is None else self._runs.header(slot.run)
        ended: str | None = None
        until = now
        if slot.state is SlotState.STARTED:
            ended = "gone" if header is None else None if header.status == "running" else header.status
            until = now if header is None or header.ended_at is None else header.ended_at
        is_late = slot.is_late or is_late_at(schedule, slot, until)
        if (ended, is_late) == (slot.ended, slot.is_late):
            return slot
        seen = replace(slot, ended=ended, is_late=is_late)
        self._control.change_slot(seen)  # If another server was quicker, it has seen the same.
        return replace(seen, revision=seen.revision + 1)

    def _tell(self, schedule: Schedule, error: str) -> None:
        if schedule.last_error != error:
            self._control.fired(schedule.name, schedule.fired_to, schedule.fired_to, error=error)

    # ---- one schedule

    def _fired(self, name: str, pause: float, done: asyncio.Task[bool]) -> None:
        """Called when everything due has been fired, or something was unavailable: then it is given time to recover."""
        del self._firing[name]
        if done.cancelled():
            return
        error = done.exception()
        if error is None and done.result():
            self._pauses.pop(name, None)
        else:
            if error is not None and not isinstance(error, PenstockError) and self._report:
                self._report(name, error)
            pause = min(max(pause * 2, FIRST_PAUSE_S), LONGEST_PAUSE_S)
            self._pauses[name] = (pause, asyncio.get_running_loop().time() + pause)
        self.wake()

    async def _fire(self, name: str) -> bool:
        """Fire everything that is due of one schedule, oldest first. False if it has to be tried again."""
        async with self._places:
            schedule, plan = await asyncio.to_thread(self._read, name, self._now())
            if schedule is None:
                return True
            await asyncio.to_thread(self._let_go, schedule, plan)
            for slot in plan.to_fire:
                became = await self._became(schedule, slot)
                if not became.is_over:
                    await asyncio.to_thread(self._tell, schedule, became.error or "")
                    return False
                if not await asyncio.to_thread(self._move, schedule, slot, became):
                    return True
                # Somebody may have changed it, or fired the next slot long ago, while this one was being submitted.
                before, schedule = schedule, await asyncio.to_thread(self._control.schedule, name)
                if schedule is None or schedule.fired_to != slot or _as_specified(schedule) != _as_specified(before):
                    return True
            if plan.fired_to != schedule.fired_to:
                await asyncio.to_thread(self._control.fired, name, schedule.fired_to, plan.fired_to)
            return await self._fire_waiting(name)

    def _let_go(self, schedule: Schedule, plan: Due) -> None:
        """Store the slots that nobody fired."""
        for at in let_go(schedule, plan):
            missed = Slot(schedule.name, at, SlotState.MISSED, note="missed: no server was there to run it")
            there = self._control.claim_slot(missed)
            if there.state is not SlotState.DUE:
                continue
            # A server decided that it runs, and died before storing that; or its run was not accepted.
            run = self._runs.submitted(key_of(schedule.name, at))
            made = replace(missed, state=SlotState.STARTED, run=run, note=None) if run is not None else missed
            self._control.change_slot(replace(made, revision=there.revision))

    async def _became(self, schedule: Schedule, at: float) -> _Became:
        """What happens to a slot that is due."""
        if schedule.overlap is Overlap.ALLOW:
            became = await self._submitted(schedule, at)
            if became.is_over:
                await asyncio.to_thread(self._write, _slot_of(Slot(schedule.name, at, SlotState.DUE), became))
            return became
        return await self._follow(schedule, await asyncio.to_thread(self._decide, schedule, at))

    def _decide(self, schedule: Schedule, at: float) -> Slot:
        return self._control.claim_slot(decided(schedule, at, self._open(schedule)))

    def _open(self, schedule: Schedule) -> list[Slot]:
        """The open slots as the log shows them: a run that has just ended blocks nothing."""
        found = [one for one in self._control.open_slots() if one.schedule == schedule.name]
        return [one for one in (self._seen(schedule, self._now(), slot) for slot in found) if one.is_open]

    async def _follow(self, schedule: Schedule, slot: Slot) -> _Became:
        """Carry out what was decided."""
        if slot.state is not SlotState.DUE:
            return _Became(run=slot.run, error=None if slot.run is not None else slot.note)
        became = await self._submitted(schedule, slot.at, slot.attempt)
        if became.is_over:
            await asyncio.to_thread(self._write, _slot_of(slot, became))
        return became

    def _write(self, slot: Slot) -> None:
        """Store the run or the error of a slot. Another server may have stored the same; or that it was missed, which it was
        not."""
        there = self._control.claim_slot(slot)
        if there.attempt == slot.attempt and there.state in (SlotState.DUE, SlotState.MISSED):
            self._control.change_slot(replace(slot, revision=there.revision))

    async def _fire_waiting(self, name: str) -> bool:
        """Submit waiting slots that may run now. False if that has to be tried again."""
        while True:
            schedule = await asyncio.to_thread(self._control.schedule, name)
            if schedule is None:
                return True
            slot = await asyncio.to_thread(self._next_waiting, schedule)
            if slot is None:
                return True
            became = await self._follow(schedule, slot)
            await asyncio.to_thread(self._tell_last, name, slot.at, became)
            if not became.is_over:
                return False

    def _next_waiting(self, schedule: Schedule) -> Slot | None:
        """The next slot to submit, decided for all servers."""
        known = self._open(schedule)
        for given_up in replaced(schedule, known):
            self._control.change_slot(given_up)
        for going in to_cancel(schedule, known):
            if going.run is not None and going.run not in self._cancelled:
                self._cancelled.add(going.run)
                reason = f"schedule `{schedule.name}`: the next slot has come, and its runs must not overlap"
                self._runs.ask(going.run, "cancel", encode({"reason": reason}))
        for slot in known:
            if slot.state is SlotState.DUE and slot.at <= schedule.fired_to:
                return slot
        for slot in in_turn(schedule, [one for one in known if one not in replaced(schedule, known)]):
            begun = replace(slot, state=SlotState.DUE, note=None)
            if self._control.change_slot(begun):
                return replace(begun, revision=begun.revision + 1)
        return None

    def _tell_last(self, name: str, at: float, became: _Became) -> None:
        """Show in the schedule what happened to its newest slot."""
        there = self._control.schedule(name)
        if there is not None and became.is_over and at >= (there.last_slot or 0.0):
            before = there.fired_to
            self._control.fired(name, before, before, slot=at, run=became.run, error=became.error)

    def _read(self, name: str, now: float) -> tuple[Schedule | None, Due]:
        schedule = self._control.schedule(name)
        return schedule, Due([], 0.0) if schedule is None else due(schedule, now)

    def _move(self, schedule: Schedule, slot: float, became: _Became) -> bool:
        return self._control.fired(
            schedule.name, schedule.fired_to, slot, slot=slot, run=became.run, error=became.error
        )

    async def _submitted(self, schedule: Schedule, slot: float, attempt: int = 1) -> _Became:
        """Submit a slot. Every error becomes an answer here, so that one schedule's problem does not stop the others."""
        key = key_of(schedule.name, slot, attempt)
        asked = self._submit(
            schedule.path, schedule.version, payload_of(schedule, slot), schedule.context, key, schedule.name
        )
        work = asyncio.ensure_future(asked)
        try:
            await asyncio.wait({work}, timeout=SUBMIT_S)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if work.cancelled():
            return _Became(error=f"the run was not accepted within {SUBMIT_S:g} s", is_over=False)
        error = work.exception()
        if error is None:
            return _Became(run=work.result())
        return _Became(error=_words(error), is_over=not isinstance(error, Unavailable))


def is_late_at(schedule: Schedule, slot: Slot, time: float) -> bool:
    """Whether a slot that has not ended by then is late. Those of a backfill never are: their time had passed before they
    began."""
    return schedule.deadline_s is not None and slot.backfill is None and time > slot.at + schedule.deadline_s


def _is_waiting(schedule: Schedule, slot: Slot) -> bool:
    return slot.state is SlotState.QUEUED or (slot.state is SlotState.DUE and slot.at <= schedule.fired_to)


def _slot_of(slot: Slot, became: _Became) -> Slot:
    state = SlotState.STARTED if became.run is not None else SlotState.REFUSED
    return replace(slot, state=state, run=became.run, note=became.error)


def _as_specified(schedule: Schedule) -> Schedule:
    """What people specified, without the state that has accrued."""
    return replace(schedule, fired_to=0.0, last_slot=None, last_run=None, last_error=None)


def _words(error: BaseException) -> str:
    words = f"{type(error).__name__}: {error}"
    if isinstance(error, PenstockError):
        words = f"{error.message}; {error.hint}" if error.hint else error.message
    # Any text can be stored, so that the slot is over.
    return words[:LONGEST_ERROR].encode("utf-8", "replace").decode()
