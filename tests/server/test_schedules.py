"""Schedules at work, on virtual time: each slot makes one run, in its time or as its policy says."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from penstock.adapters.sqlite.control import MemoryControl
from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.control import Missed, Schedule
from penstock.server.cron import iso
from penstock.server.schedules import keep_schedule
from tests.server.schedule_scene import EVERY_MINUTE, MINUTE, START, Scene, key, play

# ---- in time


def test_a_slot_is_fired_when_its_time_comes_and_at_no_other() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve()
        await asyncio.sleep(59.9)
        assert scene.runs == []
        await asyncio.sleep(0.2)
        assert scene.runs == [key(1)]
        await asyncio.sleep(180)
        assert scene.submitted == [("s1", key(number)) for number in (1, 2, 3, 4)]
        found = scene.found()
        assert (found.fired_to, found.last_slot, found.last_run) == (START + 240, START + 240, "run 4")
        assert found.last_error is None

    play(scenario)


def test_a_run_is_asked_for_as_the_schedule_says_and_learns_its_slot() -> None:
    async def scenario(scene: Scene) -> None:
        payload: JsonMap = {"region": "eu", "event": {"note": "kept", "slot": "overwritten"}}
        scene.control.put_schedule(replace(EVERY_MINUTE, version=3, context="prod", payload=payload))
        scene.serve()
        await asyncio.sleep(61)
        assert scene.asked[key(1)] == ("sales/orders", 3, "prod", "often")
        slot = iso(START + 60)
        event = {"note": "kept", "schedule": "often", "slot": slot}
        assert scene.payloads[key(1)] == {"region": "eu", "event": event}
        assert scene.found().payload == payload

    play(scenario)


def test_many_schedules_fire_at_their_own_times() -> None:
    async def scenario(scene: Scene) -> None:
        for number in range(4):
            cron = f"{number} * * * *"
            scene.control.put_schedule(Schedule(f"s{number}", cron, "p", fired_to=START))
        scene.serve()
        await asyncio.sleep(3600 + 4 * MINUTE)
        expected = [key(60 * hour + number, f"s{number}") for hour in range(2) for number in range(4)]
        assert scene.runs == expected[1:]  # The first was a moment before anybody looked.
        assert len(scene.submitted) == 7

    play(scenario)


def test_a_schedule_of_another_server_is_soon_noticed_and_one_of_our_own_at_once() -> None:
    async def scenario(scene: Scene) -> None:
        scheduler = scene.serve()
        await asyncio.sleep(0.5)
        seconds = Schedule("seconds", "* * * * * *", "p")
        keep_schedule(scene.control, seconds, scene.now())
        await asyncio.sleep(5)
        assert len(scene.runs) == 5
        keep_schedule(scene.control, replace(seconds, name="ours"), scene.now())
        scheduler.wake()
        await asyncio.sleep(1.5)
        assert len([one for one in scene.runs if one.startswith("schedule:ours:")]) == 1

    play(scenario)


def test_a_schedule_that_is_dropped_or_off_fires_no_more() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        scene.control.put_schedule(replace(EVERY_MINUTE, name="other"))
        scene.serve()
        await asyncio.sleep(61)
        scene.control.drop_schedule("often")
        scene.control.put_schedule(replace(EVERY_MINUTE, name="other", is_on=False))
        await asyncio.sleep(600)
        assert sorted(scene.runs) == [key(1), key(1, "other")]

    play(scenario)


def test_what_passes_while_a_schedule_is_off_is_not_missed() -> None:
    async def scenario(scene: Scene) -> None:
        off = replace(EVERY_MINUTE, missed=Missed.ALL, is_on=False)
        scene.control.put_schedule(off)
        scene.serve()
        await asyncio.sleep(605)
        scene.control.put_schedule(replace(off, is_on=True))
        await asyncio.sleep(60)
        assert scene.runs == [key(11)]

    play(scenario)


def test_a_schedule_put_without_a_beginning_begins_when_it_is_first_seen() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(EVERY_MINUTE, fired_to=0.0, missed=Missed.ALL))
        scene.serve()
        await asyncio.sleep(61)
        assert scene.runs == [key(1)]

    play(scenario)


# ---- after an absence


ABSENCE = {Missed.ALL: [1, 2, 3, 4, 5, 6], Missed.LAST: [5, 6], Missed.NONE: [6]}


@pytest.mark.parametrize(("missed", "minutes"), ABSENCE.items())
def test_after_an_absence_missed_slots_are_fired_as_the_policy_says(missed: Missed, minutes: list[int]) -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(EVERY_MINUTE, missed=missed))
        await asyncio.sleep(5 * MINUTE + 30)
        scene.serve()
        await asyncio.sleep(MINUTE)
        assert scene.submitted == [("s1", key(minute)) for minute in minutes]
        assert scene.found().fired_to == START + 6 * MINUTE

    play(scenario)


def test_catching_up_on_one_schedule_does_not_hold_up_the_others() -> None:
    async def scenario(scene: Scene) -> None:
        async def slowly(server: str, key: str) -> None:
            if ":often:" in key:
                await asyncio.sleep(1.0)

        scene.trouble = slowly
        scene.control.put_schedule(replace(EVERY_MINUTE, missed=Missed.ALL, fired_to=START - 3600))
        scene.control.put_schedule(replace(EVERY_MINUTE, name="other"))
        scene.serve()
        await asyncio.sleep(62)
        assert key(1, "other") in scene.runs
        assert len(scene.runs) == 1 + 61
        assert scene.runs.index(key(1, "other")) >= 59

    play(scenario)


def test_a_schedule_that_is_changed_while_it_catches_up_goes_on_as_changed() -> None:
    async def scenario(scene: Scene) -> None:
        async def slowly(server: str, key: str) -> None:
            await asyncio.sleep(1.0)

        scene.trouble = slowly
        old = replace(EVERY_MINUTE, missed=Missed.ALL, fired_to=START - 3600)
        scene.control.put_schedule(old)
        scene.serve()
        await asyncio.sleep(10.5)
        keep_schedule(scene.control, replace(old, path="new"), scene.now())
        await asyncio.sleep(10)
        keep_schedule(scene.control, replace(old, path="new", is_on=False), scene.now())
        await asyncio.sleep(100)
        paths = [asked[0] for asked in scene.asked.values()]
        assert paths == ["sales/orders"] * 11 + ["new"] * 10
        assert scene.found().fired_to >= START

    play(scenario)


# ---- schedules as people write them


def test_a_new_schedule_begins_now() -> None:
    control = MemoryControl()
    kept = keep_schedule(control, replace(EVERY_MINUTE, fired_to=0.0), START)
    assert kept == replace(EVERY_MINUTE, fired_to=START) == control.schedule("often")


@pytest.mark.parametrize(
    ("change", "begins"),
    [
        ({"path": "other", "missed": Missed.NONE, "payload": {"a": 1}}, False),
        ({"is_on": False}, False),
        ({"cron": "@hourly"}, True),
        ({"zone": "Asia/Tokyo"}, True),
    ],
)
def test_a_changed_schedule_begins_anew_when_its_slots_are_others(change: dict[str, Any], begins: bool) -> None:
    control = MemoryControl()
    control.put_schedule(EVERY_MINUTE)
    control.fired("often", START, START + 60, slot=START + 60, run="r1")
    kept = keep_schedule(control, replace(EVERY_MINUTE, **change), START + 1000)
    expected = replace(EVERY_MINUTE, **change, last_slot=START + 60, last_run="r1")
    assert kept == replace(expected, fired_to=START + 1000 if begins else START + 60)


def test_a_schedule_that_is_switched_on_begins_anew() -> None:
    control = MemoryControl()
    control.put_schedule(replace(EVERY_MINUTE, is_on=False))
    assert keep_schedule(control, EVERY_MINUTE, START + 1000).fired_to == START + 1000


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a b"},
        {"name": "a:b"},
        {"name": ""},
        {"name": "-a"},
        {"name": "a" * 101},
        {"cron": "nonsense"},
        {"zone": "Mars/Olympus"},
        {"cron": "0 0 LW * */7"},
        {"path": ""},
    ],
    ids=str,
)
def test_a_schedule_that_could_not_work_is_not_kept(change: dict[str, Any]) -> None:
    control = MemoryControl()
    with pytest.raises(Refused):
        keep_schedule(control, replace(EVERY_MINUTE, **change), START)
    assert control.schedules() == []
