"""The log ends after any entry after which it can end: resuming gives what an unbroken run would have given."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from tests.chaos import playbooks
from tests.chaos.engines import MemoryHome, Told, resumed, started, virtually
from tests.chaos.logs import BoundaryLog
from tests.chaos.workshop import marks
from tests.depth import times
from tests.replaying import assert_engine_replays

STRIDE = max(1, 8 // times(1))
"""Every so manyth place, and every one with PENSTOCK_TEST_DEPTH=8."""


def test_a_run_whose_log_is_cut_anywhere_and_resumed_ends_as_if_nothing_had_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, traces = playbooks.large(tmp_path), tmp_path / "marks"
    home = MemoryHome.at(tmp_path)
    log = BoundaryLog(MemoryLog(home.store))

    async def whole(engine: Embedded) -> Told:
        return await started(engine, file)

    unbroken: Told = virtually(lambda: home.open(log), whole)
    assert unbroken.status == "completed", unbroken.summary.error
    clash = next(entry for entry in unbroken.entries if entry.type == "loop.done" and entry.scope.startswith("clash"))
    assert b'"done":1,"failed":2,"results":[{"slept":2.0},null,null]' in clash.payload
    effects = set(marks(traces))
    for at in sorted(log.boundaries)[:-1:STRIDE]:
        cut = home.cut(at)
        traces.unlink(missing_ok=True)
        again: Told = virtually(cut.open, resumed)
        assert again.outcome == unbroken.outcome, at
        done = {entry.task for entry in cut.entries()[:at] if entry.type == "task.done"}
        assert not done & set(marks(traces)), at
        assert set(marks(traces)) <= effects


@pytest.mark.parametrize("seed", range(times(2)))
def test_a_run_that_loses_its_power_again_and_again_ends_as_if_nothing_had_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    file, chance = playbooks.large(tmp_path), random.Random(seed)
    unbroken: Told = virtually(MemoryHome.at(tmp_path).open, lambda engine: started(engine, file))
    home = MemoryHome.at(tmp_path)
    log = BoundaryLog(MemoryLog(home.store))
    virtually(lambda: home.open(log), lambda engine: started(engine, file))
    for _ in range(5):
        last = chance.choice(sorted(log.boundaries)[:-1])
        home = home.cut(last)
        log = BoundaryLog(MemoryLog(home.store))
        log.boundaries.add(last)
        told: Told = virtually(lambda home=home, log=log: home.open(log), resumed)
        assert told.outcome == unbroken.outcome


@pytest.mark.clause("P9.3")
def test_a_run_that_was_cut_off_anywhere_can_be_replayed_as_far_as_it_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, home = playbooks.small(tmp_path), MemoryHome.at(tmp_path)
    log = BoundaryLog(MemoryLog(home.store))
    virtually(lambda: home.open(log), lambda engine: started(engine, file))
    for at in sorted(log.boundaries):
        if at:
            virtually(home.cut(at).open, assert_engine_replays)
