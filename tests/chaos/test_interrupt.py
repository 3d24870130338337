"""An interruption at any moment leaves a run that can be resumed, and that ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import pytest

from penstock.app.embedded import Embedded
from penstock.server.runs import LocalRun
from tests.chaos import playbooks, trials
from tests.chaos.engines import Deed, MemoryHome, Told, entries_on_disk, resumed, started, virtually, write
from tests.chaos.workshop import marks
from tests.chaos.zygote import Zygote
from tests.depth import times


def interrupting(after_s: float, grace_s: float, turns: int = 0) -> Deed:
    async def deed(run: LocalRun) -> None:
        await asyncio.sleep(after_s)
        for _ in range(turns):
            await asyncio.sleep(0)
        run.interrupt("SIGTERM", grace_s)

    return deed


def run_with(home: MemoryHome, file: Path | None, *deeds: Deed) -> Told:
    async def body(engine: Embedded) -> Told:
        return await (resumed(engine, *deeds) if file is None else started(engine, file, None, *deeds))

    told: Told = virtually(home.open, body)
    return told


@pytest.mark.parametrize("seed", range(times(3)))
def test_a_run_that_is_interrupted_again_and_again_ends_as_if_nothing_had_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    file = playbooks.large(tmp_path)
    unbroken = run_with(MemoryHome.at(tmp_path), file)
    effects = marks(tmp_path / "marks")
    (tmp_path / "marks").unlink()
    chance, home = random.Random(seed), MemoryHome.at(tmp_path)
    stops = 0
    told = run_with(home, file, interrupting(chance.uniform(0, 4), chance.choice([0.0, 0.4]), chance.randint(0, 9)))
    while told.status == "interrupted":
        stops += 1
        assert told.entries[-1].type == "playbook.interrupted"
        assert home.store.executions["run-1"].header.status == "interrupted"
        assert not home.open().log.has_owner("run-1")
        deeds = [interrupting(chance.uniform(0, 4), chance.choice([0.0, 0.4]), chance.randint(0, 9))]
        told = run_with(home, None, *(deeds if stops < 4 else []))
    assert stops
    assert told.outcome == unbroken.outcome
    again = marks(tmp_path / "marks") - effects
    assert sum(again.values()) <= 4 * stops  # Only what was under way, on at most four leases, ran twice.


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize("turns", [3, 12])
def test_a_loop_that_is_interrupted_between_two_tasks_is_not_taken_for_done(
    tmp_path: Path, turns: int, mode: str
) -> None:
    file = write(
        tmp_path,
        f"""
        - step: start
          loop: {{in: {{range: 600}}, iterator: n, spec: {{mode: {mode}, max_in_flight: 4}}}}
          tool: [{{name: a, kind: noop, value: "{{{{ iter.n }}}}"}}, {{name: b, kind: noop, value: "{{{{ _prev }}}}"}}]
          next: {{arcs: [{{step: end, args: {{done: "{{{{ event.result.done }}}}"}}}}]}}
        - step: end
          tool: {{kind: noop, value: "{{{{ args.done }}}}"}}
        """,
    )
    home = MemoryHome.at(tmp_path)
    stopped = run_with(home, file, interrupting(0, 5.0, turns))
    assert stopped.status == "interrupted"
    assert not [entry for entry in stopped.entries if entry.type == "loop.done"]
    told = run_with(home, None)
    assert (told.status, told.summary.result) == ("completed", 600)
    ends = [entry for entry in told.entries if entry.type == "loop.iteration.done"]
    assert len({entry.scope for entry in ends}) == len(ends) == 600


def test_an_interruption_that_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    told = run_with(MemoryHome.at(tmp_path), write(tmp_path, "- step: start"), interrupting(0, 1.0, 4))
    assert told.status in ("completed", "interrupted")


PARTS = """
- step: start
  tool:
    - {name: a, kind: mark, file: marks, value: 1}
    - {name: wait, kind: sleep, seconds: 0.03}
  next: {spec: {mode: inclusive}, arcs: [{step: loop}, {step: call}]}
- step: loop
  loop: {in: {range: 6}, iterator: n, spec: {mode: parallel, max_in_flight: 2}}
  tool:
    - {name: wait, kind: sleep, seconds: 0.02}
    - {name: b, kind: mark, file: marks, value: "{{ iter.n }}", spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {seen: "{{ iter.n }}"}}}}]}}}
  next: {arcs: [{step: all}]}
- step: call
  tool: {name: call, kind: playbook, path: child.yaml}
  next: {arcs: [{step: all}]}
- step: all
  spec: {join: [loop, call]}
  tool: {name: sum, kind: python, args: {seen: "{{ ctx.seen }}"}, code: "import time; time.sleep(0.02); result = sum(seen)"}
"""


@pytest.mark.parametrize("seed", range(times(2)))
def test_a_process_that_is_told_to_end_leaves_a_run_that_another_one_completes(
    zygote: Zygote, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    write(tmp_path, playbooks.CHILD, "child.yaml")
    file = write(tmp_path, PARTS)
    home = tmp_path / "home"
    home.mkdir()
    ended = _told_to_end(zygote, zygote.spawn(trials.start, home=str(home), file=str(file)), home, chance)
    for _ in range(2):
        if ended["status"] == "interrupted":
            assert ended["exit_code"] == 3
            assert entries_on_disk(home)[-1].type == "playbook.interrupted"
            ended = _told_to_end(zygote, zygote.spawn(trials.resume, home=str(home)), home, chance)
    if ended["status"] == "interrupted":
        again = zygote.call(trials.resume, home=str(home))
        assert again.code == 0, again.error
        ended = again.value
    assert (ended["status"], ended["result"], ended["ctx"]) == ("completed", 15, {"seen": [0, 1, 2, 3, 4, 5]})


def _told_to_end(zygote: Zygote, pid: int, home: Path, chance: random.Random) -> dict[str, object]:
    """SIGTERM some time after the process took the run."""
    lock = home / ".penstock" / "locks" / "run-1.lock"
    deadline = time.monotonic() + 30
    while not lock.exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(chance.uniform(0.005, 0.1))
    os.kill(pid, signal.SIGTERM)
    ended = zygote.wait(pid)
    assert ended.code == 0, (ended.code, ended.error)
    value: dict[str, object] = ended.value
    return value
