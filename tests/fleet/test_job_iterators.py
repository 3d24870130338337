"""Iterators of jobs on a fleet: iterations that do not depend on each other are run by several workers."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from penstock.kernel.values import JsonMap
from penstock.views.run_view import RunView
from tests.depth import times
from tests.fleet.deaths import with_deaths
from tests.fleet.scene import Fleet, on_fleet
from tests.fleet.test_jobs import embedded_timeline

SPREADS = """
apiVersion: penstock/v1
kind: Job
metadata: {name: spreads}
components:
  before: {type: set_global, params: {values: {rate: 3}}}
  each: {type: iterate_list, params: {items: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], parallel: 4}}
  wait: {type: sleep, params: {seconds: "{{ 1 + iteration.item % 3 }}"}}
  rows: {type: fixed_rows, params: {columns: [n], rows: [["{{ iteration.item }}"]]}}
  keep: {type: python, params: {code: "result = [row['n'] for row in inputs['input']]"}}
  add: {type: set_global, params: {values: {seen: ["{{ iteration.item * global.rate }}"]}}}
  good: {type: set_global, params: {values: {good: ["{{ iteration.index }}"]}}}
  after: {type: set_global, params: {values: {all: "{{ global.seen }}", good_ones: "{{ global.good }}"}}}
  last: {type: sleep, params: {seconds: 1}}
  inner: {type: iterate_list, params: {items: [a, b, c], parallel: 3}}
  small: {type: sleep, params: {seconds: 1}}
