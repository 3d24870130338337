"""What a policy's verdict comes to, as a table."""

from __future__ import annotations

import pytest

from penstock.kernel.evolve.pipelines import task_ended, task_started
from penstock.kernel.facts import TaskEnded, TaskStarted
from penstock.kernel.net import Backoff, Do
from penstock.kernel.pipeline import END, Directive, Verdict, advance
from penstock.kernel.places import Place
from penstock.kernel.state import Pipeline

ERROR = {"kind": "timeout", "message": "too slow", "retryable": True}


@pytest.mark.clause("P6.2")
@pytest.mark.parametrize(
    ("error", "expected"),
    [(None, Directive(Do.CONTINUE, 2)), (ERROR, Directive(Do.FAIL, END, error=ERROR))],
)
def test_without_a_policy_ok_continues_and_an_error_fails(error: object, expected: Directive) -> None:
    assert advance(1, 3, 1, error, None) == expected  # type: ignore[arg-type]


@pytest.mark.clause("P6.2")
@pytest.mark.parametrize("error", [None, ERROR])
def test_rules_of_which_none_matched_continue_whatever_the_outcome(error: object) -> None:
    assert advance(0, 2, 1, error, Verdict()) == Directive(Do.CONTINUE, 1)  # type: ignore[arg-type]


@pytest.mark.clause("P6.1")
@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict(0, Do.CONTINUE), Directive(Do.CONTINUE, 2)),
        (Verdict(0, Do.JUMP, to=0), Directive(Do.JUMP, 0)),
        (Verdict(0, Do.BREAK), Directive(Do.BREAK, END)),
        (Verdict(0, Do.FAIL), Directive(Do.FAIL, END, error=ERROR)),
        (Verdict(0, Do.RETRY, attempts=3), Directive(Do.RETRY, 1)),
    ],
)
def test_each_directive_does_what_it_says(verdict: Verdict, expected: Directive) -> None:
    assert advance(1, 4, 1, ERROR, verdict) == expected


def test_continue_after_the_last_task_ends_the_pipeline() -> None:
    assert advance(2, 3, 1, None, Verdict(0, Do.CONTINUE)) == Directive(Do.CONTINUE, END)


@pytest.mark.clause("P6.3")
def test_retries_that_are_used_up_fail_with_the_last_error() -> None:
    verdict = Verdict(0, Do.RETRY, attempts=3)
    assert [advance(0, 1, attempt, ERROR, verdict).do for attempt in (1, 2, 3)] == [Do.RETRY, Do.RETRY, Do.FAIL]
    assert advance(0, 1, 3, ERROR, verdict).error == ERROR


def test_a_retry_asked_for_after_an_ok_outcome_says_so_when_it_is_used_up() -> None:
    error = advance(0, 1, 2, None, Verdict(0, Do.RETRY, attempts=2)).error
    assert isinstance(error, dict)
    assert error["kind"] == "retries_exhausted"


@pytest.mark.clause("P6.3")
@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (Backoff.NONE, [2.0, 2.0, 2.0, 2.0]),
        (Backoff.LINEAR, [2.0, 4.0, 6.0, 8.0]),
        (Backoff.EXPONENTIAL, [2.0, 4.0, 8.0, 10.0]),
    ],
)
def test_the_delay_grows_as_the_backoff_says_up_to_its_cap(backoff: Backoff, delays: list[float]) -> None:
    verdict = Verdict(0, Do.RETRY, attempts=9, backoff=backoff, delay=2.0, max_delay=10.0)
    assert [advance(0, 1, attempt, ERROR, verdict).delay for attempt in (1, 2, 3, 4)] == delays


def test_jitter_spreads_the_delay_and_never_makes_it_negative() -> None:
    verdict = Verdict(0, Do.RETRY, attempts=9, delay=2.0, jitter=0.5)
    assert [advance(0, 1, 1, ERROR, verdict, draw).delay for draw in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]


def started(task: str, attempt: int = 1) -> TaskStarted:
    return TaskStarted(task, "noop", attempt)


def test_after_an_error_that_was_continued_there_is_no_previous_result() -> None:
    pipeline = Pipeline(Place("s@0", ((0,),)), {})
    task_started(pipeline, started("a"), "s@0/a#1")
    task_ended(pipeline, TaskEnded("a", 1, {"status": "ok", "result": 7}, "continue", 1), 0.0)
    assert (pipeline.prev, pipeline.results, pipeline.cursor) == (7, {"a": 7}, 1)
    task_started(pipeline, started("a"), "s@0/a#2")
    task_ended(pipeline, TaskEnded("a", 1, {"status": "error", "error": ERROR}, "continue", 1), 0.0)
    assert (pipeline.prev, pipeline.results) == (None, {})


@pytest.mark.clause("P6.4")
def test_writes_are_in_force_before_the_directive_acts() -> None:
    pipeline = Pipeline(Place("s@0", ((0,),)), {"kept": 1})
    task_started(pipeline, started("a"), "s@0/a#1")
    writes = {"iter": {"page": 2}, "ctx": {"seen": True}, "append": {"all": ["x"]}}
    task_ended(pipeline, TaskEnded("a", 1, {"status": "ok", "result": None}, "jump", 0, writes=writes), 0.0)
    assert pipeline.iter == {"page": 2}
    assert pipeline.ctx == {"kept": 1, "seen": True, "all": ["x"]}
    assert pipeline.staged.as_writes() == {"ctx": {"seen": True}, "append": {"all": ["x"]}}


def test_a_waiting_retry_knows_when_it_is_due() -> None:
    pipeline = Pipeline(Place("s@0", ((0,),)), {})
    task_started(pipeline, started("a"), "s@0/a#1")
    task_ended(pipeline, TaskEnded("a", 1, {"status": "error", "error": ERROR}, "retry", 0, delay=4.0), 100.0)
    assert (pipeline.due, pipeline.attempt, pipeline.under_way) == (104.0, 2, None)
