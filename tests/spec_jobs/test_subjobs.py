"""Sections 2.1.5, 3 and 6.2: where sub-jobs begin and end, what they amount to, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import problems, run_job
from tests.spec_jobs.support import FAILS, job, python, rows, sets, sleeps

DRAWN: dict[str, tuple[str, list[list[str]]]] = {
    "a chain of every merging link": (
        job(
            "a (ok) b",
            "b (error) c",
            'b (if 1: "True") d',
            data=("d.main -> e.input",),
            d=rows(1),
            e={"type": "log_rows"},
        ),
        [["d", "e", "a", "b", "c"]],
    ),
    "two chains": (job("a (ok) b", "c (ok) d"), [["a", "b"], ["c", "d"]]),
    "a fork": (job("a (parallelise) b, c", "b (ok) d"), [["a"], ["b", "d"], ["c"]]),
    "fork and join": (
        job("a (parallelise) b, c", "b, c (synchronise) d", "d (ok) e"),
        [["a"], ["b"], ["c"], ["d", "e"]],
    ),
    "sub-job links": (job("a (ok) b", "a (subjob_ok) c", "b (subjob_error) d"), [["a", "b"], ["c"], ["d"]]),
    "rows across a fork": (
        job(
            "a (parallelise) b, c",
            "b, c (synchronise) d",
            data=("b.main -> d.input",),
            a=rows(0),
            b=rows(1),
            c=rows(2),
            d={"type": "log_rows"},
        ),
        [["a"], ["b"], ["c"], ["d"]],
    ),
    "an error link into a join": (
        job("a (parallelise) b, c", "b, c (synchronise) d", "b (error) d"),
        [["a"], ["b"], ["c"], ["d"]],
    ),
}


@pytest.mark.clause("J3.1")
@pytest.mark.parametrize("drawing", DRAWN)
def test_sub_jobs_are_the_regions_that_rows_and_component_links_join(tmp_path: Path, drawing: str) -> None:
    text, expected = DRAWN[drawing]
    run = run_job(text, tmp_path)
    shown = [sorted(one["members"]) for one in run.standing.subjobs]
    assert sorted(shown) == sorted(sorted(members) for members in expected)
    assert sorted(one["name"] for one in run.standing.subjobs) == sorted(members[0] for members in expected)


@pytest.mark.clause("J3.4")
def test_a_component_without_control_links_belongs_to_what_feeds_it(tmp_path: Path) -> None:
    text = job("a (ok) feeder", data=("feeder.main -> shown.input",), feeder=rows(1), shown={"type": "log_rows"})
    run = run_job(text, tmp_path)
    assert run.standing.subjobs == [{"name": "feeder", "state": "OK", "members": ["a", "feeder", "shown"]}]


@pytest.mark.clause("J3.4")
def test_a_component_that_cannot_be_reached_is_an_error_with_its_place(tmp_path: Path) -> None:
    text = "components:\n  - {name: a, type: noop}\n  - name: lonely\n    type: log_rows\n"
    found = problems(text, tmp_path)
    assert [(one.code, one.position.line) for one in found] == [("J0304", 3)]
    assert "UNCONNECTED_NODE" in str(found[0])
    assert "`lonely`" in found[0].message


@pytest.mark.clause("J6.3")
def test_an_error_without_an_error_link_fails_its_sub_job_and_the_job_goes_on(tmp_path: Path) -> None:
    text = job("bad (ok) after", "bad (subjob_error) told", "other (ok) later", bad=FAILS, other=sleeps(60))
    run = run_job(text, tmp_path, virtual=True)
    assert run.states() == {"bad": "ERROR", "other": "OK", "after": "SKIPPED", "told": "OK", "later": "OK"}
    assert run.subjobs() == {"bad": "ERROR", "other": "OK", "told": "OK"}
    assert (run.status, run.exit_code) == ("completed", 0)


@pytest.mark.clause("J6.3")
def test_without_a_handler_the_job_goes_on_to_its_end_and_has_failed(tmp_path: Path) -> None:
    run = run_job(job("bad (ok) after", "other (ok) later", bad=FAILS, other=sleeps(60)), tmp_path, virtual=True)
    assert run.component("later")["state"] == "OK"
    assert (run.status, run.exit_code, run.error["component"]) == ("failed", 1, "bad")


@pytest.mark.clause("J6.3")
def test_with_the_policy_abort_nothing_starts_after_a_sub_job_failed_but_its_error_path(tmp_path: Path) -> None:
    text = job(
        "bad (subjob_error) told",
        "told (ok) told_more",
        "other (ok) later",
        bad=FAILS,
        other=sleeps(60),
        config={"on_subjob_error": "abort"},
    )
    run = run_job(text, tmp_path, virtual=True)
    assert run.states() == {"bad": "ERROR", "other": "OK", "told": "OK", "told_more": "OK", "later": "SKIPPED"}
    assert "`on_subjob_error` is abort" in run.component("later")["cause"]


@pytest.mark.clause("J6.3")
def test_what_a_failed_sub_job_wrote_is_there_for_its_handler(tmp_path: Path) -> None:
    text = job(
        "first (ok) bad",
        "first (subjob_error) told",
        first=sets(x=1),
        bad=python("globals['why'] = 'disk'\n1 / 0"),
        told=python("result = [globals['x'], globals['why']]"),
    )
    run = run_job(text, tmp_path)
    assert next(one["result"] for one in run.payloads("component.ok") if one["component"] == "told") == [1, "disk"]
