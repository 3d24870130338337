"""Servers that look at schedules, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.adapters.memory.log import MemoryLog, MemoryStore
from penstock.adapters.sqlite.control import MemoryControl, MemoryControlStore
from penstock.kernel.values import JsonMap
from penstock.ports.control import ControlStore, Schedule
from penstock.server.cron import iso
from penstock.server.schedules import Scheduler
from tests.contracts.entries import header
from tests.fleet.scene import AtOnce
from tests.virtual import EPOCH, VirtualLoop, run_virtually

MINUTE = 60.0
START = EPOCH - EPOCH % 3600 + 3600  # a full hour
EVERY_MINUTE = Schedule("often", "* * * * *", "sales/orders", fired_to=START)


@dataclass
class Scene:
    """Servers with schedulers on one control store and one log, which makes one run of a key."""

    control_store: MemoryControlStore = field(default_factory=MemoryControlStore)
    store: MemoryStore = field(default_factory=MemoryStore)
    submitted: list[tuple[str, str]] = field(default_factory=list)
    """Server and key of each submission, repeated ones too."""
    payloads: dict[str, JsonMap] = field(default_factory=dict)
    asked: dict[str, tuple[object, ...]] = field(default_factory=dict)
    ahead: float = 0.0
    """The fleet's clock is this far ahead of the loop's; to be set back as well."""
    trouble: Callable[[str, str], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        self.control = MemoryControl(self.control_store, now=self.now)
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.schedulers: dict[str, Scheduler] = {}
        self.reported: list[tuple[str, BaseException]] = []

    def now(self) -> float:
        return START + asyncio.get_running_loop().time() + self.ahead

    def serve(self, name: str = "s1", control: ControlStore | None = None, **more: Any) -> Scheduler:
        async def submit(
            path: str, version: int | None, payload: JsonMap, context: str | None, key: str, label: str | None
        ) -> str:
            self.submitted.append((name, key))
            if self.trouble is not None:
                await self.trouble(name, key)
            made = await MemoryLog(self.store).create(header(f"run {len(self.submitted)}", label=label), b"", key)
            self.payloads[key] = payload
            self.asked[key] = (path, version, context, label)
            return made

        def report(schedule: str, error: BaseException) -> None:
            self.reported.append((schedule, error))

        scheduler = Scheduler(control or self.control, submit, self.now, MemoryLog(self.store), report=report, **more)
        self.schedulers[name] = scheduler
        self.tasks[name] = asyncio.ensure_future(scheduler.run())
        return scheduler

    async def stop(self, name: str = "s1") -> None:
        task = self.tasks.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    @property
    def runs(self) -> list[str]:
        """The keys that have made a run."""
        return list(self.store.submissions)

    def found(self, name: str = "often") -> Schedule:
        found = self.control.schedule(name)
        assert found is not None
        return found


def play(scenario: Callable[[Scene], Awaitable[None]]) -> None:
    async def main(loop: VirtualLoop) -> None:
        loop.set_default_executor(AtOnce())
        scene = Scene()
        try:
            await scenario(scene)
        finally:
            for name in list(scene.tasks):
                if not scene.tasks[name].done():
                    await scene.stop(name)
                else:
                    scene.tasks[name].result()

    run_virtually(main)


def key(minute: float, name: str = "often") -> str:
    return f"schedule:{name}:{iso(START + minute * MINUTE)}"
