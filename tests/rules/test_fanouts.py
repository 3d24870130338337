"""Fan-out: what is handed out, what comes again, what the fan-in comes to: the fan-out specification, rule by rule."""

from __future__ import annotations

import pytest

from penstock.kernel.errors import Refused
from penstock.kernel.net import Emit
from tests.cases import cases
from tests.rules.notation import resumed
from tests.rules.ranges import claimed_in_ranges, handed_out

# ---- ranges


@pytest.mark.clause("F2.1", "F6.1")
def test_elements_are_handed_out_in_ranges_until_there_are_none() -> None:
    fan = handed_out(5)
    assert fan.cut(3) == "loop.shard.enqueued: range 0, elements 0-3, attempt 0"
    assert fan.cut(3) == "loop.shard.enqueued: range 1, elements 3-5, attempt 0"
    assert fan.cut(3) is None


@pytest.mark.clause("F2.1", "F4.1")
def test_a_fan_out_is_over_when_nothing_is_out_and_nothing_is_left() -> None:
    fan = handed_out(4)
    fan.cut(2)
    fan.cut(2)
    assert fan.done(1) == ["loop.shard.done: range 1, elements 2-4, 2 done"]
    assert not fan.state.is_over
    fan.done(0)
    assert fan.state.is_over


@pytest.mark.clause("F4.2", "F2.1")
def test_without_elements_the_fan_in_is_complete_at_once() -> None:
    fan = handed_out(0)
    assert fan.cut(3) is None
    assert fan.ends()[:2] == ["loop.fanin.completed: complete, 0 of 0", "loop.done start@0"]


@pytest.mark.clause("F3.1", "F4.1")
def test_an_element_is_counted_in_the_one_report_that_was_accepted() -> None:
    fan = handed_out(4)
    fan.cut(4)
    fan.done(0, up_to=2)
    fan.done(0)
    assert fan.done(0, lo=2, up_to=4) == []
    with pytest.raises(Refused, match="range 0 is not out any more"):
        fan.back(0, "lost")
    assert (fan.state.ok, fan.state.failed) == (4, 0)


# ---- what comes again


@pytest.mark.clause("F3.1", "F2.2")
def test_a_failed_element_comes_again_under_its_name_so_often_as_the_policy_says() -> None:
    fan = handed_out(2, retries=1)
    fan.cut(2)
    assert fan.done(0, failed=[1]) == [
        "loop.shard.failed: start@0[1], no, again",
        "loop.shard.done: range 0, elements 0-2, 1 done, 1 failed",
    ]
    assert fan.cut(5) == "loop.shard.enqueued: range 1, elements 1-2, attempt 1"
    assert fan.done(1, failed=[1]) == ["loop.shard.failed: start@0[1], no"]
    assert fan.ends()[0] == "loop.fanin.completed: failed, 1 of 2"


@pytest.mark.clause("F3.1")
def test_what_a_lost_worker_had_left_comes_again_before_anything_new() -> None:
    fan = handed_out(6)
    fan.cut(4)
    fan.done(0, up_to=1)
    assert fan.back(0, "lost") == ["loop.shard.returned: range 0, elements 1-4, lost"]
    assert fan.cut(100) == "loop.shard.enqueued: range 1, elements 1-4, attempt 1"
    assert fan.cut(100) == "loop.shard.enqueued: range 2, elements 4-6, attempt 0"


@pytest.mark.clause("F3.1")
def test_what_brought_down_a_worker_comes_back_in_ever_smaller_ranges_until_the_element_stands_alone() -> None:
    fan = handed_out(10_000, losses=3)
    sizes = []
    for number in range(4):
        fan.cut(4_096)
        held = fan.state.out[number]
        sizes.append((held.attempt, held.hi - held.lo))
        if number < 3:
            fan.back(number, "lost")
    assert sizes == [(0, 4_096), (1, 256), (2, 16), (3, 1)]


@pytest.mark.clause("F3.1")
def test_a_range_that_a_worker_gave_back_has_lost_no_attempt() -> None:
    fan = handed_out(4)
    fan.cut(4)
    assert fan.back(0, "returned") == ["loop.shard.returned: range 0, elements 0-4, returned"]
    assert fan.cut(4) == "loop.shard.enqueued: range 1, elements 0-4, attempt 0"


@pytest.mark.clause("F3.1")
def test_elements_that_were_lost_once_too_often_fail_by_name() -> None:
    fan = handed_out(2, losses=1, fail_fast=False)
    fan.cut(1)
    fan.back(0, "lost")
    fan.cut(1)
    assert fan.back(1, "lost") == ["loop.shard.failed: start@0[0], the worker that had it was lost 2 times"]
    assert fan.cut(1) == "loop.shard.enqueued: range 2, elements 1-2, attempt 0"


