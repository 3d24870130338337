"""Seeded trials: workers and servers at work over NATS while it fails them in every way; each piece of work is done once."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import nats
import pytest

from penstock.adapters.nats import connection as nats_connection
from penstock.adapters.nats import intake as nats_intake
from penstock.adapters.nats.dispatch import NatsDispatch
from penstock.adapters.nats.intake import NatsIntake
from penstock.adapters.nats.queue import QueueTerms
from penstock.kernel.errors import Unavailable
from penstock.ports.dispatch import Held, MessageKind, WorkerCard
from tests.contracts.dispatch_nats import NatsMemoryScene
from tests.contracts.dispatch_scenes import ALL, offers
from tests.depth import times
from tests.servers import Nats, nats_server

SEEDS = int(os.environ.get("PENSTOCK_FAULT_SEEDS", times(3)))
FAULTS = 6
RUNS, EACH = 3, 40
WORDS = 3


class Trial:
    """Two servers and three workers. A lease is long, so that only a grant that is lost for good comes back as lost."""

    def __init__(self, server: Nats, seed: int) -> None:
        self.chance = random.Random(seed)
        self.nats = server
        self.scene = NatsMemoryScene(server.url)
        self.servers = [self._server() for _ in range(2)]
        self.serving = asyncio.Lock()
        self.offered = [one for run in range(RUNS) for one in offers(EACH, f"run-{run}", lease_s=2.0)]
        self.heard: dict[str, list[tuple[int, MessageKind, bytes]]] = {one.key: [] for one in self.offered}

    def _server(self) -> NatsDispatch:
        terms = QueueTerms(ack_wait_s=0.3)
        return self.scene.server(*self.scene.store(), terms=terms, level_s=0.1)

    @property
    def is_over(self) -> bool:
        return all(any(kind is MessageKind.DONE for _, kind, _ in its) for its in self.heard.values())

    async def play(self) -> None:
        async with asyncio.timeout(60):
            workers = [asyncio.ensure_future(self.work(f"w{number}")) for number in range(3)]
            await asyncio.gather(self.serve(), self.fail())
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for server in self.servers:
                await server.close()

    async def serve(self) -> None:
        """Offer everything bit by bit, hear what is said, and offer again what came back."""
        again = {one.key: one for one in self.offered}
        left = list(self.offered)
        while not self.is_over:
            async with self.serving:
                server = self.chance.choice(self.servers)
                await server.offer([left.pop() for _ in range(min(len(left), self.chance.randint(1, 12)))])
                await server.reap()
                messages = await server.messages(ALL, 100, 0.02)
                for message in messages:
                    self.heard[message.key].append((message.attempt, message.kind, message.body))
                    if message.kind in (MessageKind.LOST, MessageKind.RETURNED):
                        await server.offer([again[message.key]])
                await server.acknowledge([message.number for message in messages])

    async def work(self, name: str) -> None:
        intake = NatsIntake(self.scene.network.url, self.scene.prefix)
        card = WorkerCard(name, name, slots=4)
        try:
            while not await self.enlisted(intake, card):
                await asyncio.sleep(0.01)
            while True:
                with suppress(Unavailable):
                    for held in await intake.take(name, 4, 4, 1.0):
                        await self.run(intake, name, held)
        finally:
            await intake.close()

    async def enlisted(self, intake: NatsIntake, card: WorkerCard) -> bool:
        """One that finds no NATS when it starts is told so at once, and tries again."""
        with suppress(Unavailable):
            await intake.enlist(card)
            return True
        return False

    async def run(self, intake: NatsIntake, name: str, held: Held) -> None:
        for number in range(WORDS):
            if not await intake.say(name, held.key, held.attempt, MessageKind.REPORTED, [b"%d" % number]):
                return
        await intake.say(name, held.key, held.attempt, MessageKind.DONE, [b"end"])

    # ---- faults

    async def fail(self) -> None:
        for _ in range(FAULTS):
            await asyncio.sleep(self.chance.random() * 0.15)
            fault: Callable[[], Awaitable[None]] = self.chance.choice(
                [
                    self.cut,
                    self.cut,
                    self.swallow,
                    self.kill,
                    self.lose_all,
                    self.purge,
                    self.delete,
                    self.change_server,
                ]
            )
            await fault()

    async def cut(self) -> None:
        self.scene.network.cut()

    async def swallow(self) -> None:
        self.scene.network.swallow()
        await asyncio.sleep(self.chance.random() * 0.3)
        self.scene.network.heal()

    async def kill(self) -> None:
        self.nats.kill()
        await asyncio.to_thread(self.nats.start)

    async def lose_all(self) -> None:
        self.nats.kill()
        self.nats.wipe()
        await asyncio.to_thread(self.nats.start)

    async def purge(self) -> None:
        await self._with_stream("purge_stream")

    async def delete(self) -> None:
        await self._with_stream("delete_stream")

    async def _with_stream(self, what: str) -> None:
        client = await nats.connect(self.nats.url)
        with suppress(nats.errors.Error):
            await getattr(client.jetstream(), what)(f"{self.scene.prefix}_WORK")
        await client.close()

    async def change_server(self) -> None:
        async with self.serving:
            gone, stays = self.servers
            self.servers = [stays, self._server()]
        await gone.close()


@pytest.mark.clause("F3.1")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_becomes_of_nats_each_piece_of_work_is_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(nats_intake, "FIRST_TRY", 0.2)
    monkeypatch.setattr(nats_connection, "TRY_SECONDS", 0.2)
    monkeypatch.setattr(nats_connection, "ANSWER_SECONDS", 1)
    monkeypatch.setattr(nats_intake, "SELDOM_SECONDS", 0.5)
    with nats_server(tmp_path) as server:
        trials: list[Trial] = []

        async def main() -> None:
            trials.append(Trial(server, seed))
            await trials[0].play()

        asyncio.run(main())
        (trial,) = trials
        trial.scene.network.close()
        for its in trial.heard.values():
            _check(its)


def _check(messages: list[tuple[int, MessageKind, bytes]]) -> None:
    """One end; under each attempt the words in order and each once, and all of them under the one that came to the end."""
    ends = [attempt for attempt, kind, _ in messages if kind is MessageKind.DONE]
    assert len(ends) == 1
    for attempt in {one for one, _, _ in messages}:
        said = [body for one, kind, body in messages if one == attempt and kind is MessageKind.REPORTED]
        assert said == [b"%d" % number for number in range(len(said))]
        if attempt == ends[0]:
            assert len(said) == WORDS
