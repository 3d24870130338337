"""Tokens, admission, arcs, joins and what a playbook comes to: sections 2, 4 and 8 of the step specification."""

from __future__ import annotations

import pytest

from penstock.kernel.errors import Refused
from tests.cases import cases
from tests.rules.notation import (
    Stimulus,
    appended,
    begun,
    cancelled,
    elements,
    failed,
    folded,
    given,
    interrupted,
    looked,
    loop,
    ok,
    resumed,
    steps,
    timed_out,
)

# ---- tokens


@pytest.mark.clause("P1.2", "P8.2")
def test_a_token_says_where_it_comes_from_and_what_it_brings() -> None:
    case = given(steps("start -> next", args={"next": {"n": 1}})).then(begun())
    entry = case.said("token.created start@0")
    assert (entry.step, entry.args, entry.origin, entry.arc) == ("start", {}, None, None)
    case.then(ok("start@0"))
    token = case.said("token.created next@1")
    assert (token.step, token.args, token.parent_step_run_id, token.arc) == ("next", {"n": 1}, "start@0", 0)
    assert case.said("step.scheduled next@1").args == {"n": 1}


@pytest.mark.clause("P1.2")
def test_each_token_makes_a_run_of_its_own_and_visits_are_counted() -> None:
    case = given(steps("start -> a, a", inclusive={"start"})).then(begun(), ok("start@0"))
    assert [case.said(f"step.scheduled {scope}").visit for scope in ("a@0.0.0", "a@1")] == [1, 2]


@pytest.mark.clause("P1.2", "P9.3")
def test_the_timeline_is_the_same_whichever_branch_is_faster() -> None:
    net = steps("start -> a, b", "a -> c", inclusive={"start"})
    one = given(net).then(begun(), ok("start@0"), ok("a@0.0.0", k=1), ok("c@0.0.1"), ok("b@1", k=2))
    other = given(net).then(begun(), ok("start@0"), ok("b@1", k=2), ok("a@0.0.0", k=1), ok("c@0.0.1"))
    assert one.lines() != other.lines()
    assert one.timeline() == other.timeline()
    assert one.ctx == other.ctx


@pytest.mark.clause("P9.3")
def test_a_fold_of_the_log_has_nothing_left_to_decide_and_goes_on_as_the_first_would_have() -> None:
    case = given(steps("start -> a, b", "a -> c", inclusive={"start"})).then(begun(), ok("start@0"))
    again = folded(case)
    assert again.when(looked()) == []
    assert again.when(ok("a@0.0.0")) == case.when(ok("a@0.0.0"))


@pytest.mark.clause("P9.3")
def test_a_crash_between_the_end_of_a_run_and_its_arcs_leaves_the_arcs_to_be_decided() -> None:
    case = given(steps("start -> next")).then(begun(), ok("start@0"))
    at = case.lines().index("step.done start@0") + 1
    assert folded(case, at).when(looked()) == case.lines()[at:]


def test_a_run_that_has_ended_does_not_end_again_and_nothing_happens() -> None:
    case = given(steps("start -> next")).then(begun())
    first = case.state.runs["start@0"]
    case.then(ok("start@0"))
    before = case.lines()
    case.state.runs["start@0"] = first
    with pytest.raises(Refused, match="`start@0` is not running"):
        case.when(failed("start@0"))
    assert case.lines() == before


# ---- admission


@pytest.mark.clause("P4.1")
@cases(
    "rules, true, said, rule",
    [
        (["not x", "y", "else"], "xy", "token.refused", 0),
        (["not x", "y", "else"], "y", "step.scheduled", 1),
        (["not x", "y", "else"], "", "step.scheduled", 2),
        (["x", "not else"], "", "token.refused", 1),
        (["x"], "", "token.refused", None),
        ([], "x", "token.refused", None),
    ],
)
def test_the_first_rule_that_matches_decides_and_without_a_match_a_token_is_refused(
    rules: list[str], true: str, said: str, rule: int | None
) -> None:
    case = given(steps("start", admit={"start": rules}), *true)
    assert case.when(begun())[1].startswith(f"{said} start@0")
    assert case.said(f"{said} start@0").rule == rule