@pytest.mark.clause("F3.1", "F7.3")
def test_elements_that_nobody_took_in_time_fail_and_with_fail_fast_only_the_first_of_them() -> None:
    fan = handed_out(2, fail_fast=False, queue_ttl_s=2.0)
    fan.cut(2)
    late = "no worker took it within `fanout.queue_ttl_s` of 2 s"
    assert fan.back(0, "stale") == [f"loop.shard.failed: start@0[{index}], {late}" for index in (0, 1)]
    fan = handed_out(2, queue_ttl_s=2.0)
    fan.cut(2)
    assert fan.back(0, "stale") == [
        f"loop.shard.failed: start@0[0], {late}",
        "loop.shard.returned: range 0, elements 1-2, stopped",
    ]


@pytest.mark.clause("F2.1")
def test_the_next_page_is_handed_out_when_the_one_before_it_has_been_opened() -> None:
    fan = handed_out(None)
    assert fan.cut(10) == "loop.shard.enqueued: range 0, elements 0-None, attempt 0"
    assert fan.cut(10) is None
    assert fan.opened(0, 3) == ["loop.shard.started: range 0, up to 3"]
    assert fan.opened(0, 3) == []
    assert fan.cut(10) == "loop.shard.enqueued: range 1, elements 3-None, attempt 0"
    assert fan.opened(1, 4, is_end=True) == ["loop.shard.started: range 1, up to 4, the end"]
    fan.done(0)
    fan.done(1)
    assert fan.ends()[0] == "loop.fanin.completed: complete, 4 of 4"


@pytest.mark.clause("F6.1")
def test_with_an_event_for_each_element_a_report_is_told_element_by_element() -> None:
    fan = handed_out(2, emit=Emit.PER_ITEM, fail_fast=False)
    fan.cut(2)
    assert fan.done(0, failed=[1]) == [
        "loop.shard.done: range 0, elements 0-1, 1 done",
        "loop.shard.failed: start@0[1], no",
    ]
    assert (fan.state.ok, fan.state.failed) == (1, 1)


@pytest.mark.clause("F3.1")
def test_what_is_out_when_a_loop_is_called_off_waits_for_a_resume() -> None:
    fan = handed_out(3)
    fan.cut(1)
    fan.cut(1)
    assert fan.called_off() == [
        "loop.shard.returned: range 0, elements 0-1, stopped",
        "loop.shard.returned: range 1, elements 1-2, stopped",
    ]
    assert [(piece.lo, piece.hi, piece.attempt) for piece in fan.state.pieces] == [(0, 1, 0), (1, 2, 0)]


# ---- how it ends


@pytest.mark.clause("F4.2", "F7.3")
@pytest.mark.parametrize(
    ("policy", "ends", "arcs"),
    [
        ({"fail_fast": False, "allow_partial": True}, "loop.fanin.completed: partial, 3 of 4", "loop.done start@0"),
        ({"fail_fast": False}, "loop.fanin.completed: failed, 3 of 4", "step.failed start@0"),
    ],
)
def test_with_failed_elements_a_fan_in_is_partial_where_that_is_allowed_and_has_failed_elsewhere(
    policy: dict[str, bool], ends: str, arcs: str
) -> None:
    fan = handed_out(4, **policy)
    fan.cut(4)
    fan.done(0, failed=[2])
    assert fan.ends()[:2] == [ends, arcs]


@pytest.mark.clause("F7.3", "F4.2")
def test_fail_fast_hands_out_nothing_after_a_failure_and_lets_what_is_out_come_in() -> None:
    fan = handed_out(9)
    fan.cut(2)
    fan.cut(2)
    fan.done(0, failed=[0])
    assert fan.cut(2) is None
    assert not fan.state.is_over
    fan.done(1)
    assert fan.ends()[:2] == ["loop.fanin.completed: failed, 3 of 9", "step.failed start@0"]
    completed = fan.case.said("loop.fanin.completed start@0")
    assert (completed.failed, completed.skipped, completed.retried) == (1, 5, 0)


@pytest.mark.clause("F4.2", "F7.3")
def test_a_fan_in_of_which_elements_never_ran_is_not_partial_but_has_failed() -> None:
    fan = handed_out(4, allow_partial=True)
    fan.cut(1)
    fan.done(0, failed=[0])
    assert fan.ends()[0] == "loop.fanin.completed: failed, 0 of 4"


