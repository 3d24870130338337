"""The worker of a fleet: what it works with, and its life from start to drain."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.adapters.files.projects import UnpackedProjects
from penstock.app.engines import engine_of
from penstock.app.library import lazy_components
from penstock.app.stores import LEASE_S, FleetClock, StoreLocations, host_name, open_intake, open_results, release
from penstock.dialects.secrets import restored
from penstock.kernel.judge import Judge
from penstock.kernel.net import Net
from penstock.kernel.values import Json
from penstock.keychain import Inputs, Redaction, resolve
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore, KeptBlobs
from penstock.ports.dispatch import Intake, WorkerCard
from penstock.ports.leases import Keys, ScopeContext
from penstock.ports.results import encodable
from penstock.server.documents import Documents, Pinned
from penstock.server.judge import TemplateJudge
from penstock.tools.addresses import PUBLIC_ONLY, Addresses
from penstock.tools.base import Settings
from penstock.tools.registry import Registry
from penstock.worker.fleet import GRACE_S, Compiled, FleetWorker
from penstock.worker.report_queue import Line
from penstock.worker.services import SharedResources, WorkerServices
from penstock.worker.threads import DaemonThreads

if TYPE_CHECKING:
    from penstock.adapters.memory.dispatch import MemoryDispatchStore


def new_id() -> str:
    return uuid.uuid4().hex


class WorkerFactory:
    """Makes the services that a worker process gives to each execution it works on."""

    def __init__(
        self,
        home: Path,
        blobs: BlobStore,
        clock: Clock,
        environ: Mapping[str, str] | None = None,
        tools: Registry | None = None,
        settings: Settings | None = None,
        base: Path | None = None,
        *,
        reads_files: bool = False,
    ) -> None:
        """`base`: the folder that relative paths of catalog documents start from, unless they name files of a project.
        `reads_files`: documents are files of this machine."""
        self.home = home
        self.blobs = blobs
        self.clock = clock
        self.tools = tools or Registry()
        self.threads = DaemonThreads()
        self._settings = settings or Settings()
        self._environ = os.environ if environ is None else environ
        self._components = lazy_components()
        self._documents = Documents(
            self.tools,
            self._components,
            reads_files=reads_files,
            projects=UnpackedProjects(home, blobs),
            base=base,
            nowhere=home / "work" / "nowhere",
        )

    def compile(self, document: Json) -> Compiled:
        pinned = Pinned.from_mapping(document)
        net, compiled = self._documents.compile(pinned)
        files = {name: one.file for name, one in compiled.positions.steps.items() if one.file != compiled.file}
        bases = self._documents.bases(pinned, compiled)
        return Compiled(net, pinned.file, self._documents.folder(pinned), compiled.positions.lines, files, bases)

    def judge(self, context: ScopeContext) -> Judge:
        return TemplateJudge(context, lambda scope, line: None)

    async def resolve_keychain(self, document: Json, net: Net, workload: Any) -> Keys:
        pinned = Pinned.from_mapping(document)
        redaction = Redaction()
        redaction.add(*pinned.secrets())
        return await resolve(
            restored(net.keychain, pinned.file),
            inputs=Inputs(workload, net.kind),
            folder=self._documents.folder(pinned),
            home=self.home,
            environ=self._environ,
            clock=self.clock,
            redaction=redaction,
            allowed=self._settings.addresses,
        )

    def services(
        self, keys: Keys, say: Callable[[Line], None], progress: Callable[[str, str, int], None]
    ) -> WorkerServices:
        loop, clock, hide = asyncio.get_running_loop(), self.clock, keys.hide

        def line(scope: str, task_run_id: str | None, text: str) -> None:
            loop.call_soon_threadsafe(say, Line(clock.now(), scope, task_run_id, encodable(hide(text))))

        return WorkerServices(
            tools=self.tools,
            clock=clock,
            blobs=self.blobs,
            resources=SharedResources(),
            threads=self.threads,
            settings=self._settings,
            say=line,
            components=self._components,
            progress=progress,
            work=self.home / "work" / new_id(),  # Several sub-jobs of one job may be held at the same time.
            engines=engine_of,
        )

    async def clear(self, services: WorkerServices) -> None:
        assert isinstance(services.resources, SharedResources)
        await services.resources.close()
        if services.work is not None:
            with suppress(OSError):
                services.work.rmdir()

    def close(self) -> None:
        self.threads.close()


def worker(
    intake: Intake,
    factory: WorkerFactory,
    *,
    name: str | None = None,
    pool: str = "default",
    slots: int = 4,
    labels: frozenset[str] = frozenset(),
    beat_s: float = 3.0,
    grace_s: float = GRACE_S,
) -> FleetWorker:
    can = frozenset(factory.tools.kinds()) | labels | {"jobs"}
    shown = name or host_name()
    card = WorkerCard(f"{shown}#{new_id()[:8]}", shown, pool, slots, can, release())
    return FleetWorker(intake, card, factory, beat_s=beat_s, grace_s=grace_s)


@dataclass(frozen=True, slots=True)
class OpenWorker:
    """A worker of this process and what it works with."""

    worker: FleetWorker
    factory: WorkerFactory
    blobs: KeptBlobs
    clock: FleetClock

    async def run(self) -> None:
        """Work until the worker is drained, or this is cancelled."""
        following = asyncio.ensure_future(self.clock.follow())
        try:
            await self.clock.look()
            await self.worker.run()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await self.worker.intake.close()
            self.factory.close()
            await asyncio.to_thread(self.blobs.close)


def open_worker(
    locations: StoreLocations,
    *,
    name: str | None = None,
    pool: str = "default",
    slots: int = 4,
    labels: frozenset[str] = frozenset(),
    dispatch_store: MemoryDispatchStore | None = None,
    beat_s: float = LEASE_S / 3,
    addresses: Addresses = PUBLIC_ONLY,
    reads_files: bool = False,
    grace_s: float = GRACE_S,
) -> OpenWorker:
    """`addresses`: which ones its tasks may reach. `reads_files`: documents are files of this machine."""
    intake = open_intake(locations, dispatch_store)
    clock = FleetClock(intake.now)
    blobs = open_results(locations)
    settings = Settings(addresses)
    factory = WorkerFactory(
        locations.home, blobs, clock, base=locations.base, settings=settings, reads_files=reads_files
    )
    job = worker(intake, factory, name=name, pool=pool, slots=slots, labels=labels, beat_s=beat_s, grace_s=grace_s)
    return OpenWorker(job, factory, blobs, clock)
