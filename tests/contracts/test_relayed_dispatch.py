"""What a store keeps to when calls of workers are passed on to it: late, twice, or by two ways at once."""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import cast
from uuid import UUID

import pytest

from penstock.adapters.dispatch import RelayedDispatch, RelayedIntake, next_token
from penstock.ports.dispatch import Held, MessageKind
from tests.contracts.dispatch_scenes import DispatchScenes, Hand, Scene, Stage, keys, offer, offers
from tests.contracts.dispatch_stores import MemoryScene, PostgresScene
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


async def claim(
    hand: Hand, token: UUID, *, room: int = 1, is_repeated: bool = False, by: Hand | None = None
) -> list[Held]:
    """`by`: whose end it goes by."""
    intake = cast(RelayedIntake, (by or hand).intake)
    return await intake.claim(hand.id, room, room, token, is_repeated=is_repeated)


async def say(
    hand: Hand,
    held: Held,
    word: bytes,
    token: UUID,
    *,
    kind: MessageKind = MessageKind.REPORTED,
    is_repeated: bool = False,
) -> bool:
    intake = cast(RelayedIntake, hand.intake)
    return await intake.say_as(hand.id, held.key, held.attempt, kind, [word], token, is_repeated=is_repeated)


class RelayedContract(DispatchScenes):
    @abstractmethod
    def scene(self) -> Scene: ...

    def test_a_claim_that_is_repeated_is_granted_the_same_leases(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            await stage.server.offer(offers(5))
            token = next_token()
            first = await claim(hand, token, room=2)
            assert await claim(hand, token, room=2, is_repeated=True, by=other) == first
            assert len(await other.take(9)) == 3
            assert await claim(hand, token, room=2, is_repeated=True) == first

        self.play(story)

    def test_a_claim_that_is_repeated_and_had_not_been_carried_out_is_carried_out(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer(offers(2))
            assert len(await claim(hand, next_token(), room=2, is_repeated=True)) == 2

        self.play(story)

    def test_what_is_given_up_waits_again_in_its_place_with_the_next_attempt(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            await stage.server.offer(offers(3))
            token = next_token()
            (gone,) = await claim(hand, token)
            await cast(RelayedIntake, hand.intake).give_up(hand.id, token, [gone.key, "unknown"])
            assert not await hand.done(gone)
            again = await other.take(3)
            assert [(held.key, held.attempt) for held in again] == [
                ("run-1/000", 2),
                ("run-1/001", 1),
                ("run-1/002", 1),
            ]
            assert await stage.messages() == []

        self.play(story)

    def test_only_what_that_very_call_was_granted_is_given_up(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            await stage.server.offer(offers(3))
            token = next_token()
            (mine,) = await claim(hand, token)
            (later,) = await claim(hand, next_token())
            theirs = await other.take_one()
            intake = cast(RelayedIntake, hand.intake)
            await intake.give_up(hand.id, next_token(), [mine.key])
            await intake.give_up(hand.id, token, [later.key, theirs.key])
            await intake.give_up(other.id, token, [mine.key])
            assert await hand.done(mine)
            assert await hand.done(later)
            assert await other.done(theirs)

        self.play(story)

    def test_a_word_that_is_repeated_is_kept_once(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            token = next_token()
            assert await say(hand, held, b"word", token)
            assert await say(hand, held, b"word", token, is_repeated=True)
            assert await say(hand, held, b"word", token)
            assert [body for *_, body in await stage.receive()] == [b"word"]

        self.play(story)

    def test_a_word_that_was_overtaken_by_a_later_one_is_not_kept_again(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            first, second = next_token(), next_token()
            assert await say(hand, held, b"one", first)
            assert await say(hand, held, b"two", second)
            assert not await say(hand, held, b"one", first)
            assert not await say(hand, held, b"one", first, is_repeated=True)
            assert [body for *_, body in await stage.receive()] == [b"one", b"two"]

        self.play(story)

    @pytest.mark.parametrize("kind", [MessageKind.DONE, MessageKind.RETURNED])
    def test_an_end_that_is_repeated_is_kept_once_and_answered_as_before(self, kind: MessageKind) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            token = next_token()
            assert await say(hand, held, b"end", token, kind=kind)
            assert await say(hand, held, b"end", token, kind=kind, is_repeated=True)
            assert await stage.receive() == [("k", 1, kind, b"end")]
            assert await say(hand, held, b"end", token, kind=kind, is_repeated=True)
            assert await stage.receive() == []

        self.play(story)

    def test_a_late_end_harms_no_later_lease_of_the_same_worker_and_number(self) -> None:
        """What is done and heard may be offered anew, and then counts its attempts from 1 again."""

        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            token = next_token()
            assert await say(hand, held, b"end", token, kind=MessageKind.DONE)
            await stage.receive()
            await stage.server.offer([offer()])
            again = await hand.take_one()
            assert (again.key, again.attempt) == (held.key, held.attempt)
            assert not await say(hand, held, b"end", token, kind=MessageKind.DONE, is_repeated=True)
            assert await stage.messages() == []
            assert await hand.done(again)

        self.play(story)

    def test_who_tells_knows_who_will_be_told(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.holding(hand)
            server = cast(RelayedDispatch, stage.server)
            assert await server.send_to_holder("k", b"word") == hand.id
            assert await server.send_to_holder("unknown", b"word") is None
            assert [told.body for told in await hand.commands()] == [b"word"]

        self.play(story)

    def test_claims_take_turns_and_keep_to_their_room_like_any_other(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([*offers(5, "loop", is_range=True), offer("step", "loop")])
            assert await claim(hand, next_token(), room=0) == []
            intake = cast(RelayedIntake, hand.intake)
            assert keys(await intake.claim(hand.id, 5, 1, next_token(), is_repeated=False)) == ["step", "loop/000"]
            await hand.beat(draining=True)
            assert await claim(hand, next_token()) == []

        self.play(story)


class TestRelayedMemory(RelayedContract):
    def scene(self) -> Scene:
        return MemoryScene()


class TestRelayedPostgres(RelayedContract):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def scene(self) -> Scene:
        return PostgresScene(self.url)


def test_tokens_rise_and_are_each_given_once() -> None:
    found: list[list[UUID]] = [[] for _ in range(4)]

    def draw(tokens: list[UUID]) -> None:
        for _ in range(2_000):
            tokens.append(next_token())

    threads = [threading.Thread(target=draw, args=(tokens,)) for tokens in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(tokens == sorted(tokens) for tokens in found)
    assert len({token for tokens in found for token in tokens}) == 8_000