@pytest.mark.clause("F7.3", "F3.1")
def test_after_a_failure_of_a_fail_fast_loop_no_other_element_comes_again() -> None:
    fan = handed_out(4, retries=1)
    for _ in range(4):
        fan.cut(1)
    assert fan.done(0, failed=[0]) == ["loop.shard.failed: start@0[0], no, again"]
    fan.cut(1)
    assert fan.done(4, failed=[0]) == ["loop.shard.failed: start@0[0], no"]
    assert fan.done(1, failed=[1]) == ["loop.shard.failed: start@0[1], no"]


@pytest.mark.clause("F4.2", "F6.1")
def test_arcs_are_asked_after_the_fan_in_and_its_end_is_loop_done() -> None:
    fan = handed_out(1)
    fan.cut(1)
    fan.done(0)
    assert fan.ends() == [
        "loop.fanin.completed: complete, 1 of 1",
        "loop.done start@0",
        "next.selected start@0 -> next",
        "next.enqueued start@0 -> next",
        "token.created next@1",
        "step.scheduled next@1",
        "step.started next@1",
    ]
    assert fan.case.said("loop.done start@0").fanned_out


@pytest.mark.clause("F4.2", "F3.1")
def test_the_failure_of_a_fan_out_is_that_of_its_lowest_failed_element() -> None:
    fan = handed_out(4, fail_fast=False)
    for _ in range(4):
        fan.cut(1)
    fan.done(3, failed=[3])
    fan.done(1, failed=[1])
    fan.done(0)
    fan.done(2)
    fan.ends()
    error = fan.case.said("step.failed start@0").error
    assert (error["message"], error["iteration"], error["failed"]) == ("iteration 1 of step `start` failed: no", 1, 2)


# ---- what elements share


@pytest.mark.clause("F5.1")
@cases(
    "operation, values, whole",
    [
        ("sum", [1, 2.5], 3.5),
        ("count", [True, None], 1),
        ("min", [3, 1], 1),
        ("max", [3, 1], 3),
        ("append", [[1], 2], [1, 2]),
        ("merge", [{"a": 1, "b": 1}, {"a": 2}], {"a": 2, "b": 1}),
    ],
)
@cases("order", [(0, 1), (1, 0)])
def test_each_reducer_does_what_it_is_called_in_whatever_order_the_ranges_come_in(
    operation: str, values: list[object], whole: object, order: tuple[int, int]
) -> None:
    fan = handed_out(2, reducers={"k": operation})
    fan.cut(1)
    fan.cut(1)
    for number in order:
        fan.done(number, k=values[number])
    fan.ends()
    assert fan.case.said("loop.fanin.completed start@0").shared == {"k": whole}
    assert fan.case.ctx == {"k": whole}


@pytest.mark.clause("F5.1", "F3.1")
def test_what_a_range_gave_before_its_worker_was_lost_counts_once() -> None:
    fan = handed_out(4, reducers={"n": "sum"})
    fan.cut(4)
    fan.done(0, up_to=3, n=30)
    fan.back(0, "lost")
    fan.cut(4)
    fan.done(1, n=10)
    fan.ends()
    assert fan.case.ctx == {"n": 40}


@pytest.mark.clause("F5.1")
def test_of_two_elements_that_write_a_key_differently_the_later_index_fails_at_the_fan_in() -> None:
    for order in ((0, 1), (1, 0)):
        fan = handed_out(2, fail_fast=False, allow_partial=True)
        fan.cut(1)
        fan.cut(1)
        for number in order:
            fan.wrote(number, k=number)
        assert fan.ends()[:3] == [
            "loop.shard.done: range 0, elements 0-1, 1 done",
            "loop.shard.failed: start@0[1], iterations 0 and 1 of a parallel loop write different values to `ctx.k`",
            "loop.fanin.completed: partial, 1 of 2",
        ]
        assert fan.case.ctx == {"k": 0}


@pytest.mark.clause("F5.1", "F3.1")
def test_an_element_that_comes_again_and_fails_at_the_fan_in_adds_nothing_to_a_reducer() -> None:
    """It first failed in a range of which another element is done (D63)."""
    fan = handed_out(2, fail_fast=False, allow_partial=True, retries=1, reducers={"n": "sum"})
    fan.cut(2)
    fan.wrote(0, failed=[1], shared={"n": 1}, k=0)
    fan.cut(2)
    fan.wrote(1, shared={"n": 10}, k=1)
    assert fan.ends()[:3] == [
        "loop.shard.done: range 0, elements 0-2, 1 done, 1 failed",
        "loop.shard.failed: start@0[1], iterations 0 and 1 of a parallel loop write different values to `ctx.k`",
        "loop.fanin.completed: partial, 1 of 2",
    ]
    assert fan.case.ctx == {"k": 0, "n": 1}


