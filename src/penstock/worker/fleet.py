"""A worker of a fleet: takes leases, runs them as an embedded engine would, and reports what happened.

Law: it starts nothing by itself. It works only under a lease, its reports are stored before anybody depends on them, and it
reports nothing under a lease that it has lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.kernel.values import JsonMap
from penstock.ports.dispatch import TOLD_TO_DRAIN, Held, Intake, Pulse, WorkerCard
from penstock.ports.results import decode
from penstock.worker.lease_run import Compiled, LeaseRun, ServicesFactory
from penstock.worker.report_queue import ReportQueue

__all__ = ["Compiled", "FleetWorker", "ServicesFactory"]

BEAT_S = 3.0
GRACE_S = 10.0
PRESSURE_S = 0.25
TAKE_WAIT_S = 10.0
PAUSE_S = 0.5
LONGEST_REST_S = 30.0


class FleetWorker:
    def __init__(
        self,
        intake: Intake,
        card: WorkerCard,
        factory: ServicesFactory,
        *,
        beat_s: float = BEAT_S,
        grace_s: float = GRACE_S,
    ) -> None:
        """`grace_s`: when a server asks it to drain, how long what it holds may go on to its end."""
        self.intake = intake
        self.card = card
        self.factory = factory
        self.lease_runs: dict[str, LeaseRun] = {}
        self._beat_s = beat_s
        self._grace_s = grace_s
        self._draining: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._is_draining = False
        self._is_pressed = False
        self._seen: set[int] = set()
        self._is_resting = False
        self._rest_s = PAUSE_S
        self.done = 0

    # ---- from the first lease to the last

    async def run(self) -> None:
        """Work until `drain` is called, or the task is cancelled."""
        await self.intake.enlist(self.card)
        loops = [asyncio.ensure_future(one()) for one in (self._take_all, self._beat_all, self._listen, self._watch)]
        try:
            await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)
            for one in loops:
                if one.done() and not one.cancelled():
                    one.result()
        finally:
            for one in loops:
                one.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            if self._draining is not None:
                await asyncio.gather(self._draining, return_exceptions=True)
            with contextlib.suppress(PenstockError):
                await self.intake.retire(self.card.id)

    async def drain(self, grace_s: float) -> None:
        """Take nothing more; let held work end, and give back what does not end in time."""
        self._is_draining = True
        self._changed.set()
        with contextlib.suppress(PenstockError):
            await self.intake.beat(self.card.id, self._pulses(), draining=True)
        for lease_run in self.lease_runs.values():
            lease_run.curtail()
        tasks = [one.task for one in self.lease_runs.values() if one.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace_s)
        for lease_run in list(self.lease_runs.values()):
            await lease_run.stop("interrupt")
        tasks = [one.task for one in self.lease_runs.values() if one.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    @property
    def _free(self) -> int:
        return self.card.slots - sum(not (one.is_done or one.queue.is_waiting) for one in self.lease_runs.values())

    @property
    def _free_for_ranges(self) -> int:
        """How many ranges may be taken. One slot is reserved for steps, so that a large loop does not block everything else."""
        places = max(1, self.card.slots - 1)
        return min(self._free, places - sum(one.held.is_range and not one.is_done for one in self.lease_runs.values()))

    @property
    def _is_done_taking(self) -> bool:
        return self._is_draining or self._is_resting

    async def _take_all(self) -> None:
        while not self._is_draining:
            if self._is_resting:
                await asyncio.sleep(self._rest_s)
                self._is_resting, self._rest_s = False, min(LONGEST_REST_S, self._rest_s * 2)
            self._changed.clear()
            free = self._free
            if free <= 0:
                await self._changed.wait()
                continue
            try:
                granted = await self._take(free)
            except Unavailable:
                await asyncio.sleep(PAUSE_S)
                continue
            for held in granted:
                self._begin(held)
        # The others go on until all is done.
        while self.lease_runs:
            self._changed.clear()
            await self._changed.wait()

    async def _take(self, free: int) -> list[Held]:
        """Wait for work, but only until a slot for a range becomes free if there was none: then ask for more."""
        ranges = max(0, self._free_for_ranges)
        wait_s = TAKE_WAIT_S if not self.lease_runs else 1.0
        taking = asyncio.ensure_future(self.intake.take(self.card.id, free, ranges, wait_s))
        changed: asyncio.Future[Any] | None = None
        try:
            while not (taking.done() or self._is_done_taking or ranges == 0 < self._free_for_ranges):
                self._changed.clear()
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait({taking, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
        finally:
            taking.cancel()
            if changed is not None:
                changed.cancel()
        # The intake gives up what was granted at the last moment, unless it has already arrived here.
        await asyncio.wait({taking})
        return [] if taking.cancelled() else taking.result()

    async def _beat_all(self) -> None:
        while True:
            await asyncio.sleep(self._beat_s)
            try:
                lost = await self.intake.beat(self.card.id, self._pulses(), draining=self._is_draining)
            except Refused:  # The store no longer knows this worker, nor what it holds.
                for key in list(self.lease_runs):
                    self._lose(key)
                with contextlib.suppress(Unavailable):  # The next heartbeat is refused as well.
                    await self.intake.enlist(self.card)
                continue
            except Unavailable:
                continue
            if TOLD_TO_DRAIN in lost and not self._is_draining:
                self._draining = asyncio.ensure_future(self.drain(self._grace_s))
            for key in lost:
                self._lose(key)

    def _pulses(self) -> dict[str, Pulse]:
        return {key: one.pulse() for key, one in self.lease_runs.items() if not one.is_lost}

    async def _listen(self) -> None:
        while True:
            seen, self._seen = self._seen, set()
            try:
                commands = await self.intake.commands(self.card.id, TAKE_WAIT_S, seen)
            except Unavailable:
                self._seen |= seen
                await asyncio.sleep(PAUSE_S)
                continue
            for command in commands:
                self._seen.add(command.number)
                lease_run = self.lease_runs.get(command.key)
                if lease_run is None or lease_run.held.attempt != command.attempt:
                    continue
                data: Any = decode(command.body)
                try:
                    await lease_run.receive(data)
                except Unavailable:  # This command and those after it are sent again: news must take effect in order.
                    self._seen.discard(command.number)
                    await asyncio.sleep(PAUSE_S)
                    break

    async def _watch(self) -> None:
        """While every slot is taken, check whether work is waiting that a large loop should make room for."""
        while True:
            await asyncio.sleep(PRESSURE_S)
            if any(one.held.is_range for one in self.lease_runs.values()) and self._free_for_ranges <= 0:
                try:
                    self._is_pressed = await self.intake.is_pressed(self.card.id)
                except Unavailable:
                    self._is_pressed = False

    def _gives_way(self) -> bool:
        """Asked between two elements: the first range that asks makes room."""
        is_pressed, self._is_pressed = self._is_pressed, False
        return is_pressed

    # ---- one lease

    def _begin(self, held: Held) -> None:
        self._lose(held.key)  # Granted again: our earlier lease of it has been revoked, though we were not told yet.
        queue = ReportQueue(self.intake, self.card, held, self._gone, self._changed.set)
        lease_run = LeaseRun(held, queue, self.factory, self._gives_way)
        self.lease_runs[held.key] = lease_run
        lease_run.task = asyncio.ensure_future(self._hold(lease_run))

    async def _hold(self, lease_run: LeaseRun) -> None:
        held = lease_run.held
        try:
            try:
                await self._reports_sent()
                await lease_run.work()
                self._rest_s = PAUSE_S
            except PenstockError as error:
                # Not the document's fault: another worker may succeed. It counts as a loss, so that it is not tried for
                # ever.
                lease_run.queue.fail(error.message, self._refusal(error))
            lease_run.is_done = True
            self._changed.set()
            await lease_run.queue.finish()
        except asyncio.CancelledError:
            if not lease_run.is_lost:
                raise
        finally:
            if self.lease_runs.get(held.key) is lease_run:
                del self.lease_runs[held.key]
            self.done += 1
            self._changed.set()

    async def _reports_sent(self) -> None:
        """Waits until the reports of finished leases are stored, before anything new starts: if that brings this process down,
        nothing else is lost. They were being sent while the new leases were taken, so this rarely waits for long."""
        sending = [one.task for one in self.lease_runs.values() if one.is_done and one.task is not None]
        if sending:
            await asyncio.wait(sending)

    def _refusal(self, error: PenstockError) -> JsonMap | None:
        """What this worker lacks now, it will lack the next time as well."""
        if not isinstance(error, Refused):
            return None
        self._is_resting = True  # Another worker may have what is needed, and should get the first chance.
        message = f"worker `{self.card.name}` cannot run it: {error.message}"
        return {"kind": "refused", "message": message, "retryable": False, "hint": error.hint}

    def _gone(self, key: str, attempt: int) -> None:
        lease_run = self.lease_runs.get(key)
        if lease_run is not None and lease_run.held.attempt == attempt:
            self._lose(key)

    def _lose(self, key: str) -> None:
        lease_run = self.lease_runs.get(key)
        if lease_run is not None and not lease_run.is_lost:
            lease_run.is_lost = True
            lease_run.queue.is_lost = True
            if lease_run.task is not None:
                lease_run.task.cancel()
