"""Fanned-out loops under power losses, interruptions and cancels: they end as if nothing had happened, or as they were told to."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.ports.results import decode
from penstock.server.runs import LocalRun
from tests.chaos.engines import Deed, MemoryHome, Told, resumed, started, virtually, write
from tests.chaos.logs import PassingLog
from tests.chaos.random_playbooks import workshop
from tests.chaos.workshop import marks
from tests.depth import times
from tests.random_loops import random_loop
from tests.replaying import assert_engine_replays

HANGS_AFTER_S = 10_000.0

# Ranges of a range and of pages, elements that are tried again, what fails for good, reducers and lists.
LOOPS = """
workload: {file: marks}
workflow:
  - step: start
    spec: {loop_mode: fanout, fanout: {range_size: 3, allow_partial: true, max_job_retries: 1}, reducers: true}
    loop: {in: {range: 11}, iterator: n}
    tool:
      - {name: look, kind: mark, file: "{{ workload.file }}", value: "{{ iter.n }}"}
      - {name: wait, kind: sleep, seconds: "{{ (iter.n * 7) % 5 }}"}
      - name: judge
        kind: noop
        value: "{{ iter.n * 10 }}"
        set_shared: {total: {sum: "{{ iter.n }}"}, all: {append: "{{ iter.n }}"}}
        spec:
          policy:
            rules:
              - {when: "{{ iter.n == 4 }}", then: {do: fail}}
              - {else: {then: {do: continue, append_ctx: {seen: "{{ iter.shard_id }}"}}}}
    next: {arcs: [{step: lines, args: {status: "{{ fanin.status }}", shared: "{{ fanin.shared }}"}}]}
  - step: lines
    spec: {loop_mode: fanout, fanout: {range_size: 2}, reducers: {count: count}}
    loop: {in: {lines: lines.txt}, iterator: line}
    tool:
      - {name: look, kind: mark, file: "{{ workload.file }}", value: "{{ iter.iter_key }}: {{ iter.line }}", set_shared: {count: true}}
    next: {arcs: [{step: end, args: {results: "{{ event.result.results }}", start: "{{ args }}"}}]}
  - step: end
    tool: {kind: noop, value: "{{ args }}"}
