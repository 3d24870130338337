"""Random jobs on a fleet, with and without deaths: the timeline is that of an embedded run."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from penstock.app.embedded import embedded
from penstock.kernel.values import JsonMap
from penstock.server.documents import DocumentInvalid, Pinned
from penstock.views.canonical import canonical
from tests.depth import times
from tests.fleet.random_jobs import random_document
from tests.fleet.scene import Fleet, on_fleet
from tests.virtual import VirtualClock, run_virtually

CASES = times(4)


def run_embedded(file: Path, home: Path) -> tuple[str, list[JsonMap]]:
    async def main(loop: object) -> tuple[str, list[JsonMap]]:
        engine = embedded(home / ".penstock", clock=VirtualClock())
        loop.is_busy = lambda: engine.log.backlog > 0 or engine.threads.busy > 0  # type: ignore[attr-defined]
        try:
            pinned = Pinned(str(file), file.read_text(encoding="utf-8"))
            summary = await engine.run("run-1").start(pinned, {}, label=None, trace_id="trace-1")
            return summary.status, list(canonical(engine.log.read("run-1"), "run-1"))
        finally:
            await engine.close()

    return run_virtually(main)


def drawn(number: int, home: Path) -> tuple[Path, tuple[str, list[JsonMap]]]:
    """A job that is valid, and what becomes of it in one process. Links drawn at random may lead in a circle: such are passed over."""
    for again in range(50):
        file = home / f"drawn-{again}.yaml"
        file.write_text(random_document(number + 1_000 * again), encoding="utf-8")
        try:
            return file, run_embedded(file, home)
        except DocumentInvalid:
            continue
    raise AssertionError("nothing but circles")


async def with_deaths(scene: Fleet, file: Path, chance: random.Random, deaths: int) -> tuple[str, list[JsonMap]]:
    await scene.serve("s0")
    for number in range(2):
        scene.work(f"w{number}", slots=chance.choice([1, 2, 4]))
    run = await scene.submit(file)
    for number in range(deaths):
        await asyncio.sleep(chance.uniform(0.0, 6.0))
        if chance.random() < 0.6:
            await scene.kill_worker(chance.choice(sorted(scene.workers)))
            scene.work(f"again{number}")
        else:
            await scene.kill_server(next(iter(scene.servers)))
            await asyncio.sleep(chance.uniform(0.0, 3.0))
            await scene.serve(f"s{number + 1}")
    status = (await scene.ended(run)).status
    await scene.check_replay(run)
    return status, scene.canonical(run)


@pytest.mark.parametrize("number", range(CASES))
def test_a_random_job_has_the_same_timeline_on_a_fleet(tmp_path: Path, number: int) -> None:
    file, unbroken = drawn(number, tmp_path)
    chance = random.Random(number)
    deaths = number % 4
    assert on_fleet(tmp_path / "fleet", lambda scene: with_deaths(scene, file, chance, deaths)) == unbroken
