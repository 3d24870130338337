"""A fleet to play scenes on: what is particular to a store is in its `Scene`; the `Stage` has servers and workers to play with."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.ports.dispatch import Command, Dispatch, Held, Intake, Message, MessageKind, Offer, Pulse, WorkerCard
from penstock.ports.log import PARTITIONS

ALL = range(PARTITIONS)
LEASE_S = 10.0
A_LITTLE = 0.02
"""So long a test waits for what will not come."""


class Scene(ABC):
    """One store, made for one test. Each end that is opened stands for another process."""

    @abstractmethod
    def dispatch(self) -> Dispatch: ...

    @abstractmethod
    def intake(self) -> Intake: ...

    @abstractmethod
    async def pass_time(self, seconds: float) -> None:
        """By the store's clock."""

    @abstractmethod
    async def cut(self) -> None:
        """Every connection to the store breaks, and can be made again at once."""

    @abstractmethod
    async def wipe(self) -> None:
        """The store forgets everything."""

    @abstractmethod
    def run(self, story: Coroutine[Any, Any, None]) -> None: ...


def offer(key: str = "k", execution_id: str = "run-1", payload: bytes = b"work", **terms: Any) -> Offer:
    return Offer(key, execution_id, payload, **{"lease_s": LEASE_S, **terms})


def offers(count: int, execution_id: str = "run-1", **terms: Any) -> list[Offer]:
    """`run-1/000`, `run-1/001` …"""
    return [offer(f"{execution_id}/{number:03}", execution_id, **terms) for number in range(count)]


@dataclass(slots=True)
class Hand:
    """A worker, with its end of the dispatch."""

    intake: Intake
    card: WorkerCard

    @property
    def id(self) -> str:
        return self.card.id

    async def take(self, room: int = 1, ranges: int | None = None, wait_s: float = 0.0) -> list[Held]:
        return await self.intake.take(self.id, room, room if ranges is None else ranges, wait_s)

    async def take_one(self) -> Held:
        (held,) = await self.take()
        return held

    async def take_keys(self, room: int = 1, ranges: int | None = None) -> list[str]:
        return [held.key for held in await self.take(room, ranges)]

    async def say(self, held: Held, *bodies: bytes, kind: MessageKind = MessageKind.REPORTED) -> bool:
        return await self.intake.say(self.id, held.key, held.attempt, kind, bodies)

    async def done(self, held: Held, body: bytes = b"end") -> bool:
        return await self.say(held, body, kind=MessageKind.DONE)

    async def give_back(self, held: Held, body: bytes = b"rest") -> bool:
        return await self.say(held, body, kind=MessageKind.RETURNED)

    async def beat(
        self,
        *leases: Held,
        progress: int = 0,
        cursor: bytes | None = None,
        rows: bytes | None = None,
        draining: bool = False,
    ) -> frozenset[str]:
        pulses = {held.key: Pulse(held.attempt, progress, cursor, rows) for held in leases}
        return await self.intake.beat(self.id, pulses, draining=draining)

    async def commands(self, wait_s: float = A_LITTLE, seen: Collection[int] = ()) -> list[Command]:
        return await self.intake.commands(self.id, wait_s, seen)


class Stage:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.pass_time = scene.pass_time
        self._ends: list[Dispatch | Intake] = []
        self.server = self.another_server()

    def another_server(self) -> Dispatch:
        server = self.scene.dispatch()
        self._ends.append(server)
        return server

    def another_intake(self) -> Intake:
        intake = self.scene.intake()
        self._ends.append(intake)
        return intake

    async def worker(self, id: str = "w1", **terms: Any) -> Hand:
        hand = Hand(self.another_intake(), WorkerCard(id, terms.pop("name", f"host of {id}"), **terms))
        await hand.intake.enlist(hand.card)
        return hand

    async def workers(self, count: int) -> list[Hand]:
        return [await self.worker(f"w{number}") for number in range(1, count + 1)]

    async def holding(self, hand: Hand, *offered: Offer) -> list[Held]:
        """These are offered, and the worker takes them."""
        await self.server.offer(offered or [offer()])
        return await hand.take(max(1, len(offered)))

    async def run_out(self) -> int:
        await self.pass_time(LEASE_S + 1)
        return await self.server.reap()

    async def messages(
        self, partitions: Collection[int] = ALL, limit: int = 1000, wait_s: float = 0.0
    ) -> list[Message]:
        return await self.server.messages(partitions, limit, wait_s)

    async def receive(self) -> list[tuple[str, int, MessageKind, bytes]]:
        """What there is to hear, each as (key, attempt, kind, body); then it is heard."""
        messages = await self.messages()
        await self.server.acknowledge([message.number for message in messages])
        return [(message.key, message.attempt, message.kind, message.body) for message in messages]

    async def close(self) -> None:
        for end in self._ends:
            await end.close()


class DispatchScenes(ABC):
    @abstractmethod
    def scene(self) -> Scene:
        """The store of this test."""

    def play(self, story: Callable[[Stage], Awaitable[None]]) -> None:
        scene = self.scene()

        async def play() -> None:
            stage = Stage(scene)
            try:
                await story(stage)
            finally:
                await stage.close()

        scene.run(play())


def keys(leases: Iterable[Held]) -> list[str]:
    return [held.key for held in leases]


async def turns(count: int = 20) -> None:
    """Let others who are ready go first."""
    for _ in range(count):
        await asyncio.sleep(0)
