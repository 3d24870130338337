"""The step specification, rule by rule: what follows from each end, as whole lists of facts."""

from __future__ import annotations

import pytest

from penstock.kernel.errors import Refused
from tests.rules.notation import begun, cancelled, elements, failed, given, interrupted, loop, ok, part, resumed, steps


@pytest.mark.clause("P1.2")
def test_the_entry_is_a_token_that_becomes_a_run() -> None:
    assert given(steps("start")).when(begun()) == [
        "token.created start@0",
        "step.scheduled start@0",
        "step.started start@0",
    ]


@pytest.mark.clause("P8.1", "P1.2")
def test_the_end_of_a_step_selects_an_arc_which_sends_a_token() -> None:
    case = given(steps("start -> next")).then(begun())
    assert case.when(ok("start@0")) == [
        "step.done start@0",
        "next.selected start@0 -> next",
        "next.enqueued start@0 -> next",
        "token.created next@1",
        "step.scheduled next@1",
        "step.started next@1",
    ]


@pytest.mark.clause("P8.4")
def test_a_finished_step_without_an_arc_ends_its_token_and_the_run() -> None:
    case = given(steps("start")).then(begun())
    assert case.when(ok("start@0")) == ["step.done start@0", "next.selected start@0 -> nothing", "playbook.completed"]


@pytest.mark.clause("P8.3")
def test_exclusive_takes_the_first_arc_that_matches_and_inclusive_every_one() -> None:
    ways = "start -> a if x, b if y, c if z"
    assert given(steps(ways), "y", "z").then(begun()).when(ok("start@0"))[1] == "next.selected start@0 -> b"
    case = given(steps(ways, inclusive={"start"}), "y", "z").then(begun())
    assert case.when(ok("start@0")) == [
        "step.done start@0",
        "next.selected start@0 -> b, c",
        "next.enqueued start@0 -> b",
        "next.enqueued start@0 -> c",
        "token.created b@0.0.0",
        "token.created c@1",
        "step.scheduled b@0.0.0",
        "step.started b@0.0.0",
        "step.scheduled c@1",
        "step.started c@1",
    ]


@pytest.mark.clause("P8.1", "P8.4")
def test_only_an_arc_that_reads_the_event_takes_a_failure() -> None:
    case = given(steps("start -> next, help on failure")).then(begun())
    assert case.when(failed("start@0"))[:2] == ["step.failed start@0", "next.selected start@0 -> help"]
    case = given(steps("start -> next")).then(begun())
    assert case.when(failed("start@0")) == [
        "step.failed start@0",
        "next.selected start@0 -> nothing, unhandled",
        "playbook.failed: no",
    ]


@pytest.mark.clause("P8.4")
def test_an_arc_that_cannot_be_judged_fails_the_run() -> None:
    case = given(steps("start -> next if x"), "!x").then(begun())
    assert case.when(ok("start@0"))[-1] == "playbook.failed: x"


@pytest.mark.clause("P4.1")
def test_a_token_that_no_rule_lets_in_is_refused_before_anything_is_scheduled() -> None:
    net = steps("start -> next", admit={"next": ["x"]})
    assert given(net).then(begun()).when(ok("start@0"))[-2:] == ["token.refused next@1", "playbook.completed"]
    assert given(net, "x").then(begun()).when(ok("start@0"))[-1] == "step.started next@1"


JOIN = {"joins": {"j": ("a", "b")}, "inclusive": {"start"}}


@pytest.mark.clause("P8.1")
def test_a_join_runs_when_a_token_has_come_from_each_step_that_it_names() -> None:
    case = given(steps("start -> a, b", "a -> j", "b -> j", **JOIN)).then(begun(), ok("start@0"))
    assert case.when(ok("a@0.0.0")) == [
        "step.done a@0.0.0",
        "next.selected a@0.0.0 -> j",
        "next.enqueued a@0.0.0 -> j",
        "token.created j@0.0.1",
    ]
    assert case.when(ok("b@1"))[-3:] == ["token.created j@2", "step.scheduled j@2", "step.started j@2"]


@pytest.mark.clause("P8.1", "P8.4")
def test_a_token_that_waits_for_what_never_comes_is_stranded_and_fails_the_run() -> None:
    case = given(steps("start -> a, b", "a -> j", "b -> j if x", **JOIN)).then(begun(), ok("start@0"), ok("a@0.0.0"))
    assert case.when(ok("b@1"))[-2:] == [
        "token.stranded j@0.0.1: nothing from b",
        "playbook.failed: step `j` joins tokens and none came from `b` (it has those from `a`)",
    ]


