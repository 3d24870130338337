"""Sections 2.1.5, 3 and 6.2: where sub-jobs begin and end, what they amount to, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import problems, run_job
from tests.spec_jobs.support import FAILS, job, positions, python, rows, sets, sleeps

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


@pytest.mark.clause("J3.2")
def test_a_sub_job_starts_with_its_first_component_and_ends_with_its_last(tmp_path: Path) -> None:
    text = job("a (ok) b, c", "a (subjob_ok) d", b=sleeps(60))
    run = run_job(text, tmp_path, virtual=True)
    wanted = ("subjob.started", "subjob.ok", "component.started", "component.ok")
    order = [f"{event['event_type']} {event['scope']}" for event in run.events if event["event_type"] in wanted]
    assert order[:2] == ["subjob.started <a>", "component.started a"]
    assert order.index("component.ok c") < order.index("component.ok b") < order.index("subjob.ok <a>")
    assert order.index("subjob.ok <a>") < order.index("subjob.started <d>") < order.index("component.started d")


@pytest.mark.clause("J3.2")
def test_a_sub_job_goes_from_pending_through_running_to_one_end(tmp_path: Path) -> None:
    text = job("a (subjob_ok) b", "a (subjob_error) c", "d (ok) e", "d (subjob_error) f", d=FAILS)
    run = run_job(text, tmp_path)
    ways: dict[str, list[str]] = {}
    for event in run.events:
        if str(event["event_type"]).startswith("subjob."):
            ways.setdefault(str(event["scope"]), []).append(str(event["event_type"]).removeprefix("subjob."))
    assert ways == {
        "<a>": ["started", "ok"],
        "<b>": ["started", "ok"],
        "<c>": ["skipped"],
        "<d>": ["started", "error"],
        "<f>": ["started", "ok"],
    }


@pytest.mark.clause("J2.7")
def test_subjob_ok_is_fired_by_the_engine_once_the_last_component_has_settled(tmp_path: Path) -> None:
    text = job("a (ok) b", "a (subjob_ok) next", "a (subjob_error) sorry", b=sleeps(60))
    run = run_job(text, tmp_path, virtual=True)
    at = positions(run.events)
    assert at["component.ok b"] < at["subjob.ok <a>"] < at["component.started next"]
    assert run.fired("subjob_ok") == ["a (subjob_ok) next"]
    fired = next(
        event for event in run.events if event["event_type"] == "edge.fired" and event["payload"]["on"] == "subjob_ok"
    )
    assert fired["scope"] == "<a>", "the sub-job's, and not a component's"
    assert run.component("sorry")["state"] == "SKIPPED"


@pytest.mark.clause("J2.7")
def test_subjob_error_fires_once_when_the_sub_job_closes_in_error(tmp_path: Path) -> None:
    """Two components fail, and a third is still at work when they do."""
    links = ("a (ok) b, c, d", "d (ok) e", "a (subjob_error) sorry", "a (subjob_ok) next")
    run = run_job(job(*links, b=FAILS, c=FAILS, d=sleeps(60)), tmp_path, virtual=True)
    at = positions(run.events)
    assert run.fired("subjob_error") == ["a (subjob_error) sorry"]
    assert at["component.error b"] < at["component.ok e"] < at["subjob.error <a>"] < at["component.started sorry"]
    assert run.component("next")["state"] == "SKIPPED"
    assert run.status == "completed", "the handler ended OK"


@pytest.mark.clause("J2.7")
def test_an_error_that_was_handled_inside_fires_subjob_ok(tmp_path: Path) -> None:
    run = run_job(job("a (error) mend", "a (subjob_ok) next", "a (subjob_error) sorry", a=FAILS), tmp_path)
    assert run.subjobs() == {"a": "OK", "next": "OK", "sorry": "SKIPPED"}
    assert run.status == "completed"


@pytest.mark.clause("J2.7")
def test_a_handler_that_fails_too_makes_the_sub_job_fail(tmp_path: Path) -> None:
    run = run_job(job("a (error) mend", "a (subjob_error) sorry", a=FAILS, mend=FAILS), tmp_path)
    assert run.subjobs() == {"a": "ERROR", "sorry": "OK"}


@pytest.mark.clause("J2.7")
def test_a_sub_job_of_which_nothing_ran_fires_neither(tmp_path: Path) -> None:
    run = run_job(
        job("a (error) b", "a (parallelise) c, d", "x (subjob_error) y", "y (subjob_ok) ok", "y (subjob_error) bad"),
        tmp_path,
    )
    assert run.subjobs() == {
        "a": "OK",
        "c": "OK",
        "d": "OK",
        "x": "OK",
        "y": "SKIPPED",
        "ok": "SKIPPED",
        "bad": "SKIPPED",
    }


@pytest.mark.clause("J3.3")
def test_forks_nest(tmp_path: Path) -> None:
    links = ("a (parallelise) b, c", "b (parallelise) d, e", "d, e (synchronise) inner", "inner, c (synchronise) outer")
    run = run_job(job(*links), tmp_path)
    assert set(run.states().values()) == {"OK"}
    assert [one["name"] for one in run.standing.subjobs] == ["a", "b", "c", "d", "e", "inner", "outer"]


@pytest.mark.clause("J3.3")
def test_an_outer_sub_job_ignores_an_inner_failure_that_was_handled(tmp_path: Path) -> None:
    links = ("a (parallelise) b, c", "b (parallelise) d, e", "d (error) mend", "d, e (synchronise) inner")
    run = run_job(job(*links, d=FAILS), tmp_path)
    assert run.subjobs() == {"d": "OK", "a": "OK", "b": "OK", "c": "OK", "e": "OK", "inner": "OK"}
    assert run.status == "completed"


@pytest.mark.clause("J3.3")
def test_an_inner_failure_is_not_the_failure_of_the_sub_job_that_forked(tmp_path: Path) -> None:
    run = run_job(job("a (parallelise) b, c", "a (subjob_ok) next", b=FAILS), tmp_path)
    assert run.subjobs() == {"b": "ERROR", "a": "OK", "c": "OK", "next": "OK"}
    assert run.status == "failed"


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
def test_a_handler_of_a_sub_job_that_fails_leaves_the_job_failed(tmp_path: Path) -> None:
    run = run_job(job("bad (subjob_error) told", bad=FAILS, told=python("1 / 0")), tmp_path)
    assert run.subjobs() == {"bad": "ERROR", "told": "ERROR"}
    assert run.status == "failed"


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
