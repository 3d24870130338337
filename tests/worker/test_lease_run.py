"""A lease that is held: what arrives before its work has begun, and while that is caught up with; and what its heartbeats say."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from penstock.ports.dispatch import Held
from penstock.ports.meters import REPORTED, RowsSoFar
from penstock.worker.lease_run import LeaseRun


class Obedient:
    """Does as it is told, and takes its time over the first command."""

    error, is_through = None, True

    def __init__(self) -> None:
        self.under_way = asyncio.Event()
        self.go_on = asyncio.Event()
        self.told: list[str] = []

    def begin(self, briefing: object) -> None: ...

    async def obey(self, command: Any, fetch: object) -> None:
        if command["news"] == "first":
            self.under_way.set()
            await self.go_on.wait()
        self.told.append(command["news"])

    async def over(self) -> None:
        while len(self.told) < 3:
            await asyncio.sleep(0)

    async def close(self) -> None: ...


def test_commands_are_obeyed_in_the_order_in_which_they_came() -> None:
    assert asyncio.run(_told_three()) == ["first", "second", "third"]


async def _told_three() -> list[str]:
    holder: Any = Obedient()
    services: Any = SimpleNamespace(blobs=SimpleNamespace(get=None))
    run = LeaseRun(cast(Any, None), cast(Any, None), services, lambda: False)
    await run.receive({"news": "first"})
    held = asyncio.ensure_future(run._hold(holder, cast(Any, None)))
    await holder.under_way.wait()
    await run.receive({"news": "second"})  # While the first is still being obeyed.
    holder.go_on.set()
    await asyncio.sleep(0)
    while len(holder.told) < 2:
        await asyncio.sleep(0)
    await run.receive({"news": "third"})
    await held
    told: list[str] = holder.told
    return told


# ---- heartbeats


def _beating(running: set[str]) -> LeaseRun:
    factory: Any = SimpleNamespace(clock=SimpleNamespace(now=lambda: 7.0))
    run = LeaseRun(Held("k", "r", 2, b"", 10.0), cast(Any, None), factory, lambda: False)
    run._holder = cast(Any, SimpleNamespace(progress=5, is_running=running.__contains__))
    return run


def _rows(run: LeaseRun) -> dict[str, dict[str, int]] | None:
    pulse = run.pulse()
    assert (pulse.attempt, pulse.progress) == (2, 5)
    return None if pulse.rows is None else RowsSoFar.unpacked(pulse.rows).made


def test_a_heartbeat_says_the_rows_of_what_runs_and_nothing_when_there_is_nothing_to_say() -> None:
    running = {"load", "sort"}
    run = _beating(running)
    assert _rows(run) is None
    run._rows.note("load", "main", 10)
    run._rows.note("sort", "main", 3)
    run._rows.note("sort", "reject", 1)
    assert _rows(run) == {"load": {"main": 10}, "sort": {"main": 3, "reject": 1}}
    running.remove("sort")
    run._rows.note("load", "main", 20)
    assert _rows(run) == {"load": {"main": 20}, "sort": {"main": 3, "reject": 1}}  # Its end may not be in the log yet.
    assert _rows(run) == {"load": {"main": 20}}
    running.remove("load")
    assert _rows(run) == {"load": {"main": 20}}
    assert _rows(run) == {}  # So that what was said before is no longer shown.
    assert _rows(run) is None


def test_a_heartbeat_stays_small_however_many_components_run() -> None:
    names = [f"each[#{number}].load" for number in range(100_000)]
    run = _beating(set(names))
    for name in names:
        run._rows.note(name, "main", 1)
    assert _rows(run) == {name: {"main": 1} for name in names[-REPORTED:]}


def test_rows_that_a_worker_of_another_release_says_are_not_known() -> None:
    assert RowsSoFar.unpacked(RowsSoFar(7.0, {"load": {"main": 1}}).packed()) == RowsSoFar(7.0, {"load": {"main": 1}})
    for data in (b"", b"\xc1", b"text"):
        assert RowsSoFar.unpacked(data) == RowsSoFar()
