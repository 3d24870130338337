"""Stages for dispatch over NATS: one whose server can freeze, and one where nothing but tickets calls workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from penstock.adapters.memory.dispatch import MemoryDispatch, MemoryDispatchStore, MemoryIntake
from penstock.adapters.nats.dispatch import NatsDispatch
from penstock.adapters.nats.queue import QueueTerms
from penstock.ports.dispatch import Held, MessageKind, Offer
from tests.contracts.dispatch_nats import NatsMemoryScene
from tests.contracts.dispatch_scenes import Stage

LEVEL_S = 0.05


class Freezing(MemoryIntake):
    """A server that can freeze: before it carries out what it is asked, or after that and before it has answered."""

    def __init__(self, dispatch_store: MemoryDispatchStore) -> None:
        super().__init__(dispatch_store)
        self.before = self.after = False
        self.is_frozen = asyncio.Event()
        self.thaw = asyncio.Event()

    async def _freeze(self, is_now: bool) -> None:
        if is_now and not self.thaw.is_set():
            self.is_frozen.set()
            await self.thaw.wait()

    async def claim(self, worker: str, room: int, ranges: int, token: UUID, *, is_repeated: bool) -> list[Held]:
        await self._freeze(self.before)
        granted = await super().claim(worker, room, ranges, token, is_repeated=is_repeated)
        await self._freeze(self.after)
        return granted

    async def say_as(
        self,
        worker: str,
        key: str,
        attempt: int,
        kind: MessageKind,
        bodies: Sequence[bytes],
        token: UUID,
        *,
        is_repeated: bool,
    ) -> bool:
        await self._freeze(self.before)
        is_kept = await super().say_as(worker, key, attempt, kind, bodies, token, is_repeated=is_repeated)
        await self._freeze(self.after)
        return is_kept


class Fleet(Stage):
    """A stage whose first server can freeze."""

    def __init__(self, scene: NatsMemoryScene) -> None:
        self.nats = scene
        self.intake = Freezing(scene.dispatch_store)
        super().__init__(scene)

    def another_server(self) -> NatsDispatch:
        if self._ends:
            return self.thawed_server()
        server = self.nats.server(MemoryDispatch(self.nats.dispatch_store), self.intake)
        self._ends.append(server)
        return server

    def thawed_server(self) -> NatsDispatch:
        server = self.nats.dispatch()
        self._ends.append(server)
        return server

    @property
    def answered(self) -> int:
        """By the server that can freeze."""
        assert isinstance(self.server, NatsDispatch)
        return self.server.figures()["letters_answered"]

    async def frozen(self, *, before: bool = False, after: bool = False) -> None:
        self.intake.before, self.intake.after = before, after

    async def close(self) -> None:
        self.intake.thaw.set()
        await super().close()


class QueueStage(Stage):
    """A stage where workers come when they are called, and not by themselves."""

    def __init__(self, scene: NatsMemoryScene, client: Client, terms: QueueTerms) -> None:
        self.nats = scene
        self.terms = terms
        self.client = client
        super().__init__(scene)

    def another_server(self) -> NatsDispatch:
        server = self.nats.server(*self.nats.store(), terms=self.terms, level_s=LEVEL_S)
        self._ends.append(server)
        return server

    @property
    def js(self) -> JetStreamContext:
        return self.client.jetstream()

    @property
    def work(self) -> str:
        return f"{self.nats.prefix}_WORK"

    @property
    def dead(self) -> str:
        return f"{self.nats.prefix}_DEAD"

    def figure(self, name: str) -> int:
        assert isinstance(self.server, NatsDispatch)
        return self.server.figures()[name]

    async def tickets(self) -> int:
        return (await self.js.stream_info(self.work)).state.messages

    async def offer_unseen(self, *offered: Offer) -> None:
        """As if their tickets had been lost."""
        self.nats.dispatch_store.offer(offered)


async def until(is_so: Callable[[], Awaitable[bool] | bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            found = is_so()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)


async def counts(number: Awaitable[int], wanted: int) -> bool:
    return await number == wanted


async def exists(js: JetStreamContext, stream: str) -> bool:
    try:
        await js.stream_info(stream)
    except NotFoundError:
        return False
    return True


async def has_messages(js: JetStreamContext, stream: str) -> bool:
    return (await js.stream_info(stream)).state.messages > 0


async def has_consumer(js: JetStreamContext, stream: str, consumer: str) -> bool:
    try:
        await js.consumer_info(stream, consumer)
    except NotFoundError:
        return False
    return True
