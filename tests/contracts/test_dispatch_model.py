"""Random lives of a dispatch, each call of which gives what the model gives. A seed gives the same life on every store."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from penstock.ports.dispatch import Held, Message, MessageKind, Offer
from tests.contracts.dispatch_model import Grant, Model, Word
from tests.contracts.dispatch_scenes import ALL, Hand, Scene, Stage
from tests.contracts.dispatch_stores import MemoryScene, PostgresScene
from tests.depth import times
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

RUNS = ("a", "b", "c")
KEYS = tuple(f"{run}/{number}" for run in RUNS for number in range(4))
WORKERS = ("w0", "w1", "w2")

# How often each happens in a life, about.
WEIGHTS = {
    "offer": 14,
    "take": 20,
    "done": 10,
    "give_back": 5,
    "say": 8,
    "beat": 8,
    "pass_time": 6,
    "reap": 6,
    "receive": 8,
    "hear_all": 1,
    "withdraw": 3,
    "send": 5,
    "commands": 5,
    "retire": 1,
    "forget": 1,
}
STEPS = 400


def offered(name: str, version: int) -> Offer:
    """Of the four of an execution the terms differ."""
    number = int(name[-1])
    return Offer(
        name,
        name[0],
        b"%d" % version,
        limits=(("db", 2),) if number == 1 else (),
        lease_s=10.0,
        stall_s=15.0 if number == 2 else None,
        ttl_s=12.0 if number == 0 else None,
        is_range=number == 3,
    )


class Life:
    """A dispatch and its model, which live the same life."""

    def __init__(self, stage: Stage, hands: dict[str, Hand], seed: int) -> None:
        self.chance = random.Random(seed)
        self.stage = stage
        self.hands = hands
        self.model = Model()
        self.grants: list[tuple[str, Held]] = []
        self.version = 0

    async def live(self, steps: int) -> None:
        names = list(WEIGHTS)
        for _ in range(steps):
            (name,) = self.chance.choices(names, list(WEIGHTS.values()))
            await getattr(self, name)()
        await self.compare()

    def _keys(self) -> list[str]:
        return self.chance.sample(KEYS, self.chance.randint(1, 5))

    async def offer(self) -> None:
        self.version += 1
        offers = [offered(name, self.version) for name in self._keys()]
        self.model.offer(offers)
        await self.stage.server.offer(offers)

    async def take(self) -> None:
        name, room, ranges = self.chance.choice(WORKERS), self.chance.randint(0, 5), self.chance.randint(0, 3)
        granted = await self.hands[name].take(room, ranges)
        assert [(held.key, held.attempt, held.payload) for held in granted] == self.model.take(name, room, ranges)
        self.grants += [(name, held) for held in granted]

    async def beat(self) -> None:
        """Sometimes for what the worker had long ago."""
        name, progress = self.chance.choice(WORKERS), self.chance.randint(0, 2)
        cursor = self.chance.choice([None, b"", b"at 7"])
        mine = [held for holder, held in self.grants if holder == name]
        believed = {held.key: held for held in (mine if self.chance.random() < 0.7 else reversed(mine))}
        lost = await self.hands[name].beat(*believed.values(), progress=progress, cursor=cursor)
        grants: list[tuple[Grant, int, bytes | None]] = [
            ((name, held.key, held.attempt), progress, cursor) for held in believed.values()
        ]
        assert lost == self.model.beat(name, grants)

    async def say(self) -> None:
        await self._say(MessageKind.REPORTED, [b"word %d" % number for number in range(self.chance.randint(0, 3))])

    async def done(self) -> None:
        await self._say(MessageKind.DONE, [b"end"])

    async def give_back(self) -> None:
        await self._say(MessageKind.RETURNED, [b"rest"])

    async def _say(self, kind: MessageKind, bodies: list[bytes]) -> None:
        """Mostly under one of the last leases."""
        if self.grants:
            name, held = self.grants[-1 - int(self.chance.expovariate(0.3)) % len(self.grants)]
            is_kept = await self.hands[name].say(held, *bodies, kind=kind)
            assert is_kept == self.model.say((name, held.key, held.attempt), kind, bodies)

    async def pass_time(self) -> None:
        seconds = self.chance.choice([3, 8])
        self.model.now += seconds
        await self.stage.pass_time(seconds)

    async def reap(self) -> None:
        assert await self.stage.server.reap() == self.model.reap()

    async def receive(self) -> None:
        name = self.chance.choice(KEYS)
        await self._receive([message for message in await self.stage.messages() if message.key == name][:1])

    async def hear_all(self) -> None:
        await self._receive(await self.stage.messages())

    async def _receive(self, messages: list[Message]) -> None:
        self.model.receive([_word(message) for message in messages])
        await self.stage.server.acknowledge([message.number for message in messages])

    async def withdraw(self) -> None:
        names = self._keys()
        assert await self.stage.server.withdraw(names) == self.model.withdraw(names)

    async def forget(self) -> None:
        run = self.chance.choice(RUNS)
        self.model.forget(run)
        await self.stage.server.forget(run)

    async def send(self) -> None:
        name = self.chance.choice(KEYS)
        self.version += 1
        body = b"%d" % self.version
        assert await self.stage.server.send(name, body) == self.model.send(name, body)

    async def commands(self) -> None:
        name = self.chance.choice(WORKERS)
        told = await self.hands[name].commands(0.0)
        assert [(one.key, one.attempt, one.body) for one in told] == self.model.told_to(name)
        if self.chance.random() < 0.3:
            self.model.seen(name)
            assert await self.hands[name].commands(0.0, [one.number for one in told]) == []

    async def retire(self) -> None:
        name = self.chance.choice(WORKERS)
        self.model.retire(name)
        await self.hands[name].intake.retire(name)
        await self.hands[name].intake.enlist(self.hands[name].card)

    async def compare(self) -> None:
        server, model = self.stage.server, self.model
        assert [(one.key, one.attempt, one.worker) for one in await server.leases()] == model.leases()
        assert await server.missing(KEYS) == model.missing(KEYS)
        assert sum((await server.waiting()).values()) == sum(1 for _, _, holder in model.leases() if holder is None)
        shown = [_word(message) for message in await server.messages(ALL, 10_000, 0.0)]
        for name in KEYS:
            assert [word for word in shown if word[0] == name] == [word for word in model.words if word[0] == name]
        held = Counter(holder for _, _, holder in model.leases() if holder is not None)
        assert {one.card.id: one.held for one in await server.workers()} == {name: held[name] for name in WORKERS}


def _word(message: Message) -> Word:
    return message.key, message.attempt, message.worker, message.kind, message.body


def live(scene: Scene, seed: int) -> None:
    async def story() -> None:
        stage = Stage(scene)
        try:
            hands = {name: await stage.worker(name) for name in WORKERS}
            await Life(stage, hands, seed).live(STEPS)
        finally:
            await stage.close()

    scene.run(story())


@pytest.mark.parametrize("seed", range(times(20)))
def test_a_life_in_memory_goes_as_the_model_says(seed: int) -> None:
    live(MemoryScene(), seed)


@pytest.mark.parametrize("seed", range(times(2)))
def test_a_life_on_postgres_goes_as_the_model_says(postgres_url: str, seed: int) -> None:
    live(PostgresScene(postgres_url), seed)
