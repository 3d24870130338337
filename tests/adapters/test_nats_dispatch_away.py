"""Workers and servers when NATS, its JetStream, the network or the servers are not there, or go and come back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import nats
import pytest

from penstock.adapters.memory.dispatch import MemoryDispatch, MemoryDispatchStore, MemoryIntake
from penstock.adapters.nats import connection as nats_connection
from penstock.adapters.nats import intake as nats_intake
from penstock.adapters.nats.dispatch import NatsDispatch
from penstock.adapters.nats.intake import NatsIntake
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.dispatch import WorkerCard
from tests.adapters.nats_stages import LEVEL_S, until
from tests.contracts.dispatch_nats import NatsMemoryScene
from tests.contracts.dispatch_scenes import A_LITTLE, Stage, keys, offer
from tests.servers import Nats, nats_server, nats_url

__all__ = ["nats_url"]


def test_without_jetstream_work_is_found_all_the_same_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nats_server(tmp_path, has_jetstream=False) as server:
        scene = NatsMemoryScene(server.url)

        async def story() -> None:
            dispatch = scene.server(*scene.store(), level_s=LEVEL_S)
            with pytest.raises(Unavailable, match="cannot be used"):
                await dispatch.ready()
            stage = Stage(scene)
            hand = await stage.worker()
            waiting = asyncio.ensure_future(hand.take(1, wait_s=3_600.0))
            await asyncio.sleep(A_LITTLE)
            await dispatch.offer([offer()])
            assert keys(await waiting) == ["k"]
            await until(lambda: any("JetStream cannot be used" in one for one in scene.warnings))
            await stage.close()
            await dispatch.close()

        scene.run(story(), is_tidy=False)


@pytest.mark.parametrize("loses_all", [False, True])
def test_a_nats_that_is_killed_and_started_again_loses_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loses_all: bool
) -> None:
    monkeypatch.setattr(nats_intake, "SELDOM_SECONDS", 3_600.0)

    def start_again(server: Nats) -> None:
        if loses_all:
            server.wipe()
        server.start()

    with nats_server(tmp_path) as server:
        scene = NatsMemoryScene(server.url)

        async def story() -> None:
            stage = Stage(scene)
            dispatch = scene.server(*scene.store(), level_s=LEVEL_S)
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            waiting = asyncio.ensure_future(hand.take(1, wait_s=3_600.0))
            await asyncio.sleep(A_LITTLE)
            server.kill()
            saying = asyncio.ensure_future(hand.say(held, b"word"))
            beating = asyncio.ensure_future(hand.beat(held))
            await dispatch.offer([offer("next")])
            await until(lambda: any("workers wait for it" in one for one in scene.warnings))
            await asyncio.to_thread(start_again, server)
            assert await saying
            assert await beating == frozenset()
            assert keys(await waiting) == ["next"]
            assert await hand.done(held)
            assert [body for *_, body in await stage.receive()] == [b"word", b"end"]
            await stage.close()
            await dispatch.close()

        scene.run(story(), is_tidy=False)


def test_a_network_that_swallows_everything_is_noticed_and_what_was_said_is_kept_once(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is cut off without a word; what it sent before comes late, when it has sent it again on a new connection."""
    monkeypatch.setattr(nats_connection, "TRY_SECONDS", 0.05)
    monkeypatch.setattr(nats_connection, "ANSWER_SECONDS", 1)
    scene, apart = NatsMemoryScene(nats_url), NatsMemoryScene(nats_url)
    apart.prefix = scene.prefix

    async def story() -> None:
        stage = Stage(scene)
        hand = await stage.worker()
        hand.intake = apart.intake()
        await hand.intake.enlist(hand.card)
        (held,) = await stage.holding(hand)
        apart.network.swallow()
        words = asyncio.gather(hand.say(held, b"one"), hand.say(held, b"two"))
        await asyncio.sleep(0.3)
        apart.network.heal()
        assert list(await words) == [True, True]
        assert await hand.done(held)
        assert [body for *_, body in await stage.receive()] == [b"one", b"two", b"end"]
        await hand.intake.close()
        await stage.close()

    scene.run(story())
    apart.network.close()


