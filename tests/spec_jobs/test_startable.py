"""Section 13: what may begin by itself, and that nothing starves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import run_job
from tests.spec_jobs.support import job, positions, python, rows, sleeps


@pytest.mark.clause("J13.1")
def test_components_without_inbound_links_start_at_once(tmp_path: Path) -> None:
    """Before anything has ended: they are what the job begins with."""
    text = job("a (ok) later", alone="a b", a=sleeps(60), b=rows(1))
    run = run_job(text, tmp_path, virtual=True)
    first = [f"{event['event_type']} {event['scope']}" for event in run.events[:5]]
    assert first == [
        "job.started ",
        "subjob.started <a>",
        "component.started a",
        "subjob.started <b>",
        "component.started b",
    ]
    assert [event["ts"] for event in run.events[2:5:2]] == [run.events[0]["ts"]] * 2


@pytest.mark.clause("J13.1")
def test_a_component_of_a_joblet_is_startable_after_expansion(tmp_path: Path) -> None:
    """Inside, `root` has no control link and so begins with the call; it does not begin with the job."""
    (tmp_path / "work.yaml").write_text(job("root (ok) leaf"))
    run = run_job(job("slow (ok) j", slow=sleeps(60), j={"type": "@work"}), tmp_path, virtual=True)
    at = positions(run.events)
    assert at["component.ok slow"] < at["component.started j"] < at["component.started j.__root"]


@pytest.mark.clause("J13.1")
def test_rows_are_waited_for_by_a_component_that_no_control_link_leads_to(tmp_path: Path) -> None:
    text = job(
        "slow (ok) source",
        data=("source.main -> sink.input",),
        slow=sleeps(60),
        source=rows(1),
        sink=python("result = 1"),
    )
    run = run_job(text, tmp_path, virtual=True)
    at = positions(run.events)
    assert at["component.ok source"] < at["component.started sink"]


@pytest.mark.clause("J13.2")
def test_hundreds_of_roots_all_run_and_at_once(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(300)]
    components = {name: sleeps(10) for name in names}
    run = run_job(job(alone=" ".join(names), **components), tmp_path, virtual=True)
    assert set(run.states().values()) == {"OK"}
    assert run.played.summary.duration_ms < 11_000
    started = [event["event_type"] for event in run.events if str(event["event_type"]).startswith("component.")]
    assert started[:300] == ["component.started"] * 300


@pytest.mark.clause("J13.2")
def test_more_roots_with_blocking_code_than_threads_all_come_to_their_turn(tmp_path: Path) -> None:
    """Every one blocks a thread until a quarter of them are there, so that they need each other as far as threads go."""
    names = [f"n{number}" for number in range(120)]
    code = "import time\ntime.sleep(0.001)\nresult = 1"
    components = {name: python(code) for name in names}
    run = run_job(job(alone=" ".join(names), **components), tmp_path)
    assert set(run.states().values()) == {"OK"}
