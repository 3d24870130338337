"""A cancel at any moment ends the run as cancelled: nothing hangs, nothing is left open, nothing more starts."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.kernel.errors import Unavailable
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.server.runs import LocalRun
from penstock.tools.base import Call
from tests.chaos.engines import Deed, MemoryHome, Told, really, resumed, started, virtually, write
from tests.chaos.logs import PassingLog
from tests.chaos.workshop import Workshop, behaving
from tests.depth import times
from tests.replay.corpus import LEAF, TREE, TREE_CHILD
from tests.replaying import assert_engine_replays

HANGS_AFTER_S = 10_000.0


@pytest.fixture(autouse=True)
def _in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cancelling(after_s: float, turns: int = 0) -> Deed:
    async def deed(run: LocalRun) -> None:
        await asyncio.sleep(after_s)
        for _ in range(turns):
            await asyncio.sleep(0)
        await run.cancel("enough")

    return deed


def tree(folder: Path) -> Path:
    write(folder, TREE_CHILD, "child.yaml")
    write(folder, LEAF, "leaf.yaml")
    return write(folder, TREE)


class UnhurriedLog(PassingLog):
    """A disk that takes so many turns of the event loop before it acknowledges."""

    def __init__(self, log: Any, chance: random.Random) -> None:
        super().__init__(log)
        self._chance = chance

    async def durable(self, ticket: int) -> None:
        for _ in range(self._chance.randint(0, 5)):
            await asyncio.sleep(0)
        await super().durable(ticket)


def all_closed(entries: list[Entry]) -> None:
    """Every scope and task that began has ended."""
    open_scopes: set[str] = set()
    for entry in entries:
        name = entry.task or entry.scope
        match entry.type:
            case "playbook.started" | "step.scheduled" | "loop.iteration.started" | "task.started":
                open_scopes.add(f"{entry.type.partition('.')[0]} {name}")
            case "playbook.completed" | "playbook.failed" | "playbook.cancelled":
                open_scopes.discard(f"playbook {name}")
            case "step.done" | "step.failed" | "loop.done":
                open_scopes.discard(f"step {name}")
            case "loop.iteration.done" | "loop.iteration.failed":
                open_scopes.discard(f"loop {name}")
            case "task.done":
                open_scopes.discard(f"task {name}")
    assert not open_scopes


async def guarded(engine: Embedded, told: Any) -> Told:
    async with asyncio.timeout(HANGS_AFTER_S):
        result: Told = await told
    assert not engine.log.has_owner("run-1")
    return result


@pytest.mark.parametrize("seed", range(times(12)))
def test_a_run_that_is_cancelled_at_any_moment_ends_and_leaves_nothing_open(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    home, file = MemoryHome.at(tmp_path), tree(tmp_path)
    # Half of them at a moment at which tasks end: then the cancel and the ends race.
    after_s = chance.uniform(0, 20) if seed % 2 else float(chance.randint(1, 20))

    async def body(engine: Embedded) -> Told:
        told = await guarded(engine, started(engine, file, None, cancelling(after_s, chance.randint(0, 12))))
        await assert_engine_replays(engine)
        return told

    told: Told = virtually(lambda: home.open(UnhurriedLog(MemoryLog(home.store), chance)), body)
    assert told.status == "cancelled"
    assert home.store.executions["run-1"].header.status == "cancelled"
    all_closed(told.entries)
    asked = next(entry.seq for entry in told.entries if (entry.type, entry.scope) == ("playbook.cancelling", ""))
    assert not [entry for entry in told.entries[asked:] if entry.type == "step.scheduled" and "/" not in entry.scope]


@pytest.mark.parametrize("seed", range(times(15)))
def test_a_cancel_that_races_the_end_gives_the_one_or_the_other_and_nothing_else(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    text = """
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c}]}
    - {step: a, tool: {kind: sleep, seconds: 1}}
    - {step: b, tool: {kind: playbook, path: one.yaml}}
    - {step: c, loop: {in: [1, 1, 1], iterator: n, spec: {mode: parallel, max_in_flight: 3}}, tool: {kind: sleep, seconds: 1}}
    """
    write(tmp_path, "- {step: start, tool: {kind: sleep, seconds: 1}}", "one.yaml")
    home, file = MemoryHome.at(tmp_path), write(tmp_path, text)

    async def body(engine: Embedded) -> Told:
        told = await guarded(engine, started(engine, file, None, cancelling(1.0, chance.randint(0, 25))))
        await assert_engine_replays(engine)
        return told

    told: Told = virtually(lambda: home.open(UnhurriedLog(MemoryLog(home.store), chance)), body)
    assert told.status in ("completed", "cancelled")
    assert home.store.executions["run-1"].header.status == told.status
    all_closed(told.entries)
    ends = [entry.type for entry in told.entries if entry.scope == "" and entry.type != "playbook.cancelling"]
    assert ends == ["playbook.started", f"playbook.{told.status}"]


MEETING = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  spec: {policy: {lifecycle: {timeout_s: 3}}}
  tool: {kind: playbook, path: child.yaml}
  next: {arcs: [{step: late, when: "{{ event.error.kind == 'timeout' }}"}]}
- step: b
  spec: {policy: {lifecycle: {timeout_s: 3}}}
  loop: {in: [1, 3, 5], iterator: n, spec: {mode: parallel, max_in_flight: 2}}
  tool: [{kind: sleep, seconds: "{{ iter.n }}"}, {kind: playbook, path: child.yaml}]
- step: late
  tool: {kind: sleep, seconds: 1}
"""