@pytest.mark.clause("P8.4")
def test_best_effort_lets_the_other_branches_come_to_their_ends_and_fail_fast_does_not() -> None:
    ways = ("start -> a, b", "b -> c")
    case = given(steps(*ways, inclusive={"start"})).then(begun(), ok("start@0"), failed("a@0.0.0"))
    assert case.when(ok("b@1"))[-1] == "step.started c@2"
    case = given(steps(*ways, inclusive={"start"}, fail_fast=True)).then(begun(), ok("start@0"), failed("a@0.0.0"))
    assert case.when(ok("b@1")) == [
        "step.done b@1",
        "next.selected b@1 -> c",
        "next.enqueued b@1 -> c",
        "token.created c@2",
        "playbook.failed: no",
    ]


@pytest.mark.clause("P8.4")
def test_a_resume_gives_what_failed_another_run_and_repeats_nothing_else() -> None:
    case = given(steps("start -> next")).then(begun(), ok("start@0"), failed("next@1"))
    assert case.when(resumed()) == [
        "playbook.resumed, reopening next@1",
        "token.created next@2",
        "step.scheduled next@2",
        "step.started next@2",
    ]
    assert case.when(ok("next@2"))[-1] == "playbook.completed"


def test_a_run_that_was_only_stopped_goes_on_as_if_it_had_not_been() -> None:
    case = given(steps("start -> next")).then(begun(), interrupted())
    assert case.status == "interrupted"
    assert case.when(resumed()) == ["playbook.resumed, reopening nothing"]
    assert case.when(ok("start@0"))[-1] == "step.started next@1"


def test_a_run_that_is_over_is_not_resumed() -> None:
    case = given(steps("start")).then(begun(), ok("start@0"))
    with pytest.raises(Refused, match="nothing to resume"):
        case.when(resumed())


def test_a_cancelled_run_asks_no_arc_and_ends_when_the_last_step_has() -> None:
    case = given(steps("start -> next")).then(begun())
    assert case.when(cancelled()) == ["playbook.cancelling"]
    assert case.when(failed("start@0")) == [
        "step.failed start@0",
        "next.selected start@0 -> nothing, unhandled",
        "playbook.cancelled",
    ]


# ---- loops


@pytest.mark.clause("P7.1", "P7.2")
def test_a_loop_opens_so_many_iterations_at_a_time() -> None:
    case = given(steps("start", loops={"start": loop("parallel", 2)})).then(begun())
    assert case.when(elements("start@0", [1, 2, 3])) == [
        "loop.started start@0",
        "loop.iteration.started start@0[0]",
        "loop.iteration.started start@0[1]",
    ]
    assert case.task("start@0[1]").when(part("start@0", 1)) == [
        "loop.iteration.done start@0[1]",
        "loop.iteration.started start@0[2]",
    ]


@pytest.mark.clause("P7.1")
def test_an_iteration_of_a_sequential_loop_sees_what_the_one_before_it_wrote() -> None:
    case = given(steps("start", loops={"start": loop()})).then(begun(), elements("start@0", [1, 2]))
    case.task("start@0[0]", x=1).when(part("start@0", 0))
    assert case.state.pipelines["start@0[1]"].ctx == {"x": 1}


@pytest.mark.clause("P6.5")
def test_of_two_conflicting_writers_of_a_parallel_loop_the_later_index_fails_whichever_ran_faster() -> None:
    case = given(steps("start", loops={"start": loop("parallel", 2)})).then(begun(), elements("start@0", [1, 2]))
    assert case.task("start@0[1]", x=2).when(part("start@0", 1)) == []
    message = "iterations 0 and 1 of a parallel loop write different values to `ctx.x`"
    assert case.task("start@0[0]", x=1).when(part("start@0", 0)) == [
        "loop.iteration.done start@0[0]",
        f"loop.iteration.failed start@0[1]: {message}",
    ]


@pytest.mark.clause("P4.3", "P7.1")
def test_after_a_failure_a_fail_fast_loop_opens_nothing_more() -> None:
    case = given(steps("start", loops={"start": loop("parallel", 1)})).then(begun(), elements("start@0", [1, 2, 3]))
    assert case.task("start@0[0]", fails="no").when(part("start@0", 0)) == ["loop.iteration.failed start@0[0]: no"]