@pytest.mark.clause("P4.1")
def test_a_step_without_rules_lets_every_token_in() -> None:
    assert given(steps("start")).when(begun())[1] == "step.scheduled start@0"


@pytest.mark.clause("P4.1", "P8.4")
def test_a_refused_token_is_consumed_and_the_others_go_on() -> None:
    case = given(steps("start -> a, b", inclusive={"start"}, admit={"a": ["x"]})).then(begun())
    assert case.when(ok("start@0"))[-3:] == ["token.refused a@0.0.0", "step.scheduled b@1", "step.started b@1"]
    assert case.when(ok("b@1"))[-1] == "playbook.completed"


@pytest.mark.clause("P4.1")
def test_a_step_is_visited_so_often_and_then_the_run_fails() -> None:
    case = given(steps("start -> a", "a -> start", max_visits=2)).then(begun())
    case.then(ok("start@0"), ok("a@1"), ok("start@2"))
    assert case.when(ok("a@3"))[-2:] == [
        "token.refused start@4",
        "playbook.failed: step `start` was visited 2 times, the most that `limits.max_step_visits` allows",
    ]


# ---- arcs


@pytest.mark.clause("P8.1")
@pytest.mark.parametrize(
    ("end", "selected"),
    [("step.done", "next, guarded"), ("step.failed", "help"), ("loop.done", "next, guarded")],
)
def test_each_boundary_event_asks_the_arcs_that_are_for_it(end: str, selected: str) -> None:
    net = steps(
        "start -> next, guarded if x, help if y on failure",
        inclusive={"start"},
        loops={"start": loop()} if end == "loop.done" else {},
    )
    case = given(net, *("xy" if end == "step.failed" else "x")).then(begun())
    if end == "loop.done":
        case.then(elements("start@0", []))
    told = case.when(failed("start@0") if end == "step.failed" else ok("start@0"))
    assert told[:2] == [f"{end} start@0", f"next.selected start@0 -> {selected}"]
    assert case.said("next.selected start@0").on == end


@pytest.mark.clause("P8.1", "P8.4")
def test_a_guard_over_data_alone_takes_no_failure() -> None:
    case = given(steps("start -> next if x"), "x").then(begun())
    assert case.when(failed("start@0"))[1] == "next.selected start@0 -> nothing, unhandled"


@pytest.mark.clause("P8.3")
def test_exclusive_asks_in_the_order_of_the_file_and_takes_an_arc_without_a_guard_last_or_first() -> None:
    assert given(steps("start -> a if x, b"), "x").then(begun()).when(ok("start@0"))[1].endswith("-> a")
    assert given(steps("start -> a if x, b")).then(begun()).when(ok("start@0"))[1].endswith("-> b")
    assert given(steps("start -> b, a if x"), "x").then(begun()).when(ok("start@0"))[1].endswith("-> b")


@pytest.mark.clause("P8.3", "P8.4")
@pytest.mark.parametrize("inclusive", [(), ("start",)])
def test_where_no_guard_holds_the_token_is_consumed(inclusive: tuple[str, ...]) -> None:
    case = given(steps("start -> a if x, b if y", inclusive=inclusive)).then(begun())
    assert case.when(ok("start@0")) == ["step.done start@0", "next.selected start@0 -> nothing", "playbook.completed"]


@pytest.mark.clause("P8.2", "P2.2")
def test_what_an_arc_writes_to_ctx_is_there_when_the_next_step_starts() -> None:
    case = given(steps("start -> next", sets={"next": {"k": 1}})).then(begun(), ok("start@0"))
    assert case.said("next.selected start@0").writes == {"ctx": {"k": 1}}
    assert case.sees("next@1")["ctx"] == {"k": 1}


# ---- ctx


