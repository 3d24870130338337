"""D68: the time limits of a step count from its scheduling, also while no worker has taken it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.ports.results import decode
from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet

STEP = """
- step: start
  spec: {{pool: gpu, needs: [large, eu], policy: {{lifecycle: {{{limit}}}}}{more}}}
  {loop}
  tool: {{kind: noop}}
"""
FAN = {"loop": "loop: {in: {range: 10}, iterator: n}", "more": ", loop_mode: fanout"}
LOCAL = {"loop": "loop: {in: {range: 10}, iterator: n}", "more": ""}
PLAIN = {"loop": "", "more": ""}


def filed(tmp_path: Path, limit: str, shape: dict[str, str]) -> Path:
    file = tmp_path / "p.yaml"
    file.write_text(document(STEP.format(limit=limit, **shape)), encoding="utf-8")
    return file


def failure(scene: Fleet, run: str) -> Any:
    (found,) = [decode(entry.payload) for entry in scene.entries(run) if entry.type == "step.failed"]
    assert isinstance(found, dict)
    return found["error"]


def seconds(scene: Fleet, run: str) -> float:
    """From the scheduling of the step to its end."""
    times = {entry.type: entry.ts for entry in scene.entries(run)}
    return times["step.failed"] - times["step.scheduled"]


@pytest.mark.parametrize("shape", [PLAIN, LOCAL, FAN], ids=["step", "loop", "fan-out"])
@pytest.mark.parametrize("which", ["deadline", "timeout"])
def test_a_step_that_nobody_takes_is_out_of_time_and_says_whom_it_waited_for(
    tmp_path: Path, shape: dict[str, str], which: str
) -> None:
    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        scene.work("w1")  # Of another pool.
        run = await scene.submit(filed(tmp_path, f"{which}_s: 30", shape))
        assert (await scene.ended(run, 60)).status == "failed"
        error = failure(scene, run)
        assert error["kind"] == which
        assert error["message"] == (
            f"step `start` did not end within its `lifecycle.{which}_s` of 30 s: no worker has taken it, and it needs a worker "
            "of pool `gpu` with the labels `eu`, `large` and the tool `noop`"
        )
        assert 30 <= seconds(scene, run) < 33
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


@pytest.mark.parametrize("shape", [PLAIN, FAN], ids=["step", "fan-out"])
def test_the_time_goes_on_when_another_server_takes_the_run_over(tmp_path: Path, shape: dict[str, str]) -> None:
    async def scenario(scene: Fleet) -> None:
        await scene.serve("s1")
        run = await scene.submit(filed(tmp_path, "deadline_s: 60", shape))
        await asyncio.sleep(25)
        await scene.kill_server("s1")
        await scene.serve("s2")
        assert (await scene.ended(run, 60)).status == "failed"
        assert 60 <= seconds(scene, run) < 63
        assert "no worker has taken it" in failure(scene, run)["message"]
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


def test_waiting_and_working_share_one_time_out(tmp_path: Path) -> None:
    """What a step may take is not more because nobody was there at first."""

    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        file = tmp_path / "p.yaml"
        text = STEP.format(limit="timeout_s: 30", **PLAIN).replace("kind: noop", "kind: sleep, seconds: 25")
        file.write_text(document(text), encoding="utf-8")
        run = await scene.submit(file)
        await asyncio.sleep(20)
        scene.work("w1", pool="gpu", labels=frozenset({"large", "eu"}))
        assert (await scene.ended(run, 60)).status == "failed"
        error = failure(scene, run)
        assert error["message"] == "step `start` did not end within its `lifecycle.timeout_s` of 30 s"
        assert 30 <= seconds(scene, run) < 33

    on_fleet(tmp_path, scenario)


def test_a_resumed_step_has_its_whole_time_out_again(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        server = await scene.serve()
        run = await scene.submit(filed(tmp_path, "timeout_s: 30", PLAIN))
        assert (await scene.ended(run, 60)).status == "failed"
        await asyncio.sleep(500)
        await server.hosting.ask(run, "resume", {})
        await asyncio.sleep(20)
        scene.work("w1", pool="gpu", labels=frozenset({"large", "eu"}))
        await scene.until(lambda: scene.header(run).status == "completed", 60)

    on_fleet(tmp_path, scenario)


CLASHING = """
- step: start
  spec: {loop_mode: fanout, fanout: {allow_partial: true, range_size: 3EMIT}, reducers: {c: count}}
  loop: {in: {range: 40}, iterator: n, spec: {mode: parallel}}
  tool:
    - {name: wait, kind: sleep, seconds: 0.5}
    - {name: add, kind: noop, set_shared: {c: 1}, set: {ctx.k: "{{ iter.n % 4 }}"}}
"""


@pytest.mark.clause("F5.1", "F3.1")
@pytest.mark.parametrize("emit", ["", ", emit: per_item"])
def test_on_a_fleet_whose_workers_and_servers_die_an_element_counts_once_and_only_if_it_is_done(
    tmp_path: Path, emit: str
) -> None:
    async def scenario(scene: Fleet) -> None:
        await scene.serve("s1")
        for name in ("w1", "w2"):
            scene.work(name, slots=2)
        file = tmp_path / "p.yaml"
        file.write_text(document(CLASHING.replace("EMIT", emit)), encoding="utf-8")
        run = await scene.submit(file)
        await scene.until(lambda: any(entry.type == "loop.shard.started" for entry in scene.entries(run)))
        await asyncio.sleep(1.2)
        await scene.kill_worker("w1")
        await asyncio.sleep(2)
        await scene.kill_server("s1")
        await scene.serve("s2")
        scene.work("w3", slots=2)
        assert (await scene.ended(run, 300)).status == "completed"
        told: dict[str, Any] = {entry.type: decode(entry.payload) for entry in scene.entries(run)}
        fanin = told["loop.fanin.completed"]
        assert (fanin["succeeded"], fanin["failed"], fanin["shared"]) == (10, 30, {"c": 10})
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)