@pytest.mark.clause("F5.1", "F4.1")
def test_a_reducer_that_nobody_gave_anything_has_the_value_of_nothing() -> None:
    fan = handed_out(0, reducers={"n": "sum", "all": "append"})
    fan.ends()
    assert fan.case.ctx == {"n": 0, "all": []}


# ---- going on


@pytest.mark.clause("F3.1", "F2.2")
def test_a_resumed_fan_out_hands_out_what_failed_and_what_was_left_and_nothing_that_was_done() -> None:
    fan = handed_out(6, reducers={"n": "sum"})
    fan.cut(2)
    fan.done(0, failed=[1], n=1)
    fan.ends()
    fan.case.then(resumed())
    fan.goes_on()
    assert fan.cut(9) == "loop.shard.enqueued: range 1, elements 1-2, attempt 0"
    assert fan.cut(9) == "loop.shard.enqueued: range 2, elements 2-6, attempt 0"
    fan.done(1, n=10)
    fan.done(2, n=100)
    assert fan.ends()[0] == "loop.fanin.completed: complete, 6 of 6"
    assert fan.case.ctx["n"] == 111


# ---- rows that are claimed


def test_a_claim_that_finds_nothing_while_nothing_is_under_way_is_the_end() -> None:
    fan = claimed_in_ranges()
    fan.cut(10)
    assert fan.opened(0, 0) == ["loop.shard.started: range 0, up to 0"]
    fan.done(0)
    assert fan.cut(10) is None
    assert fan.ends()[0] == "loop.fanin.completed: complete, 0 of 0"


def test_a_claim_that_finds_nothing_is_made_again_when_an_element_has_ended() -> None:
    fan = claimed_in_ranges()
    fan.cut(10)
    fan.opened(0, 3)
    fan.cut(10)
    fan.opened(1, 3)
    fan.done(1)
    assert fan.cut(10) is None
    assert not fan.state.is_over
    fan.done(0, up_to=1)
    assert fan.cut(10) == "loop.shard.enqueued: range 2, elements 3-None, attempt 0"
    fan.opened(2, 5)
    fan.done(0)
    fan.done(2)
    fan.cut(10)
    fan.opened(3, 5)
    fan.done(3)
    assert fan.state.is_over
    assert fan.ends()[0] == "loop.fanin.completed: complete, 5 of 5"


def test_a_claim_whose_worker_was_lost_before_it_was_recorded_is_made_again() -> None:
    fan = claimed_in_ranges()
    fan.cut(10)
    assert fan.back(0, "lost") == ["loop.shard.returned: range 0, elements 0-None, lost"]
    assert fan.cut(10) == "loop.shard.enqueued: range 1, elements 0-None, attempt 0"


def test_claimed_rows_whose_worker_was_lost_are_handed_out_again_and_not_claimed_again() -> None:
    fan = claimed_in_ranges()
    fan.cut(10)
    fan.opened(0, 3)
    fan.cut(10)
    fan.opened(1, 3)
    fan.done(1)
    fan.back(0, "lost")
    assert not fan.state.is_over
    assert fan.cut(100) == "loop.shard.enqueued: range 2, elements 0-3, attempt 1"


def test_a_claim_that_found_nothing_and_was_lost_after_that_ends_the_loop_none_the_less() -> None:
    fan = claimed_in_ranges()
    fan.cut(10)
    fan.opened(0, 0)
    fan.back(0, "lost")
    assert fan.cut(10) == "loop.shard.enqueued: range 1, elements 0-0, attempt 1"
    fan.opened(1)
    fan.done(1)
    assert fan.state.is_over
    assert fan.ends()[0] == "loop.fanin.completed: complete, 0 of 0"


def test_a_resumed_loop_over_claimed_rows_tries_those_that_failed_and_claims_on() -> None:
    fan = claimed_in_ranges(fail_fast=False)
    fan.cut(10)
    fan.opened(0, 2)
    fan.done(0, failed=[1])
    fan.cut(10)
    fan.opened(1, 2)
    fan.done(1)
    assert fan.ends()[0] == "loop.fanin.completed: failed, 1 of 2"
    fan.case.then(resumed())
    fan.goes_on()
    assert fan.cut(10) == "loop.shard.enqueued: range 2, elements 1-2, attempt 0"
    assert fan.cut(10) == "loop.shard.enqueued: range 3, elements 2-None, attempt 0"
