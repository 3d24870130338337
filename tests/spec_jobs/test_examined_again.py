"""Jobs as they come in from outside, and the bad days that come with them. Every run here is also replayed, by `run_job`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from tests.chaos.engines import MemoryHome, virtually
from tests.chaos_jobs.homes import DecisionLog, started
from tests.jobs import Ran, problems, resume_job, run_job
from tests.spec_jobs.support import OK, each, job, python, when

# ---- after a stop


@pytest.mark.clause("J12.6")
@pytest.mark.clause("J1.3")
def test_iterations_are_listed_by_their_numbers_whichever_start_ran_them(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    body = python(f"import os\nassert iteration['index'] % 2 or os.path.exists({str(flag)!r})")
    text = job("it (iterate) body", "it (iteration_ok) good", it=each(*"abcd", parallel=4), body=body)
    assert run_job(text, tmp_path).status == "failed"
    flag.touch()
    run = resume_job(tmp_path)
    assert run.status == "completed"
    assert list(run.subjobs()) == ["it", *(f"it[#{n}]{part}" for n in range(4) for part in ("", ".good"))]
    assert list(run.states()) == ["it", *(f"it[#{n}].{part}" for n in range(4) for part in ("body", "good"))]


@pytest.mark.clause("J12.6")
def test_the_end_of_what_an_iteration_led_to_goes_to_the_disk_before_the_next_one_ends(tmp_path: Path) -> None:
    """Otherwise a crash a moment later runs an iteration again whose file has been archived already."""
    file = tmp_path / "job.yaml"
    file.write_text(job("it (iterate) body", "it (iteration_ok) good", it=each(1, 2, 3), body=OK, good=OK))
    home = MemoryHome.at(tmp_path / ".penstock")
    log = DecisionLog(MemoryLog(home.store), "it")
    told = virtually(lambda: home.open(log), lambda engine: started(engine, file))
    ends = [entry.seq for entry in told.entries if entry.type == "subjob.ok" and entry.scope.endswith("<good>")]
    assert len(ends) == 3
    following = [
        next(entry.seq for entry in told.entries if entry.seq > end and entry.type == "component.ok")
        for end in ends[:-1]
    ]
    for end, after in zip(ends, following, strict=False):
        assert any(end <= boundary < after for boundary in log.appended)


# ---- conditions


@pytest.mark.clause("JA.1")
@pytest.mark.clause("J2.4")
@pytest.mark.parametrize(("word", "right"), [("null", "none"), ("NULL", "none"), ("TRUE", "true"), ("FALSE", "false")])
def test_a_constant_of_another_language_is_not_taken_for_a_global_that_is_missing(
    tmp_path: Path, word: str, right: str
) -> None:
    (found,) = problems(job(when("a", "b", f"global.mode != {word}")), tmp_path)
    assert (found.code, found.hint) == ("J0401", f"write `{right}`")
    assert not problems(job(when("a", "b", f"global.{word} != {right}")), tmp_path)


# ---- rows


def result(run: Ran, component: str) -> Any:
    return next(one["result"] for one in run.payloads("component.ok") if one["component"] == component)


def test_the_parameter_null_needs_no_quotes(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,name\n1,n/a\n2,Ada\n")
    text = """
        components:
          - {name: read, type: read_csv, params: {path: in.csv, null: n/a}}
          - {name: seen, type: python, params: {code: "result = inputs['input']"}}
        connections: {data: read.main -> seen.input}
    """
    assert result(run_job(text, tmp_path), "seen") == [{"id": 1, "name": None}, {"id": 2, "name": "Ada"}]
