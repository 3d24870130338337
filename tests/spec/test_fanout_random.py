"""F1.1 over random playbooks: a loop comes to the same whether it runs on one worker or is fanned out, even when workers are lost."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.ports.leases import Workforce
from penstock.ports.results import decode
from penstock.worker.workforce import LocalWorkforce
from tests.chaos.engines import MemoryHome, Told, resumed, started, virtually
from tests.chaos.random_playbooks import workshop
from tests.depth import times
from tests.fanning import Shaky, Staffed
from tests.random_loops import MODES, RandomLoop, random_loop
from tests.replaying import assert_engine_replays
from tests.virtual import VirtualClock

HANGS_AFTER_S = 10_000.0
SEEDS = times(8)
CHUNK = min(SEEDS, 16)
RESUMED = times(4)
RESUMED_CHUNK = min(RESUMED, 8)


@dataclass(slots=True)
class Bad(Staffed):
    """Workers that are lost now and then."""

    seed: int = 0

    def _open_workforce(self, execution_id: str, hide: Any) -> Workforce:
        def hire(usual: LocalWorkforce) -> LocalWorkforce:
            return Shaky(usual, self.seed, share=0.3)

        self.hire = hire
        return Staffed._open_workforce(self, execution_id, hide)


def run(loop: RandomLoop, folder: Path, mode: str, *, is_shaky: bool = False, delays: int = 0) -> Told:
    file = loop.write(folder, mode)
    home = MemoryHome.at(folder, workshop(1000 * delays + loop.seed))

    def opened() -> Embedded:
        if not is_shaky:
            return home.open()
        engine = Bad(home.folder, MemoryLog(home.store), home.blobs, home.tools, clock=VirtualClock())
        engine.seed = loop.seed
        return engine

    async def body(engine: Embedded) -> Told:
        told = await asyncio.wait_for(started(engine, file), HANGS_AFTER_S)
        await assert_engine_replays(engine)
        return told

    told: Told = virtually(opened, body)
    return told


def failures(told: Told) -> dict[int, Any]:
    """Element -> why it failed for good."""
    found: dict[int, Any] = {}
    for entry in told.entries:
        data: Any = decode(entry.payload)
        if entry.type == "loop.iteration.failed":
            found[data["index"]] = _plain(data["error"])
        elif entry.type == "loop.shard.failed" and not data["again"]:
            found[data["iter_index"]] = _plain(data["error"])
    return found


def _plain(error: Any) -> Any:
    return {key: value for key, value in error.items() if key != "hint"} if isinstance(error, dict) else error


def is_chancy(loop: RandomLoop, told: Told) -> bool:
    """With fail_fast, how many were tried before the first failure stopped the loop is chance."""
    return loop.failure == "fail_fast" and bool(failures(told))


@pytest.mark.clause("F1.1", "F5.1")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_random_loop_comes_to_the_same_in_both_modes(tmp_path: Path, first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        loop = random_loop(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        local, fanned = (run(loop, folder, mode) for mode in MODES)
        others = [fanned, run(loop, folder, "fanout", delays=1), run(loop, folder, "fanout", is_shaky=True)]
        for other in others:
            assert other.status == local.status, seed
            if is_chancy(loop, local):
                assert bool(failures(other)), seed
                assert {entry.type for entry in other.entries} >= {"step.failed", "loop.fanin.completed"}, seed
                continue
            assert failures(other) == failures(local), seed
            assert other.summary.ctx == local.summary.ctx, seed
            assert _result(other) == _result(local), seed
            assert other.summary.error == local.summary.error, seed
        if not is_chancy(loop, local):
            assert others[1].timeline == fanned.timeline, seed
        assert "loop.fanout.started" not in {entry.type for entry in local.entries}
        seen.update(
            [local.status, "failing" if failures(local) else "well", *(entry.type for entry in others[2].entries)]
        )
    # A generator that makes dull loops would prove nothing.
    assert {"completed", "failing", "well", "loop.shard.returned", "loop.shard.failed"} <= set(seen)


MENDED = [
    {"name": "before", "kind": "noop", "value": "{{ iter.e.n }}", "set_shared": {"tries": {"count": True}}},
    {
        "name": "mended",
        "kind": "mark",
        "file": "{{ workload.flag }}.marks",
        "value": "{{ [iter.shard_id, iter.e.n] }}",
        "until": "{{ workload.flag if iter.e.n % 3 == 0 else '/' }}",
        "set_shared": {"total": {"sum": "{{ iter.e.n }}"}},
        "spec": {
            "policy": {
                "rules": [
                    {
                        "when": "{{ outcome.status == 'ok' }}",
                        "then": {"do": "continue", "append_ctx": {"log": "{{ iter.index }}"}},
                    },
                    {"else": {"do": "fail"}},
                ]
            }
        },
    },
]


@pytest.mark.clause("F1.1", "F5.1")
@pytest.mark.parametrize("first", range(0, RESUMED, RESUMED_CHUNK))
def test_a_random_loop_that_failed_and_is_resumed_comes_to_the_same_in_both_modes(tmp_path: Path, first: int) -> None:
    mended = 0
    for seed in range(first, first + RESUMED_CHUNK):
        loop = random_loop(seed)
        step, well = loop.book["workflow"][1], loop.book["workflow"][1]["next"]["arcs"][:1]
        step["spec"]["reducers"], step["tool"], step["next"] = True, MENDED, {"arcs": well}
        step["spec"]["fanout"]["fail_fast"] = loop.failure == "fail_fast"
        step["spec"]["policy"]["failure"]["mode"] = "fail_fast"
        ends = []
        for mode in MODES:
            flag = tmp_path / f"{seed}-{mode}"
            loop.book["workload"]["flag"] = str(flag)
            folder = tmp_path / f"{seed}-{mode}-home"
            folder.mkdir()
            file, home = loop.write(folder, mode), MemoryHome.at(folder, workshop(seed))
            told: Told = virtually(home.open, lambda engine, file=file: started(engine, file))
            if told.status == "failed":
                flag.touch()
                mended += 1
                told = virtually(home.open, resumed)
                virtually(home.open, assert_engine_replays)
            assert told.status == "completed", (seed, mode)
            ends.append((told.summary.ctx, _result(told)))
        assert ends[0] == ends[1], seed
    assert mended > RESUMED_CHUNK // 2


def _result(told: Told) -> Any:
    """What the last step saw of the fan-in, without how often ranges were handed out."""
    result = told.summary.result
    if isinstance(result, list) and result and isinstance(result[0], dict):
        return [{key: value for key, value in result[0].items() if key != "retried"}, *result[1:]]
    return result


def test_the_generator_makes_the_same_playbook_from_the_same_seed() -> None:
    chance = random.Random(1)
    for seed in (chance.randint(0, 10_000) for _ in range(times(8))):
        assert random_loop(seed) == random_loop(seed)
