"""What every dispatch keeps to while leases are held: signs of life, progress, and what becomes of those who give none."""

from __future__ import annotations

import asyncio

import pytest

from penstock.ports.dispatch import MessageKind, Pulse, WorkerCard
from tests.contracts.dispatch_scenes import LEASE_S, DispatchScenes, Stage, keys, offer, offers

ALMOST = LEASE_S - 1


async def rows_seen(stage: Stage) -> dict[str, bytes]:
    """Lease -> the rows that are shown of it, which do not depend on who is asked."""
    first, second = [
        {one.key: one.rows for one in await server.leases("run-1")} for server in (stage.server, stage.another_server())
    ]
    assert first == second == {one.key: one.rows for one in await stage.server.leases()}
    return first


class HoldingContract(DispatchScenes):
    @pytest.mark.clause("F7.1")
    def test_a_lease_runs_out_when_its_time_is_over_and_not_before(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.holding(hand, offer("k"), offer("longer", lease_s=3 * LEASE_S))
            await stage.pass_time(ALMOST)
            assert await stage.server.reap() == 0
            await stage.pass_time(2)
            assert await stage.server.reap() == 1
            assert await stage.receive() == [("k", 1, MessageKind.LOST, b"")]
            assert await stage.server.reap() == 0

        self.play(story)

    def test_a_sign_of_life_renews_the_lease(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            for _ in range(5):
                await stage.pass_time(ALMOST)
                assert await hand.beat(held) == frozenset()
                assert await stage.server.reap() == 0
            assert await hand.done(held)

        self.play(story)

    def test_only_what_a_sign_of_life_names_is_renewed(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            named, _ = await stage.holding(hand, offer("named"), offer("unnamed"))
            await stage.pass_time(ALMOST)
            await hand.beat(named)
            await stage.pass_time(2)
            assert await stage.server.reap() == 1
            assert [key for key, *_ in await stage.receive()] == ["unnamed"]

        self.play(story)

    def test_what_a_holder_says_is_no_sign_of_life(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            await stage.pass_time(ALMOST)
            await hand.say(held, b"word")
            await stage.pass_time(2)
            assert await stage.server.reap() == 1

        self.play(story)

    def test_a_sign_of_life_tells_what_is_lost(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            kept, lost = await stage.holding(hand, offer("kept", lease_s=100.0), offer("lost"))
            await stage.run_out()
            await stage.server.offer([offer("lost")])
            assert await hand.beat(kept, lost) == {"lost"}
            assert keys(await other.take(2)) == ["lost"]
            assert await hand.beat(kept, lost) == {"lost"}
            # The same worker may get it again; its old attempt is not its own all the same.
            assert await hand.intake.beat(hand.id, {"kept": Pulse(kept.attempt + 1), "never": Pulse(1)}) == {
                "kept",
                "never",
            }

        self.play(story)

    def test_a_late_holder_may_renew_until_somebody_has_looked(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            await stage.pass_time(LEASE_S * 3)
            assert await hand.beat(held) == frozenset()
            assert await stage.server.reap() == 0
            assert await hand.done(held)

        self.play(story)

    def test_a_late_holder_may_end_what_nobody_has_missed(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand)
            await stage.pass_time(LEASE_S * 3)
            assert await hand.done(held)
            assert await stage.server.reap() == 0
            assert await stage.receive() == [("k", 1, MessageKind.DONE, b"end")]

        self.play(story)

    def test_reaper_and_sign_of_life_agree_on_each_lease(self) -> None:
        async def story(stage: Stage) -> None:
            hand, *_ = await stage.workers(2)
            servers = [stage.server, stage.another_server()]
            for number in range(6):
                leases = await stage.holding(hand, *offers(10, f"run-{number}"))
                await stage.pass_time(LEASE_S + 1)
                reaping = asyncio.gather(*(server.reap() for server in servers))
                lost = await hand.beat(*leases)
                assert sum(await reaping) == len(lost)
                heard = await stage.receive()
                assert {(key, kind) for key, _, kind, _ in heard} == {(key, MessageKind.LOST) for key in lost}
                for held in leases:
                    assert await hand.done(held) == (held.key not in lost)
                await stage.receive()

        self.play(story)

    @pytest.mark.clause("F3.1")
    def test_a_lost_lease_is_noted_once_however_many_look_for_it(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            servers = [stage.another_server() for _ in range(4)]
            await stage.holding(hand, *offers(40))
            await stage.pass_time(LEASE_S + 1)
            counts = await asyncio.gather(*(server.reap() for server in servers))
            assert sum(counts) == 40
            heard = await stage.receive()
            assert sorted(key for key, *_ in heard) == [one.key for one in offers(40)]
            assert await stage.server.reap() == 0

        self.play(story)

    def test_the_note_of_a_loss_has_what_the_last_sign_of_life_carried(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            a, b = await stage.holding(hand, offer("a"), offer("b"))
            await hand.beat(a, b, cursor=b"at 5")
            await hand.beat(a, cursor=b"at 9")
            await hand.beat(a, b)
            await stage.run_out()
            assert sorted(await stage.receive()) == [
                ("a", 1, MessageKind.LOST, b"at 9"),
                ("b", 1, MessageKind.LOST, b"at 5"),
            ]
            await stage.server.offer([offer("a")])
            await hand.take()
            await stage.run_out()
            assert await stage.receive() == [("a", 2, MessageKind.LOST, b"")]

        self.play(story)

    # -- progress -----------------------------------------------------------------------------------------------------

    def test_a_holder_that_lives_and_makes_no_progress_loses_the_lease(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            stuck, patient = await stage.holding(hand, offer("stuck", stall_s=25.0), offer("patient"))
            for _ in range(3):
                await stage.pass_time(8)
                assert await hand.beat(stuck, patient, progress=0) == frozenset()
                assert await stage.server.reap() == 0
            await stage.pass_time(3)
            assert await stage.server.reap() == 1
            assert await stage.receive() == [("stuck", 1, MessageKind.LOST, b"")]
            assert await hand.beat(stuck, patient) == {"stuck"}

        self.play(story)

    def test_progress_in_either_direction_keeps_the_lease(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand, offer(stall_s=15.0))
            for progress in (5, 4, 10**15, -3):
                await stage.pass_time(8)
                assert await hand.beat(held, progress=progress) == frozenset()
                assert await stage.server.reap() == 0
            await stage.pass_time(8)
            await hand.beat(held, progress=-3)
            assert await stage.server.reap() == 0
            await stage.pass_time(8)
            assert await stage.server.reap() == 1

        self.play(story)

    def test_progress_that_comes_before_the_reaper_saves_the_lease(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            (held,) = await stage.holding(hand, offer(stall_s=5.0))
            await stage.pass_time(6)
            await hand.beat(held, progress=1)
            assert await stage.server.reap() == 0

        self.play(story)

    def test_a_lease_is_no_longer_than_its_time_because_it_may_stall_longer(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.holding(hand, offer(stall_s=1000.0))
            assert await stage.run_out() == 1

        self.play(story)

    # -- going --------------------------------------------------------------------------------------------------------

    def test_what_a_worker_that_retires_still_holds_comes_back_at_once(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            a, b = await stage.holding(hand, offer("a"), offer("b"))
            (c,) = await stage.holding(other, offer("c"))
            await hand.beat(a, cursor=b"at 3")
            await hand.done(b)
            await stage.receive()
            await hand.intake.retire(hand.id)
            assert await stage.receive() == [("a", 1, MessageKind.LOST, b"at 3")]
            assert not await hand.done(a)
            assert [seen.card.id for seen in await stage.server.workers()] == ["w2"]
            assert await other.done(c)
            await hand.intake.retire(hand.id)

        self.play(story)

    def test_who_has_retired_takes_nothing(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await hand.intake.retire(hand.id)
            await stage.server.offer([offer()])
            assert await hand.take() == []

        self.play(story)

    def test_a_worker_that_is_started_again_under_its_name_is_another_one(self) -> None:
        async def story(stage: Stage) -> None:
            old = await stage.worker("first life", name="host-1")
            (held,) = await stage.holding(old)
            new = await stage.worker("second life", name="host-1")
            assert await new.beat(held) == {"k"}
            assert not await new.done(held)
            seen = {one.card.id: (one.card.name, one.held) for one in await stage.server.workers()}
            assert seen == {"first life": ("host-1", 1), "second life": ("host-1", 0)}
            await stage.pass_time(ALMOST)
            await new.beat()
            await stage.pass_time(2)
            assert await stage.server.reap() == 1

        self.play(story)

    # -- seen by others -----------------------------------------------------------------------------------------------

    def test_workers_are_seen_with_what_they_hold_and_how_long_ago_they_were_heard_of(self) -> None:
        async def story(stage: Stage) -> None:
            card = WorkerCard("w1", "ä host", "gpu", 7, frozenset({"http", "python"}), "1.2")
            hand = await stage.worker("w0")
            await hand.intake.enlist(card)
            await stage.holding(hand, *offers(3))
            await stage.pass_time(4)
            await hand.intake.beat("w1", {}, draining=True)
            await stage.pass_time(7)
            first, second = await stage.server.workers()
            assert (first.card, first.held, first.is_alive, first.is_draining) == (hand.card, 3, False, False)
            assert (second.card, second.held, second.is_alive, second.is_draining) == (card, 0, True, True)
            assert 10.9 < first.age_s < 60
            assert 6.9 < second.age_s < 60

        self.play(story)

    def test_a_worker_that_died_long_ago_is_listed_no_more(self) -> None:
        async def story(stage: Stage) -> None:
            await stage.worker()
            await stage.pass_time(2 * 3600.0)
            await stage.another_server().reap()
            assert await stage.server.workers() == []

        self.play(story)

    def test_leases_are_seen_while_they_wait_and_while_they_are_held(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            await stage.server.offer([offer("a"), offer("b", pool="gpu"), offer("c", "run-2")])
            (held,) = await hand.take(1)
            await stage.pass_time(3)
            a, b = await stage.server.leases("run-1")
            assert (a.key, a.execution_id, a.pool, a.attempt, a.worker) == ("a", "run-1", "default", 1, "w1")
            assert (b.key, b.pool, b.worker, b.left_s) == ("b", "gpu", None, None)
            assert 2.9 < a.age_s < 60
            assert a.left_s is not None
            assert LEASE_S - 60 < a.left_s < LEASE_S - 2.9
            assert [one.key for one in await stage.server.leases()] == ["a", "b", "c"]
            assert [one.key for one in await stage.server.leases(limit=2)] == ["a", "b"]
            await hand.done(held)
            assert [one.key for one in await stage.server.leases()] == ["b", "c"]
            assert await stage.server.leases("unknown") == []

        self.play(story)

    def test_the_rows_that_a_sign_of_life_carries_are_seen_by_every_server(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            a, b = await stage.holding(hand, offer("a"), offer("b"))
            assert await rows_seen(stage) == {"a": b"", "b": b""}
            await hand.beat(a, rows=b"\x00\xff 5")
            await hand.beat(a, b)  # Nothing new to say of them.
            assert await rows_seen(stage) == {"a": b"\x00\xff 5", "b": b""}
            await hand.beat(a, b, rows=b"9")
            assert await rows_seen(stage) == {"a": b"9", "b": b"9"}
            await hand.beat(b, rows=b"")
            assert await rows_seen(stage) == {"a": b"9", "b": b""}

        self.play(story)

    def test_the_rows_of_one_holder_are_not_shown_as_those_of_the_next(self) -> None:
        async def story(stage: Stage) -> None:
            hand, other = await stage.workers(2)
            (held,) = await stage.holding(hand)
            await hand.beat(held, rows=b"5")
            await stage.run_out()
            await stage.server.offer([offer()])
            assert await rows_seen(stage) == {"k": b""}
            await other.take()
            assert await rows_seen(stage) == {"k": b""}
            assert await hand.beat(held, rows=b"6") == {"k"}
            assert await rows_seen(stage) == {"k": b""}

        self.play(story)

    def test_there_is_one_clock(self) -> None:
        async def story(stage: Stage) -> None:
            hand = await stage.worker()
            before = await stage.server.now()
            await stage.pass_time(100)
            after = await hand.intake.now()
            assert 100 <= after - before < 160

        self.play(story)
