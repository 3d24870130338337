"""The canonical timeline: what stays of a log when the wall clock and the machine are taken away."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.app.embedded import embedded
from penstock.ports.log import Entry
from penstock.views.canonical import WALL_CLOCK, canonical, canonical_hash
from tests.engine import document, play, resume
from tests.views.support import entries

BRANCHES = """
- step: start
  tool: [{name: n, kind: noop}]
  next:
    spec: {mode: inclusive}
    arcs:
      - {step: slow, args: {wait: "{{ workload.slow }}"}}
      - {step: quick, args: {wait: "{{ workload.quick }}"}}
- step: slow
  tool: [{name: nap, kind: sleep, seconds: "{{ args.wait }}"}, {name: n, kind: noop, value: 1}]
  next: {arcs: [{step: fin}]}
- step: quick
  tool: [{name: nap, kind: sleep, seconds: "{{ args.wait }}"}, {name: n, kind: noop, value: 2}]
  next: {arcs: [{step: fin}]}
- step: fin
  tool: [{name: n, kind: noop}]
"""

CHAIN = """
- step: start
  tool: [{name: a, kind: noop, value: 1}, {name: b, kind: noop, value: 2}]
  next: {arcs: [{step: fin}]}
- step: fin
  tool: [{name: c, kind: noop, value: "{{ start }}"}]
"""

FAILS_ONCE = """
- step: start
  tool:
    - name: open
      kind: files
      action: read
      path: gate.txt
  next: {arcs: [{step: fin}]}
- step: fin
  tool: [{name: c, kind: noop, value: 7}]
"""


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()


def test_it_is_sorted_by_the_logical_clock_and_has_no_wall_clock_field(tmp_path: Path) -> None:
    play(BRANCHES, tmp_path, {"slow": 0.02, "quick": 0})
    events = list(canonical(entries(tmp_path), "run-1"))
    clocks: list[Any] = [event["clock"] for event in events]
    assert clocks == sorted(clocks)
    assert not _keys(events) & WALL_CLOCK
    assert not {"ts", "event_id", "worker_id", "trace_id"} & set(events[0])


@pytest.mark.clause("P9.3")
def test_equal_runs_have_equal_timelines_whatever_ran_faster(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    play(BRANCHES, tmp_path / "a", {"slow": 0.05, "quick": 0}, execution_id="one")
    play(BRANCHES, tmp_path / "b", {"slow": 0, "quick": 0.05}, execution_id="two")

    def without_waits(home: Path, execution_id: str) -> list[Any]:
        """The two were given different waits on purpose: these are in what they say about their arguments and results."""
        return [
            (event["clock"], event["event_type"], event["scope"], event["cause"], event["payload"].get("visit"))
            for event in canonical(entries(home, execution_id), execution_id)
        ]

    assert without_waits(tmp_path / "a", "one") == without_waits(tmp_path / "b", "two")


def test_two_runs_of_one_document_have_one_hash(tmp_path: Path) -> None:
    for number in (1, 2):
        play(CHAIN, tmp_path, execution_id=f"run-{number}")
    assert canonical_hash(entries(tmp_path, "run-1"), "run-1") == canonical_hash(entries(tmp_path, "run-2"), "run-2")


def test_runs_that_decided_differently_have_different_hashes(tmp_path: Path) -> None:
    play(BRANCHES, tmp_path, {"slow": 0, "quick": 0}, execution_id="one")
    play(BRANCHES, tmp_path, {"slow": 0, "quick": 0.001}, execution_id="two")
    assert canonical_hash(entries(tmp_path, "one"), "one") != canonical_hash(entries(tmp_path, "two"), "two")


def test_the_execution_id_is_replaced_wherever_it_stands(tmp_path: Path) -> None:
    text = """
    - step: start
      tool: [{name: n, kind: noop, value: "id {{ execution.id }}"}]
    """
    for number in (1, 2):
        play(text, tmp_path, execution_id=f"some-run-{number}")
    hashes = {canonical_hash(entries(tmp_path, name), name) for name in ("some-run-1", "some-run-2")}
    assert len(hashes) == 1
    ended = next(
        event
        for event in canonical(entries(tmp_path, "some-run-1"), "some-run-1")
        if event["event_type"] == "step.done"
    )
    assert ended["payload"]["result"] == "id EXECUTION"


def test_visits_are_numbered_in_canonical_order(tmp_path: Path) -> None:
    """The branch that comes first on paper is the slower one, so by the wall clock it visits `fin` second."""
    played = play(BRANCHES, tmp_path, {"slow": 0.1, "quick": 0})
    physical = {
        event["scope"]: event["payload"]["visit"] for event in played.of("step.scheduled") if event["step"] == "fin"
    }
    assert sorted(physical.values()) == [1, 2]
    in_order = [event for event in canonical(entries(tmp_path), "run-1") if event["event_type"] == "step.scheduled"]
    visits = [event["payload"]["visit"] for event in in_order if event["step"] == "fin"]
    assert visits == [1, 2]


def _cut(home: Path, into: str, keep: Callable[[list[Entry]], int]) -> None:
    """A second run with the beginning of the first one's log: what a process that was killed leaves behind."""

    async def copy() -> None:
        engine = embedded(home / ".penstock")
        try:
            known = list(engine.log.read("run-1"))
            header = engine.log.header("run-1")
            assert header is not None
            fresh = dataclasses.replace(header, execution_id=into, status="running", ended_at=None, last_seq=0)
            await engine.log.create(fresh, engine.log.document("run-1"))
            epoch = await engine.log.claim(into, "gone")
            await engine.log.durable(engine.log.append(into, epoch, known[: keep(known)]))
            await engine.log.release(into)
        finally:
            await engine.close()

    asyncio.run(copy())