@pytest.mark.clause("P2.2")
def test_what_a_step_wrote_is_everyones_with_its_end_and_can_be_rebuilt_from_the_log() -> None:
    case = given(steps("start -> next")).then(begun())
    case.task("start@0", k=1)
    assert (case.sees("start@0")["ctx"], case.ctx) == ({"k": 1}, {})
    case.then(ok("start@0", k=1))
    assert case.ctx == case.sees("next@1")["ctx"] == folded(case).ctx == {"k": 1}


@pytest.mark.clause("P2.2")
@pytest.mark.parametrize("order", [("a@0.0.0", "b@1"), ("b@1", "a@0.0.0")])
def test_of_two_branches_the_later_place_wins_whichever_ended_first(order: tuple[str, str]) -> None:
    case = given(steps("start -> a, b", inclusive={"start"})).then(begun(), ok("start@0"))
    for scope in order:
        case.then(ok(scope, k=scope[0], **{scope[0]: 1}))
    assert case.ctx == {"k": "b", "a": 1, "b": 1}


@pytest.mark.clause("P2.2")
@pytest.mark.parametrize("order", [("a@0.0.0", "b@1"), ("b@1", "a@0.0.0")])
def test_what_branches_append_stands_in_the_order_of_their_places(order: tuple[str, str]) -> None:
    case = given(steps("start -> a, b", inclusive={"start"})).then(begun(), ok("start@0"))
    for scope in order:
        case.then(appended(scope, all=[scope[0]]))
    assert case.ctx == {"all": ["a", "b"]}


@pytest.mark.clause("P2.2")
def test_a_branch_does_not_see_what_is_written_beside_it() -> None:
    case = given(steps("start -> a, b", inclusive={"start"})).then(begun(), ok("start@0"), ok("a@0.0.0", k=1))
    assert case.sees("b@1")["ctx"] == {}


# ---- joins

JOIN = {"joins": {"j": ("a", "b")}, "inclusive": {"start"}}


@pytest.mark.clause("P8.1", "P8.2")
def test_a_join_gets_what_each_token_brought_under_the_name_of_its_step() -> None:
    net = steps("start -> a, b", "a -> j", "b -> j", args={"j": {"q": 1}}, **JOIN)
    case = given(net).then(begun(), ok("start@0"), ok("b@1"), ok("a@0.0.0"))
    scheduled = case.said("step.scheduled j@2")
    assert (scheduled.args, scheduled.tokens) == ({"a": {"q": 1}, "b": {"q": 1}}, [[0, 0, 1], [2]])


@pytest.mark.clause("P8.1", "P4.1")
def test_a_join_that_is_refused_takes_all_of_its_tokens_with_it() -> None:
    net = steps("start -> a, b", "a -> j", "b -> j", admit={"j": ["x"]}, **JOIN)
    case = given(net).then(begun(), ok("start@0"), ok("a@0.0.0"))
    assert case.when(ok("b@1"))[-3:] == ["token.refused j@0.0.1", "token.refused j@2", "playbook.completed"]


@pytest.mark.clause("P8.1")
def test_of_several_tokens_from_one_step_a_join_takes_the_earliest_place_and_waits_for_the_other_side_again() -> None:
    net = steps("start -> a, a, b", "a -> j", "b -> j", **JOIN)
    case = given(net).then(begun(), ok("start@0"), ok("a@0.1.0"), ok("a@0.0.0"))
    assert case.when(ok("b@1"))[-1] == "step.started j@2"
    assert case.said("step.scheduled j@2").tokens == [[0, 0, 1], [2]]
    assert case.when(ok("j@2"))[-2] == "token.stranded j@0.1.1: nothing from b"


# ---- how a playbook ends


@pytest.mark.clause("P8.4")
def test_several_failures_are_told_by_the_first_place_with_the_number_of_the_others() -> None:
    case = given(steps("start -> a, b", inclusive={"start"})).then(begun(), ok("start@0"), failed("b@1", "late"))
    assert case.when(failed("a@0.0.0", "early"))[-1] == "playbook.failed: early"
    error = case.said("playbook.failed ").error
    assert (error["step"], error["others"]) == ("a", 1)


