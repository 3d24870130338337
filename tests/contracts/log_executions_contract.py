"""What every event log keeps to, second half: owners, headers, requests, forgetting, closing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.kernel.errors import Refused
from penstock.ports.log import EventLog, Header, NotOwner, Request, Status
from tests.contracts.entries import entries, entry, header
from tests.contracts.log_scenes import LogScenes


class LogExecutionsContract(LogScenes):
    # -- owners -------------------------------------------------------------------------------------------------------

    def test_each_claim_has_a_higher_epoch(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header(), b"")
            epochs = []
            for _ in range(3):
                epochs.append(await log.claim("run-1", "me"))
                await log.release("run-1")
            assert epochs == [1, 2, 3]

        self.play(scene)

    def test_a_second_owner_is_refused_and_told_who_the_first_is(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            async with self.opened() as other:
                with pytest.raises(NotOwner, match=r"`run-1` is already being worked on by .*`me`"):
                    await other.claim("run-1", "somebody else")
            with pytest.raises(NotOwner, match="already being worked on"):
                await log.claim("run-1", "me twice")
            await log.durable(log.append("run-1", epoch, [entry(1)]))

        self.play_owned(scene)

    def test_an_owner_that_was_replaced_can_append_nothing_more(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, [entry(1)]))
            await log.release("run-1")
            async with self.opened() as other:
                newer = await other.claim("run-1", "the new one")
                with pytest.raises(NotOwner, match="has been taken over by `the new one`"):
                    await log.durable(log.append("run-1", epoch, [entry(2)]))
                await other.durable(other.append("run-1", newer, [entry(2, b"new")]))
            assert list(log.read("run-1")) == [entry(1), entry(2, b"new")]

        self.play_owned(scene)

    def test_an_owner_that_released_can_append_nothing_more(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            log.append("run-1", epoch, [entry(1)])
            await log.release("run-1")
            assert list(log.read("run-1")) == [entry(1)]
            with pytest.raises(NotOwner, match="has been released"):
                await log.durable(log.append("run-1", epoch, [entry(2)]))

        self.play_owned(scene)

    def test_there_is_an_owner_from_the_claim_to_the_release(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header(), b"")
            async with self.opened() as other:
                seen = [(log.has_owner("run-1"), other.has_owner("run-1"))]
                await log.claim("run-1", "me")
                seen.append((log.has_owner("run-1"), other.has_owner("run-1")))
                await log.release("run-1")
                seen.append((log.has_owner("run-1"), other.has_owner("run-1")))
            assert seen == [(False, False), (True, True), (False, False)]

        self.play(scene)

    def test_what_was_created_for_an_owner_is_claimed_by_that_owner_first(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header(), b"", owner="me")
            epoch = await log.claim("run-1", "me")
            assert (epoch, log.has_owner("run-1")) == (1, True)
            await log.durable(log.append("run-1", epoch, [entry(1)]))
            await log.release("run-1")
            async with self.opened() as other:
                assert await other.claim("run-1", "the next one") == 2
            assert list(log.read("run-1")) == [entry(1)]

        self.play(scene)

    def test_what_was_created_for_an_owner_who_never_came_can_be_released(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header(), b"", owner="me")
            await log.release("run-1")
            assert not log.has_owner("run-1")
            async with self.opened() as other:
                epoch = await other.claim("run-1", "somebody else")
                await other.durable(other.append("run-1", epoch, [entry(1)]))

        self.play(scene)

    def test_after_its_last_append_and_the_release_an_execution_is_free(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, [entry(1)], "completed", (), True))
            await log.release("run-1")
            assert not log.has_owner("run-1")
            async with self.opened() as other:
                newer = await other.claim("run-1", "the next one")
                await other.durable(other.append("run-1", newer, [entry(2)], "running"))
            assert list(log.read("run-1")) == [entry(1), entry(2)]

        self.play_owned(scene)

    def test_of_many_that_are_created_at_once_each_is_created_or_refused_by_itself(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header("taken"), b"")
            asked = [
                log.create(header("run-a"), b"a"),
                log.create(header("taken"), b"again"),
                log.create(header("run-b"), b"b", "key"),
                log.create(header("run-c"), b"c", "key"),
                log.create(header("run-d"), b"d", owner="me"),
                log.create(header("run-d"), b"d again"),
            ]
            made: list[Any] = await asyncio.gather(*asked, return_exceptions=True)
            assert made[0] == "run-a"
            assert isinstance(made[1], Refused)
            assert made[2] == made[3] == log.submitted("key")
            assert [made[4], type(made[5])] == ["run-d", Refused]
            names = {"taken", "run-a", made[2], "run-d"}
            assert {one.execution_id for one in log.headers()} == names
            assert {name: log.document(name) for name in ("taken", "run-a", "run-d")} == {
                "taken": b"",
                "run-a": b"a",
                "run-d": b"d",
            }
            assert await log.claim("run-d", "me") == 1

        self.play(scene)

    def test_releasing_what_one_does_not_own_changes_nothing(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            async with self.opened() as other:
                await other.release("run-1")
            assert log.has_owner("run-1")
            await log.durable(log.append("run-1", epoch, [entry(1)]))

        self.play_owned(scene)

    def test_two_owners_of_different_executions_write_side_by_side(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.create(header("run-2"), b"")
            async with self.opened() as other:
                newer = await other.claim("run-2", "other")

                async def write(into: EventLog, name: str, under: int) -> None:
                    for seq in range(1, 41):
                        await into.durable(into.append(name, under, [entry(seq)]))

                await asyncio.gather(write(log, "run-1", epoch), write(other, "run-2", newer))
                assert list(other.read("run-1")) == list(log.read("run-2")) == entries(1, 40)

        self.play_owned(scene)

    # -- headers and documents ----------------------------------------------------------------------------------------

    def test_a_header_is_kept_with_all_its_fields(self) -> None:
        given = header(name="ördër 🚰", label="nightly", trace_id="t-1", path="a b/ü.yaml", digest="sha")

        async def scene(log: EventLog) -> None:
            await log.create(given, b"")
            assert log.header("run-1") == given

        self.play(scene)

    def test_the_header_knows_the_last_entry(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 12)))
            assert log.header("run-1") == header(last_seq=12)
            assert log.headers() == [header(last_seq=12)]

        self.play_owned(scene)

    @pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "interrupted"])
    def test_the_status_changes_with_the_entries_that_say_why(self, status: Status) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 3), status=status))
            assert log.header("run-1") == header(status=status, ended_at=1003.0, last_seq=3)

        self.play_owned(scene)

    def test_a_refused_append_does_not_change_the_status(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            with pytest.raises(Refused):
                await log.durable(log.append("run-1", epoch, [entry(3)], status="completed"))
            assert log.header("run-1") == header()

        self.play_owned(scene)

    def test_a_status_may_change_without_entries_and_back_to_running(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, [], status="interrupted"))
            assert log.header("run-1") == header(status="interrupted", ended_at=1000.0)
            await log.durable(log.append("run-1", epoch, [entry(1)], status="running"))
            assert log.header("run-1") == header(status="running", ended_at=None, last_seq=1)
            await log.durable(log.append("run-1", epoch, [], status="failed"))
            assert log.header("run-1") == header(status="failed", ended_at=1001.0, last_seq=1)

        self.play_owned(scene)

    def test_the_last_of_several_statuses_counts(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            log.append("run-1", epoch, [entry(1)], status="interrupted")
            await log.durable(log.append("run-1", epoch, [entry(2)], status="completed"))
            assert log.header("run-1") == header(status="completed", ended_at=1002.0, last_seq=2)

        self.play_owned(scene)

    def test_an_append_of_nothing_is_durable_at_once(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, []))
            assert log.header("run-1") == header()

        self.play_owned(scene)

    def test_headers_come_newest_first_and_no_more_than_asked_for(self) -> None:
        async def scene(log: EventLog) -> None:
            for name in ("run-b", "run-a", "run-c"):
                await log.create(header(name, started_at=1.0), b"")
            assert [found.execution_id for found in log.headers()] == ["run-c", "run-a", "run-b"]
            assert [found.execution_id for found in log.headers(2)] == ["run-c", "run-a"]

        self.play(scene)

    def test_headers_are_chosen_by_status_and_name_and_shown_page_by_page(self) -> None:
        async def scene(log: EventLog) -> None:
            for number in range(6):
                await log.create(header(f"run-{number}", name="even" if number % 2 == 0 else "odd"), b"")
            for name in ("run-2", "run-3"):
                epoch = await log.claim(name, "me")
                await log.durable(log.append(name, epoch, [], "failed"))

            def names(**wanted: Any) -> list[str]:
                return [found.execution_id for found in log.headers(**wanted)]

            assert names(limit=2) == ["run-5", "run-4"]
            assert names(limit=2, after="run-4") == ["run-3", "run-2"]
            assert names(limit=9, after="run-0") == []
            assert names(after="nobody") == []
            assert names(name="even") == ["run-4", "run-2", "run-0"]
            assert names(status="failed") == ["run-3", "run-2"]
            assert names(status="running", name="even", after="run-4") == ["run-0"]

        self.play(scene)

    def test_headers_are_chosen_by_label_and_by_when_they_started(self) -> None:
        async def scene(log: EventLog) -> None:
            for number, started in enumerate((100.0, 50.0, 200.0, 150.0)):  # A clock that jumps.
                label = "nightly" if number in (1, 3) else None
                await log.create(header(f"run-{number}", started_at=started, label=label), b"")

            def names(**wanted: Any) -> list[str]:
                return [found.execution_id for found in log.headers(**wanted)]

            assert names(name="nightly") == ["run-3", "run-1"]
            assert names(since=100.0) == ["run-3", "run-2", "run-0"]
            assert names(since=100.5) == ["run-3", "run-2"]
            assert names(since=300.0) == []
            assert names(since=100.0, name="nightly") == ["run-3"]
            assert names(since=60.0, status="running", after="run-2", limit=1) == ["run-0"]
            assert names(since=60.0, status="completed") == []

        self.play(scene)

    def test_headers_are_chosen_by_kind_label_end_and_text(self) -> None:
        async def scene(log: EventLog) -> None:
            for number, started in enumerate((100.0, 50.0, 200.0, 150.0)):  # A clock that jumps.
                label = "Nightly load" if number in (1, 3) else None
                kind = "job" if number < 2 else "playbook"
                about = {"kind": kind, "name": f"Orders{number}", "path": f"/a/File-{number}.yaml", "label": label}
                await log.create(header(f"run-{number}", started_at=started, **about), b"")

            def names(**wanted: Any) -> list[str]:
                return [found.execution_id for found in log.headers(**wanted)]

            assert names(kind="job") == ["run-1", "run-0"]
            assert names(kind="job", limit=1, after="run-1") == ["run-0"]
            assert names(label="Nightly load") == ["run-3", "run-1"]
            assert names(label="Orders1") == []
            assert names(until=100.0) == ["run-1", "run-0"]
            assert names(until=49.0) == []
            assert names(since=100.0, until=150.0) == ["run-3", "run-0"]
            assert names(text="nIGHTLY") == ["run-3", "run-1"]
            assert names(text="orders2") == ["run-2"]
            assert names(text="file-0.YAML") == ["run-0"]
            assert names(text="run-") == ["run-3", "run-2", "run-1", "run-0"]
            assert names(text="%") == names(text="ORDERS_") == []
            assert names(text="load", kind="job", since=50.0, status="running") == ["run-1"]
            assert names(text="") == names()

        self.play(scene)

    def test_a_label_and_the_beginning_of_an_id_name_executions(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header("abc1"), b"")
            await log.create(header("abd2", label="abc"), b"")
            await log.create(header("x-abc"), b"")
            assert [found.execution_id for found in log.named("abc")] == ["abd2", "abc1"]
            assert [found.execution_id for found in log.named("ab", 1)] == ["abd2"]
            assert log.named("abc2") == []

        self.play(scene)

    def test_an_id_can_be_taken_once(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header(), b"first")
            with pytest.raises(Refused, match="already an execution `run-1`"):
                await log.create(header(name="other"), b"second")
            assert (log.document("run-1"), log.headers()) == (b"first", [header()])

        self.play(scene)

    def test_an_execution_is_pinned_to_its_document(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header("run-1"), b"apiVersion: \xff\x00")
            await log.create(header("run-2"), b"")
            assert [log.document("run-1"), log.document("run-2")] == [b"apiVersion: \xff\x00", b""]

        self.play(scene)

    def test_ids_of_any_shape_are_kept_apart(self) -> None:
        async def scene(log: EventLog) -> None:
            names = ["../x", "..", "a/b", "ä 🚰", "x" * 300, "A", "a"]
            for name in names:
                await log.create(header(name), name.encode())
                epoch = await log.claim(name, "me")
                await log.durable(log.append(name, epoch, [entry(1, name.encode())]))
            assert [next(log.read(name)).payload.decode() for name in names] == names
            assert all(log.has_owner(name) for name in names)

        self.play(scene)

    # -- requests -----------------------------------------------------------------------------------------------------

    def test_requests_wait_in_order_until_they_are_answered(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            async with self.opened() as other:
                other.ask("run-1", "cancel", b'{"why":"late"}')
                other.ask("run-1", "pause")
            first, second = log.asked("run-1")
            assert first == Request(first.number, "run-1", "cancel", b'{"why":"late"}')
            assert second == Request(second.number, "run-1", "pause", b"{}")
            log.answered(first.number)
            assert log.asked("run-1") == [second]
            log.answered(second.number)
            assert log.asked("run-1") == []

        self.play_owned(scene)

    def test_a_number_is_never_given_to_two_requests(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            log.ask("run-1", "cancel")
            (old,) = log.asked("run-1")
            log.answered(old.number)
            log.ask("run-1", "cancel")
            log.answered(old.number)
            (new,) = log.asked("run-1")
            assert new.number > old.number

        self.play_owned(scene)

    def test_requests_reach_their_own_execution_only(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.create(header("run-2"), b"")
            log.ask("run-2", "cancel")
            assert log.asked("run-1") == []

        self.play_owned(scene)

    # -- forgetting ---------------------------------------------------------------------------------------------------

    def test_forgetting_takes_all_of_an_execution_and_nothing_of_others(self) -> None:
        async def scene(log: EventLog) -> None:
            for name, last in (("run-1", 50), ("run-2", 5_500), ("run-3", 50)):
                await log.create(header(name), name.encode())
                epoch = await log.claim(name, "me")
                await log.durable(log.append(name, epoch, entries(1, last)))
                log.ask(name, "cancel")
                await log.release(name)
            await log.forget("run-2")
            assert [found.execution_id for found in log.headers()] == ["run-3", "run-1"]
            assert (log.header("run-2"), log.asked("run-2")) == (None, [])
            for name in ("run-1", "run-3"):
                assert list(log.read(name)) == entries(1, 50)
                assert (log.document(name), len(log.asked(name))) == (name.encode(), 1)

        self.play(scene)

    def test_a_forgotten_id_begins_anew(self) -> None:
        async def scene(log: EventLog) -> None:
            for name in ("first", "second"):
                await log.create(header(name=name), b"")
                epoch = await log.claim("run-1", "me")
                assert epoch == 1
                await log.durable(log.append("run-1", epoch, [entry(1, name.encode())]))
                with pytest.raises(Refused):
                    await log.durable(log.append("run-1", epoch, [entry(1)]))
                await log.release("run-1")
                assert [found.payload for found in log.read("run-1")] == [name.encode()]
                await log.forget("run-1")
            assert log.headers() == []

        self.play(scene)

    def test_an_execution_with_a_live_owner_is_not_forgotten(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, [entry(1)]))
            async with self.opened() as other:
                for through in (log, other):
                    with pytest.raises(NotOwner, match="already being worked on"):
                        await through.forget("run-1")
            assert list(log.read("run-1")) == [entry(1)]

        self.play_owned(scene)

    # -- closing ------------------------------------------------------------------------------------------------------

    def test_closing_writes_what_is_waiting(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            for first in range(1, 2_001, 10):
                log.append("run-1", epoch, entries(first, first + 9))
            log.append("run-1", epoch, [entry(2_001)], status="completed")

        self.play_owned(scene)

        async def later(log: EventLog) -> None:
            assert list(log.read("run-1")) == entries(1, 2_001)
            assert log.header("run-1") == header(status="completed", ended_at=3001.0, last_seq=2_001)

        self.play(later)

    def test_all_is_there_when_the_log_is_opened_again(self) -> None:
        given: list[Header] = [header("run-1"), header("run-2", label="x")]

        async def scene(log: EventLog) -> None:
            for one in given:
                await log.create(one, one.execution_id.encode())
            log.ask("run-2", "cancel")

        async def later(log: EventLog) -> None:
            assert log.headers() == list(reversed(given))
            assert log.document("run-1") == b"run-1"
            assert [request.what for request in log.asked("run-2")] == ["cancel"]
            assert await log.claim("run-1", "me") == 1

        self.play(scene)
        self.play(later)
        self.play(self._claim_again)

    @staticmethod
    async def _claim_again(log: EventLog) -> None:
        """Closing gave the claim up, and the epoch went on."""
        assert not log.has_owner("run-1")
        assert await log.claim("run-1", "me") == 2

    def test_closing_twice_is_allowed_and_appending_after_it_is_refused(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.close()
            await log.close()
            with pytest.raises(Refused, match="the log is closed"):
                log.append("run-1", epoch, [entry(1)])
            with pytest.raises(Refused, match="the log is closed"):
                await log.create(header("run-2"), b"")

        self.play_owned(scene)

    def test_one_log_serves_one_event_loop_after_another(self) -> None:
        log = self.open_log()

        async def begin() -> int:
            await log.create(header(), b"")
            epoch = await log.claim("run-1", "me")
            log.append("run-1", epoch, [entry(1)])
            return epoch

        async def go_on(epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, [entry(2)]))
            await log.close()

        asyncio.run(go_on(asyncio.run(begin())))
        self.play(self._two_entries)

    @staticmethod
    async def _two_entries(log: EventLog) -> None:
        assert list(log.read("run-1")) == entries(1, 2)

    def test_many_tasks_append_and_wait_at_once(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            seq = 0

            async def work() -> None:
                nonlocal seq
                for _ in range(20):
                    seq += 1
                    ticket = log.append("run-1", epoch, [entry(seq)])
                    await log.durable(ticket)
                    assert log.header("run-1").last_seq > 0  # type: ignore[union-attr]

            await asyncio.gather(*(work() for _ in range(50)))
            assert list(log.read("run-1")) == entries(1, 1_000)

        self.play_owned(scene)