@pytest.mark.parametrize("task", ["a", "b", "c"])
def test_a_run_that_was_killed_and_resumed_has_the_timeline_of_an_unbroken_one(tmp_path: Path, task: str) -> None:
    play(CHAIN, tmp_path)
    _cut(
        tmp_path,
        "killed",
        lambda known: 1 + next(at for at, entry in enumerate(known) if f"/{task}#" in (entry.task or "")),
    )
    assert resume(tmp_path, "killed").status == "completed"
    assert canonical_hash(entries(tmp_path, "killed"), "killed") == canonical_hash(entries(tmp_path), "run-1")


def test_an_interruption_leaves_no_trace(tmp_path: Path) -> None:
    text = document("- step: start\n  tool: [{name: nap, kind: sleep, seconds: 0.2}, {name: n, kind: noop}]")
    (tmp_path / "p.yaml").write_text(text)
    play(text, tmp_path)

    async def interrupted() -> str:
        from penstock.server.documents import Pinned

        engine = embedded(tmp_path / ".penstock")
        try:
            run = engine.run("stopped")
            asyncio.get_running_loop().call_later(0.05, run.interrupt, "test", 0.0)
            pinned = Pinned(str(tmp_path / "playbook.yaml"), text)
            return (await run.start(pinned, {}, label=None, trace_id="t")).status
        finally:
            await engine.close()

    assert asyncio.run(interrupted()) == "interrupted"
    assert resume(tmp_path, "stopped").status == "completed"
    types = [entry.type for entry in entries(tmp_path, "stopped")]
    assert {"playbook.interrupted", "playbook.resumed"} <= set(types)
    assert canonical_hash(entries(tmp_path, "stopped"), "stopped") == canonical_hash(entries(tmp_path), "run-1")


def test_a_failure_that_a_resume_took_up_is_not_the_end(tmp_path: Path) -> None:
    assert play(FAILS_ONCE, tmp_path).status == "failed"
    (tmp_path / "gate.txt").write_text("open")
    assert resume(tmp_path).status == "completed"
    types = [event["event_type"] for event in canonical(entries(tmp_path), "run-1")]
    assert types.count("playbook.failed") == 0
    assert types[-1] == "playbook.completed"
    clocks = [event["clock"] for event in canonical(entries(tmp_path), "run-1") if event["scope"] == ""]
    assert [clock[-1] for clock in clocks] == [0, 1]
