"""Documents that nobody had in mind when the engine was written. Every run here is also replayed, by `run_job`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs import Ran, problems, resume_job, run_job
from tests.spec_jobs.support import FAILS, job, python, rows, sets, sleeps, when
from tests.spec_jobs.support import each as items

DIES = {"type": "die", "params": {"message": "enough", "code": 3}}


def joblet(home: Path, name: str, text: str) -> None:
    (home / f"{name}.yaml").write_text(json.dumps({"kind": "Joblet", **json.loads(text)}))


def result(run: Ran, component: str) -> Any:
    return next(one["result"] for one in run.payloads("component.ok") if one["component"] == component)


# ---- iterators


@pytest.mark.clause("J12.1")
def test_an_iterator_without_a_body_ends(tmp_path: Path) -> None:
    run = run_job(job("each (ok) after", each=items(1, 2)), tmp_path)
    assert run.states() == {"each": "OK", "after": "OK"}
    assert run.types("iteration.ok") == ["iteration.ok"] * 2


@pytest.mark.clause("J12.3")
@pytest.mark.clause("J5.4")
def test_the_globals_of_a_joblet_in_a_body_are_gathered(tmp_path: Path) -> None:
    joblet(tmp_path, "inner", job(alone="note", note=sets(seen=["{{ iteration.item }}"])))
    joblet(tmp_path, "outer", job(alone="call", call={"type": "@inner"}))
    run = run_job(job("each (iterate) work", each=items("a", "b"), work={"type": "@outer"}), tmp_path)
    assert run.globals == {"work.__call.__note__seen": ["a", "b"]}


@pytest.mark.clause("J12.3")
def test_an_iterator_in_a_joblet_in_a_body_adds_to_what_the_iteration_before_left(tmp_path: Path) -> None:
    joblet(tmp_path, "work", job("inner (iterate) note", inner=items(1, 2), note=sets(seen=["{{ iteration.item }}"])))
    run = run_job(job("each (iterate) work", each=items("a", "b"), work={"type": "@work"}), tmp_path)
    assert run.globals == {"work.__note__seen": [1, 2, 1, 2]}


@pytest.mark.clause("J12.6")
def test_the_globals_of_a_joblet_in_a_kept_iteration_are_there_after_a_resume(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    code = f"import os\nif iteration['index'] == 1 and not os.path.exists({str(flag)!r}):\n    raise ValueError('no')"
    joblet(tmp_path, "work", job("note (ok) check", note=sets(seen=["{{ iteration.item }}"]), check=python(code)))
    text = job("each (iterate) work", each=items("a", "b", "c"), work={"type": "@work"})
    assert run_job(text, tmp_path).status == "failed"
    flag.touch()
    run = resume_job(tmp_path)
    assert run.status == "completed"
    assert run.component("each[#0].work")["kept"] is True
    assert run.globals == {"work.__note__seen": ["a", "b", "c"]}


@pytest.mark.clause("J12.3")
def test_sets_are_united_and_the_run_can_be_replayed(tmp_path: Path) -> None:
    run = run_job(
        job(
            "each (iterate) note",
            "each (ok) after",
            each=items(2, 1, 2),
            note=python("globals['seen'] = {iteration['item']}"),
            after=python("result = sorted(globals['seen'])"),
        ),
        tmp_path,
    )
    assert result(run, "after") == [1, 2]


@pytest.mark.clause("J12.5")
def test_a_halt_amid_parallel_iterations_is_replayed_as_it_was(tmp_path: Path) -> None:
    run = run_job(
        job(
            "each (iterate) work",
            each=items(*range(6), parallel=2),
            work=python("import time\nif iteration['index'] == 1:\n    raise ValueError('no')\ntime.sleep(0.02)"),
        ),
        tmp_path,
    )
    assert run.states()["each"] == "ERROR"
    assert "each[#5].work" not in run.states()


# ---- the end of a job


@pytest.mark.clause("J2.2")
@pytest.mark.parametrize("pause", [0.0, 0.01, 0.02])
def test_a_job_that_dies_while_others_run_is_replayed_as_it_was(tmp_path: Path, pause: float) -> None:
    """How far the long way came is a matter of time, and what is skipped with it; the record says it."""
    text = job(
        "a (ok) end",
        "one (ok) two",
        "two (ok) three",
        "three (ok) four",
        a=sleeps(pause),
        end=DIES,
        one=sleeps(0.005),
        two=sleeps(0.005),
        three=sleeps(0.005),
    )
    run = run_job(text, tmp_path)
    assert (run.status, run.exit_code) == ("failed", 3)


@pytest.mark.clause("J11.5")
def test_a_call_that_the_job_dies_with_is_replayed_as_it_was(tmp_path: Path) -> None:
    joblet(tmp_path, "work", job("x (ok) y", x=FAILS))
    text = job("call (error) told", "slow (ok) more", call={"type": "@work", "die_on_error": True}, slow=sleeps(0.05))
    run = run_job(text, tmp_path)
    assert (run.status, run.exit_code) == ("failed", 1)
    assert run.states()["told"] == "OK"
    assert run.states()["more"] == "SKIPPED"


@pytest.mark.clause("J6.3")
def test_a_handler_that_mended_itself_has_handled_the_sub_job(tmp_path: Path) -> None:
    run = run_job(job("a (subjob_error) handler", "handler (error) mended", a=FAILS, handler=FAILS), tmp_path)
    assert run.states() == {"a": "ERROR", "handler": "ERROR", "mended": "OK"}
    assert run.subjobs() == {"a": "ERROR", "handler": "OK"}
    assert run.status == "completed"


@pytest.mark.clause("J6.3")
def test_a_handler_that_failed_for_good_has_handled_nothing(tmp_path: Path) -> None:
    run = run_job(job("a (subjob_error) handler", "handler (subjob_error) last", a=FAILS, handler=FAILS), tmp_path)
    assert run.states() == {"a": "ERROR", "handler": "ERROR", "last": "OK"}
    assert run.status == "failed"


# ---- conditions


@pytest.mark.clause("J2.4")
@pytest.mark.clause("JA.1")
@pytest.mark.parametrize("condition", ["1 / 0 > 1", "'a' + 1 == 2", "len('x' * 1000000000) > 1"])
def test_a_condition_that_can_be_read_and_not_evaluated_is_an_error_of_its_component(
    tmp_path: Path, condition: str
) -> None:
    run = run_job(job(when("a", "b", condition), "a (ok) c", "a (error) told"), tmp_path)
    assert run.states() == {"a": "ERROR", "b": "SKIPPED", "c": "SKIPPED", "told": "OK"}


@pytest.mark.clause("JA.1")
@pytest.mark.parametrize("condition", ["1 / ", "open('f')", "'a'.upper() == 'A'", "1 if true else 0"])
def test_a_condition_outside_the_grammar_is_refused_before_the_run(tmp_path: Path, condition: str) -> None:
    assert {found.code for found in problems(job(when("a", "b", condition)), tmp_path)} == {"J0401"}


# ---- rows


@pytest.mark.clause("J1.7")
def test_rows_that_nobody_reads_are_no_obstacle(tmp_path: Path) -> None:
    text = job(data=("a.main -> keep.input",), a=rows(1, 2), keep={"type": "filter", "params": {"where": "id > 1"}})
    run = run_job(text, tmp_path)
    assert run.states() == {"a": "OK", "keep": "OK"}
    assert run.component("keep")["rows_in"] == {"input": 2}


@pytest.mark.clause("J1.7")
def test_an_optional_input_that_is_connected_is_waited_for(tmp_path: Path) -> None:
    text = job("go (ok) target", data=("a.main -> target.input",), a=FAILS, target=python("result = list(inputs)"))
    assert run_job(text, tmp_path).states() == {"a": "ERROR", "go": "OK", "target": "SKIPPED"}


# ---- what the lead had not thought of


@pytest.mark.clause("J7.2")
def test_a_handler_that_tells_and_then_dies_has_not_dealt_with_the_error(tmp_path: Path) -> None:
    """Otherwise a resume would keep the failed sub-job and die again, for ever."""
    mended = tmp_path / "mended"
    broken = python(f"import os; assert os.path.exists({str(mended)!r}), 'broken'")
    text = job("work (subjob_error) tell", "tell (ok) stop", "work (subjob_ok) next", work=broken, stop=DIES)
    first = run_job(text, tmp_path)
    assert (first.status, first.exit_code) == ("failed", 3)
    mended.touch()
    again = resume_job(tmp_path)
    assert (again.status, again.exit_code) == ("completed", 0)
    assert again.states() == {"work": "OK", "tell": "SKIPPED", "stop": "SKIPPED", "next": "OK"}


@pytest.mark.clause("J2.6")
def test_a_join_whose_branch_failed_is_skipped_though_an_ok_link_leads_there_too(tmp_path: Path) -> None:
    links = ("a (parallelise) b, c", "b, c (synchronise) d", "e (ok) d")
    run = run_job(job(*links, b=FAILS), tmp_path)
    assert run.states()["d"] == "SKIPPED"


@pytest.mark.clause("J12.3")
def test_equal_lists_of_two_iterations_are_both_kept(tmp_path: Path) -> None:
    run = run_job(job("each (iterate) note", each=items(3, 3), note=sets(seen=["{{ iteration.item }}"])), tmp_path)
    assert run.globals == {"seen": [3, 3]}
