"""One lease held by a worker: its briefing is unpacked, run as an embedded engine would run it, and reported.

Law: the last report is sent only after everything opened under the lease has been closed, because others continue from there:
they could not open a file that this worker still had open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.kernel.judge import Judge, Unasked
from penstock.kernel.net import Net
from penstock.kernel.state import Execution
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore
from penstock.ports.briefing import Briefing, state_of, unpacked
from penstock.ports.dispatch import Held, Pulse
from penstock.ports.folders import Base
from penstock.ports.leases import FanRange, Keys, ScopeContext
from penstock.ports.meters import RowCounts
from penstock.worker.holder import Holder, RangeHolder, StepHolder, SubjobHolder, unfolded
from penstock.worker.report_queue import Line, ReportQueue
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
    """What a worker needs to run leases. The composition root provides it."""

    blobs: BlobStore
    clock: Clock

    def compile(self, document: Json) -> Compiled: ...

    async def resolve_keychain(self, document: Json, net: Net, workload: Any) -> Keys: ...

    def services(
        self, keys: Keys, say: Callable[[Line], None], progress: Callable[[str, str, int], None]
    ) -> WorkerServices: ...

    async def clear(self, services: WorkerServices) -> None: ...

    def judge(self, context: ScopeContext) -> Judge:
        """Evaluates the conditions of a job."""
        ...


@dataclass(slots=True)
class LeaseRun:
    """A lease held here, from the moment it was taken to its last report."""

    held: Held
    queue: ReportQueue
    factory: ServicesFactory
    gives_way: Callable[[], bool]
    """Asked by parts of something large: does other work need the slot?"""
    task: asyncio.Task[None] | None = None
    is_lost: bool = False
    is_done: bool = False
    """Whether only reports are left to send: it no longer needs a slot."""
    _holder: Holder | None = None
    _early: list[JsonMap] = field(default_factory=list)
    """Commands that arrived before the work had started."""
    _rows: RowCounts = field(default_factory=RowCounts)
    _last: dict[str, dict[str, int]] = field(default_factory=dict)
    """The row counts in the last heartbeat."""

    def pulse(self) -> Pulse:
        """Its next heartbeat, which carries row counts only if they have changed."""
        if self._holder is None:
            return Pulse(self.held.attempt)
        rows = self._rows.report(self.factory.clock.now(), self._holder.is_running)
        is_new, self._last = bool(rows.made or self._last), rows.made
        return Pulse(self.held.attempt, self._holder.progress, rows=rows.packed() if is_new else None)

    # ---- commands

    async def receive(self, data: Any) -> None:
        if "answer" in data:
            self.queue.answered(data)
        elif self._holder is None:
            self._early.append(data)
        else:
            await self._holder.obey(data, self.factory.blobs.get)

    async def stop(self, reason: str) -> None:
        if self._holder is None:
            self._early.append({"stop": reason})
        else:
            await self._holder.stop(reason)

    def curtail(self) -> None:
        if self._holder is not None:
            self._holder.curtail()

    # ---- doing it

    async def work(self) -> None:
        briefing = unpacked(self.held.payload, self.factory.blobs)
        if isinstance(briefing.document, dict) and "project" in briefing.document:  # Its files may have to be fetched.
            compiled = await asyncio.to_thread(self.factory.compile, briefing.document)
        else:
            compiled = self.factory.compile(briefing.document)
        keys = await self.factory.resolve_keychain(briefing.document, compiled.net, briefing.scope.workload)
        services = self.factory.services(keys, self.queue.line, self._rows.note)
        try:
            await self._hold(await self._made(briefing, compiled, keys, services), briefing)
        finally:
            with suppress(TimeoutError):  # A connection that does not close must not keep the others waiting for ever.
                async with asyncio.timeout(CLOSING_S):
                    await self.factory.clear(services)

    async def _made(self, briefing: Briefing, compiled: Compiled, keys: Keys, services: WorkerServices) -> Holder:
        """The holder for this kind of lease, with what is known of the execution."""
        force, clock, gives_way = LocalWorkforce(services), services.clock, self.gives_way
        if briefing.history is None:
            context = _context(briefing, compiled, keys, briefing.scope)
            kind = RangeHolder if isinstance(briefing.part, FanRange) else StepHolder
            return kind(self.queue, context, state_of(briefing), Unasked(), force, clock, gives_way)
        history = await asyncio.to_thread(self.factory.blobs.get, briefing.history)
        state, scope, known = unfolded(briefing, history, services.load)
        context = _context(briefing, compiled, keys, scope)
        judge = self.factory.judge(context)
        holder = SubjobHolder(self.queue, context, state, judge, force, clock, gives_way)
        holder.known, holder.load = known, services.load
        return holder

    async def _hold(self, holder: Holder, briefing: Briefing) -> None:
        try:
            holder.begin(briefing)
            while self._early:  # In order: a command that arrives while one is carried out waits behind it.
                await holder.obey(self._early.pop(0), self.factory.blobs.get)
            self._holder = holder
            await holder.over()
        finally:
            if self.is_lost:
                await holder.stop("interrupt")
            await holder.close()
        if holder.error is not None:
            self.queue.fail(holder.failure())
        elif not holder.is_through:
            self.queue.give_back(holder.unsent())


def _context(briefing: Briefing, compiled: Compiled, keys: Keys, scope: Execution) -> ScopeContext:
    return ScopeContext(
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
