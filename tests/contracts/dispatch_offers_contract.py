"""What every dispatch keeps to when work is offered, taken back, missed and forgotten."""

from __future__ import annotations

import asyncio

import pytest

from penstock.kernel.errors import Refused
from penstock.ports.dispatch import MessageKind
from penstock.ports.log import partition_of
from tests.contracts.dispatch_scenes import ALL, LEASE_S, DispatchScenes, Stage, offer, offers

REFUSED: list[dict[str, object]] = [
    {"key": ""},
    {"execution_id": ""},
    {"pool": ""},
    {"needs": frozenset({""})},
    {"limits": (("", 1),)},
    {"limits": (("db", 0),)},
    {"lease_s": 0.0},
    {"lease_s": float("nan")},
    {"lease_s": float("inf")},
    {"stall_s": -1.0},
    {"ttl_s": 0.0},
    {"key": "half a pair \ud83d"},
]


class OffersContract(DispatchScenes):
    def test_what_is_offered_is_taken_as_it_was_offered(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([offer("k", "run-1", b"payload", lease_s=7.5, is_range=True)])
            held = await hand.take_one()
            assert (held.key, held.execution_id, held.attempt, held.payload) == ("k", "run-1", 1, b"payload")
            assert (held.lease_s, held.is_range) == (7.5, True)

        self.play(story)

    def test_offering_what_waits_changes_nothing(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([offer(payload=b"first"), offer(payload=b"in the same call")])
            await stage.server.offer([offer(payload=b"second")])
            assert await stage.server.waiting() == {"default": 1}
            held = await hand.take_one()
            assert (held.payload, held.attempt) == (b"first", 1)
            assert await hand.take() == []

        self.play(story)

    def test_offering_what_is_held_changes_nothing(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            (held,) = await stage.holding(hand)
            await stage.server.offer([offer(payload=b"again")])
            assert await other.take() == []
            assert await hand.done(held)

        self.play(story)

    def test_offering_what_is_done_and_not_heard_changes_nothing(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            (held,) = await stage.holding(hand)
            await hand.done(held)
            await stage.server.offer([offer(payload=b"again")])
            assert await other.take() == []
            assert await stage.receive() == [("k", 1, MessageKind.DONE, b"end")]

        self.play(story)

    def test_what_is_done_and_heard_may_be_offered_anew(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            await hand.done(held)
            await stage.receive()
            await stage.server.offer([offer(payload=b"anew")])
            assert (await hand.take_one()).payload == b"anew"

        self.play(story)

    @pytest.mark.clause("F3.1")
    def test_what_was_lost_waits_again_with_the_next_attempt_and_the_new_payload(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            for attempt in (1, 2, 3, 4):
                payload = b"try %d" % attempt
                await stage.server.offer([offer(payload=payload)])
                held = await hand.take_one()
                assert (held.attempt, held.payload) == (attempt, payload)
                assert await stage.run_out() == 1
                assert await stage.receive() == [("k", attempt, MessageKind.LOST, b"")]
            assert await hand.take() == []

        self.play(story)

    def test_what_was_lost_may_be_offered_before_its_note_is_heard(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.holding(hand)
            await stage.run_out()
            await stage.server.offer([offer()])
            assert (await hand.take_one()).attempt == 2
            assert [kind for _, _, kind, _ in await stage.receive()] == [MessageKind.LOST]

        self.play(story)

    def test_what_was_returned_waits_again_with_the_next_attempt(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            (held,) = await stage.holding(hand)
            assert await hand.give_back(held)
            assert await other.take() == []
            await stage.server.offer([offer(payload=b"rest of it")])
            again = await other.take_one()
            assert (again.attempt, again.payload) == (2, b"rest of it")

        self.play(story)

    @pytest.mark.clause("F7.1")
    def test_an_offer_that_nobody_takes_in_time_comes_back_stale_and_may_be_offered_again(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([offer("short", ttl_s=5.0), offer("long", ttl_s=50.0), offer("endless")])
            await stage.pass_time(4)
            assert await stage.server.reap() == 0
            await stage.pass_time(2)
            assert await stage.server.reap() == 1
            assert await stage.receive() == [("short", 1, MessageKind.STALE, b"")]
            assert await hand.take_keys(3) == ["long", "endless"]
            await stage.server.offer([offer("short", ttl_s=5.0)])
            assert (await hand.take_one()).attempt == 2

        self.play(story)

    @pytest.mark.clause("F7.1")
    def test_the_time_to_wait_does_not_count_while_it_is_held_and_begins_anew_with_a_new_offer(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand, offer(ttl_s=5.0))
            await stage.pass_time(8)
            assert await stage.server.reap() == 0
            await hand.give_back(held)
            await stage.server.offer([offer(ttl_s=5.0)])
            await stage.pass_time(4)
            assert await stage.server.reap() == 0
            await stage.pass_time(2)
            assert await stage.server.reap() == 1

        self.play(story)

    # -- withdrawing --------------------------------------------------------------------------------------------------

    def test_what_is_withdrawn_is_taken_by_nobody(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([offer("a"), offer("b"), offer("c")])
            assert await stage.server.withdraw(["a", "c", "unknown"]) == {"a", "c"}
            assert await stage.server.withdraw(["a"]) == frozenset()
            assert await hand.take_keys(3) == ["b"]
            assert await stage.messages() == []

        self.play(story)

    def test_what_is_held_is_not_withdrawn(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            assert await stage.server.withdraw(["k"]) == frozenset()
            assert await hand.done(held)
            assert await stage.server.withdraw(["k"]) == frozenset()

        self.play(story)

    def test_what_was_withdrawn_may_be_offered_again(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([offer(payload=b"first")])
            await stage.server.withdraw(["k"])
            await stage.server.offer([offer(payload=b"second")])
            held = await hand.take_one()
            assert (held.attempt, held.payload) == (2, b"second")

        self.play(story)

    def test_each_offer_is_either_withdrawn_or_taken(self) -> None:
        async def story(stage: Stage) -> None:
            hands = await stage.workers(4)
            all_keys = {one.key for one in offers(60)}
            await stage.server.offer(offers(60))
            takes = asyncio.gather(*(hand.take(5) for hand in hands for _ in range(3)))
            withdrawals = asyncio.gather(*(stage.server.withdraw(sorted(all_keys)[start::3]) for start in range(3)))
            taken = [held.key for some in await takes for held in some]
            withdrawn = frozenset[str]().union(*await withdrawals)
            assert len(taken) == len(set(taken))
            assert withdrawn == all_keys - set(taken)
            assert await hands[0].take() == []

        self.play(story)

    # -- missing ------------------------------------------------------------------------------------------------------

    def test_what_waits_or_is_held_or_has_a_note_to_be_heard_is_not_missing(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([offer(one) for one in ("done", "held", "returned", "said", "waiting")])
            done, held, returned, said = await hand.take(4)
            assert [one.key for one in (done, held, returned, said)] == ["done", "held", "returned", "said"]
            await hand.done(done)
            await hand.give_back(returned)
            await hand.say(said, b"word")
            names = ["done", "held", "returned", "said", "waiting", "unknown"]
            assert await stage.server.missing(names) == {"unknown"}
            await stage.receive()
            assert await stage.server.missing(names) == {"done", "returned", "unknown"}
            assert await stage.server.missing([]) == frozenset()
            await stage.server.withdraw(["waiting"])
            assert await stage.server.missing(["waiting"]) == {"waiting"}

        self.play(story)

    def test_what_was_lost_is_missing_once_that_is_heard(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.holding(hand)
            await stage.pass_time(LEASE_S + 1)
            assert await stage.server.missing(["k"]) == frozenset()
            await stage.server.reap()
            assert await stage.server.missing(["k"]) == frozenset()
            await stage.receive()
            assert await stage.server.missing(["k"]) == {"k"}

        self.play(story)

    def test_a_store_that_was_wiped_misses_everything_and_is_filled_again(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer(offers(3))
            held = await hand.take_one()
            await hand.say(held, b"word")
            await stage.scene.wipe()
            assert await stage.server.missing([one.key for one in offers(3)]) == {one.key for one in offers(3)}
            assert await stage.messages() == []
            assert not await hand.done(held)
            with pytest.raises(Refused, match="not enlisted"):
                await hand.beat(held)
            await stage.server.offer(offers(3))
            assert await hand.take() == []
            await hand.intake.enlist(hand.card)
            assert await hand.beat(held) == {held.key}
            assert len(await hand.take(5)) == 3

        self.play(story)

    # -- forgetting ---------------------------------------------------------------------------------------------------

    def test_nothing_is_left_of_an_execution_that_is_forgotten(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([*offers(5), *offers(2, "run-2")])
            granted = await hand.take(6)
            one, two, three = [held for held in granted if held.execution_id == "run-1"][:3]
            await hand.say(one, b"word")
            await hand.done(two)
            await stage.server.send(three.key, b"answer")
            await stage.server.forget("run-1")
            assert await stage.server.leases("run-1") == []
            assert await stage.messages() == []
            assert await hand.commands() == []
            assert await stage.server.missing([held.key for held in granted]) == {
                held.key for held in granted if held.execution_id == "run-1"
            }
            assert len(await stage.server.leases("run-2")) == 2
            assert await stage.server.executions(ALL) == ["run-2"]
            await stage.server.forget("never heard of")

        self.play(story)

    def test_an_execution_is_known_as_long_as_anything_is_kept_of_it(self) -> None:
        """Also when that waits for nobody and nobody has it: who ended it may not have lived to clear it away."""

        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            for number in range(4):
                await stage.server.offer(offers(2, f"run-{number}"))
            await stage.server.withdraw([one.key for one in offers(2, "run-0")])
            for held in await hand.take(6):
                if held.execution_id == "run-1":
                    await hand.done(held)
                elif held.execution_id == "run-2":
                    await hand.give_back(held)
            await stage.server.acknowledge([message.number for message in await stage.messages()])
            known = await stage.server.executions(ALL)
            assert {"run-0", "run-2", "run-3"} <= set(known)
            assert known == sorted(known)
            assert await stage.server.executions(ALL, after=known[0], limit=1) == known[1:2]
            mine = {partition_of(known[0])}
            assert await stage.server.executions(mine) == [one for one in known if partition_of(one) in mine]
            assert await stage.server.executions([]) == []
            for one in known:
                await stage.server.forget(one)
            assert await stage.server.executions(ALL) == []

        self.play(story)

    def test_holders_of_what_is_forgotten_are_refused(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            await stage.server.forget("run-1")
            assert not await hand.say(held, b"late")
            assert not await hand.done(held)
            assert await hand.beat(held) == {"k"}
            assert await stage.run_out() == 0
            assert await stage.messages(ALL) == []

        self.play(story)

    # -- what is refused ----------------------------------------------------------------------------------------------

    def test_an_offer_that_names_nothing_or_could_never_end_is_refused_with_all_that_came_with_it(self) -> None:
        async def story(stage: Stage) -> None:
            for terms in REFUSED:
                with pytest.raises(Refused):
                    await stage.server.offer([offer("good"), offer(**terms)])  # type: ignore[arg-type]
                assert await stage.server.waiting() == {}, terms

        self.play(story)

    def test_no_offers_are_fine(self) -> None:
        async def story(stage: Stage) -> None:
            await stage.server.offer([])
            await stage.server.acknowledge([])
            assert await stage.server.withdraw([]) == frozenset()

        self.play(story)
