"""Scenes of a dispatch over NATS: servers and workers meet over a network of the test's own, and the store is behind the servers."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

import nats
from nats.js.errors import NotFoundError

from penstock.adapters.dispatch import RelayedDispatch, RelayedIntake
from penstock.adapters.memory.dispatch import MemoryDispatch, MemoryDispatchStore, MemoryIntake
from penstock.adapters.nats.dispatch import NatsDispatch
from penstock.adapters.nats.intake import NatsIntake
from tests.adapters.nats_network import Network
from tests.contracts.dispatch_scenes import Scene
from tests.contracts.dispatch_stores import PostgresScene

LONGEST_SECONDS = 60.0
"""A call that is lost for good is a failure, and no test that hangs."""


class MovedClock:
    """The machine's clock, which the test sets forward; or one that only the test moves."""

    def __init__(self, *, stands_still: bool = False) -> None:
        self.ahead = 0.0
        self._start = time.time() if stands_still else None

    def now(self) -> float:
        return (time.time() if self._start is None else self._start) + self.ahead

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class NatsScene(Scene):
    def __init__(self, url: str) -> None:
        self.url = url
        self.prefix = f"test-{uuid4().hex[:12]}"
        self.warnings: list[str] = []
        self.network = Network(url)

    @abstractmethod
    def store(self) -> tuple[RelayedDispatch, RelayedIntake]: ...

    def dispatch(self) -> NatsDispatch:
        return self.server(*self.store())

    def server(self, dispatch: RelayedDispatch, intake: RelayedIntake, **terms: Any) -> NatsDispatch:
        server = NatsDispatch(dispatch, intake, self.network.url, self.prefix, warn=self.warnings.append, **terms)
        server.start()
        return server

    def intake(self) -> NatsIntake:
        return NatsIntake(self.network.url, self.prefix)

    async def cut(self) -> None:
        self.network.cut()

    def run(self, story: Coroutine[Any, Any, None], *, is_tidy: bool = True) -> None:
        """`is_tidy`: the NATS is there for other tests too."""
        try:
            asyncio.run(asyncio.wait_for(story, LONGEST_SECONDS))
            if is_tidy:
                asyncio.run(self.forget_streams())
        finally:
            self.network.close()

    async def forget_streams(self) -> None:
        client = await nats.connect(self.url)
        for name in (f"{self.prefix}_WORK", f"{self.prefix}_DEAD"):
            try:
                await client.jetstream().delete_stream(name)
            except NotFoundError:
                continue
        await client.close()


class NatsMemoryScene(NatsScene):
    def __init__(self, url: str, *, stands_still: bool = False) -> None:
        super().__init__(url)
        self.clock = MovedClock(stands_still=stands_still)
        self.dispatch_store = MemoryDispatchStore(self.clock)

    def store(self) -> tuple[RelayedDispatch, RelayedIntake]:
        return MemoryDispatch(self.dispatch_store), MemoryIntake(self.dispatch_store)

    async def pass_time(self, seconds: float) -> None:
        self.clock.ahead += seconds

    async def wipe(self) -> None:
        for kept in (
            self.dispatch_store.leases,
            self.dispatch_store.messages,
            self.dispatch_store.ends,
            self.dispatch_store.commands,
            self.dispatch_store.workers,
        ):
            kept.clear()
        await self.forget_streams()


class NatsPostgresScene(NatsScene):
    def __init__(self, url: str, postgres_url: str) -> None:
        super().__init__(url)
        self.behind = PostgresScene(postgres_url)

    def store(self) -> tuple[RelayedDispatch, RelayedIntake]:
        return self.behind.dispatch(), self.behind.intake()  # type: ignore[return-value]

    async def pass_time(self, seconds: float) -> None:
        await self.behind.pass_time(seconds)

    async def cut(self) -> None:
        await super().cut()
        await self.behind.cut()

    async def wipe(self) -> None:
        await self.behind.wipe()
        await self.forget_streams()
