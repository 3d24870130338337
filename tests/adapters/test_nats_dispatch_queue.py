"""The work queue: whatever JetStream loses, doubles, delays or holds back, workers come to their work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import nats
import pytest

from penstock.adapters.memory.dispatch import MemoryDispatch
from penstock.adapters.nats import intake as nats_intake
from penstock.adapters.nats import queue as nats_queue
from penstock.adapters.nats.queue import QueueTerms
from penstock.adapters.nats.wire import read_ticket
from tests.adapters.nats_stages import QueueStage, counts, exists, has_consumer, has_messages, until
from tests.contracts.dispatch_nats import NatsMemoryScene
from tests.contracts.dispatch_scenes import A_LITTLE, keys, offer, offers
from tests.servers import nats_url

__all__ = ["nats_url"]

LEVEL_S = 0.05
GPU = frozenset({"gpu"})


Story = Callable[[QueueStage], Awaitable[None]]
Play = Callable[..., None]


@pytest.fixture
def play(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.setattr(nats_intake, "SELDOM_SECONDS", 3_600.0)
    monkeypatch.setattr(nats_queue, "ORDER_SECONDS", 0.5)

    def play(story: Story, **terms: float) -> None:
        scene = NatsMemoryScene(nats_url)
        asked = QueueTerms(ack_wait_s=terms.get("ack_wait_s", 5.0), max_deliver=int(terms.get("max_deliver", 25)))

        async def main() -> None:
            client = await nats.connect(nats_url)
            stage = QueueStage(scene, client, asked)
            try:
                await story(stage)
            finally:
                await stage.close()
                await client.close()

        scene.run(main())

    return play


# ---- tickets


def test_a_worker_that_waits_is_called_by_a_ticket(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hand = await stage.worker()
        for number in range(5):
            waiting = asyncio.ensure_future(hand.take(wait_s=3_600.0))
            await asyncio.sleep(A_LITTLE)
            await stage.server.offer([offer(f"k{number}", is_range=bool(number % 2))])
            assert keys(await waiting) == [f"k{number}"]
        await until(lambda: counts(stage.tickets(), 0))
        assert stage.figure("tickets_sent") >= 5  # more when a call was repeated before a slow worker answered

    play(story)


def test_streams_are_a_work_queue_with_bounded_redelivery_and_a_place_for_dead_letters(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        await stage.worker()
        work = (await stage.js.stream_info(stage.work)).config
        dead = (await stage.js.stream_info(stage.dead)).config
        assert (work.retention, work.storage, dead.storage) == ("workqueue", "file", "file")
        assert (work.duplicate_window, work.max_age) == (10.0, 3600.0)
        for kind in ("step", "range"):
            consumer = (await stage.js.consumer_info(stage.work, f"default-{kind}")).config
            assert (consumer.max_deliver, consumer.ack_wait, consumer.ack_policy) == (7, 3.0, "explicit")

    play(story, max_deliver=7, ack_wait_s=3.0)


def test_a_worker_without_room_for_ranges_is_not_called_for_them(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        one, two = await stage.workers(2)
        steps_only = asyncio.ensure_future(one.take(1, 0, wait_s=3_600.0))
        both = asyncio.ensure_future(two.take(1, 1, wait_s=3_600.0))
        await asyncio.sleep(A_LITTLE)
        await stage.server.offer([offer("range", is_range=True)])
        assert keys(await both) == ["range"]
        assert not steps_only.done()
        await stage.server.offer([offer("step")])
        assert keys(await steps_only) == ["step"]

    play(story)


def test_each_of_several_workers_that_wait_is_called_when_there_is_work_for_all(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hands = await stage.workers(6)
        waits = [asyncio.ensure_future(hand.take(1, wait_s=3_600.0)) for hand in hands]
        await asyncio.sleep(A_LITTLE)
        await stage.server.offer(offers(6))
        taken = [key for wait in waits for key in keys(await wait)]
        assert sorted(taken) == [one.key for one in offers(6)]

    play(story)


def test_a_ticket_for_others_is_handed_on_to_one_who_can(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        plain = await stage.worker("w1")
        able = await stage.worker("w2", can=GPU)
        waits = [asyncio.ensure_future(hand.take(1, wait_s=3_600.0)) for hand in (plain, able)]
        await asyncio.sleep(A_LITTLE)
        for number in range(5):
            await stage.server.offer([offer(f"k{number}", needs=GPU)])
            assert keys(await waits[1]) == [f"k{number}"]
            waits[1] = asyncio.ensure_future(able.take(1, wait_s=3_600.0))
        assert not waits[0].done()
        await stage.server.offer([offer("any"), offer("other")])
        assert sorted([*keys(await waits[0]), *keys(await waits[1])]) == ["any", "other"]

    play(story)


def test_tickets_of_work_that_is_gone_are_cleared_away(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hand = await stage.worker()
        await stage.server.offer(offers(300))
        await stage.server.withdraw([one.key for one in offers(300)])
        await until(lambda: counts(stage.tickets(), 0))
        assert await hand.take() == []

    play(story)


def test_a_ticket_that_comes_twice_calls_twice_and_grants_once(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        one, two = await stage.workers(2)
        waits = [asyncio.ensure_future(hand.take(1, wait_s=3_600.0)) for hand in (one, two)]
        await asyncio.sleep(A_LITTLE)
        await stage.server.offer([offer()])
        await stage.another_server().offer([offer()])
        (done, *_), (other, *_) = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        assert keys(done.result()) == ["k"]
        await asyncio.sleep(A_LITTLE)
        assert not other.done()
        await stage.server.offer([offer("next")])
        assert keys(await other) == ["next"]

    play(story)


# ---- what JetStream loses


def test_what_waits_without_a_ticket_is_given_another_one(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hands = await stage.workers(3)
        waits = [asyncio.ensure_future(hand.take(1, wait_s=3_600.0)) for hand in hands]
        await asyncio.sleep(A_LITTLE)
        await stage.offer_unseen(*offers(3))
        taken = [key for wait in waits for key in keys(await wait)]
        assert sorted(taken) == [one.key for one in offers(3)]
        assert stage.figure("tickets_put_again") >= 1

    play(story)


def test_a_stream_that_was_purged_is_filled_again(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hand = await stage.worker()
        await stage.server.offer([offer("gpu", needs=GPU)])
        await stage.js.purge_stream(stage.work)
        waiting = asyncio.ensure_future(hand.take(1, wait_s=3_600.0))
        await asyncio.sleep(A_LITTLE)
        await stage.offer_unseen(offer("mine"))
        assert keys(await waiting) == ["mine"]

    play(story)


def test_a_stream_that_was_deleted_is_made_again_for_those_who_wait(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hand = await stage.worker()
        waiting = asyncio.ensure_future(hand.take(1, wait_s=3_600.0))
        await asyncio.sleep(A_LITTLE)
        await stage.js.delete_stream(stage.work)
        await until(lambda: has_consumer(stage.js, stage.work, "default-step"))
        await stage.server.offer([offer()])
        assert keys(await waiting) == ["k"]

    play(story)


def test_a_stream_that_was_deleted_is_made_again_with_a_warning(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        await stage.server.offer([offer()])
        await until(lambda: stage.figure("tickets_sent") == 1)
        await stage.js.delete_stream(stage.work)
        await until(lambda: any("is gone from NATS" in one for one in stage.nats.warnings))
        await until(lambda: exists(stage.js, stage.work))

    play(story)


def test_a_stream_that_was_never_there_is_made_without_a_warning(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        # Offered by a server without NATS, so that the one with NATS finds them waiting, and no stream.
        await MemoryDispatch(stage.nats.dispatch_store).offer([offer()])
        await until(lambda: has_consumer(stage.js, stage.work, "default-step"))
        await until(lambda: has_consumer(stage.js, stage.work, "default-range"))
        assert stage.nats.warnings == []

    play(story)


def test_a_stream_that_is_gone_when_tickets_are_sent_is_made_and_they_are_sent_again(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hand = await stage.worker("w1", pool="other")
        await stage.js.delete_stream(stage.work)
        waiting = asyncio.ensure_future(hand.take(1, wait_s=3_600.0))
        await stage.server.offer(offers(300, pool="other"))
        assert len(await waiting) == 1
        await until(lambda: exists(stage.js, stage.work))

    play(story)


def test_a_consumer_that_was_deleted_is_made_again(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hand = await stage.worker()
        waiting = asyncio.ensure_future(hand.take(1, wait_s=3_600.0))
        await asyncio.sleep(A_LITTLE)
        for kind in ("step", "range"):
            await stage.js.delete_consumer(stage.work, f"default-{kind}")
        await asyncio.sleep(A_LITTLE)
        await stage.server.offer([offer()])
        assert keys(await waiting) == ["k"]
        await until(lambda: has_consumer(stage.js, stage.work, "default-step"))

    play(story)


def test_a_consumer_that_hands_out_nothing_is_made_anew_with_a_warning(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hand = await stage.worker()
        never = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        waiting = asyncio.ensure_future(hand.take(1, wait_s=3_600.0))
        await asyncio.sleep(A_LITTLE)
        # Not earlier: a server that makes its consumers ready ends a pause.
        await stage.js.pause_consumer(stage.work, "default-step", never)
        await stage.server.offer([offer()])
        assert keys(await waiting) == ["k"]
        assert stage.figure("consumers_made_anew") >= 1
        assert any("`default-step` hands out nothing" in one for one in stage.nats.warnings)

    play(story, ack_wait_s=0.1)


def test_a_worker_that_dies_with_a_ticket_in_its_hand_does_not_keep_it_from_others(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hand = await stage.worker()
        dying = await stage.client.subscribe("dying")
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{stage.work}.default-step"
        await stage.client.publish(subject, b'{"batch":1,"expires":60000000000}', reply="dying")
        await stage.client.flush()
        waiting = asyncio.ensure_future(hand.take(1, wait_s=3_600.0))
        await asyncio.sleep(A_LITTLE)
        await stage.server.offer([offer()])
        await dying.next_msg(60)
        assert keys(await waiting) == ["k"]

    play(story, ack_wait_s=0.2)


# ---- dead letters


def test_a_ticket_that_nobody_can_use_becomes_a_dead_letter_and_its_work_waits_on(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(stage: QueueStage) -> None:
        plain = await stage.worker("w1")
        waiting = asyncio.ensure_future(plain.take(1, wait_s=3_600.0))
        await stage.server.offer([offer("for-gpu", needs=GPU)])
        await until(lambda: stage.figure("dead_letters") >= 1)
        await until(lambda: has_messages(stage.js, stage.dead))
        message = await stage.js.get_last_msg(stage.dead, f"{stage.nats.prefix}.dead.default")
        assert read_ticket(message.data or b"").key == "for-gpu"
        assert (message.headers or {})["Penstock-Deliveries"] == "3"
        (warning,) = stage.nats.warnings
        assert "the ticket of `for-gpu` in pool `default` was put aside after 3 deliveries" in warning
        assert await stage.server.waiting() == {"default": 1}
        able = await stage.worker("w2", can=GPU)
        assert await able.take_keys() == ["for-gpu"]
        assert not waiting.done()

    monkeypatch.setattr(nats_queue, "LONGEST_DELAY", 0.01)
    play(story, max_deliver=3)


def test_what_a_limit_holds_back_becomes_no_dead_letter(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stage: QueueStage) -> None:
        one, two = await stage.workers(2)
        await stage.server.offer(offers(4, limits=(("db", 1),)))
        held = await one.take_one()
        waiting = asyncio.ensure_future(two.take(1, wait_s=3_600.0))
        await until(lambda: stage.figure("tickets_put_again") >= 10)
        assert (stage.figure("dead_letters"), stage.nats.warnings) == (0, [])
        assert await one.done(held)
        assert keys(await waiting) == ["run-1/001"]

    monkeypatch.setattr(nats_queue, "LONGEST_DELAY", 0.01)
    play(story, max_deliver=15)


def test_a_message_that_is_no_ticket_is_put_aside(play: Play) -> None:
    async def story(stage: QueueStage) -> None:
        hand = await stage.worker()
        waiting = asyncio.ensure_future(hand.take(1, wait_s=3_600.0))
        await asyncio.sleep(A_LITTLE)
        await stage.js.publish(f"{stage.nats.prefix}.work.default.step", b"no ticket")
        await until(lambda: stage.figure("dead_letters") == 1)
        assert [one.partition(" was put")[0] for one in stage.nats.warnings] == ["a message that is no ticket"]
        await stage.server.offer([offer()])
        assert keys(await waiting) == ["k"]

    play(story)
