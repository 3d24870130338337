"""Runs that somebody looks at: any moment is the fold of the entries up to it, in whatever order moments are asked for."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.kernel.net import Net
from penstock.ports.log import Entry
from penstock.views.folded import MOST_PAST, MOST_RUNS, FoldedRuns, entries_between, entry_at
from penstock.views.moment import Live, marks_of, moment_of
from penstock.views.run_view import FORMAT, RunView
from penstock.views.timeline import timeline_of, window_of, workers_of
from tests.chaos.engines import RUN, MemoryHome
from tests.depth import times
from tests.views.test_run_view import logs, net_of

EVERY = 20
RUNS = [(kind, seed) for kind in ("playbook", "job") for seed in range(times(4))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def log_of(home: MemoryHome) -> MemoryLog:
    return MemoryLog(home.store)


class Ticking:
    """A clock that stands still, or goes on by a second at each look."""

    def __init__(self, *, goes_on: bool) -> None:
        self.now = 0.0
        self._goes_on = goes_on

    def __call__(self) -> float:
        self.now += 1.0 if self._goes_on else 0.0
        return self.now


def shown(view: RunView, log: MemoryLog, net: Net) -> list[Any]:
    """All that a page shows of a moment."""
    execution = view.root
    found: list[Any] = [moment_of(view, "", net), marks_of(view)]
    if execution is not None:
        window = window_of(view, execution, None, None, 500, None)
        found += [timeline_of(log, RUN, view, execution, net, window), workers_of(view, window)]
    return found


@pytest.mark.parametrize(("kind", "seed"), RUNS)
def test_a_moment_is_the_fold_of_the_entries_up_to_it(folder: Path, kind: str, seed: int) -> None:
    home = logs(folder, kind, seed)[0]
    entries, log, net = home.entries(), log_of(home), net_of(home)
    folded = FoldedRuns(log, every=EVERY, clock=Ticking(goes_on=False))
    chance = random.Random(seed)
    moments = [chance.randint(0, len(entries)) for _ in range(40)] + [len(entries), 0, 1]
    for seq in moments:
        expected = RunView.of(entries[:seq])
        assert folded.look(RUN, seq, lambda view: view == expected and view.seq) == (expected.seq or 0), seq
        assert folded.look(RUN, seq, lambda view: shown(view, log, net)) == shown(expected, log, net), seq


def test_only_what_is_new_of_a_run_is_folded(folder: Path) -> None:
    home = logs(folder, "playbook", 0)[0]
    entries = home.entries()
    asked: list[int] = []

    class Reading(MemoryLog):
        def read(self, execution_id: str, after: int = 0) -> Any:
            asked.append(after)
            return super().read(execution_id, after)

    folded = FoldedRuns(Reading(home.store), clock=Ticking(goes_on=False))
    half = len(entries) // 2
    assert folded.look(RUN, half, lambda view: view.seq) == half
    assert folded.look(RUN, len(entries), lambda view: view.seq) == len(entries)
    assert folded.look(RUN, len(entries), lambda view: view.seq) == len(entries)
    assert asked == [0, half]


class Long:
    """A loop of any length, without an engine: what a log is read from, and where snapshots go."""

    def __init__(self, count: int) -> None:
        self.entries = list(loop(count))
        self.snapshots: dict[int, bytes] = {}

    def read(self, execution_id: str, after: int = 0) -> Any:
        return iter(self.entries[after:])

    def snapshot(self, execution_id: str, format: int, upto: int) -> tuple[int, bytes] | None:
        seq = max((seq for seq in self.snapshots if seq <= upto), default=None)
        return (seq, self.snapshots[seq]) if seq is not None and format == FORMAT else None

    def keep_snapshot(self, execution_id: str, format: int, seq: int, data: bytes) -> None:
        self.snapshots[seq] = data


def loop(count: int, step_s: float = 0.01) -> Any:
    seq = 0

    def entry(kind: str, scope: str, payload: bytes, task: str | None = None) -> Entry:
        nonlocal seq
        seq += 1
        return Entry(seq, 1000.0 + seq * step_s, kind, scope, task, "[[0],0]", None, "worker", "w1", payload)

    yield entry("playbook.started", "", b'{"name":"p","entry":"a","workload":{}}')
    yield entry("token.created", "a@0", b'{"step":"a","path":[0],"args":{}}')
    yield entry("step.scheduled", "a@0", b'{"step":"a","path":[0],"visit":1,"args":{}}')
    yield entry("loop.started", "a@0", b'{"total":%d,"mode":"sequential"}' % count)
    for index in range(count):
        scope = f"a@0[{index}]"
        is_bad = index % 10 == 3
        yield entry("loop.iteration.started", scope, b'{"index":%d}' % index)
        yield entry("task.started", scope, b'{"task":"t","kind":"noop","attempt":1}', f"{scope}/t#1")
        outcome = b'{"status":"error","error":{"message":"no"}}' if is_bad else b'{"status":"ok"}'
        done = b'{"task":"t","attempt":1,"do":"%s","next":-1,"outcome":%s}' % (
            b"fail" if is_bad else b"continue",
            outcome,
        )
        yield entry("task.done", scope, done, f"{scope}/t#1")
        end = b'{"index":%d,"status":"failed","error":{"message":"no"}}' % index if is_bad else b"{}"
        yield entry(f"loop.iteration.{'failed' if is_bad else 'done'}", scope, end)


def test_a_long_run_is_answered_at_once_and_folded_slice_by_slice() -> None:
    log = Long(4_000)
    last = len(log.entries)
    folded = FoldedRuns(log, every=2_000, clock=Ticking(goes_on=True))
    first = folded.look("run", last, lambda view: view.seq)
    assert 0 < first < last
    assert folded.look("run", 5, lambda view: view.seq) == 5  # What has been folded is there.
    slices = 1
    while folded.go_on("run", last):
        slices += 1
    assert slices > 3
    assert folded.look("run", last, lambda view: view.seq) == last
    assert sorted(log.snapshots) == list(range(2_000, last + 1, 2_000))
    again = FoldedRuns(log, every=2_000, clock=Ticking(goes_on=True))
    assert again.look("run", last, lambda view: view.seq) == last  # From the last snapshot, in one slice.


def test_what_is_held_is_bounded() -> None:
    log = Long(100)
    folded = FoldedRuns(log, every=50, clock=Ticking(goes_on=False))
    for number in range(3 * MOST_RUNS):
        for seq in (400, 10, 100, 50, 200, 7, 300):
            assert folded.look(f"run-{number}", seq, lambda view: view.seq) == seq
    assert len(folded._held) == MOST_RUNS
    assert all(len(one.past) <= MOST_PAST for one in folded._held.values())


def test_one_entry_and_some_entries_are_read_by_their_numbers() -> None:
    log = Long(3)
    assert entry_at(log, "run", 2) == log.entries[1]
    assert entry_at(log, "run", 2_000) is None
    assert entry_at(log, "run", None) is None
    assert [one.seq for one in entries_between(log, "run", 3, 6)] == [4, 5, 6]


# ---- timelines of many elements


def test_the_bars_of_a_lane_are_bounded_and_their_counts_exact() -> None:
    log = Long(25_000)
    view = RunView.of(log.entries)
    execution = view.root
    assert execution is not None
    lane = execution.lanes["a"]
    assert len(lane.bars) <= 600
    assert sum(bar.count for bar in lane.bars if bar.kind == "attempt") == 25_000
    assert sum(bar.failed for bar in lane.bars) == 2_500
    window = window_of(view, execution, None, None, 300, None)
    shown: Any = timeline_of(log, "run", view, execution, None, window)
    bars = shown["lanes"][0]["bars"]
    assert len(bars) <= 2 * 300 + 2
    assert sum(bar["count"] for bar in bars if bar["kind"] == "attempt") == 25_000
    assert sum(bar["kind"] == "run" for bar in bars) == 1
    assert len(RunView.of(log.entries).snapshot()) < 100_000


def test_a_close_look_shows_every_element() -> None:
    log = Long(25_000)
    view = RunView.of(log.entries)
    execution = view.root
    assert execution is not None
    since, until = log.entries[40_000].ts, log.entries[40_400].ts
    shown: Any = timeline_of(log, "run", view, execution, None, window_of(view, execution, since, until, 2_000, None))
    attempts = [bar for bar in shown["lanes"][0]["bars"] if bar["kind"] == "attempt"]
    assert len(attempts) in range(98, 104)
    assert {bar["count"] for bar in attempts} == {1}
    assert len({bar["seq"] for bar in attempts}) == len(attempts)


def test_marks_are_thinned_and_the_first_failure_is_exact() -> None:
    log = Long(25_000)
    found: Any = marks_of(RunView.of(log.entries))
    failures = [mark for mark in found["marks"] if mark["kind"] == "failure"]
    first = next(one for one in log.entries if one.type == "loop.iteration.failed")
    assert found["first_error"] == first.seq == failures[0]["seq"]
    assert 50 <= len(failures) <= 100
    assert failures[-1]["seq"] > 0.9 * len(log.entries)
    assert sum(found["types"].values()) == len(log.entries)


def test_rows_that_a_component_has_made_so_far_are_those_of_its_links(folder: Path) -> None:
    for seed in range(2, 8, 2):
        home = logs(folder, "job", seed)[0]
        entries, net = home.entries(), net_of(home)
        data = [link for link in net.links if link.on.value == "data" and not link.hidden and "[#" not in link.source]
        for entry in entries:
            view = RunView.of(entries[: entry.seq])
            if entry.type != "component.started" or entry.scope not in {link.source for link in data}:
                continue
            found: Any = moment_of(view, "", net, Live(entry.ts + 2.0, {entry.scope: {"main": 500}}))
            links = [link for link in data if link.source == entry.scope and link.port == "main"]
            for link in links:
                assert (found["edges"][str(link.index)]["rows"], found["edges"][str(link.index)]["rate"]) == (
                    500,
                    250.0,
                )
            assert found["nodes"][entry.scope]["rows_so_far"] == {"main": 500}
            return
