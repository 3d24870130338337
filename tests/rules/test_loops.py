"""Loops: one pipeline per element, so many at a time, and how what they wrote comes together: section 7, and D9 and D50."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.kernel.errors import Refused
from penstock.kernel.fans import Claim
from tests.cases import cases
from tests.rules.notation import (
    Case,
    begun,
    cancelled,
    claimed,
    claiming,
    elements,
    failed,
    folded,
    given,
    loop,
    ok,
    part,
    resumed,
    steps,
    timed_out,
)


def looping(*items: Any, mode: str = "parallel", at_once: int = 3, fail_fast: bool = True) -> Case:
    net = steps("start -> next", loops={"start": loop(mode, at_once, fail_fast=fail_fast)})
    return given(net).then(begun(), elements("start@0", list(items)))


@pytest.mark.clause("P7.1", "P7.2")
def test_a_sequential_loop_runs_one_element_after_another() -> None:
    case = looping("p", "q", mode="sequential", at_once=1)
    assert case.lines()[-2:] == ["loop.started start@0", "loop.iteration.started start@0[0]"]
    assert case.task("start@0[0]").when(part("start@0", 0)) == [
        "loop.iteration.done start@0[0]",
        "loop.iteration.started start@0[1]",
    ]
    assert case.task("start@0[1]").when(part("start@0", 1)) == ["loop.iteration.done start@0[1]"]


@pytest.mark.clause("P7.1", "P8.1")
def test_the_end_of_a_loop_is_loop_done_and_asks_its_arcs() -> None:
    case = looping("p").task("start@0[0]").then(part("start@0", 0))
    assert case.when(ok("start@0"))[:2] == ["loop.done start@0", "next.selected start@0 -> next"]
    assert case.said("next.selected start@0").on == "loop.done"


@pytest.mark.clause("P7.1", "P8.1")
def test_a_loop_that_failed_ends_in_step_failed() -> None:
    case = looping("p").task("start@0[0]", "no").then(part("start@0", 0))
    assert case.when(failed("start@0"))[:2] == ["step.failed start@0", "next.selected start@0 -> nothing, unhandled"]


@pytest.mark.clause("P7.1", "P7.2")
def test_a_loop_without_elements_has_no_iterations() -> None:
    case = looping()
    assert case.lines()[-1] == "loop.started start@0"
    assert case.said("loop.started start@0").total == 0


@pytest.mark.clause("P7.2")
def test_a_small_element_is_shown_with_the_start_of_its_iteration_and_a_large_one_is_not() -> None:
    case = looping("p", "x" * 200, {"n": 1})
    assert [case.said(f"loop.iteration.started start@0[{index}]").item for index in range(3)] == ["p", None, None]


@pytest.mark.clause("P4.3", "P7.1")
def test_after_a_failure_a_best_effort_loop_goes_on() -> None:
    case = looping(1, 2, at_once=1, fail_fast=False)
    assert case.task("start@0[0]", "no").when(part("start@0", 0)) == [
        "loop.iteration.failed start@0[0]: no",
        "loop.iteration.started start@0[1]",
    ]


@pytest.mark.clause("P4.3", "P7.1")
def test_what_runs_beside_a_failed_iteration_comes_to_its_end() -> None:
    case = looping(1, 2, 3, at_once=2)
    assert case.task("start@0[0]", "no").when(part("start@0", 0)) == ["loop.iteration.failed start@0[0]: no"]
    assert case.task("start@0[1]").when(part("start@0", 1)) == ["loop.iteration.done start@0[1]"]


@pytest.mark.clause("P4.3")
def test_a_loop_whose_time_is_up_ends_its_iterations_and_keeps_what_was_written() -> None:
    case = looping(1, 2, 3, at_once=2).task("start@0[0]", y=1).then(part("start@0", 0))
    assert case.when(timed_out("start@0")) == [
        "loop.iteration.failed start@0[1]: too late",
        "loop.iteration.failed start@0[2]: too late",
        "step.failed start@0",
        "next.selected start@0 -> nothing, unhandled",
        "playbook.failed: too late",
    ]
    assert case.ctx == {"y": 1}


def test_a_cancelled_loop_on_which_nobody_works_ends_with_its_iterations() -> None:
    case = looping(1, 2, 3, at_once=2).task("start@0[0]").then(part("start@0", 0))
    assert [one.partition(":")[0] for one in case.when(cancelled(at_work=False))] == [
        "playbook.cancelling",
        "loop.iteration.failed start@0[1]",
        "loop.iteration.failed start@0[2]",
        "step.failed start@0",
        "next.selected start@0 -> nothing, unhandled",
        "playbook.cancelled",
    ]


# ---- iter and ctx


@pytest.mark.clause("P2.3", "P7.1")
def test_each_iteration_has_an_iter_of_its_own() -> None:
    for mode, at_once in (("parallel", 2), ("sequential", 1)):
        case = looping("p", "q", mode=mode, at_once=at_once)
        case.runs_task("start@0[0]", writes={"iter": {"page": 7}})
        assert case.sees("start@0[0]")["iter"]["page"] == 7
        case.then(part("start@0", 0))
        assert "page" not in case.sees("start@0[1]")["iter"]


@pytest.mark.clause("P7.1", "P2.2")
def test_iterations_side_by_side_do_not_see_what_the_others_write() -> None:
    case = looping(1, 2).task("start@0[0]", x=1)
    assert case.sees("start@0[1]")["ctx"] == {}


@pytest.mark.clause("P6.5")
def test_the_same_value_may_be_written_by_many() -> None:
    case = looping(1, 2, 3)
    for index in (1, 0, 2):
        case.task(f"start@0[{index}]", x=5).then(part("start@0", index))
    assert [one for one in case.lines() if "iteration.failed" in one] == []


@pytest.mark.clause("P6.5")
@cases(
    "first, second, key",
    [
        ({"ctx": {"x": 1}}, {"ctx": {"x": 2}}, "x"),
        ({"ctx": {"x": {}}}, {"ctx": {"x.a": 1}}, "x.a"),
        ({"ctx": {"x.a": 1}}, {"ctx": {"x": {}}}, "x"),
        ({"ctx": {"x": []}}, {"append": {"x": [1]}}, "x"),
        ({"append": {"x": [1]}}, {"ctx": {"x": []}}, "x"),
    ],
)
def test_writes_that_cannot_stand_beside_each_other_fail_the_later_index(
    first: dict[str, Any], second: dict[str, Any], key: str
) -> None:
    case = looping(1, 2)
    case.runs_task("start@0[1]", writes=second)
    case.runs_task("start@0[0]", writes=first)
    case.then(part("start@0", 1))
    assert case.when(part("start@0", 0)) == [
        "loop.iteration.done start@0[0]",
        f"loop.iteration.failed start@0[1]: iterations 0 and 1 of a parallel loop write different values to `ctx.{key}`",
    ]
    error = case.said("loop.iteration.failed start@0[1]").error
    assert (error["kind"], error["key"], error["writers"]) == ("ctx_conflict", key, [0, 1])


@pytest.mark.clause("P6.5")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"ctx": {"x": 1}}, {"ctx": {"y": 2}}),
        ({"ctx": {"x.a": 1}}, {"ctx": {"x.b": 2}}),
        ({"append": {"x": [1]}}, {"append": {"x": [2]}}),
    ],
)
def test_writes_to_different_keys_and_appends_stand_beside_each_other(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    case = looping(1, 2)
    case.runs_task("start@0[0]", writes=first)
    case.runs_task("start@0[1]", writes=second)
    assert case.when(part("start@0", 0)) == ["loop.iteration.done start@0[0]", "loop.iteration.done start@0[1]"]


@pytest.mark.clause("P6.5", "P7.1")
def test_a_sequential_loop_may_write_a_key_again_and_again() -> None:
    case = looping(1, 2, mode="sequential", at_once=1).task("start@0[0]", x=1).then(part("start@0", 0))
    assert case.task("start@0[1]", x=2).when(part("start@0", 1)) == ["loop.iteration.done start@0[1]"]


@pytest.mark.clause("P6.5")
def test_an_iteration_that_wrote_waits_for_the_earlier_ones_and_one_that_did_not_is_done_at_once() -> None:
    case = looping(1, 2, 3)
    assert case.task("start@0[2]", x=1).when(part("start@0", 2)) == []
    assert case.task("start@0[1]").when(part("start@0", 1)) == ["loop.iteration.done start@0[1]"]
    assert case.task("start@0[0]").when(part("start@0", 0)) == [
        "loop.iteration.done start@0[0]",
        "loop.iteration.done start@0[2]",
    ]


# ---- going on


@pytest.mark.clause("P9.3", "P7.1")
def test_a_fold_of_the_log_goes_on_with_the_iterations_that_are_not_over() -> None:
    case = looping(1, 2, 3, at_once=2).task("start@0[0]").then(part("start@0", 0))
    again = folded(case)
    assert again.when(elements("start@0", [1, 2, 3])) == []
    assert again.task("start@0[2]").when(part("start@0", 2)) == ["loop.iteration.done start@0[2]"]


@pytest.mark.clause("P8.4", "P7.1")
def test_a_resumed_loop_runs_the_iterations_that_did_not_end_well_and_no_other() -> None:
    case = looping(1, 2, 3, at_once=1).task("start@0[0]").then(part("start@0", 0))
    case.task("start@0[1]", "no").then(part("start@0", 1), failed("start@0"))
    assert case.when(resumed())[-1] == "step.started start@1"
    assert case.when(elements("start@1", [1, 2, 3])) == ["loop.started start@1", "loop.iteration.started start@1[1]"]
    assert case.task("start@1[1]").when(part("start@1", 1))[-1] == "loop.iteration.started start@1[2]"


# ---- rows that are claimed


def claims(mode: str = "parallel", at_once: int = 2, *, fail_fast: bool = True) -> Case:
    net = steps("start -> next", loops={"start": loop(mode, at_once, fail_fast=fail_fast)})
    return given(net).then(begun(), claiming("start@0"))


def row(number: int) -> dict[str, Any]:
    return {"id": number, "text": "x" * 80}


def test_a_loop_over_claimed_rows_begins_without_knowing_how_many_there_are() -> None:
    case = claims()
    assert case.lines()[-1] == "loop.started start@0"
    assert case.said("loop.started start@0").total is None


def test_a_claim_is_recorded_before_the_iterations_over_its_rows_and_as_many_open_as_may() -> None:
    case = claims()
    assert case.when(claimed("start@0", row(1), row(2), row(3))) == [
        "loop.claimed start@0: 0-3",
        "loop.iteration.started start@0[0]",
        "loop.iteration.started start@0[1]",
    ]
    assert case.said("loop.claimed start@0").items == [row(1), row(2), row(3)]
    assert case.when(claimed("start@0", row(4))) == ["loop.claimed start@0: 3-4"]
    assert case.task("start@0[1]").when(part("start@0", 1)) == [
        "loop.iteration.done start@0[1]",
        "loop.iteration.started start@0[2]",
    ]


def test_a_claimed_row_is_told_with_its_iteration_if_it_is_small() -> None:
    case = claims().then(claimed("start@0", row(1), {"id": 2, "text": "x" * 300}))
    assert [case.said(f"loop.iteration.started start@0[{index}]").item for index in (0, 1)] == [row(1), None]


def test_the_failure_of_a_claimed_row_says_which_one_it_is() -> None:
    case = claims().then(claimed("start@0", row(7)))
    assert case.task("start@0[0]", "no").when(part("start@0", 0)) == [
        "loop.iteration.failed start@0[0]: no (row id = 7)"
    ]
    assert case.said("loop.iteration.failed start@0[0]").error["row"] == {"id": 7}


def test_after_a_failure_rows_that_were_claimed_are_worked_on_only_if_the_loop_goes_on() -> None:
    for fail_fast, begun_after in ((True, []), (False, ["loop.iteration.started start@0[1]"])):
        case = claims("sequential", 1, fail_fast=fail_fast).then(claimed("start@0", row(1), row(2)))
        assert case.task("start@0[0]", "no").when(part("start@0", 0))[1:] == begun_after


def test_of_claimed_rows_only_those_are_kept_that_may_still_be_worked_on() -> None:
    case = claims(fail_fast=False)
    for index in range(0, 50, 2):
        case.then(claimed("start@0", row(index), row(index + 1)))
        case.task(f"start@0[{index}]").then(part("start@0", index))
        case.task(f"start@0[{index + 1}]", "no" if index == 10 else None).then(part("start@0", index + 1))
    kept = case.state.runs["start@0"].fan.claimed
    assert {index: one.items for index, one in kept.items()} == {11: [row(11)]}
    case.then(claimed("start@0", row(50)))
    assert sorted(kept) == [11, 50]


def test_who_has_only_the_log_knows_the_rows_that_were_claimed_and_not_finished() -> None:
    case = claims(at_once=1).then(claimed("start@0", row(1), row(2), row(3))).task("start@0[0]")
    case.then(part("start@0", 0))
    again = folded(case).state.runs["start@0"].fan
    assert (again.total, sorted(again.claimed), sorted(again.open)) == (3, [1, 2], [1])
    assert again.claimed[2].items[2] == row(3)


def test_a_resumed_loop_goes_on_with_claimed_rows_and_then_claims_on() -> None:
    case = claims(at_once=1).then(claimed("start@0", row(1), row(2), row(3)))
    case.task("start@0[0]", "no").then(part("start@0", 0), failed("start@0"), resumed())
    case.then(claiming("start@1"))
    assert case.lines()[-2:] == ["loop.started start@1", "loop.iteration.started start@1[0]"]
    for index in range(3):
        case.task(f"start@1[{index}]").then(part("start@1", index))
    assert case.when(claimed("start@1", row(4))) == [
        "loop.claimed start@1: 3-4",
        "loop.iteration.started start@1[3]",
    ]


def test_a_claim_of_a_loop_that_was_given_up_is_refused() -> None:
    case = claims().then(claimed("start@0", row(1)))
    run = case.state.runs["start@0"]
    case.then(timed_out("start@0"))
    before = len(case.facts)
    with pytest.raises(Refused):
        case.when(lambda case: Claim(run, 1, [row(2)], ["2"]))
    assert len(case.facts) == before
