"""A whole fleet in one process, on virtual time: servers, workers and the stores between them, any of which can die at any moment.

Everything but the processes is real: the same servers and workers that run on PostgreSQL, on the stores in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.adapters.memory.dispatch import (
    MemoryDispatch,
    MemoryDispatchStore,
    MemoryIntake,
    MemoryPartitions,
    MemoryPartitionStore,
)
from penstock.adapters.memory.log import MemoryLog, MemoryStore
from penstock.app.library import Library, lazy_components
from penstock.app.replay import replay
from penstock.app.server import Server
from penstock.app.worker import WorkerFactory
from penstock.app.worker import worker as worker_of
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry, Header
from penstock.remote.client import Sent
from penstock.server.documents import Pinned
from penstock.server.execution_owner import Submission
from penstock.tools.base import Settings
from penstock.tools.registry import Registry
from penstock.views.canonical import canonical
from penstock.worker.fleet import FleetWorker
from tests.envelopes import checked_events
from tests.virtual import VirtualClock, VirtualLoop, run_virtually

T = TypeVar("T")
LEASE_S = 10.0


class AtOnce(ThreadPoolExecutor):
    """Runs what is submitted where it is submitted: no thread, no chance."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@dataclass
class Working:
    worker: FleetWorker
    factory: WorkerFactory
    task: asyncio.Task[None]

    async def die(self) -> None:
        """Gone from one moment to the next: nothing more is said, nothing is given back."""
        for holding in self.worker.lease_runs.values():
            holding.is_lost = holding.queue.is_lost = True
            if holding.task is not None:
                holding.task.cancel()
        await self.worker.intake.close()
        self.task.cancel()
        held = [one.task for one in self.worker.lease_runs.values() if one.task is not None]
        await asyncio.gather(self.task, *held, return_exceptions=True)
        self.factory.close()


@dataclass
class Fleet:
    home: Path
    clock: VirtualClock = field(default_factory=VirtualClock)
    store: MemoryStore = field(default_factory=MemoryStore)
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    servers: dict[str, Server] = field(default_factory=dict)
    workers: dict[str, Working] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dispatch_store = MemoryDispatchStore(self.clock)
        self.shares = MemoryPartitionStore(self.clock.now)
        self.log = MemoryLog(self.store)

    async def serve(self, name: str = "s1") -> Server:
        partitions = MemoryPartitions(self.shares, name=name, lease_s=LEASE_S)
        server = Server(
            self.home,
            MemoryLog(self.store),
            self.blobs,
            MemoryDispatch(self.dispatch_store),
            partitions,
            name,
            self.clock,
        )
        server.lease_s = LEASE_S
        self.servers[name] = server
        await server.start()
        return server

    async def kill_server(self, name: str) -> None:
        """Its claims end with it, as those of a dead process do when its lease has run out."""
        server = self.servers.pop(name)
        hosting, dispatch_loop = server.hosting, server.dispatch_loop
        hosting._is_closing = True
        tasks = [*hosting._loops, *dispatch_loop._loops]
        for hosted in hosting.hosted.values():
            if hosted.run.host is not None:
                hosted.run.host._halt.set()
                tasks.extend(hosted.run.host._tasks)
            if hosted.run.force is not None:
                tasks.extend(hosted.run.force.child_tasks)
                tasks.extend(hosted.run.force._asides)
            tasks.append(hosted.task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.log.close()

    def work(
        self,
        name: str,
        slots: int = 4,
        pool: str = "default",
        labels: frozenset[str] = frozenset(),
        environ: dict[str, str] | None = None,
    ) -> Working:
        factory = WorkerFactory(self.home, self.blobs, self.clock, environ)
        worker = worker_of(MemoryIntake(self.dispatch_store), factory, name=name, slots=slots, pool=pool, labels=labels)
        working = Working(worker, factory, asyncio.ensure_future(worker.run()))
        self.workers[name] = working
        return working

    async def kill_worker(self, name: str) -> None:
        await self.workers.pop(name).die()

    async def submit(self, file: Path, payload: dict[str, Any] | None = None, **more: Any) -> str:
        server = next(iter(self.servers.values()))
        sent = Sent(Library(), str(file)).body
        document = Pinned(sent["file"], sent["text"], tuple(sent["sources"].items()))
        return await server.hosting.submit(Submission(document, payload or {}, **more))

    def header(self, execution_id: str) -> Header:
        header = self.log.header(execution_id)
        assert header is not None
        return header

    def entries(self, execution_id: str) -> list[Entry]:
        return list(self.log.read(execution_id))

    def canonical(self, execution_id: str) -> list[JsonMap]:
        return list(canonical(self.entries(execution_id), execution_id))

    async def until(self, is_so: Callable[[], bool], most_s: float = 3600.0, every_s: float = 0.05) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + most_s
        while not is_so():
            assert loop.time() < end, f"it did not come to that: {await self.state()}"
            for working in self.workers.values():
                if working.task.done():
                    working.task.result()
            await asyncio.sleep(every_s)

    async def state(self) -> str:
        dispatch = MemoryDispatch(self.dispatch_store)
        leases = "\n  ".join(map(str, await dispatch.leases()))
        hosted = {name: list(server.hosting.hosted) for name, server in self.servers.items()}
        last = [f"{entry.seq} {entry.type} {entry.scope}" for entry in self._newest()]
        return (
            f"leases\n  {leases}\nhosted {hosted}\nproblems {[s.problems for s in self.servers.values()]}\nlog {last}"
        )

    def _newest(self) -> list[Entry]:
        return [entry for header in self.log.headers() for entry in self.entries(header.execution_id)[-12:]]

    async def ended(self, execution_id: str, most_s: float = 3600.0) -> Header:
        await self.until(lambda: self.header(execution_id).status != "running", most_s, every_s=0.5)
        return self.header(execution_id)

    async def check_replay(self, execution_id: str) -> None:
        difference = await replay(self.log, self.blobs, Registry(), lazy_components(), Settings(), execution_id)
        assert difference is None, difference.describe()

    async def close(self) -> None:
        for working in self.workers.values():
            await working.worker.drain(0.0)
            await working.task
            working.factory.close()
        for server in self.servers.values():
            await server.close()
        for header in self.log.headers():
            checked_events(self.log, header.execution_id)


def on_fleet(home: Path, scenario: Callable[[Fleet], Awaitable[T]]) -> T:
    """Play a scenario on virtual time; the fleet is closed afterwards."""

    async def main(loop: VirtualLoop) -> T:
        loop.set_default_executor(AtOnce())
        scene = Fleet(home)
        loop.is_busy = lambda: any(working.factory.threads.busy > 0 for working in scene.workers.values())
        try:
            return await scenario(scene)
        finally:
            await scene.close()

    def start(loop: VirtualLoop) -> Coroutine[Any, Any, T]:
        return main(loop)

    return run_virtually(start)


__all__ = ["Fleet", "Pinned", "Working", "on_fleet"]
