"""The log of a job ends after any decision: resuming gives what an unbroken run would have given, and repeats nothing that was done."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.ports.log import Entry
from tests.chaos.engines import MemoryHome, Told, resumed, virtually
from tests.chaos_jobs import jobs
from tests.chaos_jobs.homes import DecisionLog, leftovers, started, timeline
from tests.chaos_jobs.nest import write_nest
from tests.depth import times
from tests.replaying import assert_engine_replays

STRIDE = max(1, 8 // times(1))
"""Every so manyth place, and every one with PENSTOCK_TEST_DEPTH=8."""


def finished(entries: list[Entry]) -> set[str]:
    """The marks that must not be made again: those of sub-jobs that have closed, and of iterations that ended OK."""
    closed = {entry.scope for entry in entries if entry.type in ("subjob.ok", "iteration.ok")}
    kept = {mark for mark, subjob in jobs.SUBJOB_OF.items() if subjob in closed}
    iterations = {"files[#0]": "load a.txt", "files[#1]": "load b.txt", "files[#2]": "load c.txt"}
    return kept | {mark for scope, mark in iterations.items() if scope in closed}


def whole_run(home: MemoryHome, file: Path) -> tuple[Told, DecisionLog]:
    log = DecisionLog(MemoryLog(home.store), *jobs.OPENERS)

    async def body(engine: Embedded) -> Told:
        return await started(engine, file)

    told: Told = virtually(lambda: home.open(log), body)
    assert told.status == "completed", told.summary.error
    assert told.summary.ctx.items() >= jobs.GLOBALS.items()
    return told, log


@pytest.mark.clause("J7.2")
@pytest.mark.clause("J12.6")
def test_a_job_whose_log_is_cut_after_any_decision_and_resumed_ends_as_if_nothing_had_happened(folder: Path) -> None:
    jobs.furnish(folder)
    home, file = MemoryHome.at(folder / ".penstock"), jobs.write_rich(folder, "strict")
    unbroken, log = whole_run(home, file)
    assert len(log.boundaries) > 24
    after, traces = jobs.files(folder), folder / "marks"
    assert set(jobs.marks(folder)) == jobs.MARKS
    for at in sorted(log.boundaries)[:-1:STRIDE]:
        cut = home.cut(at)
        traces.unlink(missing_ok=True)
        if all(entry.type != "iteration.started" for entry in cut.entries()):
            jobs.furnish(folder)

        async def body(engine: Embedded) -> Told:
            told = await resumed(engine)
            await assert_engine_replays(engine)
            return told

        again: Told = virtually(cut.open, body)
        assert again.outcome == unbroken.outcome, at
        assert not finished(cut.entries()[:at]) & set(jobs.marks(folder)), at
        assert set(jobs.marks(folder)) <= jobs.MARKS
        assert jobs.files(folder) == after, at
        assert leftovers(home.folder) == []


@pytest.mark.clause("J7.2")
@pytest.mark.parametrize("seed", range(2))
def test_a_job_that_loses_its_power_again_and_again_ends_as_if_nothing_had_happened(folder: Path, seed: int) -> None:
    jobs.furnish(folder)
    chance, file = random.Random(seed), jobs.write_rich(folder, "strict")
    home = MemoryHome.at(folder / ".penstock")
    unbroken, log = whole_run(home, file)
    last = 0
    for _ in range(4):
        # Never before the files were listed anew: they have been moved by now.
        candidates = [at for at in sorted(log.boundaries)[:-1] if at > last]
        if not candidates:
            break
        last = chance.choice(candidates)
        home = home.cut(last)
        if all(entry.type != "iteration.started" for entry in home.entries()):
            jobs.furnish(folder)
        log = DecisionLog(MemoryLog(home.store), *jobs.OPENERS)
        told: Told = virtually(partial(home.open, log), resumed)
        assert told.outcome == unbroken.outcome
        assert leftovers(home.folder) == []


@pytest.mark.clause("J7.2")
@pytest.mark.parametrize("file", ["outer.yaml", "nest.yaml", "book.yaml"])
def test_what_runs_inside_a_run_that_lost_its_power_stands_once_in_its_timeline(folder: Path, file: str) -> None:
    write_nest(folder)
    home = MemoryHome.at(folder / ".penstock")
    log = DecisionLog(MemoryLog(home.store))
    unbroken: Told = virtually(lambda: home.open(log), lambda engine: started(engine, folder / file))
    wanted = timeline(unbroken.entries)

    async def body(engine: Embedded) -> Told:
        told = await resumed(engine)
        await assert_engine_replays(engine)
        return told

    for at in sorted(log.appended)[:-1:STRIDE]:
        cut = home.cut(at)
        second = DecisionLog(MemoryLog(cut.store))
        again: Told = virtually(partial(cut.open, second), body)
        assert timeline(again.entries) == wanted, at
        later = sorted(second.appended)[(len(second.appended) - 1) // 2]
        if later == len(again.entries):
            continue
        twice: Told = virtually(cut.cut(later).open, body)
        assert timeline(twice.entries) == wanted, (at, later)
