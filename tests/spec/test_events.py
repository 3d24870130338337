"""P9: who says what, in which envelope."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.kernel.facts import CLASSES
from tests.engine import Played, play

WHOLE = """
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: work, args: {n: 1}}, {step: refused}, {step: lost}]}
    - step: work
      loop: {in: [1, 2], iterator: n}
      tool:
        - {name: a, kind: noop}
        - {name: b, kind: noop}
    - step: refused
      spec: {policy: {admit: {rules: [{else: {then: {allow: false}}}]}}}
    - step: lost
      tool: {kind: python, code: "raise ValueError(1)"}
"""

OWNERS = {
    "playbook.": "server",
    "token.": "server",
    "step.scheduled": "server",
    "step.started": "server",
    "next.": "server",
    "task.": "worker",
    "step.done": "worker",
    "step.failed": "worker",
    "loop.": "worker",
}


@pytest.fixture
def run(tmp_path: Path) -> Played:
    return play(WHOLE, tmp_path)


@pytest.mark.clause("P9.1")
def test_every_event_comes_from_the_side_that_owns_it(run: Played) -> None:
    for event in run.events:
        kind = str(event["event_type"])
        owner = next(owner for prefix, owner in OWNERS.items() if kind.startswith(prefix))
        assert event["source"] == owner, kind


@pytest.mark.clause("P9.1")
def test_every_event_has_a_documented_type(run: Played) -> None:
    assert {str(event["event_type"]) for event in run.events} <= set(CLASSES)


@pytest.mark.clause("P9.2")
def test_the_envelope_is_whole_on_every_event(run: Played) -> None:
    for event in run.events:
        assert set(event) >= {
            "event_id",
            "event_type",
            "ts",
            "execution_id",
            "step_run_id",
            "task_run_id",
            "trace_id",
            "parent_id",
            "payload",
            "seq",
            "source",
            "worker_id",
            "step",
            "cause",
            "clock",
        }
        kind = str(event["event_type"])
        assert (event["step_run_id"] is None) == kind.startswith("playbook.")
        assert (event["task_run_id"] is not None) == kind.startswith("task.")
        assert (event["worker_id"] is not None) == (event["source"] == "worker")
        assert isinstance(event["payload"], dict)
    assert [event["seq"] for event in run.events] == list(range(1, len(run.events) + 1))
    assert len({event["event_id"] for event in run.events}) == len(run.events)


@pytest.mark.clause("P5.3")
def test_all_tasks_of_a_pipeline_run_in_order_on_one_worker_and_start_no_step(run: Played) -> None:
    tasks = [event for event in run.events if str(event["event_type"]).startswith("task.") and event["step"] == "work"]
    assert len({event["worker_id"] for event in tasks}) == 1
    first = [event["payload"]["task"] for event in tasks if event["scope"] == "work@0.0.0[0]"]
    assert first == ["a", "a", "b", "b"]
    assert all(event["source"] == "server" for event in run.of("step.scheduled"))


def test_causes_name_events_of_the_same_run_that_came_before(run: Played) -> None:
    seen: set[str] = set()
    for event in run.events:
        if event["cause"] is not None:
            assert event["cause"] in seen
        seen.add(str(event["event_id"]))


@pytest.mark.clause("P5.2")
def test_every_task_run_gives_exactly_one_outcome(run: Played) -> None:
    started = [event["task_run_id"] for event in run.of("task.started")]
    ended = [event["task_run_id"] for event in run.of("task.done")]
    assert sorted(started) == sorted(ended)
    assert len(set(ended)) == len(ended)
    for payload in run.payloads("task.done"):
        outcome = payload["outcome"]
        assert outcome["status"] in ("ok", "error")
        assert ("result" in outcome) == (outcome["status"] == "ok")
        if outcome["status"] == "error":
            assert set(outcome["error"]) >= {"kind", "message", "retryable"}
        assert set(outcome["meta"]) >= {"attempt", "started_at", "ended_at", "duration_ms", "trace_id"}
