"""Jobs on a fleet: sub-jobs go to workers, whoever dies, and the timeline is that of an embedded run."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from penstock.app.embedded import embedded
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.server.documents import Pinned
from penstock.views.canonical import canonical
from penstock.views.run_view import RunView
from penstock.views.timeline import timeline_of, window_of
from tests.depth import times
from tests.fleet.deaths import with_deaths
from tests.fleet.forks import forks
from tests.fleet.scene import Fleet, on_fleet
from tests.fleet.test_behaviour import shown_leases
from tests.virtual import VirtualClock, run_virtually

FORKS = forks([1, 2, 3], go=1, left=3, right=2, body=2, beside=5)


def embedded_timeline(file: Path, home: Path) -> list[JsonMap]:
    async def main(loop: object) -> list[JsonMap]:
        engine = embedded(home / ".penstock", clock=VirtualClock())
        loop.is_busy = lambda: engine.log.backlog > 0 or engine.threads.busy > 0  # type: ignore[attr-defined]
        try:
            pinned = Pinned(str(file), file.read_text(encoding="utf-8"))
            summary = await engine.run("run-1").start(pinned, {}, label=None, trace_id="trace-1")
            assert summary.status == "completed", summary.error
            return list(canonical(engine.log.read("run-1"), "run-1"))
        finally:
            await engine.close()

    return run_virtually(main)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("job") / "forks.yaml"
    file.write_text(FORKS, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def unbroken(job: Path) -> list[JsonMap]:
    return embedded_timeline(job, job.parent)


def test_a_job_on_a_fleet_comes_to_the_timeline_of_an_embedded_one(
    tmp_path: Path, job: Path, unbroken: list[JsonMap]
) -> None:
    async def scenario(scene: Fleet) -> list[JsonMap]:
        await scene.serve()
        scene.work("w1")
        scene.work("w2")
        run = await scene.submit(job)
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        return scene.canonical(run)

    assert on_fleet(tmp_path, scenario) == unbroken


@pytest.mark.parametrize("seed", range(times(3)))
def test_whoever_dies_the_job_comes_to_the_same_end(
    tmp_path: Path, job: Path, unbroken: list[JsonMap], seed: int
) -> None:
    assert on_fleet(tmp_path, lambda scene: with_deaths(scene, job, random.Random(seed))) == unbroken


TWO = """
apiVersion: penstock/v1
kind: Job
metadata: {name: two}
components:
  first: {type: sleep, params: {seconds: 1}}
  second: {type: sleep, params: {seconds: 60}}
  last: {type: sleep, params: {seconds: 1}}
connections:
  control:
  - first (ok) second
  - second (subjob_ok) last
"""


def test_the_timeline_has_both_leases_of_a_sub_job_that_was_lost_and_starts_over(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO, encoding="utf-8")

    async def scenario(scene: Fleet) -> list[Entry]:
        await scene.serve()
        scene.work("w1")
        run = await scene.submit(file)
        await scene.until(lambda: any(one.scope == "second" for one in scene.entries(run)))
        held = RunView.of(scene.entries(run)).executions[""].leases()
        assert [(one.lane, one.worker) for one in held] == [("<first>", "w1")]
        await scene.kill_worker("w1")
        scene.work("w2")
        assert (await scene.ended(run)).status == "completed"
        view = RunView.of(scene.entries(run))
        window = window_of(view, view.executions[""], None, None, 5000, None)
        shown: Any = timeline_of(scene.log, run, view, view.executions[""], None, window)
        titles = {lane["id"]: (lane["kind"], lane["title"]) for lane in shown["lanes"]}
        assert titles["<first>"] == ("subjob", "sub-job first")
        assert titles["first"] == ("node", "first")
        return scene.entries(run)

    entries = on_fleet(tmp_path, scenario)
    assert shown_leases(entries, "<first>") == [
        ("w1", "failed", "sub-job first, lost or given back"),
        ("w2", "ok", "sub-job first"),
    ]
    assert shown_leases(entries, "<last>") == [("w2", "ok", "sub-job last")]


CROSSES = """
apiVersion: penstock/v1
kind: Job
metadata: {name: crosses}
components:
  first: {type: sleep, params: {seconds: 4}}
  made: {type: set_global, params: {values: {made: 7}}}
  today: {type: fixed_rows, params: {columns: [id], rows: [[1], [2]]}}
  known: {type: fixed_rows, params: {columns: [id, old], rows: [[1, "{{ global.made }}"]]}}
  both: {type: join, params: {on: [id], how: left}}
  told: {type: python, params: {code: "output = [dict(row) for row in inputs['input']]; result = len(output)"}}
  left: {type: sleep, params: {seconds: 2}}
  right: {type: sleep, params: {seconds: 3}}
  fork: {type: sleep, params: {seconds: 1}}
  joined: {type: set_global, params: {values: {joined: 1}}}
  beside: {type: sleep, params: {seconds: 1}}
  last: {type: sleep, params: {seconds: 1}}
connections:
  data:
  - today.main -> both.main
  - known.main -> both.lookup
  - both.main -> told.input
  control:
  - first (ok) made
  - made (subjob_ok) known
  - fork (parallelise) left, right
  - left, right (synchronise) joined
  - joined (ok) last
  - beside (ok) last
"""


@pytest.fixture(scope="module")
def crossing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("crossing") / "crosses.yaml"
    file.write_text(CROSSES, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def crossed(crossing: Path) -> list[JsonMap]:
    return embedded_timeline(crossing, crossing.parent)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_link_from_another_sub_job_reaches_one_that_is_held_or_waits(
    tmp_path: Path, crossing: Path, crossed: list[JsonMap], workers: int
) -> None:
    async def scenario(scene: Fleet) -> list[JsonMap]:
        await scene.serve()
        for number in range(workers):
            scene.work(f"w{number}", slots=2)
        run = await scene.submit(crossing)
        if not workers:
            await asyncio.sleep(5)
            scene.work("late", slots=1)
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        return scene.canonical(run)

    assert on_fleet(tmp_path, scenario) == crossed


@pytest.mark.parametrize("seed", range(times(3)))
def test_whoever_dies_links_between_sub_jobs_are_followed(
    tmp_path: Path, crossing: Path, crossed: list[JsonMap], seed: int
) -> None:
    assert on_fleet(tmp_path, lambda scene: with_deaths(scene, crossing, random.Random(seed))) == crossed


CALLS = """
apiVersion: penstock/v1
kind: Job
metadata: {name: calls}
components:
  - {name: part, type: "@outer"}
"""
OUTER = """
apiVersion: penstock/v1
kind: Joblet
metadata: {name: outer}
components:
  - {name: first, type: noop}
  - {name: deeper, type: "@inner"}
"""
INNER = """
apiVersion: penstock/v1
kind: Joblet
metadata: {name: inner}
components:
  - {name: one, type: noop}
  - {name: two, type: noop}
connections: {control: one (ok) two}
"""


def test_a_job_that_begins_inside_of_joblet_calls_ends_on_a_fleet(tmp_path: Path) -> None:
    for name, text in (("calls", CALLS), ("outer", OUTER), ("inner", INNER)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    job = tmp_path / "calls.yaml"

    async def scenario(scene: Fleet) -> list[JsonMap]:
        await scene.serve()
        scene.work("w1")
        run = await scene.submit(job)
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        return scene.canonical(run)

    assert on_fleet(tmp_path, scenario) == embedded_timeline(job, tmp_path)
