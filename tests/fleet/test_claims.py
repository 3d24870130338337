"""A work queue in a table on a fleet: workers and servers may die, and no row that a run knows of is lost or done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.values import Json
from penstock.ports.results import decode
from tests.claiming import Jobs, book, queue, recorded, worked_on
from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet

SLOWLY: dict[str, Any] = {"name": "slowly", "kind": "sleep", "seconds": 2}


def write(home: Path, step: dict[str, Any]) -> Path:
    file = home / "queue.yaml"
    file.write_text(document(book(step)), encoding="utf-8")
    return file


def result_of(scene: Fleet, run: str) -> Any:
    (end,) = [entry for entry in scene.entries(run) if entry.type == "loop.done"]
    data: Any = decode(end.payload)
    return data["result"]


@pytest.mark.parametrize("mode", ["local", "fanout"])
def test_every_row_is_worked_on_once_on_a_fleet(tmp_path: Path, mode: str) -> None:
    jobs = Jobs.at(tmp_path, 20)

    async def scenario(scene: Fleet) -> tuple[Any, Counter[str]]:
        await scene.serve()
        for name in ("w1", "w2", "w3"):
            scene.work(name)
        run = await scene.submit(write(tmp_path, queue(SLOWLY, rows=2, at_once=6, mode=mode)))
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        by = Counter(str(entry.worker) for entry in scene.entries(run) if entry.type == "loop.shard.started")
        return result_of(scene, run), by

    result, by = on_fleet(tmp_path, scenario)
    assert (result["total"], result["done"]) == (20, 20)
    assert jobs.worked() == dict.fromkeys(range(20), 1)
    if mode == "fanout":
        assert set(by) == {"w1", "w2", "w3"}


@pytest.mark.parametrize("moment", [1.0, 2.5, 5.0])
def test_when_a_worker_dies_another_goes_on_with_the_rows_it_had_claimed(tmp_path: Path, moment: float) -> None:
    jobs = Jobs.at(tmp_path, 12)

    async def scenario(scene: Fleet) -> Json:
        await scene.serve()
        scene.work("w1")
        run = await scene.submit(write(tmp_path, queue(SLOWLY, rows=4, at_once=2)))
        await scene.until(lambda: any(entry.type == "loop.iteration.started" for entry in scene.entries(run)))
        await asyncio.sleep(moment)
        await scene.kill_worker("w1")
        known = scene.entries(run)
        claimed = recorded(known)
        ended = {claimed[index] for index in worked_on(known)}
        before = jobs.worked()
        jobs.free(but=set(claimed.values()))
        scene.work("w2")
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        for number, times in jobs.worked().items():
            assert times == 1 or (times == 2 and before[number] == 1 and number not in ended)
        return result_of(scene, run)["total"]

    assert on_fleet(tmp_path, scenario) == 12
    assert set(jobs.worked()) == set(range(12))


def test_when_a_server_dies_the_loop_goes_on_claiming_under_the_next(tmp_path: Path) -> None:
    jobs = Jobs.at(tmp_path, 12)

    async def scenario(scene: Fleet) -> Json:
        await scene.serve("s1")
        scene.work("w1")
        run = await scene.submit(write(tmp_path, queue(SLOWLY, rows=2, at_once=2)))
        await scene.until(lambda: any(entry.type == "loop.claimed" for entry in scene.entries(run)))
        await scene.kill_server("s1")
        await asyncio.sleep(3)
        await scene.serve("s2")
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        return result_of(scene, run)["total"]

    assert on_fleet(tmp_path, scenario) == 12
    assert jobs.worked() == dict.fromkeys(range(12), 1)


def test_when_a_worker_of_a_fan_out_dies_the_rows_it_had_told_of_are_handed_to_another(tmp_path: Path) -> None:
    jobs = Jobs.at(tmp_path, 24)

    async def scenario(scene: Fleet) -> tuple[Json, set[int]]:
        await scene.serve()
        scene.work("w1", slots=2)
        scene.work("w2", slots=2)
        run = await scene.submit(write(tmp_path, queue(SLOWLY, rows=3, at_once=4, mode="fanout")))
        await scene.until(lambda: any(entry.type == "loop.shard.started" for entry in scene.entries(run)))
        await asyncio.sleep(3)
        await scene.kill_worker("w1")
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        types = {entry.type for entry in scene.entries(run)}
        assert "loop.shard.returned" in types
        return result_of(scene, run)["total"], jobs.taken()

    total, taken = on_fleet(tmp_path, scenario)
    worked = jobs.worked()
    assert taken == set(range(24))
    # At most one claim was under way when the worker died, and it may have died before that was told.
    assert 21 <= len(worked) <= 24
    assert len(worked) >= int(str(total)) >= 21


def test_a_large_claim_goes_from_worker_to_worker_by_reference(tmp_path: Path) -> None:
    jobs = Jobs.at(tmp_path, 30)
    sql = (
        "UPDATE jobs SET taken_by = :claim WHERE id IN (SELECT id FROM jobs WHERE taken_by IS NULL LIMIT :rows) "
        "RETURNING id, n, printf('%.5000c', 'x') AS text"
    )

    async def scenario(scene: Fleet) -> Json:
        await scene.serve()
        scene.work("w1")
        run = await scene.submit(write(tmp_path, queue(SLOWLY, rows=30, at_once=3, sql=sql)))
        await scene.until(lambda: sum(entry.type == "loop.iteration.done" for entry in scene.entries(run)) > 5)
        await scene.kill_worker("w1")
        scene.work("w2")
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        return result_of(scene, run)["total"]

    assert on_fleet(tmp_path, scenario) == 30
    assert set(jobs.worked()) == set(range(30))