def test_a_worker_that_reads_too_slowly_is_cut_off_by_nats_and_comes_back(tmp_path: Path) -> None:
    with nats_server(tmp_path, config='write_deadline: "100ms"\nmax_pending: 1048576') as server:
        scene, apart = NatsMemoryScene(server.url), NatsMemoryScene(server.url)
        apart.prefix = scene.prefix

        async def story() -> None:
            stage = Stage(scene)
            hand = await stage.worker()
            hand.intake = apart.intake()
            await hand.intake.enlist(hand.card)
            (held,) = await stage.holding(hand)
            assert await hand.commands() == []
            apart.network.swallow()
            flood = await nats.connect(server.url)
            for _ in range(40):
                await flood.publish(f"{scene.prefix}.told.w1", bytes(900_000))
            await flood.flush()
            await until(lambda: "Slow Consumer" in (tmp_path / "log").read_text())
            saying = asyncio.ensure_future(hand.say(held, b"word"))
            apart.network.heal()
            assert await saying
            await stage.server.send("k", b"answer")
            assert [told.body for told in await hand.commands(wait_s=60.0)] == [b"answer"]
            assert [body for *_, body in await stage.receive()] == [b"word"]
            await flood.close()
            await hand.intake.close()
            await stage.close()

        scene.run(story(), is_tidy=False)
        apart.network.close()


# ---- nobody there


def test_without_a_server_a_worker_is_told_so_when_its_patience_is_at_an_end(nats_url: str) -> None:
    async def main() -> None:
        intake = NatsIntake(nats_url, "nobody-serves", patience_s=0.2)
        with pytest.raises(Unavailable, match="no server of the fleet listens") as error:
            await intake.enlist(WorkerCard("w1", "w1"))
        assert "penstock serve" in str(error.value.hint)
        await intake.close()

    asyncio.run(main())


def test_a_worker_that_is_there_before_its_server_waits_for_it(nats_url: str) -> None:
    scene = NatsMemoryScene(nats_url)

    async def story() -> None:
        intake = scene.intake()
        enlisting = asyncio.ensure_future(intake.enlist(WorkerCard("w1", "w1")))
        await asyncio.sleep(A_LITTLE)
        server = scene.dispatch()
        await enlisting
        assert [seen.card.id for seen in await server.workers()] == ["w1"]
        await intake.close()
        await server.close()

    scene.run(story())


def test_a_nats_that_is_not_there_is_told_at_once_without_its_password() -> None:
    async def main() -> None:
        url = "nats://me:hidden@127.0.0.1:1"
        intake = NatsIntake(url)
        dispatch_store = MemoryDispatchStore()
        server = NatsDispatch(MemoryDispatch(dispatch_store), MemoryIntake(dispatch_store), url)
        for call in (intake.now(), server.ready()):
            with pytest.raises(Unavailable, match=r"NATS at `127.0.0.1:1` cannot be used") as error:
                await call
            assert "hidden" not in error.value.message
        await intake.close()
        # The store behind it is there all the same.
        await server.offer([offer()])
        assert await server.waiting() == {"default": 1}
        await server.close()

    asyncio.run(main())


@pytest.mark.parametrize("prefix", ["", "a.b", "with space", "*", "ü", "_x"])
def test_a_prefix_that_no_subject_can_have_is_refused(prefix: str) -> None:
    with pytest.raises(Refused, match="cannot be the prefix"):
        NatsIntake("nats://127.0.0.1:1", prefix)


def test_fleets_with_different_prefixes_do_not_meet(nats_url: str) -> None:
    one, two = NatsMemoryScene(nats_url), NatsMemoryScene(nats_url)

    async def story() -> None:
        stage, other = Stage(one), Stage(two)
        hand = await stage.worker()
        await other.server.offer([offer()])
        assert await hand.take(wait_s=A_LITTLE) == []
        assert await other.server.workers() == []
        await stage.close()
        await other.close()
        await two.forget_streams()
        two.network.close()

    one.run(story())