connections:
  data:
  - rows.main -> keep.input
  control:
  - before (ok) each
  - each (iterate) wait
  - wait (ok) rows
  - keep (ok) add
  - each (iteration_ok) good
  - each (iterator_complete) after
  - after (subjob_ok) last
  - last (subjob_ok) inner
  - inner (iterate) small
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("spreads") / "spreads.yaml"
    file.write_text(SPREADS, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def unbroken(job: Path) -> list[JsonMap]:
    return embedded_timeline(job, job.parent)


def test_iterations_are_run_by_several_workers(tmp_path: Path, job: Path, unbroken: list[JsonMap]) -> None:
    async def scenario(scene: Fleet) -> tuple[list[JsonMap], set[str | None]]:
        await scene.serve()
        for number in range(3):
            scene.work(f"w{number}", slots=2)
        run = await scene.submit(job)
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        workers = {entry.worker for entry in scene.entries(run) if entry.scope.startswith("each[#")}
        bars = [bar for bar in RunView.of(scene.entries(run)).executions[""].lanes["each"].bars if bar.kind == "lease"]
        assert {bar.worker for bar in bars} == workers - {None}  # The leases of iterations are in the timeline, too.
        return scene.canonical(run), workers

    timeline, workers = on_fleet(tmp_path, scenario)
    assert timeline == unbroken
    assert len(workers) >= 2, workers


@pytest.mark.parametrize("seed", range(times(2)))
def test_whoever_dies_each_iteration_is_in_the_log_once(
    tmp_path: Path, job: Path, unbroken: list[JsonMap], seed: int
) -> None:
    assert on_fleet(tmp_path, lambda scene: with_deaths(scene, job, random.Random(seed))) == unbroken


@pytest.mark.parametrize("seed", range(times(2)))
def test_a_cancelled_job_leaves_nothing_behind(tmp_path: Path, job: Path, seed: int) -> None:
    chance = random.Random(seed)

    async def scenario(scene: Fleet) -> None:
        server = await scene.serve()
        for number in range(3):
            scene.work(f"w{number}", slots=2)
        run = await scene.submit(job)
        await asyncio.sleep(chance.uniform(0.0, 10.0))
        await server.hosting.ask(run, "cancel", {})
        assert (await scene.ended(run)).status == "cancelled"
        await scene.until(lambda: not any(one.worker.lease_runs for one in scene.workers.values()), 60)
        await scene.check_replay(run)
        entries = scene.entries(run)
        started = {entry.scope for entry in entries if entry.type == "component.started"}
        ended = {entry.scope for entry in entries if entry.type in ("component.ok", "component.error")}
        assert started == ended

    on_fleet(tmp_path, scenario)


@pytest.mark.parametrize("halts", [True, False])
def test_a_failed_iteration_fails_the_job_as_it_does_embedded(tmp_path: Path, halts: bool) -> None:
    file = tmp_path / "fails.yaml"
    text = SPREADS.replace('code: "result =', "code: \"assert inputs['input'][0]['n'] != 5; result =").replace(
        "metadata: {name: spreads}",
        f"metadata: {{name: spreads}}\njob_config: {{fail_strategy: {'halt' if halts else 'continue'}}}",
    )
    file.write_text(text, encoding="utf-8")

    async def scenario(scene: Fleet) -> tuple[str, list[str]]:
        await scene.serve()
        for number in range(3):
            scene.work(f"w{number}", slots=2)
        run = await scene.submit(file)
        status = (await scene.ended(run)).status
        await scene.check_replay(run)
        return status, [entry.scope for entry in scene.entries(run) if entry.type == "iteration.error"]

    assert on_fleet(tmp_path, scenario) == ("failed" if halts else "completed", ["each[#4]"])


def holder_of(scene: Fleet, index: int) -> str | None:
    for name, one in scene.workers.items():
        for key in one.worker.lease_runs:
            lo, _, hi = key.rpartition("#")[2].partition(":")
            if hi and int(lo) <= index < int(hi):
                return name
    return None


def test_an_iteration_that_takes_its_workers_with_it_fails_the_job_in_the_end(tmp_path: Path) -> None:
    """The others have been run by then, and are kept: a resume runs only what is left."""
    file = tmp_path / "poison.yaml"
    file.write_text(SPREADS.replace("1 + iteration.item % 3", "300 if iteration.item == 5 else 1"), encoding="utf-8")

    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        for number in range(2):
            scene.work(f"w{number}", slots=4)
        run = await scene.submit(file)
        for number in range(200):
            await asyncio.sleep(10)
            victim = holder_of(scene, 4)
            if scene.header(run).status != "running":
                break
            if victim is not None:
                scene.work(f"more{number}", slots=4)
                await scene.kill_worker(victim)
        assert (await scene.ended(run)).status == "failed"
        entries = scene.entries(run)
        assert sum(entry.type == "iteration.ok" for entry in entries) == 11
        failed = next(entry for entry in entries if entry.type == "job.failed")
        assert b"worker_lost" in failed.payload

    on_fleet(tmp_path, scenario)


@pytest.mark.parametrize("parallel", [1, 3])
def test_failed_iterations_of_a_job_that_completed_are_run_again_with_deaths(tmp_path: Path, parallel: int) -> None:
    """D60, on a fleet: also when the server dies while they run."""
    flag, ran = tmp_path / "flag", tmp_path / "ran"
    code = (
        f"import pathlib\\nwith open({str(ran)!r}, 'a') as file: file.write(str(iteration['item']))\\n"
        f"if iteration['item'] % 2 and not pathlib.Path({str(flag)!r}).exists(): raise ValueError('odd')"
    )
    file = tmp_path / "odd.yaml"
    file.write_text(
        f"""
job_config: {{fail_strategy: continue}}
components:
  first: {{type: python, params: {{code: "with open({str(ran)!r}, 'a') as file: file.write('f')"}}}}
  each: {{type: iterate_list, params: {{items: [0, 1, 2, 3, 4], parallel: {parallel}}}}}
  wait: {{type: sleep, params: {{seconds: 5}}}}
  odd: {{type: python, params: {{code: "{code}"}}}}
  after: {{type: python, params: {{code: "with open({str(ran)!r}, 'a') as file: file.write('a')"}}}}
connections:
  control:
  - first (ok) each
  - each (iterate) wait
  - wait (ok) odd
  - each (iterator_complete) after
""",
        encoding="utf-8",
    )

    async def scenario(scene: Fleet) -> None:
        scopes = await run_again(scene, file, flag, ran, ("f01234a", "13a"))
        assert "first" not in scopes

    on_fleet(tmp_path, scenario)


async def run_again(
    scene: Fleet, file: Path, flag: Path, ran: Path, marks: tuple[str, str], dies: str = "server"
) -> set[str]:
    """Run a job some of whose iterations fail until `flag` is there, and then these again, while somebody dies. `marks` are what
    the first run and the second leave in `ran`. The components that started in the second."""
    await scene.serve("s1")
    scene.work("w1", slots=4)
    run = await scene.submit(file)
    assert (await scene.ended(run)).status == "completed"
    assert sorted(ran.read_text()) == sorted(marks[0])
    before = scene.header(run).last_seq
    flag.touch()
    ran.unlink()
    await scene.servers["s1"].hosting.ask(run, "resume", {"failed": True, "seq": before})
    await scene.until(lambda: scene.header(run).status == "running", 60)
    await asyncio.sleep(2)
    if dies == "server":
        await scene.kill_server("s1")
        await scene.serve("s2")
    else:
        scene.work("w2", slots=4)
        await scene.kill_worker("w1")
    assert (await scene.ended(run)).status == "completed"
    assert sorted(ran.read_text()) == sorted(marks[1])
    await scene.check_replay(run)
    return {one.scope for one in scene.entries(run) if one.seq > before and one.type == "component.started"}


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("dies", ["server", "worker"])
def test_failed_iterations_inside_of_others_are_run_again_with_deaths(tmp_path: Path, parallel: int, dies: str) -> None:
    flag, ran = tmp_path / "flag", tmp_path / "ran"

    def marks(text: str) -> str:
        return f"with open({str(ran)!r}, 'a') as file: file.write({text})"

    code = (
        marks("str(iteration['item'])")
        + f"\\nimport pathlib\\nif iteration['item'] % 2 and not pathlib.Path({str(flag)!r}).exists(): raise ValueError('odd')"
    )
    file = tmp_path / "nested.yaml"
    file.write_text(
        f"""
job_config: {{fail_strategy: continue}}
components:
  outer: {{type: iterate_list, params: {{items: [a, b, c], parallel: {parallel}}}}}
  first: {{type: python, params: {{code: "{marks("'f'")}"}}}}
  inner: {{type: iterate_list, params: {{items: [0, 1, 2], parallel: {parallel}}}}}
  wait: {{type: sleep, params: {{seconds: 5}}}}
  odd: {{type: python, params: {{code: "{code}"}}}}
  last: {{type: python, params: {{code: "{marks("'l'")}"}}}}
connections:
  control:
  - outer (iterate) first
  - first (ok) inner
  - inner (iterate) wait
  - wait (ok) odd
  - inner (iterator_complete) last
""",
        encoding="utf-8",
    )

    on_fleet(tmp_path, lambda scene: run_again(scene, file, flag, ran, ("f012l" * 3, "1l" * 3), dies))
