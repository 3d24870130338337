"""Slots that come while earlier runs of their schedule are still going, deadlines, and slots of the past: on virtual time."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.adapters.sqlite.control import MemoryControl
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.control import Missed, Overlap, Slot, SlotState
from penstock.ports.log import Status
from penstock.server.backfill import Backfill, Which, plan, queue
from penstock.server.cron import iso
from tests.server.schedule_scene import EVERY_MINUTE, MINUTE, START, Scene, key, play

SKIP = replace(EVERY_MINUTE, overlap=Overlap.SKIP)
QUEUE = replace(EVERY_MINUTE, overlap=Overlap.QUEUE)
CANCEL = replace(EVERY_MINUTE, overlap=Overlap.CANCEL)


def end(scene: Scene, minute: float, status: Status = "completed", attempt: int = 1) -> None:
    """The run of a slot comes to its end now."""
    run = scene.store.submissions[key(minute) + (f":{attempt}" if attempt > 1 else "")]
    execution = scene.store.executions[run]
    execution.header = replace(execution.header, status=status, ended_at=scene.now())


def run_of(scene: Scene, minute: float) -> str:
    return scene.store.submissions[key(minute)]


def states(scene: Scene) -> list[tuple[int, str]]:
    found = scene.control.slots("often", 0.0, START + 1e6)
    return [(round((one.at - START) / MINUTE), one.state.value) for one in found]


def slot(scene: Scene, minute: float) -> Slot:
    (found,) = scene.control.slots("often", START + minute * MINUTE, START + minute * MINUTE)
    return found


def cancelled(scene: Scene) -> list[str]:
    return [request.execution_id for request in scene.store.requests.values() if request.what == "cancel"]


# ---- rules


def test_without_a_rule_both_run_and_what_became_of_the_slots_is_known() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve()
        await asyncio.sleep(2 * MINUTE + 1)
        assert scene.runs == [key(1), key(2)]
        end(scene, 1, "failed")
        await asyncio.sleep(10)
        assert states(scene) == [(1, "started"), (2, "started")]
        assert (slot(scene, 1).ended, slot(scene, 2).ended) == ("failed", None)

    play(scenario)


def test_a_slot_is_skipped_while_an_earlier_run_is_going_and_says_which() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(SKIP)
        scene.serve()
        await asyncio.sleep(3 * MINUTE + 1)
        assert scene.runs == [key(1)]
        note = f"skipped: run {run_of(scene, 1)} of the slot {iso(START + MINUTE)} is still running"
        assert (slot(scene, 2).state, slot(scene, 2).note) == (SlotState.SKIPPED, note)
        found = scene.found()
        assert (found.last_slot, found.last_error) == (START + 3 * MINUTE, note)
        end(scene, 1)
        await asyncio.sleep(MINUTE)
        assert scene.runs == [key(1), key(4)]
        assert scene.found().last_error is None

    play(scenario)


def test_queued_slots_wait_run_in_order_and_are_never_missed() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(QUEUE, missed=Missed.NONE))
        scene.serve()
        await asyncio.sleep(4 * MINUTE + 1)
        assert states(scene) == [(1, "started"), (2, "queued"), (3, "queued"), (4, "queued")]
        assert (scene.found().last_error or "").startswith("waits: run ")
        for minute in (1, 2, 3):
            end(scene, minute)
            await asyncio.sleep(2)
        assert scene.runs == [key(1), key(2), key(3), key(4)]
        assert scene.payloads[key(3)] == {"event": {"schedule": "often", "slot": iso(START + 3 * MINUTE)}}
        assert (scene.found().last_slot, scene.found().last_run) == (START + 4 * MINUTE, run_of(scene, 4))

    play(scenario)


def test_the_newest_slot_replaces_the_run_that_is_going() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(CANCEL)
        scene.serve()
        await asyncio.sleep(2 * MINUTE + 5)
        assert (scene.runs, cancelled(scene)) == ([key(1)], [run_of(scene, 1)])
        (request,) = scene.store.requests.values()
        assert "must not overlap" in json.loads(request.payload)["reason"]
        await asyncio.sleep(MINUTE)  # It takes its time to stop, and the next slot comes.
        end(scene, 1, "cancelled")
        await asyncio.sleep(2)
        assert scene.runs == [key(1), key(3)]
        assert cancelled(scene) == [run_of(scene, 1)]
        assert states(scene) == [(1, "started"), (2, "skipped"), (3, "started")]
        assert slot(scene, 2).note == f"skipped: the slot {iso(START + 3 * MINUTE)} took its place"

    play(scenario)


def test_slots_that_wait_while_a_schedule_is_switched_off_are_given_up() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(QUEUE)
        scene.serve()
        await asyncio.sleep(2 * MINUTE + 1)
        scene.control.put_schedule(replace(QUEUE, is_on=False))
        await asyncio.sleep(5)
        end(scene, 1)
        await asyncio.sleep(MINUTE)
        assert scene.runs == [key(1)]
        assert states(scene) == [(1, "started"), (2, "skipped")]

    play(scenario)


def test_a_run_that_is_forgotten_is_in_nobodys_way() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(SKIP)
        scene.serve()
        await asyncio.sleep(MINUTE + 1)
        await MemoryLog(scene.store).forget(run_of(scene, 1))
        await asyncio.sleep(MINUTE)
        assert scene.runs == [key(2)]

    play(scenario)


# ---- several servers, and servers that die


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.CANCEL])
def test_several_servers_never_let_two_runs_overlap(overlap: Overlap) -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(EVERY_MINUTE, overlap=overlap))
        for number in range(3):
            control = MemoryControl(scene.control_store, now=scene.now)
            scene.serve(f"s{number}", control, look_s=0.7 + 0.3 * number)
        for turn in range(16):
            await asyncio.sleep(0.61 * MINUTE)
            going = [one for one in scene.store.executions.values() if one.header.status == "running"]
            assert len(going) <= 1
            known = {run for run, one in scene.store.executions.items() if one.header.status == "running"}
            if turn % 2:
                for minute in range(1, 11):
                    if scene.store.submissions.get(key(minute)) in known:
                        end(scene, minute)
        recorded = {one.run for one in scene.control.slots("often", 0.0, START + 1e6) if one.run is not None}
        assert recorded == set(scene.store.executions)

    play(scenario)


def test_the_first_decision_stands_though_the_run_ends_before_another_server_looks() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(SKIP)
        scene.serve()
        await asyncio.sleep(MINUTE + 1)
        await scene.stop()

        class Dying(MemoryControl):
            def fired(self, *args: object, **more: object) -> bool:
                scene.tasks["s2"].cancel()
                raise asyncio.CancelledError

        scene.serve("s2", Dying(scene.control_store, now=scene.now))
        await asyncio.sleep(MINUTE)
        scene.tasks.pop("s2")
        end(scene, 1)
        scene.serve("s3")
        await asyncio.sleep(5)
        assert scene.runs == [key(1)]
        assert (slot(scene, 2).state, scene.found().fired_to) == (SlotState.SKIPPED, START + 2 * MINUTE)

    play(scenario)


def test_a_slot_that_was_decided_on_by_a_server_that_died_is_submitted_by_another() -> None:
    async def scenario(scene: Scene) -> None:
        async def hanging(server: str, key: str) -> None:
            if server == "s1":
                await asyncio.sleep(1000)

        scene.trouble = hanging
        scene.control.put_schedule(QUEUE)
        scene.serve("s1")
        await asyncio.sleep(MINUTE + 1)
        await scene.stop("s1")
        assert slot(scene, 1).state is SlotState.DUE
        scene.serve("s2")
        await asyncio.sleep(2)
        assert scene.runs == [key(1)]

    play(scenario)


def test_slots_that_nobody_fired_are_known_as_missed() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        await asyncio.sleep(5 * MINUTE + 30)
        scene.serve()
        await asyncio.sleep(1)
        assert states(scene) == [(1, "missed"), (2, "missed"), (3, "missed"), (4, "missed"), (5, "started")]

    play(scenario)


def test_a_slot_that_could_not_be_submitted_in_time_is_missed() -> None:
    async def scenario(scene: Scene) -> None:
        async def down(server: str, key: str) -> None:
            if scene.now() < START + MINUTE + 40:
                raise Unavailable("the database is down")

        scene.trouble = down
        scene.control.put_schedule(replace(SKIP, missed=Missed.NONE))
        scene.serve()
        await asyncio.sleep(2 * MINUTE + 30)
        assert scene.runs == [key(2)]
        assert states(scene) == [(1, "missed"), (2, "started")]

    play(scenario)


# ---- deadlines


def test_a_run_that_has_not_ended_in_time_is_late_and_so_is_one_that_ended_after_it() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(EVERY_MINUTE, deadline_s=90.0))
        scene.serve()
        await asyncio.sleep(2 * MINUTE + 1)
        end(scene, 2)
        await asyncio.sleep(40)
        assert (slot(scene, 1).is_late, slot(scene, 2).is_late) == (True, False)
        assert slot(scene, 1).ended is None
        await scene.stop()
        await asyncio.sleep(5 * MINUTE)
        end(scene, 1)
        scene.serve("s2")
        await asyncio.sleep(10)
        assert (slot(scene, 1).is_late, slot(scene, 1).ended) == (True, "completed")

    play(scenario)


def test_a_slot_that_waits_too_long_is_late() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(QUEUE, deadline_s=30.0))
        scene.serve()
        await asyncio.sleep(2 * MINUTE + 45)
        assert slot(scene, 2).state is SlotState.QUEUED
        assert slot(scene, 2).is_late

    play(scenario)


# ---- backfills


def backfilled(scene: Scene, first: float, last: float, which: Which = Which.ALL, **more: object) -> list[float]:
    """Queue a backfill: the minutes it queued."""
    asked = Backfill("often", START + first * MINUTE, START + last * MINUTE, which, **more)  # type: ignore[arg-type]
    planned = plan(scene.control, MemoryLog(scene.store), asked, scene.now())
    return [(one.at - START) / MINUTE for one in queue(scene.control, planned, asked) if one.why is None]


def test_a_backfill_runs_the_slots_in_order_one_at_a_time_and_repeating_it_adds_nothing() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(EVERY_MINUTE, is_on=False))
        scene.serve()
        await asyncio.sleep(1)
        assert backfilled(scene, -3, -1) == [-3, -2, -1]
        assert backfilled(scene, -3, -1) == []
        await asyncio.sleep(5)
        assert scene.runs == [key(-3)]
        assert scene.payloads[key(-3)] == {"event": {"schedule": "often", "slot": iso(START - 3 * MINUTE)}}
        end(scene, -3)
        await asyncio.sleep(5)
        end(scene, -2, "failed")
        await asyncio.sleep(5)
        end(scene, -1)
        await asyncio.sleep(5)
        assert scene.runs == [key(-3), key(-2), key(-1)]
        assert backfilled(scene, -3, -1) == []
        assert backfilled(scene, -5, 0, Which.MISSING) == [-5, -4, 0]
        assert backfilled(scene, -5, 0, Which.FAILED) == [-2]
        assert backfilled(scene, -5, 0, Which.FAILED) == []
        await asyncio.sleep(5)
        assert scene.runs[3:] == [key(-5)]

    play(scenario)


def test_a_failed_slot_that_is_run_again_has_a_run_of_its_own() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve()
        await asyncio.sleep(MINUTE + 1)
        end(scene, 1, "failed")
        await asyncio.sleep(6)
        assert backfilled(scene, 0, 1, Which.FAILED) == [1]
        await asyncio.sleep(6)
        assert scene.runs == [key(1), f"{key(1)}:2"]
        assert scene.payloads[f"{key(1)}:2"] == scene.payloads[key(1)]
        end(scene, 1, attempt=2)
        await asyncio.sleep(6)
        assert (slot(scene, 1).attempt, slot(scene, 1).ended) == (2, "completed")
        assert backfilled(scene, 0, 1, Which.FAILED) == []

    play(scenario)


def test_a_run_that_was_resumed_and_completed_has_not_failed() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve()
        await asyncio.sleep(MINUTE + 1)
        end(scene, 1, "failed")
        await asyncio.sleep(6)
        end(scene, 1, "completed")
        assert backfilled(scene, 0, 1, Which.FAILED) == []

    play(scenario)


def test_a_backfill_under_another_name_runs_the_slots_again() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve()
        await asyncio.sleep(MINUTE + 1)
        end(scene, 1)
        await asyncio.sleep(6)
        assert backfilled(scene, 1, 1) == [1]
        await asyncio.sleep(6)
        end(scene, 1, attempt=2)
        await asyncio.sleep(6)
        assert backfilled(scene, 1, 1) == []
        assert backfilled(scene, 1, 1, name="after the mend") == [1]
        await asyncio.sleep(6)
        assert scene.runs == [key(1), f"{key(1)}:2", f"{key(1)}:3"]

    play(scenario)


def test_runs_of_slots_from_before_slots_were_written_down_are_found_in_the_log() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve()
        await asyncio.sleep(2 * MINUTE + 1)
        end(scene, 1)
        with scene.control_store.changing() as connection:
            connection.execute("DELETE FROM slot")
        assert backfilled(scene, 0, 2, Which.MISSING) == [0]
        assert backfilled(scene, 1, 1) == [1]
        await asyncio.sleep(20)
        assert f"{key(1)}:2" not in scene.runs  # one at a time
        end(scene, 0)
        await asyncio.sleep(5)
        assert f"{key(1)}:2" in scene.runs

    play(scenario)


def test_several_runs_of_a_backfill_are_going_where_runs_may_overlap() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(EVERY_MINUTE, is_on=False))
        scene.serve()
        backfilled(scene, -9, -1, at_once=3)
        await asyncio.sleep(5)
        assert scene.runs == [key(-9), key(-8), key(-7)]
        end(scene, -8)
        await asyncio.sleep(5)
        assert scene.runs == [key(-9), key(-8), key(-7), key(-6)]

    play(scenario)


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.CANCEL])
def test_a_backfill_neither_takes_slots_away_nor_overlaps_with_them(overlap: Overlap) -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(EVERY_MINUTE, overlap=overlap))
        scene.serve()
        backfilled(scene, -2, -1, at_once=5)
        await asyncio.sleep(MINUTE + 5)
        assert scene.runs == [key(-2)]
        assert slot(scene, 1).state is SlotState.QUEUED
        end(scene, -2)
        await asyncio.sleep(5)
        assert scene.runs == [key(-2), key(1)]
        end(scene, 1)
        await asyncio.sleep(5)
        assert scene.runs == [key(-2), key(1), key(-1)]
        assert cancelled(scene) == []

    play(scenario)


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [(0, -1, "ends before it begins"), (100, 200, "has not begun"), (-20_000, 0, "more than 10000 slots")],
)
def test_a_period_that_cannot_be_is_refused(first: float, last: float, words: str) -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        with pytest.raises(Refused, match=words):
            backfilled(scene, first, last)

    play(scenario)