"""
ENDS = {
    "start": {"status": "partial", "shared": {"total": 51, "all": [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]}},
    "results": [f"{number + 1}: line {number}" for number in range(5)],
}


REPORTS = ("task.started", "task.done", "loop.shard.failed", "loop.shard.reported", "loop.shard.done")


class ShardLog(PassingLog):
    """Notes after which entries the log of a fanned-out loop may end when the power fails.

    What one report says is appended at once; between the ends that a fan-in decides, between it and the end of its step, or
    between the word of one worker and that of another, the writer may have been woken by somebody else.
    """

    def __init__(self, log: Any) -> None:
        super().__init__(log)
        self.boundaries: set[int] = set()
        self._before = ""

    def append(self, execution_id: str, epoch: int, entries: Any, *more: Any) -> int:
        for entry in entries:
            is_report = entry.type in REPORTS
            is_of_fanin = is_report and b'"at_fanin":true' in entry.payload
            kind = "fan-in" if is_of_fanin else "report" if is_report else entry.type
            if entry.source == "worker" and not (is_report and kind == self._before):
                self.boundaries.add(entry.seq - 1)
            if is_of_fanin or entry.type == "loop.fanin.completed":
                self.boundaries |= {entry.seq - 1, entry.seq}
            self._before = kind
        if entries:
            self.boundaries.add(entries[-1].seq)
        return super().append(execution_id, epoch, entries, *more)


@pytest.fixture(autouse=True)
def _in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("".join(f"line {number}\n" for number in range(5)))


def bounded(home: MemoryHome, file: Path | None, *deeds: Deed, log: Any = None) -> Told:
    async def body(engine: Embedded) -> Told:
        running = resumed(engine, *deeds) if file is None else started(engine, file, None, *deeds)
        told = await asyncio.wait_for(running, HANGS_AFTER_S)
        await assert_engine_replays(engine)
        return told

    told: Told = virtually(lambda: home.open(log), body)
    return told


def test_a_power_loss_anywhere_in_a_fanned_out_loop_leaves_a_run_that_ends_the_same(tmp_path: Path) -> None:
    file = write(tmp_path, LOOPS)
    home = MemoryHome.at(tmp_path)
    log = ShardLog(MemoryLog(home.store))
    whole = bounded(home, file, log=log)
    assert (whole.status, whole.summary.result) == ("completed", ENDS)
    assert whole.summary.ctx["count"] == 5
    for cut in sorted(log.boundaries)[:-1]:
        told = bounded(home.cut(cut), None)
        assert told.outcome == whole.outcome, cut


@pytest.mark.parametrize("seed", range(times(4)))
def test_a_fanned_out_loop_that_is_interrupted_again_and_again_ends_the_same(tmp_path: Path, seed: int) -> None:
    file = write(tmp_path, LOOPS)
    whole = bounded(MemoryHome.at(tmp_path), file)
    effects = marks(tmp_path / "marks")
    (tmp_path / "marks").unlink()
    chance, home = random.Random(seed), MemoryHome.at(tmp_path)

    def stopping() -> Deed:
        after_s, turns = chance.uniform(0, 12), chance.randint(0, 9)

        async def deed(run: LocalRun) -> None:
            await asyncio.sleep(after_s)
            for _ in range(turns):
                await asyncio.sleep(0)
            run.interrupt("SIGTERM", chance.choice([0.0, 0.5]))

        return deed

    told, stops = bounded(home, file, stopping()), 0
    while told.status == "interrupted":
        stops += 1
        told = bounded(home, None, *([stopping()] if stops < 4 else []))
    assert told.outcome == whole.outcome
    assert set(marks(tmp_path / "marks")) == set(effects)


@pytest.mark.parametrize("seed", range(times(4)))
def test_a_cancel_at_any_moment_ends_a_fanned_out_loop(tmp_path: Path, seed: int) -> None:
    file = write(tmp_path, LOOPS)
    chance = random.Random(seed)
    after_s, turns = chance.uniform(0, 8), chance.randint(0, 9)

    async def cancelling(run: LocalRun) -> None:
        await asyncio.sleep(after_s)
        for _ in range(turns):
            await asyncio.sleep(0)
        await run.cancel("enough")

    told = bounded(MemoryHome.at(tmp_path), file, cancelling)
    assert told.status in ("cancelled", "completed")
    counts = Counter(entry.type for entry in told.entries)
    out: dict[tuple[str, int], bool] = {}
    for entry in told.entries:
        data: Any = decode(entry.payload)
        if entry.type == "loop.shard.enqueued":
            out[entry.scope, data["range"]] = True
        elif entry.type == "loop.shard.returned":
            out[entry.scope, data["range"]] = False
    # What was handed out came back or came to its end, and the step has an end of its own.
    assert counts["step.scheduled"] == counts["step.done"] + counts["step.failed"] + counts["loop.done"]
    assert told.entries[-1].type == f"playbook.{told.status}"


@pytest.mark.parametrize("first", range(0, times(12), 12))
def test_random_fanned_out_loops_survive_power_losses_and_stops(tmp_path: Path, first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + 12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        loop = random_loop(seed)
        file, chance = loop.write(folder, "fanout"), random.Random(seed)
        home = MemoryHome.at(folder, workshop(seed))
        log = ShardLog(MemoryLog(home.store))
        whole = bounded(home, file, log=log)
        is_chancy = loop.failure == "fail_fast" and any(entry.type == "loop.shard.failed" for entry in whole.entries)
        for cut in chance.sample(sorted(log.boundaries)[:-1], 3):
            left = home.cut(cut)
            left.tools = workshop(1000 + seed)
            told = bounded(left, None)
            assert told.status == whole.status, (seed, cut)
            if not is_chancy:
                assert told.outcome == whole.outcome, (seed, cut)
        seen.update([whole.status, *(entry.type for entry in whole.entries)])
    assert {"completed", "loop.shard.failed", "loop.shard.done"} <= set(seen)
