"""What every dispatch keeps to when holders speak and are spoken to."""

from __future__ import annotations

import asyncio

import pytest

from penstock.kernel.errors import Refused
from penstock.ports.dispatch import MessageKind
from penstock.ports.log import partition_of
from tests.contracts.dispatch_scenes import A_LITTLE, ALL, DispatchScenes, Hand, Stage, offer, offers


class WordsContract(DispatchScenes):
    def test_what_a_holder_says_is_heard_with_who_said_it(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            assert await hand.say(held, b"fact")
            assert await hand.say(held, b"question", kind=MessageKind.ASKED)
            assert await hand.done(held)
            said, asked, done = await stage.messages()
            assert [message.kind for message in (said, asked, done)] == [
                MessageKind.REPORTED,
                MessageKind.ASKED,
                MessageKind.DONE,
            ]
            assert (said.execution_id, said.key, said.attempt, said.worker, said.body) == (
                "run-1",
                "k",
                1,
                "w1",
                b"fact",
            )
            assert (asked.body, done.body) == (b"question", b"end")
            assert said.number < asked.number < done.number

        self.play(story)

    def test_what_one_lease_says_is_heard_in_order(self) -> None:
        async def story(stage: Stage) -> None:
            hands = await stage.workers(3)
            await stage.server.offer(offers(3))

            async def speak(hand: Hand, words: list[bytes]) -> None:
                held = await hand.take_one()
                for start in range(0, len(words), 4):
                    await hand.say(held, *words[start : start + 4])

            words = [b"%03d" % number for number in range(40)]
            await asyncio.gather(*(speak(hand, words) for hand in hands))
            heard = await stage.receive()
            for one in offers(3):
                assert [body for key, _, _, body in heard if key == one.key] == words

        self.play(story)

    def test_what_is_said_at_once_by_one_process_is_all_kept(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            leases = await stage.holding(hand, *offers(20))
            calls = [hand.say(held, b"one", b"two") for held in leases] + [hand.done(held) for held in leases]
            assert all(await asyncio.gather(*calls))
            heard = await stage.receive()
            for held in leases:
                assert [body for key, _, _, body in heard if key == held.key] == [b"one", b"two", b"end"]

        self.play(story)

    def test_a_late_word_is_refused_and_leaves_nothing(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            await stage.run_out()
            await stage.receive()
            for kind in (MessageKind.REPORTED, MessageKind.ASKED, MessageKind.RETURNED, MessageKind.DONE):
                assert not await hand.say(held, b"late", b"later", kind=kind)
            assert await stage.messages() == []

        self.play(story)

    def test_a_late_end_after_a_new_offer_harms_neither_the_offer_nor_the_next_holder(self) -> None:
        async def story(stage: Stage) -> None:
            late, other = await stage.workers(2)
            (first,) = await stage.holding(late)
            await stage.run_out()
            await stage.receive()
            await stage.server.offer([offer()])
            assert not await late.done(first)
            second = await other.take_one()
            assert not await late.done(first)
            assert not await late.give_back(first)
            assert await stage.messages() == []
            assert await other.done(second, b"result")
            assert not await late.done(first)
            assert await stage.receive() == [("k", 2, MessageKind.DONE, b"result")]

        self.play(story)

    def test_the_same_worker_with_an_old_attempt_is_refused_too(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (first,) = await stage.holding(hand)
            await stage.run_out()
            await stage.server.offer([offer()])
            second = await hand.take_one()
            assert not await hand.done(first)
            assert await hand.done(second)

        self.play(story)

    def test_an_end_is_said_once(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            assert sorted(await asyncio.gather(hand.done(held, b"a"), hand.done(held, b"b"))) == [False, True]
            assert not await hand.done(held)
            assert not await hand.say(held, b"after the end")
            assert not await hand.give_back(held)
            assert await hand.beat(held) == {"k"}
            assert [kind for _, _, kind, _ in await stage.receive()] == [MessageKind.DONE]

        self.play(story)

    def test_several_bodies_are_kept_all_or_none(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            assert await hand.say(held, b"a", b"b", kind=MessageKind.DONE)
            assert not await hand.say(held, b"c", b"d")
            first, second = await stage.messages()
            assert (first.kind, first.body, second.kind, second.body) == (
                MessageKind.DONE,
                b"a",
                MessageKind.DONE,
                b"b",
            )
            await stage.server.acknowledge([first.number])
            await stage.server.offer([offer()])
            assert await hand.take() == []
            await stage.server.acknowledge([second.number])
            assert await stage.server.missing(["k"]) == {"k"}

        self.play(story)

    def test_an_end_without_a_body_is_heard_of(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            a, b = await stage.holding(hand, offer("a"), offer("b"))
            assert await hand.say(a)
            assert await stage.messages() == []
            assert await hand.say(a, kind=MessageKind.DONE)
            assert await hand.say(b, kind=MessageKind.RETURNED)
            assert await stage.receive() == [("a", 1, MessageKind.DONE, b""), ("b", 1, MessageKind.RETURNED, b"")]
            assert not await hand.say(a)

        self.play(story)

    def test_a_holder_cannot_say_what_the_reaper_finds(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            for kind in (MessageKind.LOST, MessageKind.STALE):
                with pytest.raises(Refused, match=f"`{kind.value}`"):
                    await hand.say(held, b"", kind=kind)
            assert await hand.done(held)

        self.play(story)

    # -- hearing ------------------------------------------------------------------------------------------------------

    def test_a_note_is_shown_until_it_is_heard(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.worker(), stage.another_server()
            (held,) = await stage.holding(hand)
            await hand.say(held, b"a", b"b", b"c")
            a, b, c = await stage.messages()
            assert await other.messages(ALL, 10, 0.0) == [a, b, c]
            await other.acknowledge([b.number])
            await stage.server.acknowledge([b.number, 10**12])
            assert await stage.messages() == [a, c]
            assert await stage.messages(limit=1) == [a]
            await stage.server.acknowledge([a.number, c.number])
            assert await stage.messages() == []

        self.play(story)

    def test_notes_are_shown_to_the_owner_of_their_partition(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            runs = [f"run-{number}" for number in range(8)]
            leases = await stage.holding(hand, *(offer(f"{run}/k", run) for run in runs))
            for held in leases:
                await hand.say(held, b"word")
            partitions = {run: partition_of(run) for run in runs}
            for run in runs:
                shown = {message.execution_id for message in await stage.messages({partitions[run]})}
                assert shown == {other for other in runs if partitions[other] == partitions[run]}
            nobody = set(ALL) - set(partitions.values())
            assert await stage.messages(nobody) == []
            assert await stage.messages([]) == []

        self.play(story)

    def test_who_waits_for_notes_is_called(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            mine, others = await stage.holding(hand, offer("mine", "run-1"), offer("other", "run-2"))
            assert partition_of("run-1") != partition_of("run-2")
            waiting = asyncio.ensure_future(stage.another_server().messages({partition_of("run-1")}, 10, 60.0))
            await asyncio.sleep(A_LITTLE)
            await hand.say(others, b"not for him")
            await asyncio.sleep(A_LITTLE)
            assert not waiting.done()
            await hand.say(mine, b"word")
            assert [message.body for message in await waiting] == [b"word"]

        self.play(story)

    def test_who_waits_for_notes_hears_of_losses_too(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            await stage.holding(hand, offer("a"))
            await stage.holding(other, offer("b"))
            waiting = asyncio.ensure_future(stage.another_server().messages(ALL, 10, 60.0))
            await asyncio.sleep(A_LITTLE)
            await hand.intake.retire(hand.id)
            (message,) = await waiting
            assert (message.key, message.kind, message.worker) == ("a", MessageKind.LOST, "w1")
            await stage.server.acknowledge([message.number])
            waiting = asyncio.ensure_future(stage.another_server().messages(ALL, 10, 60.0))
            await asyncio.sleep(A_LITTLE)
            await stage.run_out()
            assert [message.key for message in await waiting] == ["b"]

        self.play(story)

    def test_who_waits_for_notes_in_vain_gets_none(self) -> None:
        async def story(stage: Stage) -> None:
            assert await stage.messages(wait_s=A_LITTLE) == []

        self.play(story)

    # -- telling ------------------------------------------------------------------------------------------------------

    def test_what_is_told_reaches_the_holder_and_nobody_else(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            await stage.holding(hand)
            assert await stage.server.send("k", b"stop")
            (told,) = await hand.commands()
            assert (told.key, told.attempt, told.body) == ("k", 1, b"stop")
            assert await other.commands() == []

        self.play(story)

    def test_nobody_is_told_what_nobody_holds(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([offer("waiting", pool="x")])
            (held,) = await stage.holding(hand)
            await hand.done(held)
            for key in ("waiting", "k", "unknown"):
                assert not await stage.server.send(key, b"stop")
            assert await hand.commands() == []

        self.play(story)

    def test_what_was_told_to_a_holder_is_nothing_to_the_next_one(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            await stage.holding(hand)
            await stage.server.send("k", b"for the first")
            await stage.run_out()
            await stage.server.offer([offer()])
            await other.take_one()
            assert await other.commands() == []
            assert await hand.commands() == []
            await stage.server.send("k", b"for the second")
            assert [told.body for told in await other.commands()] == [b"for the second"]
            assert await hand.commands() == []

        self.play(story)

    def test_nor_is_it_to_the_same_worker_with_the_next_attempt(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            await stage.server.send("k", b"for the first")
            await hand.give_back(held)
            await stage.server.offer([offer()])
            await hand.take_one()
            assert await hand.commands() == []

        self.play(story)

    def test_nor_is_it_when_the_key_is_offered_anew_after_its_end(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            await stage.server.send("k", b"for the first")
            await hand.done(held)
            await stage.receive()
            await stage.server.offer([offer()])
            assert (await hand.take_one()).attempt == 1
            assert await hand.commands() == []

        self.play(story)

    def test_what_is_told_is_shown_until_it_is_seen(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            await stage.holding(hand)
            await stage.server.send("k", b"one")
            await stage.another_server().send("k", b"two")
            one, two = await hand.commands()
            assert (one.body, two.body) == (b"one", b"two")
            assert await other.commands(seen=[one.number, two.number]) == []
            assert await hand.commands() == [one, two]
            assert await hand.commands(seen=[one.number]) == [two]
            assert await hand.commands(seen=[two.number]) == []

        self.play(story)

    def test_who_waits_to_be_told_is_called(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.holding(hand)
            waiting = asyncio.ensure_future(hand.commands(wait_s=60.0))
            await asyncio.sleep(A_LITTLE)
            assert not waiting.done()
            await stage.server.send("k", b"stop")
            assert [told.body for told in await waiting] == [b"stop"]

        self.play(story)
