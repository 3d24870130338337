"""Schedules when servers die or freeze, clocks are set, and stores are unavailable: still one run of each slot."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog, MemoryStore
from penstock.adapters.postgres.control import PostgresControl
from penstock.adapters.sqlite.control import MemoryControl, MemoryControlStore, SqliteControl
from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import JsonMap
from penstock.ports.control import ControlStore, Missed, Schedule
from penstock.server.schedules import Scheduler, keep_schedule
from tests.contracts.entries import header
from tests.server.schedule_scene import EVERY_MINUTE, MINUTE, START, Scene, key, play
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

# ---- several servers, and servers that die


@pytest.mark.parametrize("count", [2, 4])
def test_several_servers_make_one_run_of_each_slot(count: int) -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        for number in range(count):
            control = MemoryControl(scene.control_store, now=scene.now)
            scene.serve(f"s{number}", control, look_s=3.0 + number)
        await asyncio.sleep(8 * MINUTE + 1)
        assert scene.runs == [key(number) for number in range(1, 9)]
        assert len(scene.store.executions) == 8
        assert scene.found().fired_to == START + 8 * MINUTE

    play(scenario)


def test_a_server_that_dies_between_submitting_and_saying_so_leaves_one_run() -> None:
    async def scenario(scene: Scene) -> None:
        class Dying(MemoryControl):
            def fired(self, *args: Any, **more: Any) -> bool:
                scene.tasks["s1"].cancel()
                raise asyncio.CancelledError

        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve("s1", Dying(scene.control_store, now=scene.now))
        await asyncio.sleep(61)
        scene.tasks.pop("s1")
        assert scene.submitted == [("s1", key(1))]
        assert scene.found().fired_to == START
        scene.serve("s2")
        await asyncio.sleep(1)
        assert scene.submitted == [("s1", key(1)), ("s2", key(1))]
        assert scene.runs == [key(1)]
        assert (scene.found().fired_to, scene.found().last_run) == (START + 60, "run 1")

    play(scenario)


def test_a_server_that_is_stopped_while_it_submits_leaves_the_slot_to_others() -> None:
    async def scenario(scene: Scene) -> None:
        async def hanging(server: str, key: str) -> None:
            if server == "s1":
                await asyncio.sleep(1000)

        scene.trouble = hanging
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve("s1")
        await asyncio.sleep(61)
        await scene.stop("s1")
        scene.serve("s2")
        await asyncio.sleep(1)
        assert scene.submitted == [("s1", key(1)), ("s2", key(1))]
        assert scene.runs == [key(1)]

    play(scenario)


def test_a_server_that_wakes_up_late_does_not_fire_what_others_have_fired() -> None:
    async def scenario(scene: Scene) -> None:
        async def frozen(server: str, key: str) -> None:
            if server == "s1":
                await asyncio.sleep(50)

        scene.trouble = frozen
        scene.control.put_schedule(replace(EVERY_MINUTE, missed=Missed.ALL, fired_to=START - 600))
        scene.serve("s1")
        await asyncio.sleep(1)
        scene.serve("s2")
        await asyncio.sleep(58)
        of_s1 = [key for server, key in scene.submitted if server == "s1"]
        assert len(of_s1) == 1
        assert len(scene.runs) == 10
        assert scene.found().fired_to == START

    play(scenario)


# ---- clocks


def test_a_clock_that_is_set_back_fires_nothing_twice() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(EVERY_MINUTE, missed=Missed.ALL))
        scene.serve()
        await asyncio.sleep(10 * MINUTE + 1)
        assert len(scene.submitted) == 10
        scene.ahead = -5 * MINUTE
        await asyncio.sleep(5 * MINUTE)
        assert len(scene.submitted) == 10
        await asyncio.sleep(2 * MINUTE)
        assert scene.submitted == [("s1", key(number)) for number in range(1, 13)]

    play(scenario)


def test_a_clock_that_is_set_forward_is_as_an_absence() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve()
        await asyncio.sleep(61)
        scene.ahead = 3600.0 + 20
        await asyncio.sleep(10)
        assert scene.runs == [key(1), key(61)]

    play(scenario)


# ---- trouble


def test_what_is_refused_is_kept_as_the_error_and_not_tried_again() -> None:
    async def scenario(scene: Scene) -> None:
        async def refused(server: str, submitted: str) -> None:
            if submitted != key(3):
                raise Refused("there is no `sales/orders` in the catalog", "file it first")

        scene.trouble = refused
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve()
        await asyncio.sleep(2 * MINUTE + 30)
        assert scene.submitted == [("s1", key(1)), ("s1", key(2))]
        found = scene.found()
        assert found.last_error == "there is no `sales/orders` in the catalog; file it first"
        assert (found.fired_to, found.last_slot, found.last_run) == (START + 120, START + 120, None)
        await asyncio.sleep(MINUTE)
        assert scene.found().last_error is None
        assert scene.found().last_run is not None

    play(scenario)


def test_a_mistake_of_ours_in_one_schedule_stops_neither_it_nor_the_others() -> None:
    async def scenario(scene: Scene) -> None:
        async def broken(server: str, key: str) -> None:
            if ":often:" in key:
                raise ZeroDivisionError("division by zero \ud800" + "!" * 10_000)

        scene.trouble = broken
        scene.control.put_schedule(EVERY_MINUTE)
        scene.control.put_schedule(replace(EVERY_MINUTE, name="other"))
        scene.serve()
        await asyncio.sleep(3 * MINUTE + 1)
        assert len(scene.submitted) == 6
        assert (scene.found().last_error or "").startswith("ZeroDivisionError: division by zero ?!!!")
        assert scene.found("other").last_error is None

    play(scenario)


UNAVAILABLE = {Missed.ALL: [1, 2, 3, 4], Missed.LAST: [3, 4], Missed.NONE: [4]}


@pytest.mark.parametrize(("missed", "minutes"), UNAVAILABLE.items())
def test_what_is_unavailable_is_tried_again_and_gets_missed_when_it_lasts(missed: Missed, minutes: list[int]) -> None:
    async def scenario(scene: Scene) -> None:
        async def down(server: str, key: str) -> None:
            if scene.now() < START + 3 * MINUTE + 20:
                raise Unavailable("the database is down")

        scene.trouble = down
        scene.control.put_schedule(replace(EVERY_MINUTE, missed=missed))
        scene.serve()
        await asyncio.sleep(3 * MINUTE + 15)
        assert scene.runs == []
        assert scene.found().last_error == "the database is down"
        await asyncio.sleep(MINUTE)
        assert scene.runs == [key(minute) for minute in minutes]
        assert scene.found().last_error is None
        assert len(scene.submitted) < 30

    play(scenario)


def test_a_submission_that_hangs_is_given_up_and_tried_again_under_the_same_key() -> None:
    async def scenario(scene: Scene) -> None:
        async def hangs(server: str, key: str) -> None:
            if len(scene.submitted) == 1:
                await asyncio.sleep(10_000)

        scene.trouble = hangs
        scene.control.put_schedule(Schedule("often", "1 * * * *", "p", fired_to=START))
        scene.serve()
        await asyncio.sleep(300)
        assert scene.submitted == [("s1", key(1)), ("s1", key(1))]
        assert scene.runs == [key(1)]

    play(scenario)


def test_a_store_that_is_unavailable_is_waited_for() -> None:
    async def scenario(scene: Scene) -> None:
        class Shaky(MemoryControl):
            def schedules(self) -> list[Schedule]:
                self.shake()
                return super().schedules()

            def schedule(self, name: str) -> Schedule | None:
                self.shake()
                return super().schedule(name)

            def fired(self, *args: Any, **more: Any) -> bool:
                self.shake()
                return super().fired(*args, **more)

            def shake(self) -> None:
                if chance.random() < 0.3:
                    raise Unavailable("the database is down")

        chance = random.Random(11)
        scene.control.put_schedule(replace(EVERY_MINUTE, missed=Missed.ALL))
        scene.serve("s1", Shaky(scene.control_store, now=scene.now))
        await asyncio.sleep(20 * MINUTE + 59)
        assert scene.runs == [key(number) for number in range(1, 21)]
        assert scene.reported == []

    play(scenario)


def test_a_schedule_that_cannot_be_read_shows_it_and_the_others_go_on() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_schedule(replace(EVERY_MINUTE, name="bad", cron="every day"))
        scene.control.put_schedule(replace(EVERY_MINUTE, name="lost", zone="Atlantis/Capital"))
        scene.control.put_schedule(EVERY_MINUTE)
        scene.serve()
        await asyncio.sleep(121)
        assert scene.runs == [key(1), key(2)]
        assert "is not a cron expression" in (scene.found("bad").last_error or "")
        assert "there is no time zone `Atlantis/Capital`" in (scene.found("lost").last_error or "")
        keep_schedule(scene.control, replace(EVERY_MINUTE, name="bad"), scene.now())
        await asyncio.sleep(60)
        assert scene.found("bad").last_error is None

    play(scenario)


def test_a_scheduler_that_is_stopped_and_woken_at_once_stops() -> None:
    async def scenario(scene: Scene) -> None:
        scheduler = scene.serve()
        await asyncio.sleep(1)
        task = scene.tasks.pop("s1")
        scheduler.wake()
        task.cancel()
        await asyncio.sleep(1)
        assert task.cancelled()

    play(scenario)


# ---- on every store, with real threads


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def two_stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[ControlStore]]:
    """One store as two processes see it."""
    shared = MemoryControlStore()
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    open_one: dict[str, Callable[[], ControlStore]] = {
        "memory": lambda: MemoryControl(shared),
        "sqlite": lambda: SqliteControl(tmp_path, environ={}),
        "postgres": lambda: PostgresControl(url, environ={}),
    }
    with ExitStack() as stack:
        stores = [open_one[request.param]() for _ in range(2)]
        for store in stores:
            stack.callback(store.close)
        yield stores


def test_two_schedulers_at_once_on_one_store_make_each_of_fifty_runs_once(two_stores: list[ControlStore]) -> None:
    store = MemoryStore()
    submitted: list[str] = []
    end = START + 50 * MINUTE

    async def submit(path: str, version: int | None, payload: JsonMap, context: str | None, *asked: str | None) -> str:
        key, label = asked
        submitted.append(str(key))
        await asyncio.sleep(0.001)
        return await MemoryLog(store).create(header(f"run {len(submitted)}", label=label), b"", key)

    async def main() -> None:
        control = two_stores[0]
        control.put_schedule(replace(EVERY_MINUTE, missed=Missed.ALL))
        schedulers = [Scheduler(one, submit, lambda: end, MemoryLog(store), look_s=0.05) for one in two_stores]
        running = [asyncio.ensure_future(one.run()) for one in schedulers]
        async with asyncio.timeout(60):
            while (found := control.schedule("often")) and found.fired_to < end:
                await asyncio.sleep(0.01)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(main())
    assert list(store.submissions) == [key(number) for number in range(1, 51)]
    assert len(store.executions) == 50
