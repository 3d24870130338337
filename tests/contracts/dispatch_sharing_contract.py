"""What every dispatch keeps to where many want the same: limits over all, and large loops that give way."""

from __future__ import annotations

import asyncio

from tests.contracts.dispatch_scenes import A_LITTLE, LEASE_S, DispatchScenes, Stage, keys, offer, offers


class SharingContract(DispatchScenes):
    def test_a_limit_holds_over_all_executions_and_workers(self) -> None:
        async def story(stage: Stage) -> None:
            one, two = await stage.workers(2)
            limits = (("db", 2),)
            await stage.server.offer([*offers(5, "a", limits=limits), *offers(5, "b", limits=limits), offer("free")])
            first = await one.take(2)
            second = await two.take(9)
            assert len(first) + len(second) == 3
            assert "free" in keys(first) + keys(second)
            done = next(held for held in first if held.key != "free")
            await one.done(done)
            assert len(await two.take(9)) == 1
            assert await two.take(9) == []

        self.play(story)

    def test_a_limit_holds_when_many_take_at_once(self) -> None:
        async def story(stage: Stage) -> None:
            hands = await stage.workers(8)
            await stage.server.offer([one for run in "abcd" for one in offers(10, run, limits=(("api", 3), ("db", 9)))])
            for _ in range(3):
                granted = await asyncio.gather(*(hand.take(4) for hand in hands))
                assert sum(map(len, granted)) == 3
                ends = [hand.done(held) for hand, some in zip(hands, granted, strict=True) for held in some]
                assert all(await asyncio.gather(*ends))

        self.play(story)

    def test_a_lease_with_several_limits_needs_a_place_under_each(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer(
                [
                    offer("x", limits=(("a", 1),)),
                    offer("y", limits=(("a", 1), ("b", 5))),
                    offer("z", limits=(("b", 1),)),
                ]
            )
            x, z = await hand.take(9)
            assert keys([x, z]) == ["x", "z"]
            await hand.done(x)
            assert await hand.take_keys(9) == ["y"]

        self.play(story)

    def test_each_offer_brings_its_own_number_for_a_limit(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer(
                [offer("strict", limits=(("db", 1),)), offer("lax", limits=(("db", 2), ("db", 3)))]
            )
            assert await hand.take_keys() == ["strict"]
            assert await hand.take_keys() == ["lax"]
            await stage.server.offer([offer("strict2", limits=(("db", 1),))])
            assert await hand.take_keys() == []

        self.play(story)

    def test_a_limit_that_is_used_up_does_not_hide_what_is_free(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([*offers(100, limits=(("db", 1),)), offer("free")])
            assert await hand.take_keys(9) == ["run-1/000", "free"]

        self.play(story)

    def test_a_place_under_a_limit_is_free_again_when_its_holder_is_lost_returns_or_is_forgotten(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            limits = (("db", 1),)
            await stage.server.offer([offer(one, f"run-{one}", limits=limits) for one in "abcd"])
            assert await hand.take_keys(9) == ["a"]
            assert await stage.run_out() == 1
            (second,) = await hand.take(9)
            assert second.key == "b"
            await hand.give_back(second)
            assert await hand.take_keys(9) == ["c"]
            await stage.server.forget("run-c")
            assert await hand.take_keys(9) == ["d"]

        self.play(story)

    def test_who_waits_for_a_limit_is_called_when_a_place_is_free(self) -> None:
        async def story(stage: Stage) -> None:
            one, two = await stage.workers(2)
            await stage.server.offer(offers(2, limits=(("db", 1),)))
            held = await one.take_one()
            waiting = asyncio.ensure_future(two.take(1, wait_s=60.0))
            await asyncio.sleep(A_LITTLE)
            await one.done(held)
            assert keys(await waiting) == ["run-1/001"]

        self.play(story)

    # -- giving way ---------------------------------------------------------------------------------------------------

    def test_a_range_is_pressed_by_a_step_of_an_execution_that_has_less(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.holding(hand, *offers(2, "loop", is_range=True))
            assert not await hand.intake.is_pressed(hand.id)
            await stage.server.offer([offer("step", "other"), offer("elsewhere", "third", pool="x")])
            assert not await hand.intake.is_pressed(hand.id)
            await stage.pass_time(1)
            assert await hand.intake.is_pressed(hand.id)
            await hand.take()
            assert not await hand.intake.is_pressed(hand.id)

        self.play(story)

    def test_a_range_is_not_pressed_by_what_its_holder_could_not_do_or_its_own_execution_offers(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            limits = (("db", 1),)
            await stage.holding(hand, *offers(1, "loop", is_range=True, limits=limits))
            await stage.server.offer(
                [
                    offer("not able", "second", needs=frozenset({"gpu"})),
                    offer("limited", "third", limits=limits),
                    offer("more of it", "loop"),
                ]
            )
            await stage.pass_time(1)
            assert not await hand.intake.is_pressed(hand.id)
            assert not await hand.intake.is_pressed("unknown")

        self.play(story)

    def test_a_range_is_pressed_by_a_range_only_where_that_evens_out(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            ranges = await stage.holding(hand, *offers(2, "loop", is_range=True))
            await stage.holding(other, *offers(1, "second", is_range=True))
            await stage.server.offer([offer("more", "second", is_range=True)])
            await stage.pass_time(1)
            assert not await hand.intake.is_pressed(hand.id)
            assert not await other.intake.is_pressed(other.id)
            await stage.server.offer([offer("new", "third", is_range=True)])
            await stage.pass_time(1)
            assert await hand.intake.is_pressed(hand.id)
            assert not await other.intake.is_pressed(other.id)
            await hand.done(ranges[0])
            assert not await hand.intake.is_pressed(hand.id)

        self.play(story)

    def test_who_holds_steps_only_is_never_pressed(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.holding(hand, *offers(3, "busy"))
            await stage.server.offer([offer("step", "other")])
            await stage.pass_time(LEASE_S / 2)
            assert not await hand.intake.is_pressed(hand.id)

        self.play(story)
