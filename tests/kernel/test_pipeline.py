"""What a policy's verdict comes to, as a table."""

from __future__ import annotations

import pytest

from penstock.kernel.evolve.pipelines import task_ended, task_started
from penstock.kernel.facts import TaskEnded, TaskStarted
from penstock.kernel.net import Backoff, Do
from penstock.kernel.pipeline import Verdict, advance
from penstock.kernel.places import Place
from penstock.kernel.state import Pipeline

ERROR = {"kind": "timeout", "message": "too slow", "retryable": True}


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


@pytest.mark.parametrize("backoff", [Backoff.LINEAR, Backoff.EXPONENTIAL])
def test_jitter_is_a_share_of_the_delay_that_is_waited_and_never_goes_beyond_its_cap(backoff: Backoff) -> None:
    verdict = Verdict(0, Do.RETRY, attempts=99, backoff=backoff, delay=1.0, max_delay=10.0, jitter=0.2)
    delays = [advance(0, 1, 60, ERROR, verdict, draw).delay for draw in (0.0, 0.25, 0.5, 1.0)]
    assert delays == [8.0, 9.0, 10.0, 10.0]


def started(task: str, attempt: int = 1) -> TaskStarted:
    return TaskStarted(task, "noop", attempt)


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