@pytest.mark.clause("P8.4")
def test_a_failure_that_an_arc_took_leaves_the_run_completed() -> None:
    case = given(steps("start -> help on failure")).then(begun(), failed("start@0"))
    assert case.when(ok("help@1"))[-1] == "playbook.completed"


@pytest.mark.clause("P8.4", "P4.3")
def test_what_fail_fast_stopped_is_not_asked_for_its_arcs_and_both_are_reopened() -> None:
    net = steps("start -> a, b", "b -> c on failure", inclusive={"start"}, fail_fast=True)
    case = given(net).then(begun(), ok("start@0"), failed("a@0.0.0"))
    assert case.when(timed_out("b@1")) == [
        "step.failed b@1",
        "next.selected b@1 -> nothing, unhandled",
        "playbook.failed: no",
    ]
    assert case.when(resumed())[0] == "playbook.resumed, reopening a@0.0.0, b@1"


# ---- stops


@pytest.mark.clause("P4.3", "P8.1")
def test_a_step_whose_time_is_up_has_failed_and_its_arcs_are_asked() -> None:
    case = given(steps("start -> next, help on failure")).then(begun())
    assert case.when(timed_out("start@0"))[:2] == ["step.failed start@0", "next.selected start@0 -> help"]
    assert case.said("step.failed start@0").given_up


@pytest.mark.clause("P4.3", "P5.2")
def test_a_task_that_was_under_way_when_the_time_was_up_gets_its_outcome() -> None:
    case = given(steps("start", tasks={"start": "fetch save"})).then(begun())
    case.starts_task("start@0")
    assert case.when(timed_out("start@0"))[:2] == ["task.done start@0/fetch#1: fail", "step.failed start@0"]


def test_a_playbook_on_which_nobody_works_is_cancelled_at_once_and_every_start_gets_its_end() -> None:
    case = given(steps("start -> a, b", inclusive={"start"})).then(begun(), ok("start@0"))
    case.starts_task("a@0.0.0")
    assert case.when(cancelled(at_work=False)) == [
        "playbook.cancelling",
        "task.done a@0.0.0/t#1: fail",
        "step.failed a@0.0.0",
        "next.selected a@0.0.0 -> nothing, unhandled",
        "step.failed b@1",
        "next.selected b@1 -> nothing, unhandled",
        "playbook.cancelled",
    ]


@pytest.mark.parametrize("end", [ok("start@0"), failed("start@0")])
def test_a_run_that_is_being_cancelled_asks_no_arc_whatever_its_steps_come_to(end: Stimulus) -> None:
    case = given(steps("start -> next, help on failure", inclusive={"start"})).then(begun(), cancelled())
    assert case.when(end)[1].startswith("next.selected start@0 -> nothing")


def test_a_cancelled_run_is_not_resumed_and_one_that_is_over_is_not_cancelled() -> None:
    case = given(steps("start")).then(begun(), cancelled(), failed("start@0"))
    with pytest.raises(Refused, match="the run is cancelled; there is nothing to resume"):
        case.when(resumed())
    with pytest.raises(Refused, match="the run is cancelled, not running"):
        case.when(cancelled())


def test_an_interrupted_run_that_is_cancelled_is_taken_up_in_order_to_be_ended() -> None:
    case = given(steps("start -> next")).then(begun(), interrupted())
    assert case.when(cancelled(at_work=False)) == [
        "playbook.resumed, reopening nothing",
        "playbook.cancelling",
        "step.failed start@0",
        "next.selected start@0 -> nothing, unhandled",
        "playbook.cancelled",
    ]


@pytest.mark.clause("P8.4")
def test_a_run_that_failed_for_a_reason_that_would_come_again_is_not_resumed() -> None:
    net = steps("start -> a, b", "a -> j", "b -> j if x", **JOIN)
    case = given(net).then(begun(), ok("start@0"), ok("a@0.0.0"), ok("b@1"))
    with pytest.raises(Refused, match="the run failed for a reason that would come again: step `j` joins tokens"):
        case.when(resumed())
