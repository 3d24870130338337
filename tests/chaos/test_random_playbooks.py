"""Random playbooks under random delays, cuts and stops: what a run decides depends on its document alone."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.server.runs import LocalRun
from tests.chaos.engines import Deed, MemoryHome, Told, resumed, started, virtually
from tests.chaos.logs import BoundaryLog
from tests.chaos.random_playbooks import workshop, write_random
from tests.depth import times
from tests.replaying import assert_engine_replays

SEEDS = times(5)
CHUNK = 5
STOPS = 3


class Trial:
    """One random playbook; each run of it has delays of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir()
        self.folder, self.seed = folder, seed
        self.file = write_random(folder, seed)
        self.chance = random.Random(seed)

    def home(self, delays: int) -> MemoryHome:
        return MemoryHome.at(self.folder, workshop(1000 * delays + self.seed))

    def whole(self) -> tuple[Told, MemoryHome]:
        """An unbroken run, and its home as a power loss somewhere on the way would have left it."""
        home = self.home(0)
        log = BoundaryLog(MemoryLog(home.store))
        told: Told = virtually(lambda: home.open(log), self._start_and_replay)
        cut = home.cut(self.chance.choice(sorted(log.boundaries)[:-1]))
        cut.tools = workshop(1000 + self.seed)
        return told, cut

    def delayed(self) -> Told:
        told: Told = virtually(self.home(2).open, lambda engine: started(engine, self.file))
        return told

    def stopped(self) -> Told:
        home, stops = self.home(3), 0
        told: Told = virtually(home.open, lambda engine: started(engine, self.file, None, self._stop()))
        while told.status == "interrupted":
            stops += 1
            deeds = [self._stop()] if stops < STOPS else []
            told = virtually(home.open, lambda engine, deeds=deeds: resumed(engine, *deeds))
        virtually(home.open, assert_engine_replays)
        return told

    def _stop(self) -> Deed:
        after_s, grace_s = self.chance.uniform(0, 12), self.chance.choice([0.0, 1.5])

        async def deed(run: LocalRun) -> None:
            await asyncio.sleep(after_s)
            run.interrupt("SIGTERM", grace_s)

        return deed

    async def _start_and_replay(self, engine: Embedded) -> Told:
        told = await started(engine, self.file)
        await assert_engine_replays(engine)
        return told


@pytest.mark.clause("P9.3")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_timeline_of_a_random_playbook_depends_on_no_delay_no_power_loss_and_no_stop(
    tmp_path: Path, first: int
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        trial = Trial(tmp_path / str(seed), seed)
        whole, cut = trial.whole()
        assert trial.delayed().outcome == whole.outcome, seed
        resumed_one: Told = virtually(cut.open, resumed)
        assert resumed_one.outcome == whole.outcome, seed
        assert trial.stopped().outcome == whole.outcome, seed
        seen.update([whole.status, *(entry.type for entry in whole.entries)])
    # A generator that makes dull playbooks would prove nothing.
    assert {"completed", "step.failed", "loop.iteration.done", "playbook.completed"} <= set(seen)
