"""Iterations that fail while their iterator goes on (D60): what becomes of the job, who is told, and how they are run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.errors import Refused
from penstock.views.headers import listed, with_failures
from tests.jobs import Ran, resume_job, run_job
from tests.spec_jobs.support import each, job, python, sets
from tests.spec_jobs.test_resume import Shop

GOES_ON = {"fail_strategy": "continue"}
ODD = "iteration['item'] % 2"


def ends(run: Ran, kind: str) -> list[str]:
    return [str(event["scope"]) for event in run.events if event["event_type"] == kind]


@pytest.mark.clause("J12.5")
def test_continue_then_fail_runs_every_iteration_and_then_fails_the_iterator(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    config = {"fail_strategy": "continue_then_fail"}
    text = job("it (iterate) x", "it (ok) after", it=each(0, 1, 2, 3), x=shop.fails("", ODD), config=config)
    run = run_job(text, tmp_path)
    assert (run.status, run.exit_code) == ("failed", 1)
    assert shop.ran == ["0", "1", "2", "3"]
    assert run.states()["it"] == "ERROR"
    assert run.states()["after"] == "SKIPPED"
    assert run.error["failed"] == 2
    shop.mend()
    again = resume_job(tmp_path)
    assert again.status == "completed"
    assert shop.ran[4:] == ["1", "3"]


@pytest.mark.clause("J12.5")
def test_a_job_that_went_on_says_how_many_iterations_failed(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    after = python(
        "result = [after_of for after_of in [globals['it']['NB_ITERATION'], globals['it']['NB_ITERATION_ERROR']]]"
    )
    text = job(
        "it (iterate) x",
        "it (iterator_complete) after",
        it=each(0, 1, 2),
        x=shop.fails("", ODD),
        after=after,
        config=GOES_ON,
    )
    run = run_job(text, tmp_path)
    assert run.status == "completed"
    assert run.payloads("job.completed")[0]["failed_iterations"] == 1
    assert run.standing.execution.failed_iterations == 1
    [ended] = [one for one in run.payloads("component.ok") if one["component"] == "after"]
    assert ended["result"] == [3, 1]


def test_failed_iterations_are_rows_of_a_log_catcher(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        "it (iterate) x",
        "post (ok) caught",
        data=("caught.main -> sink.input",),
        it=each(0, 1, 2, 3),
        x=shop.fails("", ODD),
        post={"type": "post_job"},
        caught={"type": "log_catcher"},
        sink=python("globals['rows'] = [[row['component'], row['severity'], row['kind']] for row in inputs['input']]"),
        config=GOES_ON,
    )
    run = run_job(text, tmp_path)
    assert run.globals["rows"] == [["it[#1].x", "error", "exception"], ["it[#3].x", "error", "exception"]]


@pytest.mark.clause("J12.4")
@pytest.mark.parametrize("parallel", [1, 3])
def test_what_handles_a_failed_iteration_leaves_its_globals_and_its_body_does_not(
    tmp_path: Path, parallel: int
) -> None:
    shop = Shop(tmp_path)
    body = shop.does(f"globals['touched'] = [iteration['item']]\nif {ODD}: raise ValueError('odd')")
    note = python("globals['bad'] = [iteration['item']]")
    text = job(
        "it (iterate) x",
        "it (iteration_error) note",
        it=each(0, 1, 2, 3, parallel=parallel),
        x=body,
        note=note,
        config=GOES_ON,
    )
    run = run_job(text, tmp_path)
    assert run.globals == {"touched": [0, 2], "bad": [1, 3]}


def test_a_handler_sees_what_the_handlers_before_it_wrote(tmp_path: Path) -> None:
    count = python("globals['errors'] = globals.get('errors', 0) + 1")
    text = job(
        "it (iterate) x",
        "it (iteration_error) count",
        it=each(1, 2, 3),
        x=python("raise ValueError('no')"),
        count=count,
        config=GOES_ON,
    )
    assert run_job(text, tmp_path).globals == {"errors": 3}


def mended(home: Path, shop: Shop, **more: Any) -> str:
    return job(
        "source (ok) it",
        "it (iterate) x",
        "it (iteration_error) note",
        "it (iterator_complete) after",
        "beside (subjob_ok) last",
        source=shop.does(name="source"),
        it=each(0, 1, 2, 3, 4),
        x=shop.fails("", ODD, "globals['done'] = [iteration['item']]"),
        note=python("globals['bad'] = [iteration['item']]"),
        after=shop.does("globals['seen'] = list(globals['done'])", "after"),
        beside=shop.does(name="beside"),
        last=shop.does(name="last"),
        config={**GOES_ON, **more},
    )


def test_resume_failed_runs_only_the_failed_iterations_and_what_follows_from_them(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    run = run_job(mended(tmp_path, shop), tmp_path)
    assert run.globals["bad"] == [1, 3]
    assert run.globals["seen"] == [0, 2, 4]
    before = len(shop.ran)
    shop.mend()
    again = resume_job(tmp_path, failed_only=True)
    assert shop.ran[before:] == ["1", "3", "after"]
    assert again.status == "completed"
    assert again.globals == {"done": [0, 1, 2, 3, 4], "seen": [0, 1, 2, 3, 4]}
    assert again.payloads("job.completed")[-1]["failed_iterations"] == 0
    assert again.component("source")["kept"]
    assert again.subjobs()["last"] == "OK"
    with pytest.raises(Refused, match="no iteration of the run failed"):
        resume_job(tmp_path, failed_only=True)


def test_iterations_that_fail_again_can_be_run_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    run_job(mended(tmp_path, shop), tmp_path)
    before = len(shop.ran)
    again = resume_job(tmp_path, failed_only=True)
    assert shop.ran[before:] == ["1", "3", "after"]
    assert again.payloads("job.completed")[-1]["failed_iterations"] == 2
    assert again.globals["bad"] == [1, 3]
    shop.mend()
    before = len(shop.ran)
    assert resume_job(tmp_path, failed_only=True).payloads("job.completed")[-1]["failed_iterations"] == 0
    assert shop.ran[before:] == ["1", "3", "after"]


def test_a_plain_resume_of_such_a_run_points_to_resume_failed(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    run_job(mended(tmp_path, shop), tmp_path)
    with pytest.raises(Refused, match="2 iterations of it failed") as refused:
        resume_job(tmp_path)
    assert "--failed" in str(refused.value.hint)


def test_failed_iterations_inside_a_joblet_are_run_again_and_the_rest_of_it_is_not(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    inner = job(
        "first (ok) it", "it (iterate) x", first=shop.does(name="first"), it=each(0, 1, 2), x=shop.fails("", ODD)
    )
    (tmp_path / "inner.yaml").write_text("kind: Joblet\n" + _yaml(inner))
    text = job("call (ok) after", call={"type": "@inner"}, after=shop.does(name="after"), config=GOES_ON)
    run = run_job(text, tmp_path)
    assert run.payloads("job.completed")[0]["failed_iterations"] == 1
    before = len(shop.ran)
    shop.mend()
    again = resume_job(tmp_path, failed_only=True)
    assert shop.ran[before:] == ["1", "after"]
    assert again.payloads("job.completed")[-1]["failed_iterations"] == 0


def _yaml(text: str) -> str:
    import json

    import yaml

    return yaml.safe_dump(json.loads(text))


def test_rows_that_are_gone_are_made_again_for_what_follows_and_nothing_else_is(tmp_path: Path) -> None:
    """`sink` follows from the iterator and needs rows of `given`; those lay in memory and are gone."""
    shop = Shop(tmp_path)
    text = job(
        "it (iterate) x",
        "it (ok) sink",
        data=("given.main -> sink.input",),
        given=shop.does("output = [{'n': 1}]", "given"),
        it=each(0, 1),
        x=shop.fails("", ODD),
        sink=shop.does("result = len(list(inputs['input']))", "sink"),
        config=GOES_ON,
    )
    run_job(text, tmp_path)
    before = len(shop.ran)
    shop.mend()
    again = resume_job(tmp_path, failed_only=True)
    assert again.status == "completed"
    assert sorted(shop.ran[before:]) == ["1", "given", "sink"]


def test_what_was_skipped_for_the_sake_of_failed_iterations_runs_once_they_are_mended(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        "it (iterate) x",
        {"from": "it", "to": "publish", "on": "if", "when": "NB_ITERATION_ERROR == 0"},
        it=each(0, 1),
        x=shop.fails("", ODD),
        publish=sets(published=True),
        config=GOES_ON,
    )
    assert run_job(text, tmp_path).states()["publish"] == "SKIPPED"
    shop.mend()
    again = resume_job(tmp_path, failed_only=True)
    assert again.globals == {"published": True}


def nested(shop: Shop, **more: Any) -> str:
    # One after the other each sees what those before it wrote, so what stays has not seen what is run again.
    then = "globals['done'] = [iteration['item']]" if more else ""
    return job(
        "outer (iterate) first",
        "first (ok) inner",
        "inner (iterate) x",
        "inner (iterator_complete) last",
        "outer (iteration_ok) good",
        "outer (iterator_complete) after",
        outer=each("a", "b", "c", **more),
        first=shop.does("globals['first'] = [iteration['item']]", "first"),
        inner=each(0, 1, 2, 3, **more),
        x=shop.fails("", f"{ODD} and iteration['parent']['item'] != 'b'", then),
        last=shop.does(name="last"),
        good=shop.does(name="good"),
        after=shop.does(name="after"),
        config=GOES_ON,
    )


@pytest.mark.clause("J12.5")
@pytest.mark.parametrize("more", [{}, {"parallel": 2}])
def test_failed_iterations_inside_of_other_iterations_are_run_again_and_what_follows_from_them(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    shop = Shop(tmp_path)
    run = run_job(nested(shop, **more), tmp_path)
    assert run.payloads("job.completed")[0]["failed_iterations"] == 4
    before = len(shop.ran)
    shop.mend()
    again = resume_job(tmp_path, failed_only=True)
    assert again.status == "completed"
    assert sorted(shop.ran[before:]) == sorted(["1", "3", "last", "good"] * 2 + ["after"])
    assert again.payloads("job.completed")[-1]["failed_iterations"] == 0
    assert again.globals["first"] == ["a", "b", "c"]
    assert again.globals.get("done", [0, 1, 2, 3] * 3) == [0, 1, 2, 3] * 3
    assert again.payloads("job.started")[-1]["reopened"] == ["outer[#0]", "outer[#2]"]
    with pytest.raises(Refused, match="no iteration of the run failed"):
        resume_job(tmp_path, failed_only=True)


def test_nested_iterations_that_fail_again_can_be_run_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    run_job(nested(shop, parallel=2), tmp_path)
    before = len(shop.ran)
    again = resume_job(tmp_path, failed_only=True)
    assert sorted(shop.ran[before:]) == sorted(["1", "3", "last", "good"] * 2 + ["after"])
    assert again.payloads("job.completed")[-1]["failed_iterations"] == 4
    shop.mend()
    before = len(shop.ran)
    assert resume_job(tmp_path, failed_only=True).payloads("job.completed")[-1]["failed_iterations"] == 0
    assert sorted(shop.ran[before:]) == sorted(["1", "3", "last", "good"] * 2 + ["after"])


def test_failed_iterations_three_deep_and_in_joblets_of_iterations_are_run_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    part = job("low (iterate) x", low=each(0, 1), x=shop.fails("", ODD))
    (tmp_path / "part.yaml").write_text("kind: Joblet\n" + _yaml(part))
    text = job(
        "top (iterate) middle",
        "middle (iterate) call",
        "call (ok) beside",
        top=each("a", "b", parallel=2),
        middle=each("c", "d", parallel=2),
        call={"type": "@part"},
        beside=shop.does(name="beside"),
        config=GOES_ON,
    )
    run = run_job(text, tmp_path)
    assert run.payloads("job.completed")[0]["failed_iterations"] == 4
    before = len(shop.ran)
    shop.mend()
    again = resume_job(tmp_path, failed_only=True)
    assert again.payloads("job.completed")[-1]["failed_iterations"] == 0
    assert sorted(shop.ran[before:]) == sorted(["1", "beside"] * 4)


def test_the_list_of_runs_knows_the_failed_iterations(tmp_path: Path) -> None:
    from penstock.app.embedded import embedded

    shop = Shop(tmp_path)
    run_job(mended(tmp_path, shop), tmp_path)
    engine = embedded(tmp_path / ".penstock")
    header = engine.log.header("run-1")
    assert header is not None
    assert listed(with_failures(engine.log, header), header.status)["failed_iterations"] == 2
