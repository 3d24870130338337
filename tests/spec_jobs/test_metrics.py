"""Section 9: the figures that are there after a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import resume_job, run_job
from tests.spec_jobs.support import each, job, python, rows, sets, sleeps


@pytest.mark.clause("J9.1")
def test_run_times_link_counts_global_writes_and_checkpoint_sizes_are_there_after_a_run(tmp_path: Path) -> None:
    text = job(
        "a (ok) wait",
        "wait (subjob_ok) it",
        "it (iterate) body",
        "it (iteration_ok) told",
        'a (if 1: "False") never',
        data=("source.main -> sink.input",),
        a=sets(x=1, y=2),
        wait=sleeps(60),
        it=each(1, 2, 3),
        body=sets(z="{{ iteration.item }}"),
        source=rows(1, 2),
        sink=python("result = 1"),
    )
    run = run_job(text, tmp_path, virtual=True)
    metrics = run.standing.metrics
    assert metrics["component_ms"]["wait"]["runs"] == 1
    assert 60_000 <= metrics["component_ms"]["wait"]["total"] < 61_000
    assert metrics["component_ms"]["body"]["runs"] == 3
    assert metrics["edge_fires"]["a (ok) wait"] == 1
    assert metrics["edge_fires"]["it (iteration_ok) told"] == 3
    assert metrics["edge_fires"]["a (if 1) never"] == 0
    assert metrics["edge_fires"]["source.main -> sink.input"] == 1
    assert metrics["global_writes"] == {"a": 2, "it": 1, "it[#0]": 1, "it[#1]": 1, "it[#2]": 1}
    saved = run.payloads("checkpoint.saved")
    assert metrics["checkpoints"]["count"] == len(saved)
    assert metrics["checkpoints"]["bytes"] == sum(one["bytes"] for one in saved)
    assert metrics["checkpoints"]["largest_bytes"] == max(one["bytes"] for one in saved)
    assert metrics["resumes"] == 0


@pytest.mark.clause("J9.1")
def test_the_time_to_resume_is_there_after_a_resume(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    waits = python(f"import pathlib\nassert pathlib.Path({str(flag)!r}).exists(), 'not yet'")
    assert run_job(job("a (subjob_ok) b", b=waits), tmp_path).status == "failed"
    flag.touch()
    run = resume_job(tmp_path)
    assert run.status == "completed", run.error
    assert run.standing.metrics["resumes"] == 1
    assert run.standing.metrics["time_to_resume_ms"] >= 0


@pytest.mark.clause("J9.1")
def test_every_component_has_its_after_variables(tmp_path: Path) -> None:
    text = job(
        data=("source.main -> keep.input", "keep.main -> sink.input"),
        source=rows(1, 2, 3),
        keep={"type": "filter", "params": {"where": "id > 1"}},
        sink=python("result = 1"),
    )
    run = run_job(text, tmp_path)
    after = {one["component"]: one["after"] for one in run.payloads("component.ok")}
    assert after["source"]["NB_LINE"] == after["source"]["NB_LINE_OUT_main"] == 3
    assert (after["keep"]["NB_LINE"], after["keep"]["NB_LINE_OUT_main"]) == (3, 2)
    assert after["sink"]["NB_LINE"] == 2
    for one in after.values():
        assert one["ERROR_MESSAGE"] is None
        assert one["DURATION_MS"] >= 0


def test_a_job_inside_another_measures_itself_by_the_names_of_its_own_document(tmp_path: Path) -> None:
    inner = job(
        "sink (subjob_ok) flow",
        "seen (subjob_ok) stats",
        data=("source.main -> sink.input", "flow.main -> seen.input", "stats.main -> told.input"),
        source=rows(1, 2),
        sink=python("result = 1"),
        flow={"type": "flow_meter"},
        seen=python("globals['ends'] = [list(row.values()) for row in inputs['input']][:1]"),
        stats={"type": "stats"},
        told=python("globals['names'] = sorted(row['component'] for row in inputs['input'])"),
    )
    (tmp_path / "inner.yaml").write_text(inner)
    outer = job(alone="call", call={"type": "run_job", "params": {"path": "inner.yaml"}})
    ended = run_job(outer, tmp_path).payloads("component.ok")
    found = next(one["result"]["globals"] for one in ended if one["component"] == "call")
    assert found == {"ends": [["source.main", "sink.input", 2]], "names": ["flow", "seen", "sink", "source"]}


def test_a_flow_meter_counts_the_rows_of_links_inside_iterations(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    sink = python(f"""\
import pathlib
assert iteration['index'] != 1 or pathlib.Path({str(flag)!r}).exists(), 'not yet'""")
    text = job(
        "outer (iterate) inner",
        "inner (iterate) source",
        "outer (subjob_ok) flow",
        data=("source.main -> sink.input", "flow.main -> seen.input"),
        outer=each(1, 2),
        inner=each(1, 2, 3),
        source=rows(1, 2),
        sink=sink,
        flow={"type": "flow_meter", "params": {"components": ["source"]}},
        seen=python("globals['seen'] = [row['rows'] for row in inputs['input']]"),
    )
    assert run_job(text, tmp_path).status == "failed"
    flag.touch()
    again = resume_job(tmp_path)
    assert again.status == "completed", again.error
    assert again.globals["seen"] == [2 * 2 * 3]
