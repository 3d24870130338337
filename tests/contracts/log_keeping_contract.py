"""What every event log keeps to, third part: submission keys, what is unfinished, pruning, and readers on any thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from penstock.kernel.errors import Refused
from penstock.kernel.values import Json
from penstock.ports.kept_state import Change, Kept, Kind
from penstock.ports.log import PARTITIONS, EventLog, Status, partition_of
from tests.contracts.entries import entries, entry, header
from tests.contracts.log_scenes import LogScenes


async def make(log: EventLog, name: str, status: Status | None = None, ended: int = 1, key: str | None = None) -> None:
    """An execution of so many entries, released; the last entry has the time 1000 + `ended`."""
    await log.create(header(name), name.encode(), key)
    epoch = await log.claim(name, "me")
    await log.durable(log.append(name, epoch, entries(1, ended), status))
    await log.release(name)


def change(before: Json, after: Json, kind: Kind = "value", key: str = "k", document: str = "d.yaml") -> Change:
    return Change(document, kind, key, before, after)


async def end(log: EventLog, name: str, *changes: Change, status: Status = "completed") -> None:
    """A run that ends with these changes."""
    await log.create(header(name), b"")
    epoch = await log.claim(name, "me")
    await log.durable(log.append(name, epoch, entries(1, 2), status, changes))
    await log.release(name)


def values(log: EventLog, document: str | None = None) -> list[tuple[str, str, str, Json, str | None]]:
    return [(one.document, one.kind, one.key, one.value, one.run) for one in log.kept(document)]


class LogKeepingContract(LogScenes):
    # -- snapshots ----------------------------------------------------------------------------------------------------

    def test_the_last_snapshot_of_a_format_at_an_entry_or_before_it_is_found(self) -> None:
        async def scene(log: EventLog) -> None:
            await make(log, "run-1")
            await make(log, "run-2")
            assert log.snapshot("run-1", 1, 100) is None
            for format, seq, data in ((1, 10, b"ten"), (1, 30, bytes(range(256))), (2, 20, b"other")):
                log.keep_snapshot("run-1", format, seq, data)
            assert log.snapshot("run-1", 1, 9) is None
            assert log.snapshot("run-1", 1, 10) == (10, b"ten")
            assert log.snapshot("run-1", 1, 29) == (10, b"ten")
            assert log.snapshot("run-1", 1, 1 << 62) == (30, bytes(range(256)))
            assert log.snapshot("run-1", 2, 1 << 62) == (20, b"other")
            assert log.snapshot("run-2", 1, 1 << 62) is None

        self.play(scene)

    def test_a_snapshot_that_is_kept_twice_is_one_and_of_an_unknown_execution_there_is_none(self) -> None:
        async def scene(log: EventLog) -> None:
            await make(log, "run-1")
            log.keep_snapshot("run-1", 1, 1, b"one")
            log.keep_snapshot("run-1", 1, 1, b"one")
            assert log.snapshot("run-1", 1, 5) == (1, b"one")
            log.keep_snapshot("nobody", 1, 1, b"one")
            assert log.snapshot("nobody", 1, 5) is None

        self.play(scene)

    def test_snapshots_go_with_their_execution(self) -> None:
        async def scene(log: EventLog) -> None:
            for name in ("run-1", "run-2"):
                await make(log, name, "completed")
                log.keep_snapshot(name, 1, 1, b"one")
            await log.forget("run-1")
            assert await log.prune(1e12) == ["run-2"]
            for name in ("run-1", "run-2"):
                assert log.snapshot(name, 1, 5) is None
                await make(log, name)
                assert log.snapshot(name, 1, 5) is None

        self.play(scene)

    # -- what documents keep ------------------------------------------------------------------------------------------

    def test_what_a_document_keeps_changes_with_the_end_of_a_run(self) -> None:
        async def scene(log: EventLog) -> None:
            text = "ä 🚰 \u0000\u001a0 '\"\\\\"
            await end(
                log, "run-1", change(None, 1), change(None, text, "watermark", "read"), change(None, [1], "value", "b")
            )
            assert values(log) == [
                ("d.yaml", "value", "b", [1], "run-1"),
                ("d.yaml", "value", "k", 1, "run-1"),
                ("d.yaml", "watermark", "read", text, "run-1"),
            ]
            await end(
                log, "run-2", change(1, {"a": 2.5}), change(None, 7, document=text), change([1], None, "value", "b")
            )
            assert values(log, "d.yaml") == [
                ("d.yaml", "value", "k", {"a": 2.5}, "run-2"),
                ("d.yaml", "watermark", "read", text, "run-1"),
            ]
            assert values(log, text) == [(text, "value", "k", 7, "run-2")]
            (kept, _) = log.kept("d.yaml")
            assert kept.changed_at == 1002.0

        self.play(scene)

    def test_a_refused_end_changes_nothing(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            ticket = log.append("run-1", epoch, [entry(5)], "completed", [change(None, 1)])
            with pytest.raises(Refused):
                await log.durable(ticket)
            stale = log.append("run-1", epoch - 1, [], "completed", [change(None, 1)])
            with pytest.raises(Refused):
                await log.durable(stale)
            assert log.kept() == []

        self.play_owned(scene)

    def test_of_two_runs_at_once_the_higher_watermark_and_the_first_value_stay(self) -> None:
        async def scene(log: EventLog) -> None:
            await end(log, "run-1", change(None, 1), change(None, 5, "watermark"))
            await end(log, "run-2", change(1, 2), change(5, 9, "watermark"))
            await end(log, "run-3", change(1, 3), change(5, 7, "watermark"))
            value, watermark = log.kept()
            assert (value.value, value.run, value.lost_run, value.lost_value) == (2, "run-2", "run-3", 3)
            assert (watermark.value, watermark.run) == (9, "run-2")
            await end(log, "run-4", change(2, 4), change(5, 11, "watermark"))
            value, watermark = log.kept()
            assert (value.value, value.lost_run) == (4, None)
            assert watermark.value == 11

        self.play(scene)

    def test_runs_that_end_at_once_lose_no_watermark(self) -> None:
        async def scene(log: EventLog) -> None:
            async with self.opened() as other:
                await asyncio.gather(
                    *(end((log, other)[n % 2], f"run-{n}", change(None, n, "watermark")) for n in range(20))
                )
                assert [(one.value, one.run) for one in other.kept()] == [(19, "run-19")]

        self.play(scene)

    def test_a_person_may_say_what_is_kept_and_take_it_away(self) -> None:
        async def scene(log: EventLog) -> None:
            log.keep(Kept("d.yaml", "value", "k", {"a": None}, None, 5.0))
            log.keep(Kept("d.yaml", "watermark", "k", 3, None, 6.0))
            log.keep(Kept("e.yaml", "value", "k", 1, None, 6.0))
            log.keep(Kept("e.yaml", "value", "k", 2, None, 7.0))
            async with self.opened() as other:
                assert [one.value for one in other.kept()] == [{"a": None}, 3, 2]
                assert other.drop_kept("d.yaml", "watermark", "none") == 0
                assert other.drop_kept("d.yaml", "watermark", "k") == 1
                assert [one.document for one in log.kept()] == ["d.yaml", "e.yaml"]
                assert (other.drop_kept("d.yaml"), other.drop_kept("d.yaml")) == (1, 0)

        self.play(scene)

    def test_what_is_kept_outlives_the_run_that_set_it(self) -> None:
        async def scene(log: EventLog) -> None:
            await end(log, "run-1", change(None, 1))
            await log.forget("run-1")
            assert [one.value for one in log.kept()] == [1]

        self.play(scene)

    # -- submission keys ----------------------------------------------------------------------------------------------

    def test_creating_gives_the_id_of_what_was_created(self) -> None:
        async def scene(log: EventLog) -> None:
            assert await log.create(header("run-1"), b"") == "run-1"
            assert await log.create(header("run-2"), b"", "key-2") == "run-2"

        self.play(scene)

    def test_a_submission_key_makes_one_execution(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header("run-1"), b"first", "order 7")
            async with self.opened() as other:
                for name in ("run-2", "run-1"):
                    assert await other.create(header(name), b"second", "order 7") == "run-1"
            assert [found.execution_id for found in log.headers()] == ["run-1"]
            assert log.document("run-1") == b"first"

        self.play(scene)

    def test_other_keys_and_no_key_make_other_executions(self) -> None:
        async def scene(log: EventLog) -> None:
            keys = [None, None, "a", "A", "", "ä 🚰", "a\u0000b", "\u001a0"]
            for number, key in enumerate(keys):
                assert await log.create(header(f"run-{number}"), b"", key) == f"run-{number}"
            assert [await log.create(header("x"), b"", key) for key in keys[2:]] == [f"run-{n}" for n in range(2, 8)]
            assert [log.submitted(key) for key in keys[2:] if key is not None] == [f"run-{n}" for n in range(2, 8)]
            assert log.submitted("b") is None

        self.play(scene)

    def test_of_creations_with_one_key_at_once_one_wins_and_all_are_told_its_id(self) -> None:
        async def scene(log: EventLog) -> None:
            async with self.opened() as other:
                for turn in range(5):
                    made = await asyncio.gather(
                        *(
                            through.create(header(f"run-{turn}-{number}-{side}"), b"", f"key-{turn}")
                            for number in range(4)
                            for side, through in enumerate((log, other))
                        )
                    )
                    assert len(set(made)) == 1
                assert len(log.headers()) == 5

        self.play(scene)

    def test_an_id_that_exists_is_refused_and_its_key_stays_free(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header("run-1"), b"")
            with pytest.raises(Refused, match="already an execution `run-1`"):
                await log.create(header("run-1"), b"", "key")
            assert await log.create(header("run-2"), b"", "key") == "run-2"

        self.play(scene)

    def test_a_key_is_free_again_once_its_execution_is_forgotten(self) -> None:
        async def scene(log: EventLog) -> None:
            await log.create(header("run-1"), b"", "key")
            await log.forget("run-1")
            assert await log.create(header("run-2"), b"", "key") == "run-2"

        self.play(scene)

    # -- unfinished ---------------------------------------------------------------------------------------------------

    def test_what_is_running_is_unfinished_oldest_first_with_or_without_an_owner(self) -> None:
        async def scene(log: EventLog) -> None:
            await make(log, "b")
            await make(log, "done", "completed")
            await make(log, "stopped", "interrupted")
            await log.create(header("a"), b"")
            await log.claim("a", "me")
            await log.create(header("later", status="interrupted"), b"")
            assert log.unfinished() == ["b", "a"]

        self.play(scene)

    def test_what_is_unfinished_can_be_asked_for_by_partition(self) -> None:
        async def scene(log: EventLog) -> None:
            names = [f"run-{number}" for number in range(12)]
            for name in names:
                await log.create(header(name), b"")
            some = {partition_of(name) for name in names[::2]}
            expected = [name for name in names if partition_of(name) in some]
            assert log.unfinished(some) == log.unfinished(sorted(some)) == expected
            assert log.unfinished(range(PARTITIONS)) == log.unfinished() == names
            assert log.unfinished([]) == log.unfinished(set(range(PARTITIONS)) - {*map(partition_of, names)}) == []

        self.play(scene)

    # -- requests -----------------------------------------------------------------------------------------------------

    def test_the_requests_of_all_executions_can_be_asked_for_at_once(self) -> None:
        async def scene(log: EventLog) -> None:
            assert log.asked() == []
            for name in ("run-1", "run-2"):
                await log.create(header(name), b"")
            log.ask("run-2", "cancel")
            log.ask("run-1", "pause")
            log.ask("run-2", "resume")
            found = log.asked()
            assert [(one.execution_id, one.what) for one in found] == [
                ("run-2", "cancel"),
                ("run-1", "pause"),
                ("run-2", "resume"),
            ]
            assert log.asked("run-2") == [found[0], found[2]]
            await log.forget("run-2")
            assert log.asked() == [found[1]]

        self.play(scene)

    # -- pruning ------------------------------------------------------------------------------------------------------

    def test_pruning_takes_what_ended_before_a_time_with_all_that_belongs_to_it(self) -> None:
        async def scene(log: EventLog) -> None:
            await make(log, "late", "completed", ended=5)
            await make(log, "failed", "failed", ended=3, key="key")
            await make(log, "cancelled", "cancelled", ended=2)
            await make(log, "completed", "completed", ended=1)
            log.ask("failed", "cancel")
            assert await log.prune(1005.0) == ["completed", "cancelled", "failed"]
            assert [found.execution_id for found in log.headers()] == ["late"]
            assert (list(log.read("late")), log.asked()) == (entries(1, 5), [])
            for name in ("failed", "cancelled", "completed"):
                assert log.header(name) is None
                with pytest.raises(Refused, match="there is no execution"):
                    log.read(name)
            assert await log.create(header("again"), b"", "key") == "again"
            assert await log.prune(1005.0) == []

        self.play(scene)

    def test_pruning_leaves_what_is_running_or_may_be_resumed(self) -> None:
        async def scene(log: EventLog) -> None:
            await make(log, "running")
            await make(log, "interrupted", "interrupted")
            await log.create(header("new"), b"")
            assert await log.prune(9e9) == []
            assert len(log.headers()) == 3

        self.play(scene)

    def test_pruning_leaves_what_has_a_live_owner(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, [entry(1)], "completed"))
            async with self.opened() as other:
                assert await other.prune(9e9) == []
                assert await log.prune(9e9) == []
                await log.release("run-1")
                assert await other.prune(9e9) == ["run-1"]

        self.play_owned(scene)

    def test_pruning_takes_no_more_than_asked_for_the_earliest_first(self) -> None:
        async def scene(log: EventLog) -> None:
            for name, ended in (("c", 3), ("a", 1), ("b", 2), ("d", 3)):
                await make(log, name, "completed", ended)
            assert await log.prune(9e9, limit=0) == []
            assert await log.prune(9e9, limit=2) == ["a", "b"]
            assert await log.prune(9e9, limit=2) == ["c", "d"]

        self.play(scene)

    def test_a_pruned_id_begins_anew(self) -> None:
        async def scene(log: EventLog) -> None:
            for _ in range(2):
                await make(log, "run-1", "completed", ended=30)
                assert list(log.read("run-1")) == entries(1, 30)
                assert await log.prune(9e9) == ["run-1"]

        self.play(scene)

    def test_two_who_prune_at_once_share_what_there_is(self) -> None:
        async def scene(log: EventLog) -> None:
            names = [f"run-{number}" for number in range(8)]
            for name in names:
                await make(log, name, "completed")
            async with self.opened() as other:
                taken = await asyncio.gather(log.prune(9e9), other.prune(9e9), log.prune(9e9))
                rest = await log.prune(9e9)
            assert sorted(name for some in (*taken, rest) for name in some) == names

        self.play(scene)

    # -- closing, threads ---------------------------------------------------------------------------------------------

    def test_what_was_claimed_before_a_close_must_be_claimed_again(self) -> None:
        epochs: list[int] = []

        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, [entry(1)]))
            epochs.append(epoch)

        async def later(log: EventLog) -> None:
            with pytest.raises(Refused, match="has been released"):
                await log.durable(log.append("run-1", epochs[0], [entry(2)]))
            epoch = await log.claim("run-1", "me")
            await log.durable(log.append("run-1", epoch, [entry(2)]))

        self.play_owned(scene)
        self.play(later)

    def test_any_thread_may_look_while_the_owner_writes(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            seen: list[list[int]] = []
            failed: list[BaseException] = []

            def look() -> None:
                try:
                    for _ in range(15):
                        seen.append([found.seq for found in log.read("run-1")])
                        log.headers()
                        log.asked()
                        log.unfinished()
                        log.ask("run-1", "look")
                        log.has_owner("run-1")
                except BaseException as error:
                    failed.append(error)

            looking = [threading.Thread(target=look) for _ in range(3)]
            for thread in looking:
                thread.start()
            for seq in range(1, 101):
                await log.create(header(f"other-{seq}"), b"")
                await log.durable(log.append("run-1", epoch, [entry(seq)]))
            for thread in looking:
                await asyncio.to_thread(thread.join)
            assert failed == []
            assert all(one == list(range(1, len(one) + 1)) for one in seen)
            assert len(log.asked("run-1")) == 45

        self.play_owned(scene)