@pytest.mark.parametrize("seed", range(times(8)))
def test_a_cancel_that_meets_a_time_out_and_an_interruption_leaves_nothing_open(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    write(tmp_path, TREE_CHILD, "child.yaml")
    write(tmp_path, LEAF, "leaf.yaml")
    home, file = MemoryHome.at(tmp_path), write(tmp_path, MEETING)
    slow, turns, grace = chance.choice([0, 1]), chance.randint(0, 15), chance.choice([0.0, 0.5])

    async def interrupt(run: LocalRun) -> None:
        await asyncio.sleep(3.0)
        for _ in range(turns):
            await asyncio.sleep(0)
        run.interrupt("SIGTERM", grace)

    deeds = [cancelling(3.0, chance.randint(0, 15)), *([interrupt] if seed % 2 else [])]

    async def body(engine: Embedded) -> Told:
        return await guarded(engine, started(engine, file, None, *deeds))

    def disk() -> Embedded:
        log = MemoryLog(home.store)
        return home.open(UnhurriedLog(log, chance) if slow else log)

    told: Told = virtually(disk, body)
    if told.status == "interrupted":
        told = virtually(disk, lambda engine: guarded(engine, resumed(engine)))
    assert told.status in ("cancelled", "completed", "failed")
    all_closed(told.entries)
    virtually(home.open, assert_engine_replays)


@pytest.mark.parametrize("loop", ["", "loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel, max_in_flight: 2}}"])
def test_a_cancel_ends_a_wait_for_a_retry(tmp_path: Path, loop: str) -> None:
    text = f"""
    - step: start
      {loop}
      tool: {{kind: mark, file: marks, failing: 9, spec: {{policy: {{rules: [{{when: "{{{{ outcome.error }}}}", then: {{do: retry, attempts: 9, delay: 3600}}}}]}}}}}}
    """
    home, file = MemoryHome.at(tmp_path), write(tmp_path, text)

    async def body(engine: Embedded) -> Told:
        return await guarded(engine, started(engine, file, None, cancelling(5)))

    told: Told = virtually(home.open, body)
    assert told.status == "cancelled"
    failed = next(entry for entry in told.entries if entry.type == "step.failed")
    error = decode(failed.payload)["error"]  # type: ignore[index,call-overload]
    assert error["kind"] == "cancelled"  # type: ignore[index,call-overload]
    all_closed(told.entries)


@pytest.mark.parametrize("at", ["playbook.cancelling", "step.failed"])
@pytest.mark.parametrize("moment", [0.5, 2.5, 3.5, 7.25])
def test_a_process_that_dies_while_it_cancels_leaves_a_run_that_a_resume_ends_as_cancelled(
    tmp_path: Path, moment: float, at: str
) -> None:
    home, file = MemoryHome.at(tmp_path), tree(tmp_path)

    async def body(engine: Embedded) -> Told:
        return await started(engine, file, None, cancelling(moment))

    told: Told = virtually(home.open, body)
    asked = next(entry.seq for entry in told.entries if entry.type == "playbook.cancelling")
    last = asked
    if at == "step.failed":
        routed = (entry.seq for entry in told.entries[asked:] if entry.type == "next.selected")
        last = next(routed)
    cut = home.cut(last)

    async def resume(engine: Embedded) -> Told:
        again = await guarded(engine, resumed(engine))
        await assert_engine_replays(engine)
        return again

    again: Told = virtually(cut.open, resume)
    assert again.status == "cancelled"
    all_closed(again.entries)


EFFECTS = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c}]}
- {step: a, tool: {kind: effect}}
- {step: b, tool: {kind: playbook, path: one.yaml}}
- {step: c, loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel, max_in_flight: 2}}, tool: {kind: effect}}
"""


def test_a_run_that_was_being_cancelled_is_ended_by_a_resume_without_a_single_tool(tmp_path: Path) -> None:
    ran: list[str] = []

    async def effect(call: Call) -> None:
        ran.append(call.task_run_id)
        await call.clock.sleep(100)

    write(tmp_path, "- {step: start, tool: {kind: effect}}", "one.yaml")
    home, file = MemoryHome.at(tmp_path, Workshop(behaving("effect", effect))), write(tmp_path, EFFECTS)

    async def body(engine: Embedded) -> Told:
        return await started(engine, file, None, cancelling(5))

    told: Told = virtually(home.open, body)
    asked = next(entry.seq for entry in told.entries if entry.type == "playbook.cancelling")
    assert len(ran) == 4
    again: Told = virtually(home.cut(asked).open, resumed)
    assert again.status == "cancelled"
    assert len(ran) == 4
    all_closed(again.entries)
    assert [entry.type for entry in again.entries[asked:]].count("task.started") == 0


def test_a_cancel_stops_code_in_threads_and_processes(tmp_path: Path) -> None:
    text = """
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: thread}, {step: shell}, {step: process}]}
    - {step: thread, tool: {kind: python, code: "import time\\nwhile True: time.sleep(0.01)"}}
    - {step: shell, tool: {kind: shell, command: [sleep, "600"]}}
    - {step: process, tool: {kind: python, isolation: process, code: "import time\\ntime.sleep(600)"}}
    """
    file = write(tmp_path, text)

    async def body(engine: Embedded) -> Told:
        async with asyncio.timeout(60):
            return await started(engine, file, None, cancelling(0.3))

    told: Told = really(tmp_path, body)
    assert told.status == "cancelled"
    all_closed(told.entries)


class BusyLog(PassingLog):
    """Cannot be read at first, because another process writes."""

    def __init__(self, log: Any) -> None:
        super().__init__(log)
        self._left = 5

    def asked(self, execution_id: str) -> Any:
        self._left -= 1
        if self._left >= 0:
            raise Unavailable("the database is locked")
        return self._log.asked(execution_id)


@pytest.mark.parametrize("make", [PassingLog, BusyLog])
def test_a_cancel_that_another_process_left_in_the_log_is_answered(tmp_path: Path, make: type[PassingLog]) -> None:
    file = write(tmp_path, "- {step: start, tool: {kind: sleep, seconds: 600}}")
    home = MemoryHome.at(tmp_path)

    async def body(engine: Embedded) -> Told:
        async def ask(run: LocalRun) -> None:
            await asyncio.sleep(1)
            engine.log.ask("run-1", "cancel", b'{"reason": "from afar"}')

        told = await guarded(engine, started(engine, file, None, ask))
        assert engine.log.asked("run-1") == []
        return told

    told: Told = virtually(lambda: home.open(make(MemoryLog(home.store))), body)
    assert told.status == "cancelled"
    asked = next(entry for entry in told.entries if entry.type == "playbook.cancelling")
    payload = decode(asked.payload)
    assert isinstance(payload, dict)
    assert payload["reason"] == "from afar"
