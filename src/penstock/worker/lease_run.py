"""One lease in the hands of a worker: what it says is unpacked, run as an embedded engine would run it, and told of.

Law: the last word is said when everything that was opened under the lease is closed again, because others go on from there: a
file that this worker still had open could not be opened by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.kernel.judge import Judge, Unasked
from penstock.kernel.net import Net
from penstock.kernel.state import Execution
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore, ResultRef
from penstock.ports.briefing import Briefing, state_of, unpacked
from penstock.ports.dispatch import Held
from penstock.ports.folders import Base
from penstock.ports.leases import Keys, RangeLease, Setting
from penstock.worker.holder import StepHolder, SubjobHolder, unfolded
from penstock.worker.range_runner import RangeRunner
from penstock.worker.report_queue import Line, RangeReporter, ReportQueue
from penstock.worker.services import WorkerServices
from penstock.worker.workforce import LocalWorkforce

CLOSING_S = 10.0


@dataclass(frozen=True, slots=True)
class Compiled:
    """A document as a worker needs it."""

    net: Net
    file: str
    folder: Path
    lines: Mapping[tuple[str, str], Mapping[str, int]]
    files: Mapping[str, str] = field(default_factory=dict)
    bases: Mapping[str, Base] = field(default_factory=dict)


class ServicesFactory(Protocol):
    """What a worker has at hand. The composition root fills it in."""

    blobs: BlobStore
    clock: Clock

    def compile(self, document: Json) -> Compiled: ...

    async def resolve_keychain(self, document: Json, net: Net, workload: Any) -> Keys: ...

    def services(self, execution_id: str, keys: Keys, say: Callable[[Line], None]) -> WorkerServices: ...

    async def clear(self, services: WorkerServices) -> None: ...

    def judge(self, setting: Setting) -> Judge:
        """Who evaluates the conditions of a job."""
        ...


@dataclass(slots=True)
class LeaseRun:
    """A lease that is held here."""

    held: Held
    queue: ReportQueue
    factory: ServicesFactory
    gives_way: Callable[[], bool]
    """Asked by pieces of something large: does somebody else need the place?"""
    task: asyncio.Task[None] | None = None
    progress: Callable[[], int] = field(default=lambda: 0)
    is_lost: bool = False
    subjob: SubjobHolder | None = None
    _stop: Callable[[str], Awaitable[None]] | None = None
    _early: list[JsonMap] = field(default_factory=list)
    """What it was told before it had got under way."""
    _asides: set[asyncio.Future[None]] = field(default_factory=set)

    # ---- being told

    async def hear(self, data: Any) -> None:
        if "answer" in data:
            self.queue.answered(data)
        elif self._stop is None:
            self._early.append(data)
        else:
            await self._take_in(data)

    async def stop(self, reason: str) -> None:
        if self._stop is None:
            self._early.append({"stop": reason})
        else:
            await self._stop(reason)

    async def _ready(self, stop: Callable[[str], Awaitable[None]]) -> None:
        self._stop = stop
        for data in self._early:
            await self._take_in(data)

    async def _take_in(self, data: Any) -> None:
        if "stop" in data:
            assert self._stop is not None
            task = asyncio.ensure_future(self._stop(str(data["stop"])))
            self._asides.add(task)
            task.add_done_callback(self._asides.discard)
        elif self.subjob is not None and "dies" in data:
            self.subjob.dies(data["dies"])
        elif self.subjob is not None:
            self.subjob.news(await asyncio.to_thread(self.factory.blobs.get, ResultRef.from_json(data["news"])))

    # ---- doing it

    async def work(self) -> None:
        briefing = unpacked(self.held.payload, self.factory.blobs)
        if isinstance(briefing.document, dict) and "project" in briefing.document:  # Its files may have to be fetched.
            compiled = await asyncio.to_thread(self.factory.compile, briefing.document)
        else:
            compiled = self.factory.compile(briefing.document)
        keys = await self.factory.resolve_keychain(briefing.document, compiled.net, briefing.scope.workload)
        services = self.factory.services(briefing.execution_id, keys, self.queue.line)
        try:
            if briefing.kind == "subjob":
                await self._subjob(briefing, compiled, keys, services)
                return
            setting = _setting(briefing, compiled, keys, briefing.scope)
            if briefing.kind == "range":
                await self._range(briefing, setting, services)
            else:
                await self._run(briefing, setting, services)
        finally:
            with suppress(TimeoutError):  # A connection that does not close must not keep the others waiting for ever.
                async with asyncio.timeout(CLOSING_S):
                    await self.factory.clear(services)

    async def _subjob(self, briefing: Briefing, compiled: Compiled, keys: Keys, services: WorkerServices) -> None:
        assert briefing.history is not None
        history = await asyncio.to_thread(self.factory.blobs.get, briefing.history)
        state, scope, known = unfolded(briefing, history, services.load)
        setting = _setting(briefing, compiled, keys, scope)
        holder = SubjobHolder(
            self.queue, setting, state, self.factory.judge(setting), LocalWorkforce(services), services.clock
        )
        holder.known, holder.load, holder.gives_way = known, services.load, self.gives_way
        self.progress = lambda: holder.recorded
        self.subjob = holder
        try:
            holder.begin(briefing.region, briefing.iterator, briefing.elements)
            await self._ready(holder.stop)
            await holder.over()
        finally:
            if self.is_lost:
                await holder.stop("interrupt")
            await holder.close()
        if holder.error is not None:
            self.queue.fail(f"{type(holder.error).__name__}: {holder.error}")
        elif not holder.is_through:
            self.queue.give_back(b"")

    async def _run(self, briefing: Briefing, setting: Setting, services: WorkerServices) -> None:
        force = LocalWorkforce(services)
        holder = StepHolder(self.queue, setting, state_of(briefing), Unasked(), force, services.clock)
        self.progress = lambda: holder.recorded
        holder.begin(briefing.run)
        assert holder.lease is not None
        await self._ready(holder.stop)
        await force.settled(holder.lease)
        if holder.error is not None:
            self.queue.fail(str(holder.error))
        elif holder.lease.stop_reason == "interrupt" and not holder.is_through:
            self.queue.give_back(holder.unsent())

    async def _range(self, briefing: Briefing, setting: Setting, services: WorkerServices) -> None:
        node = setting.net.nodes[briefing.run.step]
        assert briefing.shards is not None
        assert node.fan is not None
        lease = RangeLease(
            setting,
            node,
            briefing.run,
            shards=briefing.shards,
            collection=briefing.collection,
            opened_at=briefing.opened_at,
            lanes=briefing.lanes,
            emits=briefing.emits,
            reducers=dict(node.fan.reducers),
        )
        runner = RangeRunner(lease, services, RangeReporter(self.queue, services.clock), self.gives_way)
        self.progress = lambda: runner.progress
        task = asyncio.ensure_future(runner.run())

        async def stop(reason: str) -> None:
            lease.stop_reason = "returned" if reason == "interrupt" else reason
            task.cancel()

        await self._ready(stop)
        try:
            await task
        except asyncio.CancelledError:
            if lease.stop_reason is None:
                task.cancel()
                raise


def _setting(briefing: Briefing, compiled: Compiled, keys: Keys, scope: Execution) -> Setting:
    return Setting(
        briefing.execution_id,
        compiled.net,
        scope,
        workload=scope.workload,
        keychain=keys,
        folder=compiled.folder,
        file=compiled.file,
        lines=compiled.lines,
        iter_parent=briefing.iter_parent,
        depth=briefing.depth,
        outputs=briefing.outputs,
        sample=briefing.sample,
        files=compiled.files,
        bases=compiled.bases,
    )
