"""A new start of a job with an iterator: what ended OK is never run again, however often and wherever the job stops."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.kernel.decide import Begin, Cancel, Interrupt, Resume, RunOver
from penstock.kernel.facts import ElementEnded, GlobalSet
from penstock.kernel.fans import Elements
from penstock.kernel.judge import Ended
from penstock.kernel.state import TOLD_FAILURES as KEPT_FAILURES
from penstock.ports.wire import to_entry
from penstock.views.canonical import canonical
from tests.flow.nets import Play, error, job, sets

NET = job("it (iterate) x", "it (ok) after", iterations={"it": {"halts": False}})


@pytest.mark.clause("J7.2")
def test_an_iteration_that_ended_ok_is_kept_although_the_job_stops_again_before_its_iterator_goes_on() -> None:
    first = Play(NET)
    first.run()
    done = first.types().index("iteration.ok it[#1]") + 1
    second = Play(NET, log=first.facts[:done])
    second.when(Resume([]))  # The iterator has started anew, and that is the last thing in the log.
    assert second.types()[-1] == "component.started it"
    third = Play(NET, log=second.facts).resume()
    assert third.ran == ["it", "it[#2].x", "after"]
    assert third.status == "completed"


def test_all_failed_iterations_run_again_however_many_there_are() -> None:
    many = KEPT_FAILURES + 5
    items = {"items of it": list(range(many))}
    first = Play(NET, {**items, "x": error(), "it[#3].x": error("other")})
    first.run()
    stopped = first.types().index(f"component.started it[#{many - 1}].x") + 1
    again = Play(NET, items, log=first.facts[:stopped]).resume()
    assert again.status == "completed"
    assert len(again.ran) == many + 2


HANDLED = job(
    "it (iterate) x",
    "it (iteration_ok) good",
    "good (ok) more",
    "it (iteration_ok) also",
    "it (iteration_error) bad",
    "it (ok) after",
    iterations={"it": {"halts": False}},
)


def types_of(play: Play) -> list[tuple[object, object]]:
    entries = [to_entry(fact, at + 1, 0.0, "w") for at, fact in enumerate(play.facts)]
    return [(event["event_type"], event["scope"]) for event in canonical(entries, "no-such-id")]


@pytest.mark.clause("J12.6")
@pytest.mark.parametrize("outcomes", [{}, {"it[#1].x": error()}])
def test_a_body_that_has_ended_is_kept_even_if_nothing_of_what_follows_it_is_in_the_log(
    outcomes: dict[str, Any],
) -> None:
    whole = Play(HANDLED, outcomes).run()
    for at, fact in enumerate(whole.facts):
        if isinstance(fact.body, ElementEnded):
            again = Play(HANDLED, outcomes, log=whole.facts[: at + 1]).resume()
            assert f"{fact.scope}.x" not in again.ran
            assert types_of(again) == types_of(whole)


@pytest.mark.clause("J12.6")
def test_a_body_that_ended_after_a_signal_is_kept_and_its_handlers_run_when_the_job_goes_on() -> None:
    stopped = Play(HANDLED)
    stopped.when(Begin())
    stopped.when(Elements(stopped.ready.pop(0), 1, ["x"], 1, "accumulate"))
    stopped.decider.mandate.starts_nothing = True
    stopped.when(RunOver(stopped.ready.pop(0), Ended()))
    stopped.when(Interrupt("a signal"))
    assert stopped.types()[-2:] == ["edge.fired it[#0]", "job.interrupted "]
    again = Play(HANDLED, log=stopped.facts).resume()
    assert again.ran == ["it", "it[#0].good", "it[#0].also", "it[#0].more", "after"]
    assert types_of(again) == types_of(Play(HANDLED, {"items of it": ["x"]}).run())


@pytest.mark.clause("J12.6")
def test_of_several_handlers_those_that_ended_ok_are_kept_and_the_others_run_again() -> None:
    failed = Play(
        job("it (iterate) x", "it (iteration_ok) good", "it (iteration_ok) also"), {"it[#1].also": error()}
    ).run()
    assert failed.status == "failed"
    again = Play(failed.net, log=failed.facts).resume()
    assert again.ran == ["it", "it[#1].also", "it[#2].x", "it[#2].good", "it[#2].also"]
    assert again.status == "completed"


def test_handlers_beside_each_other_do_not_see_what_the_other_wrote() -> None:
    for order in range(6):
        outcomes = {"good": sets(by="good"), "also": sets(by="also")}
        play = Play(HANDLED, {**outcomes, "items of it": ["x"]}, seed=order).run()
        olds = {fact.scope: fact.body.old for fact in play.facts if isinstance(fact.body, GlobalSet)}
        assert olds == {"it[#0].good": None, "it[#0].also": None, "it": None}


def test_what_handles_a_body_that_was_kept_is_skipped_when_the_job_is_cancelled() -> None:
    whole = Play(HANDLED).run()
    at = whole.types().index("component.started it[#1].good") + 1
    for is_resumed in (False, True):
        play = Play(HANDLED, log=whole.facts[:at])
        if is_resumed:
            play.when(Resume([]))
            play = Play(HANDLED, log=play.facts)
        play.when(Cancel("enough", lambda child: []))
        assert play.status == "cancelled"
        states = play.states()
        assert (states["it[#1].x"], states["it[#1].more"]) == ("OK", "SKIPPED")
        assert "RUNNING" not in states.values()


def test_an_iterator_that_fails_before_it_says_what_it_runs_over_ends_although_iterations_of_it_were_kept() -> None:
    net = job("it (iterate) x", "it (error) told")
    whole = Play(net).run()
    at = whole.types().index("iteration.ok it[#1]") + 1
    play = Play(net, log=whole.facts[:at])
    play.when(Resume([]))
    [iterator] = play.ready
    play.ready.clear()
    play.when(RunOver(iterator, error()))
    play.go_on()
    assert (play.states()["it"], play.states()["told"], play.status) == ("ERROR", "OK", "completed")
