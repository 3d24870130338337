"""Workers and servers over NATS when answers are lost, servers freeze and wake up, and messages are large or strange."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import nats
import pytest

from penstock.adapters.memory.dispatch import MemoryDispatch, MemoryDispatchStore, MemoryIntake
from penstock.adapters.nats import intake as nats_intake
from penstock.adapters.nats import wire as nats_wire
from penstock.adapters.nats.dispatch import NatsDispatch
from penstock.adapters.nats.intake import NatsIntake
from penstock.adapters.nats.wire import Letter, packed, read_answer
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.dispatch import Held, MessageKind, WorkerCard
from tests.adapters.nats_stages import Fleet, until
from tests.contracts.dispatch_nats import NatsMemoryScene
from tests.contracts.dispatch_scenes import A_LITTLE, Stage, keys, offer, offers
from tests.servers import nats_server, nats_url

__all__ = ["nats_url"]

Story = Callable[[Fleet], Awaitable[None]]


@pytest.fixture
def play(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[Story], None]:
    monkeypatch.setattr(nats_intake, "FIRST_TRY", 0.1)

    def play(story: Story) -> None:
        scene = NatsMemoryScene(nats_url)

        async def main() -> None:
            fleet = Fleet(scene)
            try:
                await story(fleet)
            finally:
                await fleet.close()

        scene.run(main())

    return play


# ---- answers that are lost


@pytest.mark.parametrize("kind", [MessageKind.REPORTED, MessageKind.ASKED, MessageKind.RETURNED, MessageKind.DONE])
def test_a_word_whose_answer_is_lost_is_kept_once_when_another_server_is_asked(
    play: Callable[[Story], None], kind: MessageKind
) -> None:
    async def story(fleet: Fleet) -> None:
        hand = await fleet.worker()
        (held,) = await fleet.holding(hand)
        await fleet.frozen(after=True)
        saying = asyncio.ensure_future(hand.say(held, b"word", kind=kind))
        await fleet.intake.is_frozen.wait()
        fleet.thawed_server()
        assert await saying
        assert await fleet.receive() == [("k", 1, kind, b"word")]

    play(story)


def test_an_end_whose_answer_is_lost_is_known_even_when_it_has_been_heard_meanwhile(
    play: Callable[[Story], None],
) -> None:
    async def story(fleet: Fleet) -> None:
        hand = await fleet.worker()
        (held,) = await fleet.holding(hand)
        await fleet.frozen(after=True)
        saying = asyncio.ensure_future(hand.done(held))
        await fleet.intake.is_frozen.wait()
        assert await fleet.receive() == [("k", 1, MessageKind.DONE, b"end")]
        fleet.thawed_server()
        assert await saying
        assert await fleet.receive() == []

    play(story)


def test_a_claim_whose_answer_is_lost_is_granted_the_same_by_another_server(play: Callable[[Story], None]) -> None:
    async def story(fleet: Fleet) -> None:
        hand, other = await fleet.workers(2)
        await fleet.server.offer(offers(5))
        await fleet.frozen(after=True)
        taking = asyncio.ensure_future(hand.take(2))
        await fleet.intake.is_frozen.wait()
        fleet.thawed_server()
        granted = await taking
        assert [(held.key, held.attempt) for held in granted] == [("run-1/000", 1), ("run-1/001", 1)]
        assert len(await other.take(9)) == 3

    play(story)


def test_a_server_that_wakes_up_late_carries_out_nothing_that_others_have_done(play: Callable[[Story], None]) -> None:
    """What it was asked before it froze has been answered by another server, and more was said since."""

    async def story(fleet: Fleet) -> None:
        hand = await fleet.worker()
        (held,) = await fleet.holding(hand)
        await fleet.frozen(before=True)
        saying = asyncio.ensure_future(hand.say(held, b"one"))
        await fleet.intake.is_frozen.wait()
        other = fleet.thawed_server()
        assert await saying
        assert await hand.say(held, b"two")
        before = fleet.answered
        fleet.intake.thaw.set()
        await until(lambda: fleet.answered > before)
        assert [message.body for message in await other.messages(range(256), 10, 0.0)] == [b"one", b"two"]
        assert await hand.done(held)
        assert [body for *_, body in await fleet.receive()] == [b"one", b"two", b"end"]

    play(story)


def test_what_a_late_server_grants_to_a_call_that_was_answered_is_given_up(play: Callable[[Story], None]) -> None:
    async def story(fleet: Fleet) -> None:
        hand, other = await fleet.workers(2)
        await fleet.server.offer(offers(4))
        await fleet.frozen(before=True)
        taking = asyncio.ensure_future(hand.take(2))
        await fleet.intake.is_frozen.wait()
        fleet.thawed_server()
        granted = await taking
        assert keys(granted) == ["run-1/000", "run-1/001"]
        # Its leases are the same no more, once it has spoken under them: the late claim is granted others.
        for held in granted:
            assert await hand.say(held, b"word")
        fleet.intake.thaw.set()
        again: list[Held] = []
        while len(again) < 2:
            again += await other.take(4 - len(again), wait_s=10.0)
        assert sorted((held.key, held.attempt) for held in again) == [("run-1/002", 2), ("run-1/003", 2)]
        for held in granted:
            assert await hand.done(held)

    play(story)


def test_a_server_that_does_not_answer_is_asked_no_more_while_another_does(play: Callable[[Story], None]) -> None:
    async def story(fleet: Fleet) -> None:
        hand = await fleet.worker()
        leases = await fleet.holding(hand, *offers(30))
        await fleet.frozen(before=True)
        saying = asyncio.ensure_future(hand.say(leases[0], b"word"))
        await fleet.intake.is_frozen.wait()
        other = fleet.thawed_server()
        assert await saying
        before = other.figures()["letters_answered"]
        for held in leases:
            assert await hand.done(held)
        assert other.figures()["letters_answered"] - before == len(leases)

    play(story)


def test_a_server_that_closes_answers_what_it_was_asked_and_others_go_on(nats_url: str) -> None:
    scene = NatsMemoryScene(nats_url)

    async def story() -> None:
        stage = Stage(scene)
        hand, other = await stage.workers(2)
        leases = await stage.holding(hand, *offers(60))
        servers = [scene.dispatch(), scene.dispatch()]

        async def close_both() -> None:
            for server in servers:
                await asyncio.sleep(0.01)
                await server.close()

        ends = [hand.done(held) for held in leases]
        results = await asyncio.gather(close_both(), *ends)
        assert all(results[1:])
        assert len(await stage.receive()) == 60
        assert await other.take() == []
        await stage.close()

    scene.run(story())


@pytest.mark.parametrize("kind", [MessageKind.REPORTED, MessageKind.DONE])
def test_a_word_said_again_after_there_was_no_answer_is_the_same_word(
    play: Callable[[Story], None], kind: MessageKind
) -> None:
    async def story(fleet: Fleet) -> None:
        hand = await fleet.worker()
        hand.intake = NatsIntake(fleet.nats.network.url, fleet.nats.prefix, patience_s=0.3)
        (held,) = await fleet.holding(hand)
        await fleet.frozen(after=True)
        with pytest.raises(Unavailable, match="no server of the fleet answers"):
            await hand.say(held, b"word", kind=kind)
        assert await fleet.receive() == [("k", 1, kind, b"word")]
        fleet.intake.thaw.set()
        assert await hand.say(held, b"word", kind=kind)
        assert await fleet.receive() == []
        # The next one is another, though it has the same words.
        assert await hand.say(held, b"word") == (kind is MessageKind.REPORTED)
        assert len(await fleet.receive()) == (kind is MessageKind.REPORTED)
        await hand.intake.close()

    play(story)


# ---- what is large, and what is strange


def test_what_is_larger_than_a_message_goes_in_parts(tmp_path: Path) -> None:
    with nats_server(tmp_path, config="max_payload: 10240") as server:
        scene = NatsMemoryScene(server.url)

        async def story() -> None:
            stage = Stage(scene)
            hand = await stage.worker()
            content = bytes(range(256)) * 400
            leases = await stage.holding(hand, *offers(6, payload=content))
            assert [held.payload for held in leases] == [content] * 6
            words = [content + b"%d" % number for number in range(20)]
            assert all(await asyncio.gather(*(hand.say(held, *words) for held in leases)))
            await stage.server.send(leases[0].key, content)
            assert [told.body for told in await hand.commands()] == [content]
            heard = await stage.receive()
            for held in leases:
                assert [body for key, *_, body in heard if key == held.key] == words
            await stage.close()

        scene.run(story())


def test_a_server_of_another_version_refuses_and_says_so(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = NatsMemoryScene(nats_url)

    async def story() -> None:
        stage = Stage(scene)
        hand = await stage.worker()
        monkeypatch.setattr(nats_intake, "VERSION", 99)
        with pytest.raises(Refused, match="speaks version 99") as refused:
            await hand.intake.now()
        assert refused.value.hint is not None
        await stage.close()

    scene.run(story())


def test_strange_messages_are_refused_or_ignored_and_harm_nobody(nats_url: str) -> None:
    scene = NatsMemoryScene(nats_url)

    async def story() -> None:
        stage = Stage(scene)
        hand = await stage.worker()
        client = await nats.connect(nats_url)
        subject = f"{scene.prefix}.rpc"
        answer = await client.request(subject, b"W\xc1 no letter", timeout=10)
        problem = read_answer(answer.data[1:]).problem
        assert problem is not None
        assert problem.is_refused
        for strange in (b"", b"X", b"P", b"P" + bytes(20)):
            await client.publish(subject, strange, reply="nobody.listens")
        await client.publish(subject, b"W" + packed(Letter(1, False, nats_wire.AskingTime())))
        await client.publish(f"{scene.prefix}.told.w1", b"strange")
        await client.flush()
        (held,) = await stage.holding(hand)
        assert await hand.done(held)
        assert isinstance(stage.server, NatsDispatch)
        assert stage.server.figures()["letters_unreadable"] >= 3
        await client.close()
        await stage.close()

    scene.run(story())


MAY = """
authorization {
  users = [
    {user: server, password: s, permissions: {
      publish: ["penstock.>", "$JS.API.>", "_INBOX.>"],
      subscribe: ["penstock.>", "_INBOX.>", "$JS.EVENT.ADVISORY.CONSUMER.>"]}},
    {user: worker, password: w, permissions: {
      publish: ["penstock.rpc", "penstock.rpc.*", "penstock.hello",
        "$JS.API.CONSUMER.MSG.NEXT.penstock_WORK.*", "$JS.ACK.penstock_WORK.>"],
      subscribe: ["_INBOX.>", "penstock.told.*"]}}
  ]
}
"""


def test_users_of_nats_need_no_more_rights_than_the_guide_says(tmp_path: Path) -> None:
    with nats_server(tmp_path, config=MAY) as server:

        async def main() -> None:
            dispatch_store, place = MemoryDispatchStore(), server.url.removeprefix("nats://")
            dispatch = NatsDispatch(
                MemoryDispatch(dispatch_store), MemoryIntake(dispatch_store), f"nats://server:s@{place}", level_s=0.05
            )
            intake = NatsIntake(f"nats://worker:w@{place}")
            await dispatch.ready()
            await intake.enlist(WorkerCard("w1", "w1"))
            waiting = asyncio.ensure_future(intake.take("w1", 1, 1, 60.0))
            await asyncio.sleep(A_LITTLE)
            await dispatch.offer([offer("for-others", needs=frozenset({"gpu"})), offer()])
            assert keys(await waiting) == ["k"]
            telling = asyncio.ensure_future(intake.commands("w1", 60.0))
            await asyncio.sleep(A_LITTLE)
            assert await dispatch.send("k", b"news")
            assert [told.body for told in await telling] == [b"news"]
            assert await intake.say("w1", "k", 1, MessageKind.DONE, [b"x" * 3_000_000])
            await intake.close()
            await dispatch.close()

        asyncio.run(main())
        assert "iolation" not in (tmp_path / "log").read_text()
