"""A cancel at any moment ends a job as cancelled: what runs is stopped, nothing more starts, nothing is left open or lying about."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.ports.log import Entry
from penstock.server.runs import LocalRun
from tests.chaos.engines import RUN, Deed, MemoryHome, Told, resumed, virtually
from tests.chaos.test_cancel import UnhurriedLog
from tests.chaos_jobs import jobs
from tests.chaos_jobs.homes import DecisionLog, leftovers, really, started
from tests.chaos_jobs.nest import write_nest
from tests.chaos_jobs.processes import command, has_started, lengthy, until
from tests.cli.support import ended, process
from tests.depth import times
from tests.replaying import assert_engine_replays
from tests.spec_jobs.support import each, job, python, sleeps

STARTS = ("component.started", "subjob.started", "iteration.started")
ENDS = ("component.ok", "component.error", "subjob.ok", "subjob.error", "iteration.ok", "iteration.error")
WAITS = "import time, pathlib\npathlib.Path('waiting').touch()\nwhile True:\n    time.sleep(0.005)\n"


def all_closed(entries: list[Entry]) -> None:
    """Whatever has begun since the last start has ended."""
    begun: set[tuple[str, str]] = set()
    for entry in entries:
        kind = entry.type.partition(".")[0]
        if entry.type == "job.started" and not entry.scope:
            begun.clear()
        elif entry.type in STARTS:
            begun.add((kind, entry.scope))
        elif entry.type in ENDS:
            begun.discard((kind, entry.scope))
    assert not begun


def once(scope: str, event: str = "component.started") -> Deed:
    """Cancel as soon as a component has started."""

    async def deed(run: LocalRun) -> None:
        seen = asyncio.Event()

        def look(entry: Entry) -> None:
            if (entry.type, entry.scope) == (event, scope):
                seen.set()

        run.services.observers.append(look)
        await seen.wait()
        await asyncio.sleep(0.05)
        await run.cancel("enough")

    return deed


def cancelled(folder: Path, text: str, component: str, event: str = "component.started") -> Told:
    (folder / "job.yaml").write_text(text)

    async def body(engine: Embedded) -> Told:
        told = await started(engine, folder / "job.yaml", None, once(component, event))
        await assert_engine_replays(engine)
        return told

    told: Told = really(folder, body)
    assert told.status == "cancelled"
    all_closed(told.entries)
    assert told.entries[-1].type == "job.cancelled"
    assert leftovers(folder / ".penstock") == []
    return told


def state_of(told: Told, component: str) -> list[str]:
    return [entry.type for entry in told.entries if entry.scope == component and entry.type.startswith("component.")]


def test_a_cancel_interrupts_a_query_that_would_run_for_days(folder: Path) -> None:
    lengthy(folder, {"type": "write_csv", "params": {"path": "out.csv"}})
    told = cancelled(folder, (folder / "job.yaml").read_text(), "read")
    assert state_of(told, "after") == ["component.skipped"]
    assert not (folder / "out.csv").exists()
    assert [path.name for path in folder.iterdir() if path.name.endswith(".part")] == []


def test_a_cancel_stops_python_code_and_what_stands_after_it_is_skipped(folder: Path) -> None:
    told = cancelled(folder, job("a (ok) b", "a (error) c", "a (subjob_error) d", a=python(WAITS)), "a")
    assert state_of(told, "a") == ["component.started", "component.error"]
    assert [state_of(told, name) for name in "bcd"] == [["component.skipped"]] * 3


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_cancel_during_an_iteration_ends_it_and_opens_no_other(folder: Path, parallel: int) -> None:
    text = job(
        "it (iterate) body",
        "it (iterator_complete) after",
        it=each(*range(8), parallel=parallel),
        body=python(f"if iteration['index'] == 2:\n    {WAITS.replace(chr(10), chr(10) + '    ')}"),
        config={"fail_strategy": "continue"},
    )
    told = cancelled(folder, text, "it[#2].body")
    asked = next(entry.seq for entry in told.entries if entry.type == "job.cancelling")
    assert not [entry for entry in told.entries[asked:] if entry.type == "iteration.started"]
    assert state_of(told, "after") == ["component.skipped"]


def test_a_cancel_reaches_a_job_a_playbook_and_a_joblet_inside(folder: Path) -> None:
    (folder / "inner.yaml").write_text(job("x (ok) y", x={"type": "playbook", "params": {"path": "book.yaml"}}))
    (folder / "book.yaml").write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: book}\nworkflow:\n"
        "  - step: start\n    tool: {name: wait, kind: sleep, seconds: 600}\n"
    )
    (folder / "let.yaml").write_text(
        "kind: Joblet\ncomponents:\n  - {name: call, type: run_job, params: {path: inner.yaml}}\n"
    )
    told = cancelled(folder, job("a (ok) b", a={"type": "@let"}), "a.__call/x/start@0", "task.started")
    ends = {entry.type for entry in told.entries if "/" in entry.scope}
    assert {"job.cancelled", "playbook.cancelled"} <= ends


@pytest.mark.parametrize("seed", range(times(10)))
def test_a_cancel_that_races_the_end_gives_the_one_or_the_other_and_nothing_else(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    (folder / "one.yaml").write_text(job(alone="only", only=sleeps(1)))
    text = job(
        "fork (parallelise) a, b, it",
        "it (iterate) body",
        "a, b, it (synchronise) met",
        a=sleeps(1),
        b={"type": "run_job", "params": {"path": "one.yaml"}},
        it=each(1, 2, 3, parallel=3),
        body=sleeps(1),
    )
    (folder / "job.yaml").write_text(text)
    home = MemoryHome.at(folder / ".penstock")
    turns = chance.randint(0, 25)

    async def cancel(run: LocalRun) -> None:
        await asyncio.sleep(1.0)
        for _ in range(turns):
            await asyncio.sleep(0)
        await run.cancel("enough")

    async def body(engine: Embedded) -> Told:
        async with asyncio.timeout(10_000):
            told = await started(engine, folder / "job.yaml", None, cancel)
        await assert_engine_replays(engine)
        return told

    told: Told = virtually(lambda: home.open(UnhurriedLog(MemoryLog(home.store), chance)), body)
    assert told.status in ("completed", "cancelled")
    all_closed(told.entries)
    ends = [entry.type for entry in told.entries if entry.scope == "" and entry.type != "job.cancelling"]
    assert ends == ["job.started", f"job.{told.status}"]
    assert home.store.executions[RUN].header.status == told.status


def test_a_job_that_was_cut_off_anywhere_can_be_cancelled_without_running_anything(folder: Path) -> None:
    jobs.furnish(folder)
    home, file = MemoryHome.at(folder / ".penstock"), jobs.write_rich(folder, "strict")
    log = DecisionLog(MemoryLog(home.store), *jobs.OPENERS)
    virtually(lambda: home.open(log), lambda engine: started(engine, file))
    (folder / "marks").unlink()
    for at in sorted(log.boundaries)[:-1]:
        cut = home.cut(at)

        async def body(engine: Embedded) -> list[Entry]:
            await engine.run(RUN).cancel_idle("enough")
            await assert_engine_replays(engine)
            return list(engine.log.read(RUN))

        entries: list[Entry] = virtually(cut.open, body)
        assert entries[-1].type == "job.cancelled", at
        assert cut.store.executions[RUN].header.status == "cancelled"
        all_closed(entries)
        assert not jobs.marks(folder)


def test_a_process_that_dies_while_it_cancels_leaves_a_job_that_a_resume_ends_as_cancelled(folder: Path) -> None:
    text = job("a (ok) b", "it (iterate) body", a=sleeps(5), it=each(1, 2), body=sleeps(5))
    (folder / "job.yaml").write_text(text)
    home = MemoryHome.at(folder / ".penstock")

    async def cancel(run: LocalRun) -> None:
        await asyncio.sleep(1.0)
        await run.cancel("enough")

    told: Told = virtually(home.open, lambda engine: started(engine, folder / "job.yaml", None, cancel))
    asked = next(entry.seq for entry in told.entries if entry.type == "job.cancelling")
    for at in range(asked, len(told.entries)):
        cut = home.cut(at)
        again: Told = virtually(cut.open, resumed)
        assert again.status == "cancelled", at
        all_closed(again.entries)


def test_a_cancel_from_another_process_stops_a_query_and_everything_else(folder: Path) -> None:
    lengthy(folder, {"type": "write_csv", "params": {"path": "out.csv"}})
    with command("run", "job.yaml", "--json") as running:
        until(has_started(folder, "read"), "the query")
        asked = process("cancel", "@last")
        assert asked.code == 0, asked.err
        stopped: Any = ended(running)
    assert (stopped.code, stopped.json["status"]) == (1, "cancelled")
    assert stopped.json["components"]["after"]["state"] == "SKIPPED"
    assert leftovers(folder / ".penstock") == []
    refused = process("resume", "@last")
    assert refused.code == 2
    assert "cancelled" in refused.err


def test_a_job_that_was_killed_can_be_cancelled_from_another_process(folder: Path) -> None:
    (folder / "job.yaml").write_text(job("a (ok) b", a=python(WAITS)))
    with command("run", "job.yaml") as running:
        until((folder / "waiting").exists, "the code")
        until(has_started(folder, "a"), "the start in the log")
        running.kill()
        running.communicate()
    assert process("cancel", "@last").code == 0
    shown = process("show", "@last", "--json").json
    assert shown["status"] == "cancelled"
    assert {name: one["state"] for name, one in shown["components"].items()} == {"a": "ERROR", "b": "SKIPPED"}
    assert process("replay", "@last").code == 0


@pytest.mark.parametrize("file", ["nest.yaml", "book.yaml"])
def test_whatever_runs_inside_a_run_that_was_cut_off_is_cancelled_with_it(folder: Path, file: str) -> None:
    write_nest(folder)
    home = MemoryHome.at(folder / ".penstock")
    log = DecisionLog(MemoryLog(home.store), "a", "it", "a.__call", "a.__call/x")
    virtually(lambda: home.open(log), lambda engine: started(engine, folder / file))
    for at in sorted(log.appended)[:-1]:
        cut = home.cut(at)

        async def body(engine: Embedded) -> list[Entry]:
            await engine.run(RUN).cancel_idle("enough")
            await assert_engine_replays(engine)
            return list(engine.log.read(RUN))

        entries: list[Entry] = virtually(cut.open, body)
        all_closed(entries)
        marks = [(entry.scope, *entry.type.split(".")) for entry in entries if entry.type.startswith(("job.", "playb"))]
        begun = {(scope, kind) for scope, kind, mark in marks if mark == "started"}
        assert begun == {(scope, kind) for scope, kind, mark in marks if mark in ("completed", "cancelled")}, at
        assert entries[-1].type.endswith(".cancelled")


def test_a_job_that_was_interrupted_while_a_subjob_closed_replays_after_its_cancel(folder: Path) -> None:
    text = job("a (subjob_ok) b", "it (iterate) body", a=sleeps(2), it=each(1, 2, 3), body=sleeps(0.9))
    (folder / "job.yaml").write_text(text)
    home = MemoryHome.at(folder / ".penstock")

    async def interrupt(run: LocalRun) -> None:
        await asyncio.sleep(1.5)
        run.interrupt("SIGTERM", 1.0)

    told: Told = virtually(home.open, lambda engine: started(engine, folder / "job.yaml", None, interrupt))
    assert told.status == "interrupted"
    assert "subjob.ok" in [entry.type for entry in told.entries]
    assert state_of(told, "b") == []

    async def body(engine: Embedded) -> list[Entry]:
        await engine.run(RUN).cancel_idle("enough")
        await assert_engine_replays(engine)
        return list(engine.log.read(RUN))

    entries: list[Entry] = virtually(home.open, body)
    ends = {entry.scope: entry.type for entry in entries if entry.type.startswith("component.")}
    assert (ends["a"], ends["b"], ends["it"]) == ("component.ok", "component.skipped", "component.error")
