"""What the dispatch has lost is offered anew, and what it has kept of a run that is over goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.adapters.memory.dispatch import MemoryDispatch
from penstock.ports.dispatch import Offer
from tests.depth import some
from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet
from tests.fleet.test_job_iterators import SPREADS
from tests.fleet.test_jobs import FORKS

STEPS = """
- step: start
  tool: [{name: wait, kind: sleep, seconds: 3}]
  next: {arcs: [{step: fan}]}
- step: fan
  spec: {loop_mode: fanout, fanout: {range_size: 2}}
  loop: {in: {range: 9}, iterator: n}
  tool: [{name: wait, kind: sleep, seconds: 2}]
"""
DOCUMENTS = {"steps": document(STEPS), "forks": FORKS, "spreads": SPREADS}


@pytest.mark.parametrize(
    ("name", "after_s"), some([(name, after_s) for name in sorted(DOCUMENTS) for after_s in (1, 4, 9)], 4)
)
def test_a_run_whose_leases_the_dispatch_has_lost_comes_to_its_end(tmp_path: Path, name: str, after_s: int) -> None:
    file = tmp_path / f"{name}.yaml"
    file.write_text(DOCUMENTS[name], encoding="utf-8")

    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        scene.work("w1")
        scene.work("w2")
        run = await scene.submit(file)
        await asyncio.sleep(after_s)
        await MemoryDispatch(scene.dispatch_store).forget(run)
        assert (await scene.ended(run, 300)).status == "completed"
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_what_is_left_of_a_run_that_is_over_is_cleared_away(tmp_path: Path, is_withdrawn: bool) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(document("- step: start\n  tool: [{name: n, kind: noop}]"), encoding="utf-8")

    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        scene.work("w1")
        run = await scene.submit(file)
        await scene.ended(run, 60)
        dispatch = MemoryDispatch(scene.dispatch_store)
        await dispatch.offer([Offer(f"{run}/left", run, b"", pool="nobody")])
        if is_withdrawn:
            await dispatch.withdraw([f"{run}/left"])
        await asyncio.sleep(60)
        assert not scene.dispatch_store.leases

    on_fleet(tmp_path, scenario)
