"""A worker of a fleet: it takes leases, runs them as an embedded engine would, and says what happened.

Law: it starts nothing by itself. What it does is done under a lease, what it says is kept before anybody depends on it, and once
a lease is lost nothing more is said under it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.kernel.flow.ending import FlowJudge
from penstock.kernel.net import Net
from penstock.kernel.state import ExecutionState
from penstock.kernel.values import Json
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore
from penstock.ports.briefing import Briefing, unpacked
from penstock.ports.dispatch import Held, Intake, Pulse, WorkerCard
from penstock.ports.folders import Base
from penstock.ports.leases import Keys, Lease, Setting
from penstock.ports.ranges import RangeLease
from penstock.ports.results import decode
from penstock.worker.desk import Desk
from penstock.worker.fleet_reports import Line, RangeTeller, RunTeller, Teller
from penstock.worker.range_runner import RangeRunner
from penstock.worker.workforce import LocalWorkforce

BEAT_S = 3.0
PRESSURE_S = 0.25
TAKE_WAIT_S = 10.0
PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Compiled:
    """A document as a worker needs it."""

    net: Net
    file: str
    folder: Path
    lines: Mapping[tuple[str, str], Mapping[str, int]]
    files: Mapping[str, str] = field(default_factory=dict)
    bases: Mapping[str, Base] = field(default_factory=dict)


class Bench(Protocol):
    """What a worker has at hand. The composition root fills it in."""

    blobs: BlobStore
    clock: Clock

    def compile(self, document: Json) -> Compiled: ...

    async def unlock(self, document: Json, net: Net, workload: Any) -> Keys: ...

    def desk(self, execution_id: str, keys: Keys, say: Callable[[Line], None]) -> Desk: ...

    async def clear(self, desk: Desk) -> None: ...

    def judge(self, setting: Setting, now: Callable[[], float]) -> FlowJudge:
        """Who evaluates the conditions of a job."""
        ...


@dataclass(slots=True)
class Holding:
    """A lease that is held here."""

    held: Held
    teller: Teller
    task: asyncio.Task[None] | None = None
    stop: Callable[[str], Awaitable[None]] | None = None
    dies: Callable[[list[str], str], None] | None = None
    """Of a sub-job: told when the job is dying."""
    progress: Callable[[], int] = field(default=lambda: 0)
    is_lost: bool = False


class FleetWorker:
    def __init__(self, intake: Intake, card: WorkerCard, bench: Bench, *, beat_s: float = BEAT_S) -> None:
        self.intake = intake
        self.card = card
        self.bench = bench
        self.holdings: dict[str, Holding] = {}
        self._beat_s = beat_s
        self._changed = asyncio.Event()
        self._is_draining = False
        self._is_pressed = False
        self._seen: set[int] = set()
        self._asides: set[asyncio.Future[None]] = set()
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
            with contextlib.suppress(PenstockError):
                await self.intake.retire(self.card.id)

    async def drain(self, grace_s: float) -> None:
        """Take nothing more; let what is held come to its end, and give back what does not in time."""
        self._is_draining = True
        self._changed.set()
        with contextlib.suppress(PenstockError):
            await self.intake.beat(self.card.id, self._pulses(), draining=True)
        tasks = [one.task for one in self.holdings.values() if one.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace_s)
        for holding in list(self.holdings.values()):
            if holding.stop is not None:
                await holding.stop("interrupt")
        tasks = [one.task for one in self.holdings.values() if one.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    @property
    def _free(self) -> int:
        return self.card.slots - sum(1 for one in self.holdings.values() if not one.teller.is_waiting)

    @property
    def _free_for_ranges(self) -> int:
        """One place is kept for steps, so that a large loop does not stand in everybody's way."""
        places = max(1, self.card.slots - 1)
        return min(self._free, places - sum(1 for one in self.holdings.values() if one.held.is_range))

    async def _take_all(self) -> None:
        while not self._is_draining:
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
        while self.holdings:
            self._changed.clear()
            await self._changed.wait()

    async def _take(self, free: int) -> list[Held]:
        """Wait for work, but no longer than until a place for a range is free where there was none: then ask for more."""
        ranges = max(0, self._free_for_ranges)
        wait_s = TAKE_WAIT_S if not self.holdings else 1.0
        taking = asyncio.ensure_future(self.intake.take(self.card.id, free, ranges, wait_s))
        changed: asyncio.Future[Any] | None = None
        try:
            while not (taking.done() or self._is_draining or ranges == 0 < self._free_for_ranges):
                self._changed.clear()
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait({taking, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
        finally:
            taking.cancel()
            if changed is not None:
                changed.cancel()
        # What was granted at the last moment is given up by the intake, unless it is here already.
        await asyncio.wait({taking})
        return [] if taking.cancelled() else taking.result()

    async def _beat_all(self) -> None:
        while True:
            await asyncio.sleep(self._beat_s)
            try:
                lost = await self.intake.beat(self.card.id, self._pulses(), draining=self._is_draining)
            except Refused:  # Nobody knows of this worker any more, nor of what it holds.
                for key in list(self.holdings):
                    self._lose(key)
                await self.intake.enlist(self.card)
                continue
            except Unavailable:
                continue
            for key in lost:
                self._lose(key)

    def _pulses(self) -> dict[str, Pulse]:
        return {key: Pulse(one.held.attempt, one.progress()) for key, one in self.holdings.items() if not one.is_lost}

    async def _listen(self) -> None:
        while True:
            seen, self._seen = self._seen, set()
            try:
                messages = await self.intake.told(self.card.id, TAKE_WAIT_S, seen)
            except Unavailable:
                self._seen |= seen
                await asyncio.sleep(PAUSE_S)
                continue
            for told in messages:
                self._seen.add(told.number)
                holding = self.holdings.get(told.key)
                if holding is None or holding.held.attempt != told.attempt:
                    continue
                data: Any = decode(told.body)
                if "dies" in data and holding.dies is not None:
                    holding.dies(data["dies"], data["why"])
                elif "stop" in data and holding.stop is not None:
                    self._aside(holding.stop(str(data["stop"])))
                elif "answer" in data:
                    holding.teller.answered(data)

    async def _watch(self) -> None:
        """While every place is taken: does somebody wait whom a large loop should make room for?"""
        while True:
            await asyncio.sleep(PRESSURE_S)
            if any(one.held.is_range for one in self.holdings.values()) and self._free_for_ranges <= 0:
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
        self._lose(held.key)  # Granted anew: what we had of it before has been taken away, though nobody told us yet.
        teller = Teller(self.intake, self.card, held, self._gone)
        holding = Holding(held, teller)
        self.holdings[held.key] = holding
        holding.task = asyncio.ensure_future(self._hold(holding))

    async def _hold(self, holding: Holding) -> None:
        held = holding.held
        try:
            await self._work(holding)
        except PenstockError as error:
            await self._hand_back(holding, f"{self.card.name}: {error.message}")
        except asyncio.CancelledError:
            if not holding.is_lost:
                raise
        finally:
            if self.holdings.get(held.key) is holding:
                del self.holdings[held.key]
            self.done += 1
            self._changed.set()

    async def _work(self, holding: Holding) -> None:
        briefing = unpacked(holding.held.payload, self.bench.blobs)
        compiled = self.bench.compile(briefing.document)
        keys = await self.bench.unlock(briefing.document, compiled.net, briefing.scope.workload)
        desk = self.bench.desk(briefing.execution_id, keys, holding.teller.line)
        try:
            if briefing.kind == "subjob":
                await self._subjob(holding, briefing, compiled, keys, desk)
                return
            setting = _setting(briefing, compiled, keys, briefing.scope)
            if briefing.kind == "range":
                await self._range(holding, briefing, setting, desk)
            else:
                await self._run(holding, briefing, setting, desk)
        finally:
            await self.bench.clear(desk)

    async def _subjob(self, holding: Holding, briefing: Briefing, compiled: Compiled, keys: Keys, desk: Desk) -> None:
        from penstock.worker.fleet_jobs import SubjobHolder, unfolded  # Playbooks need none of the data plane.

        assert briefing.history is not None
        history = await asyncio.to_thread(self.bench.blobs.get, briefing.history)
        tree, state = unfolded(briefing, history, desk.load)
        setting = _setting(briefing, compiled, keys, state)
        judge = self.bench.judge(setting, desk.clock.now)
        holder = SubjobHolder(holding.teller, setting, tree, briefing.region, judge, desk, desk.clock)
        holding.progress = lambda: holder.recorded
        holding.stop = holder.stop
        holding.dies = holder.dies
        try:
            await holder.run()
        finally:
            if holding.is_lost:
                await holder.stop("interrupt")
            await holder.close()
        if holder.error is not None:
            await self._hand_back(holding, f"{self.card.name}: {type(holder.error).__name__}: {holder.error}")
        elif not holder.flow.is_through:
            await holding.teller.give_back(b"")
        else:
            await holding.teller.drained()

    async def _run(self, holding: Holding, briefing: Briefing, setting: Setting, desk: Desk) -> None:
        lease = Lease(setting, setting.net.nodes[briefing.run.step], briefing.run)
        force = LocalWorkforce(desk)
        reports = RunTeller(holding.teller, briefing, desk.clock)
        holding.progress = lambda: reports.recorded

        async def stop(reason: str) -> None:
            await force.stop(lease, reason)

        holding.stop = stop
        force.start(lease, reports)
        await force.settled(lease)
        if reports.error is not None:
            await self._hand_back(holding, f"{self.card.name}: {reports.error}")
        elif lease.stop_reason == "interrupt" and not reports.is_ended:
            await holding.teller.give_back(reports.unsent())
        else:
            await holding.teller.drained()

    async def _range(self, holding: Holding, briefing: Briefing, setting: Setting, desk: Desk) -> None:
        node = setting.net.nodes[briefing.run.step]
        assert briefing.shards is not None
        assert node.fan is not None
        lease = RangeLease(
            setting,
            node,
            briefing.run,
            briefing.shards,
            briefing.collection,
            briefing.opened_at,
            briefing.lanes,
            briefing.emits,
            dict(node.fan.reducers),
        )
        reports = RangeTeller(holding.teller, desk.clock)
        runner = RangeRunner(lease, desk, reports, self._gives_way)
        holding.progress = lambda: runner.progress
        task = asyncio.ensure_future(runner.run())

        async def stop(reason: str) -> None:
            lease.stop_reason = "returned" if reason == "interrupt" else reason
            task.cancel()

        holding.stop = stop
        try:
            await task
        except asyncio.CancelledError:
            if lease.stop_reason is None:
                task.cancel()
                raise
        await holding.teller.drained()

    async def _hand_back(self, holding: Holding, why: str) -> None:
        """Not the document's fault: another worker may do better. It counts as a loss, so that it is not tried for ever."""
        with contextlib.suppress(PenstockError):
            await holding.teller.fail(why)

    def _gone(self, key: str, attempt: int) -> None:
        holding = self.holdings.get(key)
        if holding is not None and holding.held.attempt == attempt:
            self._lose(key)

    def _lose(self, key: str) -> None:
        holding = self.holdings.get(key)
        if holding is not None and not holding.is_lost:
            holding.is_lost = True
            holding.teller.is_lost = True
            if holding.task is not None:
                holding.task.cancel()

    def _aside(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)


def _setting(briefing: Briefing, compiled: Compiled, keys: Keys, scope: ExecutionState) -> Setting:
    return Setting(
        briefing.execution_id,
        compiled.net,
        scope,
        scope.workload,
        keys,
        compiled.folder,
        compiled.file,
        compiled.lines,
        briefing.iter_parent,
        briefing.depth,
        briefing.outputs,
        briefing.sample,
        compiled.files,
        compiled.bases,
    )
