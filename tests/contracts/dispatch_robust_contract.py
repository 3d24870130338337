"""What every dispatch keeps to whatever is passed through it, with several ends of it, and when connections break."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.ports.dispatch import Held, MessageKind
from penstock.ports.log import partition_of
from tests.contracts.dispatch_scenes import A_LITTLE, ALL, LEASE_S, DispatchScenes, Stage, offer, offers


class RobustContract(DispatchScenes):
    @pytest.mark.parametrize("size", [0, 1, 1_000_000])
    def test_contents_of_any_size_come_through_whole(self, size: int) -> None:
        async def story(stage: Stage) -> None:
            content = bytes(range(256)) * (size // 256) + bytes(size % 256)
            hand = await stage.worker()
            (held,) = await stage.holding(hand, offer(payload=content))
            assert held.payload == content
            await stage.server.send("k", content)
            assert [told.body for told in await hand.commands()] == [content]
            await hand.beat(held, cursor=content)
            await hand.say(held, content)
            await stage.run_out()
            assert await stage.receive() == [
                ("k", 1, MessageKind.REPORTED, content),
                ("k", 1, MessageKind.LOST, content),
            ]

        self.play(story)

    @pytest.mark.parametrize("name", ["ключ/ä/🚰", "a'b\"c\\d%s{}", "with \u0000 and \u001a0", "x" * 2000, " "])
    def test_names_may_be_any_text(self, name: str) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker(name, pool=name, can=frozenset({name, "x"}), version=name)
            terms: dict[str, Any] = {"pool": name, "needs": frozenset({name}), "limits": ((name, 1),)}
            (held,) = await stage.holding(hand, offer(name, name, **terms))
            assert (held.key, held.execution_id) == (name, name)
            assert await hand.beat(held) == frozenset()
            assert await stage.server.send(name, b"word")
            assert [told.key for told in await hand.commands()] == [name]
            (seen,) = await stage.server.leases(name)
            assert (seen.key, seen.pool, seen.worker) == (name, name, name)
            await hand.done(held)
            (message,) = await stage.messages({partition_of(name)})
            assert (message.key, message.execution_id, message.worker) == (name, name, name)
            await stage.server.acknowledge([message.number])
            assert await stage.server.missing([name]) == {name}
            await stage.server.offer([offer(name, name, **terms)])
            assert await stage.server.waiting() == {name: 1}
            assert await stage.server.withdraw([name]) == {name}
            assert [one.card for one in await stage.server.workers()] == [hand.card]
            await stage.server.forget(name)
            await hand.intake.retire(name)

        self.play(story)

    # -- several ends, bad days ---------------------------------------------------------------------------------------

    def test_two_servers_and_two_workers_share_one_store(self) -> None:
        async def story(stage: Stage) -> None:
            other = stage.another_server()
            one, two = await stage.workers(2)
            await asyncio.gather(stage.server.offer(offers(4)), other.offer(offers(6)))
            first, second = await one.take(3), await two.take(9)
            assert len(first) + len(second) == 6
            for hand, leases in ((one, first), (two, second)):
                for held in leases:
                    assert await hand.done(held)
            assert len(await other.messages(ALL, 10, 0.0)) == 6
            assert len(await stage.receive()) == 6
            assert await other.messages(ALL, 10, 0.0) == []

        self.play(story)

    def test_connections_that_break_are_made_again(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer(offers(12))
            for number in range(4):
                await stage.scene.cut()
                held = await hand.take_one()
                await stage.scene.cut()
                assert await hand.beat(held) == frozenset()
                await stage.scene.cut()
                assert await hand.done(held)
                await stage.scene.cut()
                assert [key for key, *_ in await stage.receive()] == [f"run-1/{number:03}"]

        self.play(story)

    def test_who_waits_when_the_connection_breaks_is_still_called(self) -> None:
        async def story(stage: Stage) -> None:
            hand, server = await stage.worker(), stage.another_server()
            await server.now()
            (held,) = await stage.holding(hand)
            waits = asyncio.gather(hand.take(wait_s=60.0), hand.commands(wait_s=60.0), server.messages(ALL, 10, 60.0))
            await asyncio.sleep(A_LITTLE)
            await stage.scene.cut()
            await stage.server.offer([offer("next")])
            await stage.server.send("k", b"word")
            await hand.say(held, b"word")
            granted, told, messages = await waits
            assert (len(granted), len(told), len(messages)) == (1, 1, 1)

        self.play(story)

    def test_nothing_said_is_lost_or_said_twice_when_connections_break_at_any_moment(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            leases = await stage.holding(hand, *offers(30, lease_s=LEASE_S * 100))
            words = [b"%02d" % number for number in range(5)]

            async def speak(held: Held) -> None:
                for word in words:
                    assert await hand.say(held, word)
                assert await hand.done(held)

            async def cut() -> None:
                for _ in range(6):
                    await asyncio.sleep(0.005)
                    await stage.scene.cut()

            await asyncio.gather(cut(), *map(speak, leases))
            heard = await stage.receive()
            for held in leases:
                assert [body for key, _, _, body in heard if key == held.key] == [*words, b"end"]

        self.play(story)
