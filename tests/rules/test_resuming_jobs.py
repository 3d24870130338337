"""Stops of a job, and what a new start keeps: sections 7.2, 7.3, 8 and 12.7 of the rulebook."""

from __future__ import annotations

import pytest

from penstock.kernel.errors import Refused
from tests.rules.notation import (
    Case,
    begun,
    cancelled,
    document,
    elements,
    expanded,
    failed,
    folded,
    given,
    interrupted,
    job,
    lost,
    ok,
    resumed,
)

FORK = ("f (parallelise) a, b", "a, b (synchronise) j")


def started(case: Case, since: int = 0) -> list[str]:
    return [one.split()[1] for one in case.lines()[since:] if one.startswith("component.started")]


@pytest.mark.clause("J7.2", "J8.5")
def test_after_a_signal_what_has_closed_is_kept_and_an_open_sub_job_starts_over() -> None:
    case = given(job("a (subjob_ok) b", "b (ok) c")).then(begun(), ok("a", x=1), ok("b", x=2))
    assert case.when(interrupted()) == ["job.interrupted"]
    assert case.status == "interrupted"
    assert case.when(resumed()) == ["job.started, keeping <a>", "subjob.started <b>", "component.started b"]
    assert case.when(ok("b", x=3))[1] == "global.set x: 1 -> 3 by b, local"


@pytest.mark.clause("J7.2")
def test_after_a_crash_the_log_is_resumed_as_after_a_signal() -> None:
    case = given(job("a (subjob_ok) b", "b (ok) c")).then(begun(), ok("a"), ok("b"))
    assert folded(case).when(resumed()) == ["job.started, keeping <a>", "subjob.started <b>", "component.started b"]


@pytest.mark.clause("J7.2")
def test_what_a_resume_keeps_fires_nothing_again() -> None:
    case = given(job("a (subjob_ok) b", "a (subjob_ok) c")).then(begun(), ok("a"), ok("b"), failed("c"))
    since = len(case.facts)
    case.then(resumed())
    assert started(case, since) == ["c"]
    assert case.when(ok("c"))[-1] == "job.completed"


@pytest.mark.clause("J7.2")
def test_what_was_skipped_because_of_a_failure_is_decided_anew_after_it() -> None:
    case = given(job("a (ok) b", "a (subjob_ok) c")).then(begun(), failed("a"))
    assert case.when(resumed()) == ["job.started, keeping nothing", "subjob.started <a>", "component.started a"]
    assert case.when(ok("a"))[-1] == "component.started b"
    assert case.when(ok("b"))[-1] == "component.started c"


@pytest.mark.clause("J7.2")
def test_a_failure_that_was_dealt_with_is_kept_with_what_dealt_with_it() -> None:
    case = given(job("a (subjob_error) h", alone="z")).then(begun(), failed("a"), ok("h"), failed("z"))
    assert case.when(resumed()) == ["job.started, keeping <a>, <h>", "subjob.started <z>", "component.started z"]
    assert case.when(ok("z"))[-1] == "job.completed"


@pytest.mark.clause("J7.3")
def test_a_branch_that_is_through_is_kept_and_one_that_is_not_starts_at_its_fork() -> None:
    case = given(job(*FORK, "b (ok) b2")).then(begun(), ok("f"), ok("a"), ok("b"), interrupted())
    assert case.when(resumed()) == ["job.started, keeping <f>, <a>", "subjob.started <b>", "component.started b"]


@pytest.mark.clause("J7.2")
@pytest.mark.parametrize(
    ("status", "stimuli"),
    [("completed", (ok("a"),)), ("cancelled", (cancelled(), failed("a")))],
)
def test_a_job_that_has_come_to_its_end_is_not_resumed(status: str, stimuli: tuple[object, ...]) -> None:
    case = given(job(alone="a")).then(begun(), *stimuli)  # type: ignore[arg-type]
    before = case.lines()
    with pytest.raises(Refused, match=f"the run is {status}; there is nothing to resume"):
        case.when(resumed())
    assert case.lines() == before


@pytest.mark.clause("J7.2", "J11.2")
def test_inside_of_a_call_that_starts_over_the_sub_jobs_that_are_through_are_kept() -> None:
    net = expanded(document(alone="j", j={"type": "@work"}), work=document("x (subjob_ok) y"))
    case = given(net).then(begun(), ok("j.__x"), failed("j.__y"))
    assert case.when(resumed()) == [
        "job.started, keeping <j.__x>",
        "subjob.started <j>",
        "component.started j",
        "subjob.started <j.__y>",
        "component.started j.__y",
    ]
    assert case.when(ok("j.__y"))[-1] == "job.completed"


@pytest.mark.clause("J7.2")
def test_a_job_that_died_has_what_it_died_of_run_again() -> None:
    case = given(job("a (error) h", alone="b")).then(begun(), ok("b"), failed("a", dies=True), ok("h"))
    assert case.when(resumed()) == ["job.started, keeping <b>", "subjob.started <a>", "component.started a"]


# ---- iterations


