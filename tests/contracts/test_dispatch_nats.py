from __future__ import annotations

import asyncio

import pytest

from penstock.ports.dispatch import MessageKind, WorkerCard
from tests.contracts.dispatch_contract import DispatchContract
from tests.contracts.dispatch_nats import NatsMemoryScene, NatsPostgresScene
from tests.contracts.dispatch_robust_contract import RobustContract
from tests.contracts.dispatch_scenes import A_LITTLE, Hand, Scene, Stage, offer
from tests.contracts.dispatch_sharing_contract import SharingContract
from tests.contracts.test_dispatch_model import live
from tests.servers import nats_url, postgres_server, postgres_url

__all__ = ["nats_url", "postgres_server", "postgres_url"]


class TestNatsDispatchOnMemory(DispatchContract):
    @pytest.fixture(autouse=True)
    def _url(self, nats_url: str) -> None:
        self.url = nats_url

    def scene(self) -> Scene:
        return NatsMemoryScene(self.url)


class TestNatsDispatchOnPostgres(SharingContract, RobustContract):
    @pytest.fixture(autouse=True)
    def _urls(self, nats_url: str, postgres_url: str) -> None:
        self.url, self.postgres_url = nats_url, postgres_url

    def scene(self) -> Scene:
        return NatsPostgresScene(self.url, self.postgres_url)

    def test_workers_at_the_database_and_workers_over_nats_share_the_work(self) -> None:
        async def story(stage: Stage) -> None:
            assert isinstance(stage.scene, NatsPostgresScene)
            far = await stage.worker("far")
            near = Hand(stage.scene.behind.intake(), WorkerCard("near", "near"))
            await near.intake.enlist(near.card)
            for hand, other in ((far, near), (near, far)):
                waiting = asyncio.ensure_future(hand.take(wait_s=60.0))
                await asyncio.sleep(A_LITTLE)
                await stage.server.offer([offer(hand.id)])
                (held,) = await waiting
                assert await other.take() == []
                assert await stage.server.send(hand.id, b"news")
                assert [told.body for told in await hand.commands(wait_s=60.0)] == [b"news"]
                assert await hand.done(held)
                assert await stage.receive() == [(hand.id, 1, MessageKind.DONE, b"end")]
            await near.intake.close()

        self.play(story)


@pytest.mark.parametrize("seed", range(4))
def test_a_life_over_nats_goes_as_the_model_says(nats_url: str, seed: int) -> None:
    live(NatsMemoryScene(nats_url, stands_still=True), seed)
