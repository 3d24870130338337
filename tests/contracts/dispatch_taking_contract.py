"""What every dispatch keeps to when work is taken: one holder, in turn, to those who may."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from penstock.kernel.errors import Refused
from penstock.ports.dispatch import TOLD_TO_DRAIN, WorkerCard
from tests.contracts.dispatch_scenes import (
    A_LITTLE,
    DispatchScenes,
    Hand,
    Stage,
    keys,
    offer,
    offers,
    turns,
)


class TakingContract(DispatchScenes):
    def test_each_of_200_offers_has_one_holder_of_8_who_take_at_once(self) -> None:
        async def story(stage: Stage) -> None:
            hands = await stage.workers(8)
            await stage.server.offer([one for run in range(4) for one in offers(50, f"run-{run}")])

            async def take_all(hand: Hand) -> list[str]:
                taken: list[str] = []
                while more := await hand.take(3):
                    taken += keys(more)
                    await turns(1)
                return taken

            taken = [key for some in await asyncio.gather(*map(take_all, hands)) for key in some]
            assert (len(taken), len(set(taken))) == (200, 200)
            seen = await stage.server.leases(limit=500)
            assert {one.worker for one in seen} <= {hand.id for hand in hands}
            assert {one.attempt for one in seen} == {1}

        self.play(story)

    def test_no_more_than_there_is_room_for_is_taken(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer(offers(10))
            assert len(await hand.take(4)) == 4
            assert await hand.take(0) == []
            assert len(await hand.take(100)) == 6

        self.play(story)

    def test_the_oldest_of_an_execution_comes_first(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            for name in ("c", "a", "b"):
                await stage.server.offer([offer(name), offer(name + "2")])
            assert await hand.take_keys(2) == ["c", "c2"]
            assert await hand.take_keys(4) == ["a", "a2", "b", "b2"]

        self.play(story)

    def test_one_offer_does_not_wait_behind_a_loop_of_a_thousand(self) -> None:
        async def story(stage: Stage) -> None:
            hand, late = await stage.workers(2)
            await stage.server.offer([offer(f"loop/{number}", "loop", is_range=True) for number in range(1000)])
            assert set(keys(await hand.take(8))) == {f"loop/{number}" for number in range(8)}
            await stage.server.offer([offer("single", "other")])
            assert await late.take_keys() == ["single"]

        self.play(story)

    def test_executions_take_turns_and_the_one_that_holds_the_fewest_comes_first(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            await stage.server.offer([*offers(20, "a"), *offers(20, "b"), *offers(20, "c")])
            assert Counter(held.execution_id for held in await hand.take(6)) == {"a": 2, "b": 2, "c": 2}
            await stage.server.offer(offers(20, "d"))
            assert [held.execution_id for held in await other.take(2)] == ["d", "d"]
            await other.take(4)
            held = Counter(seen.execution_id for seen in await stage.server.leases() if seen.worker is not None)
            assert held == {"a": 3, "b": 3, "c": 3, "d": 3}

        self.play(story)

    def test_steps_come_before_ranges_of_the_same_execution(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([*offers(5, "loop", is_range=True), offer("step", "loop")])
            assert await hand.take_keys(2) == ["step", "loop/000"]

        self.play(story)

    def test_ranges_are_taken_up_to_their_own_number(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([*offers(6, "loop", is_range=True), *offers(2, "step")])
            assert sorted(await hand.take_keys(5, ranges=1)) == ["loop/000", "step/000", "step/001"]
            assert await hand.take(5, ranges=0) == []
            assert await hand.take(5, ranges=-1) == []
            assert len(await hand.take(3, ranges=5)) == 3

        self.play(story)

    def test_a_worker_takes_from_its_pool_only(self) -> None:
        async def story(stage: Stage) -> None:
            here, there = await stage.worker("w1"), await stage.worker("w2", pool="gpu ü")
            await stage.server.offer([offer("a"), offer("b", pool="gpu ü"), offer("c", pool="nobody's")])
            assert await stage.server.waiting() == {"default": 1, "gpu ü": 1, "nobody's": 1}
            assert await here.take_keys(3) == ["a"]
            assert await there.take_keys(3) == ["b"]
            assert await stage.server.waiting() == {"nobody's": 1}

        self.play(story)

    def test_a_worker_takes_what_it_can_do(self) -> None:
        async def story(stage: Stage) -> None:
            plain = await stage.worker("w1")
            able = await stage.worker("w2", can=frozenset({"http", "python"}))
            await stage.server.offer(
                [
                    offer("both", needs=frozenset({"python", "http"})),
                    offer("more", needs=frozenset({"http", "gpu"})),
                    offer("none"),
                ]
            )
            assert await plain.take_keys(3) == ["none"]
            assert await able.take_keys(3) == ["both"]

        self.play(story)

    def test_what_a_worker_cannot_do_does_not_hide_what_it_can(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([*offers(300, needs=frozenset({"gpu"})), offer("mine")])
            assert await hand.take_keys() == ["mine"]

        self.play(story)

    # -- waiting for work ---------------------------------------------------------------------------------------------

    def test_who_waits_gets_what_is_offered_meanwhile(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            waiting = asyncio.ensure_future(hand.take(2, wait_s=60.0))
            await asyncio.sleep(A_LITTLE)
            assert not waiting.done()
            await stage.server.offer([offer("other pool", pool="x")])
            await stage.another_server().offer([offer()])
            assert keys(await waiting) == ["k"]

        self.play(story)

    def test_who_waits_in_vain_gets_nothing(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            assert await hand.take(wait_s=A_LITTLE) == []

        self.play(story)

    def test_of_many_who_wait_one_gets_the_offer(self) -> None:
        async def story(stage: Stage) -> None:
            hands = await stage.workers(5)
            waiting = [asyncio.ensure_future(hand.take(3, wait_s=60.0)) for hand in hands]
            await asyncio.sleep(A_LITTLE)
            for number in range(5):
                left = [one for one in waiting if not one.done()]
                await stage.server.offer([offer(f"k{number}")])
                (winner, *others), _ = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                assert (keys(winner.result()), others) == ([f"k{number}"], [])

        self.play(story)

    def test_closing_ends_the_waits_at_once(self) -> None:
        async def story(stage: Stage) -> None:
            hand, server = await stage.worker(), stage.another_server()
            waits = [
                asyncio.ensure_future(hand.take(wait_s=3600.0)),
                asyncio.ensure_future(hand.commands(wait_s=3600.0)),
                asyncio.ensure_future(server.messages(range(256), 10, 3600.0)),
            ]
            await asyncio.sleep(A_LITTLE)
            before = asyncio.get_running_loop().time()
            await hand.intake.close()
            await server.close()
            assert await asyncio.gather(*waits) == [[], [], []]
            assert asyncio.get_running_loop().time() - before < 60.0
            with pytest.raises(Refused):
                await hand.take()
            with pytest.raises(Refused):
                await server.waiting()

        self.play(story)

    def test_a_wait_that_is_cancelled_holds_nothing(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            waiting = asyncio.ensure_future(hand.take(5, wait_s=60.0))
            await asyncio.sleep(A_LITTLE)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await stage.server.offer(offers(3))
            taken = await other.take(5, wait_s=60.0)
            while len(taken) < 3:  # A look that was just on its way may have found them, and gives them back.
                more = await other.take(5, wait_s=60.0)
                assert more
                taken += more

        self.play(story)

    def test_what_is_granted_to_a_call_that_was_cancelled_comes_to_another_worker(self) -> None:
        async def story(stage: Stage) -> None:
            hands = await stage.workers(3)
            gone = hands[0]
            await stage.server.offer(offers(30))
            returned = 0
            for moment in range(15):
                taking = asyncio.ensure_future(gone.take(2))
                await turns(moment)
                if not taking.done():
                    taking.cancel()
                results = await asyncio.gather(taking, return_exceptions=True)
                if isinstance(results[0], list):
                    returned += len(results[0])
            taken = 0
            while taken + returned < 30:
                more = await hands[1].take(30, wait_s=60.0)
                assert more
                taken += len(more)
            assert await hands[2].take() == []

        self.play(story)

    # -- who may take -------------------------------------------------------------------------------------------------

    def test_a_worker_that_a_server_drains_takes_nothing_and_is_told_by_its_next_heartbeat(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            (held,) = await stage.holding(hand)
            assert await stage.server.drain(hand.id)
            assert await hand.beat(held) == frozenset({TOLD_TO_DRAIN})
            assert await other.beat() == frozenset()
            await stage.server.offer([offer("more")])
            assert await hand.take() == []
            # What it holds is still its own, and once it drains it is told no more.
            assert await hand.beat(held, draining=True) == frozenset()
            assert [seen.is_draining for seen in await stage.server.workers()] == [True, False]
            assert await hand.done(held)
            assert await other.take_keys() == ["more"]
            assert not await stage.server.drain("nobody")

        self.play(story)

    def test_a_worker_that_drains_takes_nothing_for_good(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            (held,) = await stage.holding(hand)
            assert await hand.beat(held, draining=True) == frozenset()
            await hand.beat(held)
            await stage.server.offer([offer("more")])
            assert await hand.take() == []
            assert [seen.is_draining for seen in await stage.server.workers()] == [True, False]
            assert await hand.done(held)
            assert await other.take_keys() == ["more"]

        self.play(story)

    def test_who_is_not_enlisted_gets_nothing(self) -> None:
        async def story(stage: Stage) -> None:
            stranger = Hand(stage.another_intake(), WorkerCard("w9", "stranger"))
            await stage.server.offer([offer()])
            assert await stranger.take(wait_s=A_LITTLE) == []
            with pytest.raises(Refused, match="`w9` is not enlisted"):
                await stranger.beat()
            with pytest.raises(Refused, match="empty"):
                await stranger.intake.enlist(WorkerCard("", "nameless"))
            with pytest.raises(Refused, match="empty"):
                await stranger.intake.take("", 1, 1, 0.0)

        self.play(story)
