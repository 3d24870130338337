"""What every event log keeps to, first half: entries, reading, refusal."""

from __future__ import annotations

import asyncio

import pytest

from penstock.kernel.errors import Bug, Refused
from penstock.ports.log import EventLog
from tests.contracts.entries import entries, entry, header
from tests.contracts.log_scenes import LogScenes


class LogEntriesContract(LogScenes):
    # -- entries ------------------------------------------------------------------------------------------------------

    def test_durable_entries_are_read_back_as_they_were_in_order(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            log.append("run-1", epoch, entries(1, 3))
            await log.durable(log.append("run-1", epoch, entries(4, 5)))
            assert list(log.read("run-1")) == entries(1, 5)

        self.play_owned(scene)

    def test_a_later_ticket_covers_the_earlier_ones_of_its_execution(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            tickets = [log.append("run-1", epoch, [entry(seq)]) for seq in range(1, 101)]
            assert tickets == sorted(set(tickets))
            await log.durable(tickets[-1])
            assert [found.seq for found in log.read("run-1")] == list(range(1, 101))

        self.play_owned(scene)

    def test_a_ticket_can_be_waited_for_many_times_and_by_many(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            ticket = log.append("run-1", epoch, entries(1, 2))
            await asyncio.gather(*(log.durable(ticket) for _ in range(50)))
            await log.durable(ticket)

        self.play_owned(scene)

    def test_tickets_may_be_waited_for_out_of_order(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            tickets = [log.append("run-1", epoch, [entry(seq)]) for seq in range(1, 11)]
            for ticket in reversed(tickets):
                await log.durable(ticket)
            assert len(list(log.read("run-1"))) == 10

        self.play_owned(scene)

    def test_waiting_for_a_ticket_that_was_never_given_is_a_bug_and_not_a_hang(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            with pytest.raises(Bug, match="ticket 9 was never given"):
                await log.durable(9)

        self.play_owned(scene)

    def test_a_wait_that_is_cancelled_harms_nobody(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            log.append("run-1", epoch, entries(1, 5_000))
            ticket = log.append("run-1", epoch, [entry(5_001)])
            waits = [asyncio.ensure_future(log.durable(ticket)) for _ in range(4)]
            await asyncio.sleep(0)
            waits[0].cancel()
            await asyncio.gather(*waits[1:])
            assert log.header("run-1").last_seq == 5_001  # type: ignore[union-attr]

        self.play_owned(scene)

    def test_the_backlog_is_empty_once_all_is_durable(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            assert log.backlog == 0
            ticket = log.append("run-1", epoch, entries(1, 500))
            assert 0 <= log.backlog <= 500
            await log.durable(ticket)
            assert log.backlog == 0

        self.play_owned(scene)

    def test_every_field_keeps_its_value_and_its_type(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            given = [
                entry(1, task=None, cause=None, worker=None, ts=0.1),
                entry(2, scope="", type="x", ts=1767225600.123456),
                entry(3, payload=b"", clock='[1,"é"]'),
            ]
            await log.durable(log.append("run-1", epoch, given))
            found = list(log.read("run-1"))
            assert found == given
            assert [type(value) for value in found[2]] == [type(value) for value in given[2]]
            assert found[0].task is None

        self.play_owned(scene)

    def test_text_in_any_script_and_with_control_characters_is_kept(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            odd = "日本語 🚰 \u202e\u0000\n\t'\"\\ ß"
            given = [entry(1, scope=odd, task=odd, worker=odd, payload=odd.encode())]
            await log.durable(log.append("run-1", epoch, given))
            assert list(log.read("run-1")) == given

        self.play_owned(scene)

    def test_payloads_of_megabytes_and_of_any_bytes_are_kept(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            given = [entry(1, bytes(range(256)) * 16_384), entry(2, b"{}"), entry(3, b"\x00" * 1_100_000)]
            await log.durable(log.append("run-1", epoch, given))
            assert list(log.read("run-1")) == given

        self.play_owned(scene)

    def test_batches_of_every_size_are_kept_whole(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            seq = 0
            for size in (1, 2, 7, 8, 63, 64, 65, 511, 512, 513, 577, 1_100):
                await log.durable(log.append("run-1", epoch, entries(seq + 1, seq + size)))
                seq += size
            assert list(log.read("run-1")) == entries(1, seq)

        self.play_owned(scene)

    # -- reading ------------------------------------------------------------------------------------------------------

    def test_reading_begins_after_the_entry_that_was_named(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 5)))
            assert list(log.read("run-1", after=3)) == entries(4, 5)
            assert list(log.read("run-1", after=5)) == []
            assert list(log.read("run-1", after=99)) == []
            assert list(log.read("run-1", after=-1)) == entries(1, 5)

        self.play_owned(scene)

    def test_reading_runs_over_page_boundaries(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 4_500)))
            assert list(log.read("run-1")) == entries(1, 4_500)
            assert list(log.read("run-1", after=1_999)) == entries(2_000, 4_500)

        self.play_owned(scene)

    def test_a_reader_sees_the_log_as_it_was_when_reading_began(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 3_000)))
            reading = log.read("run-1")
            assert next(reading) == entry(1)
            await log.durable(log.append("run-1", epoch, entries(3_001, 3_100)))
            assert [found.seq for found in reading] == list(range(2, 3_001))

        self.play_owned(scene)

    def test_two_readers_do_not_disturb_each_other(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 4_100)))
            assert all(left == right for left, right in zip(log.read("run-1"), log.read("run-1"), strict=True))

        self.play_owned(scene)

    def test_an_execution_without_entries_reads_as_empty(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            assert list(log.read("run-1")) == []

        self.play_owned(scene)

    def test_what_does_not_exist_is_refused_by_name(self) -> None:
        async def scene(log: EventLog) -> None:
            assert log.header("run-9") is None
            assert log.asked("run-9") == []
            assert not log.has_owner("run-9")
            for look in (log.read, log.document):
                with pytest.raises(Refused, match="there is no execution `run-9`"):
                    look("run-9")
            with pytest.raises(Refused, match="there is no execution `run-9`"):
                log.ask("run-9", "cancel")
            with pytest.raises(Refused, match="there is no execution `run-9`"):
                await log.claim("run-9", "me")
            with pytest.raises(Refused, match="there is no execution `run-9`"):
                await log.forget("run-9")
            with pytest.raises(Refused, match="there is no execution `run-9`"):
                await log.durable(log.append("run-9", 1, [entry(1)]))

        self.play(scene)

    # -- refusal ------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("first", [0, 2, 5])
    def test_an_append_that_leaves_a_gap_is_refused_whole(self, first: int) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            with pytest.raises(Refused, match=f"expects entry 1 next, and was given {first}"):
                await log.durable(log.append("run-1", epoch, entries(first, first + 2)))
            assert list(log.read("run-1")) == []

        self.play_owned(scene)

    def test_an_append_that_repeats_an_entry_is_refused_whole(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 3)))
            with pytest.raises(Refused, match="expects entry 4 next, and was given 3"):
                await log.durable(log.append("run-1", epoch, entries(3, 5)))
            assert list(log.read("run-1")) == entries(1, 3)

        self.play_owned(scene)

    def test_a_gap_or_a_double_inside_one_append_is_refused_whole(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            with pytest.raises(Refused, match="expects entry 2 next, and was given 3"):
                await log.durable(log.append("run-1", epoch, [entry(1), entry(3), entry(3)]))
            assert list(log.read("run-1")) == []

        self.play_owned(scene)

    def test_after_a_refusal_the_later_appends_of_that_execution_are_refused_too(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            good = log.append("run-1", epoch, entries(1, 2))
            wrong = log.append("run-1", epoch, [entry(7)])
            later = log.append("run-1", epoch, [entry(3)], status="completed")
            await log.durable(good)
            for ticket in (wrong, later, wrong):
                with pytest.raises(Refused, match="expects entry 3 next, and was given 7"):
                    await log.durable(ticket)
            assert list(log.read("run-1")) == entries(1, 2)
            assert log.header("run-1").status == "running"  # type: ignore[union-attr]

        self.play_owned(scene)

    def test_a_refusal_harms_no_other_execution_not_even_in_the_same_commit(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.create(header("run-2"), b"")
            other = await log.claim("run-2", "me")
            wrong = log.append("run-1", epoch, [entry(2)])
            first = log.append("run-2", other, entries(1, 2))
            second = log.append("run-2", other, entries(3, 4))
            await log.durable(first)
            await log.durable(second)
            with pytest.raises(Refused):
                await log.durable(wrong)
            assert list(log.read("run-2")) == entries(1, 4)

        self.play_owned(scene)

    def test_a_new_claim_begins_where_the_refused_owner_stopped(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, [entry(1)]))
            with pytest.raises(Refused):
                await log.durable(log.append("run-1", epoch, [entry(9)]))
            await log.release("run-1")
            again = await log.claim("run-1", "me again")
            await log.durable(log.append("run-1", again, [entry(2)]))
            assert list(log.read("run-1")) == entries(1, 2)

        self.play_owned(scene)