@pytest.mark.clause("J12.6", "J8.5")
def test_after_a_signal_an_iterator_goes_on_with_the_first_iteration_that_is_not_through() -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", [1, 2, 3]), ok("it[#0].x", k=[0]), interrupted())
    case.then(resumed(), elements("it", [1, 2, 3]))
    assert started(case)[-2:] == ["it", "it[#1].x"]
    case.then(ok("it[#1].x", k=[1]))
    assert "global.set k: None -> [0, 1, 2] by it" in case.when(ok("it[#2].x", k=[2]))


@pytest.mark.clause("J12.6", "J12.5")
def test_failed_iterations_of_a_completed_job_run_again_when_that_is_asked_for() -> None:
    net = job("it (iterate) x", "it (ok) after", alone="other", iterations={"it": {"halts": False}})
    case = given(net).then(
        begun(), ok("other"), elements("it", [1, 2]), ok("it[#0].x"), failed("it[#1].x"), ok("after")
    )
    assert case.status == "completed"
    with pytest.raises(Refused, match="the run is completed, and 1 iteration of it failed"):
        case.when(resumed())
    since = len(case.facts)
    case.then(resumed(failed_only=True), elements("it", [1, 2]))
    assert started(case, since) == ["it", "it[#1].x"]
    assert case.when(ok("it[#1].x"))[3:] == [
        "iterator.completed it: 2 ok, 0 failed",
        "component.ok it",
        "edge.fired it (ok) after",
        "component.started after",
    ]


def test_a_completed_job_without_failed_iterations_has_none_to_run_again() -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", [1]), ok("it[#0].x"))
    with pytest.raises(Refused, match="no iteration of the run failed"):
        case.when(resumed(failed_only=True))


# ---- a worker that is lost


@pytest.mark.clause("J7.3", "J8.5")
def test_the_sub_job_of_a_lost_worker_starts_over_and_no_other() -> None:
    case = given(job(*FORK, "a (ok) a2")).then(begun(), ok("f"), ok("a", k=1))
    assert case.when(lost("<a>")) == ["job.started, keeping <f>, <b>", "subjob.started <a>", "component.started a"]
    assert case.when(ok("a", k=2))[1] == "global.set k: None -> 2 by a"
    assert case.when(ok("b")) == ["component.ok b", "subjob.ok <b>", "checkpoint.saved <b>"]
    assert case.when(ok("a2"))[-1] == "component.started j"


# ---- 8: cancellation


@pytest.mark.clause("J8.5")
def test_a_cancelled_job_lets_what_runs_come_to_its_end_and_skips_the_rest() -> None:
    case = given(job("it (iterate) x", "x (ok) y", "it (ok) z")).then(begun(), elements("it", [1, 2]))
    assert case.when(cancelled()) == ["job.cancelling"]
    assert case.when(ok("it[#0].x")) == [
        "component.ok it[#0].x",
        "edge.fired it[#0].x (ok) it[#0].y",
        "component.skipped it[#0].y: the run was cancelled",
        "checkpoint.saved it[#0]",
        "iteration.ok it[#0]",
        "iterator.completed it: 1 ok, 0 failed",
        "component.error it: `it` was stopped before its last iteration",
        "component.skipped z: the run was cancelled",
        "subjob.error <it>",
        "checkpoint.saved <it>",
        "job.cancelled",
    ]


@pytest.mark.clause("J8.5")
def test_a_cancelled_job_on_which_nobody_works_ends_at_once_and_every_start_gets_its_end() -> None:
    case = given(job("a (ok) b", "it (iterate) x")).then(begun(), elements("it", [1, 2]))
    assert case.when(cancelled(at_work=False)) == [
        "job.cancelling",
        "component.error a: `a` was stopped: the run was cancelled",
        "component.error it[#0].x: `it[#0].x` was stopped: the run was cancelled",
        "checkpoint.saved it[#0]",
        "iteration.error it[#0]",
        "component.skipped b: the run was cancelled",
        "subjob.error <a>",
        "checkpoint.saved <a>",
        "iterator.completed it: 0 ok, 1 failed",
        "component.error it: iteration 0 of `it` failed: `it[#0].x` was stopped: the run was cancelled",
        "subjob.error <it>",
        "checkpoint.saved <it>",
        "job.cancelled",
    ]


@pytest.mark.clause("J8.5")
def test_a_handler_does_not_run_in_a_job_that_is_being_cancelled() -> None:
    case = given(job("a (error) h", "a (subjob_error) s")).then(begun(), cancelled())
    assert [one for one in case.when(failed("a")) if one.startswith("component.skipped")] == [
        "component.skipped h: the run was cancelled",
        "component.skipped s: the run was cancelled",
    ]


def test_a_job_that_is_over_is_not_cancelled() -> None:
    case = given(job(alone="a")).then(begun(), ok("a"))
    with pytest.raises(Refused, match="the run is completed, not running"):
        case.when(cancelled())


def test_a_job_is_asked_to_stop_once() -> None:
    case = given(job(alone="a b")).then(begun(), cancelled())
    assert case.when(cancelled()) == []
