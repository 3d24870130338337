"""Iterators and joblets: scopes that a component opens: sections 11 and 12 of the rulebook."""

from __future__ import annotations

import pytest

from tests.rules.notation import (
    begun,
    deleted,
    document,
    elements,
    expanded,
    failed,
    gave,
    given,
    job,
    ok,
    united,
)

CONTINUES = {"it": {"halts": False}}


@pytest.mark.clause("J12.1", "J3.3")
def test_iterators_nest_and_an_inner_one_is_a_member_of_the_outer_iteration() -> None:
    case = given(job("it (iterate) in", "in (iterate) x")).then(begun(), elements("it", [1]))
    assert case.when(elements("it[#0].in", ["p", "q"])) == [
        "iterator.started it[#0].in",
        "iteration.started it[#0].in[#0]",
        "component.started it[#0].in[#0].x",
    ]
    case.then(ok("it[#0].in[#0].x"))
    assert case.when(ok("it[#0].in[#1].x", g=1)) == [
        "component.ok it[#0].in[#1].x",
        "global.set g: None -> 1 by it[#0].in[#1].x",
        "checkpoint.saved it[#0].in[#1]",
        "iteration.ok it[#0].in[#1]",
        "iterator.completed it[#0].in: 2 ok, 0 failed",
        "component.ok it[#0].in",
        "global.set g: None -> 1 by it[#0].in",
        "checkpoint.saved it[#0]",
        "iteration.ok it[#0]",
        "iterator.completed it: 1 ok, 0 failed",
        "component.ok it",
        "global.set g: None -> 1 by it",
        "subjob.ok <it>",
        "checkpoint.saved <it>",
        "job.completed",
    ]


@pytest.mark.clause("J12.1")
def test_the_elements_are_in_the_log_so_that_a_resume_goes_over_the_same() -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", ["p", {"n": 2}]))
    assert case.said("iterator.started it").items == ["p", {"n": 2}]
    case.then(ok("it[#0].x"))
    assert [case.said(f"iteration.started it[#{index}]").item for index in (0, 1)] == ["p", {"n": 2}]


@pytest.mark.clause("J12.1", "J6.2")
def test_links_inside_a_body_settle_in_each_iteration_by_themselves() -> None:
    case = given(job("it (iterate) x", "x (ok) y", "x (error) h")).then(begun(), elements("it", [1, 2]))
    assert case.when(failed("it[#0].x")) == [
        "component.error it[#0].x: no",
        "edge.fired it[#0].x (error) it[#0].h",
        "component.skipped it[#0].y: `x` ended in ERROR, so its `ok` link did not fire",
        "component.started it[#0].h",
    ]
    assert case.when(ok("it[#0].h"))[-1] == "component.started it[#1].x"
    assert case.when(ok("it[#1].x"))[-2:] == [
        "component.started it[#1].y",
        "component.skipped it[#1].h: `x` ended OK, so its `error` link did not fire",
    ]


@pytest.mark.clause("J12.2")
def test_iterator_complete_fires_once_whatever_the_iterations_came_to() -> None:
    net = job("it (iterate) x", "it (iterator_complete) done", "it (ok) well", iterations=CONTINUES)
    case = given(net).then(begun(), elements("it", [1, 2]), failed("it[#0].x"))
    assert case.when(ok("it[#1].x"))[3:] == [
        "iterator.completed it: 1 ok, 1 failed",
        "component.ok it",
        "edge.fired it (iterator_complete) done",
        "edge.fired it (ok) well",
        "component.started done",
        "component.started well",
    ]
    case = given(job("it (iterate) x", "it (iterator_complete) done", "it (ok) well")).then(begun())
    case.then(elements("it", [1, 2]))
    assert case.when(failed("it[#0].x"))[3:] == [
        "iterator.completed it: 0 ok, 1 failed",
        "component.error it: iteration 0 of `it` failed: no",
        "edge.fired it (iterator_complete) done",
        "component.started done",
        "component.skipped well: `it` ended in ERROR, so its `ok` link did not fire",
    ]


@pytest.mark.clause("J12.2")
def test_handlers_run_once_per_iteration_and_the_next_one_waits_for_them() -> None:
    case = given(job("it (iterate) x", "it (iteration_ok) good")).then(begun(), elements("it", [1, 2]))
    assert case.when(ok("it[#0].x")) == [
        "component.ok it[#0].x",
        "checkpoint.saved it[#0]",
        "iteration.ok it[#0]",
        "edge.fired it (iteration_ok) it[#0].good",
        "subjob.started it[#0].<good>",
        "component.started it[#0].good",
    ]
    assert case.when(ok("it[#0].good"))[-2:] == ["iteration.started it[#1]", "component.started it[#1].x"]


@pytest.mark.clause("J12.4", "J12.2")
def test_without_elements_nothing_of_the_body_runs_and_completion_is_told() -> None:
    net = job("it (iterate) x", "it (iteration_ok) good", "it (iterator_complete) done")
    assert given(net).then(begun()).when(elements("it", [])) == [
        "iterator.started it",
        "iterator.completed it: 0 ok, 0 failed",
        "component.ok it",
        "edge.fired it (iterator_complete) done",
        "component.started done",
    ]


@pytest.mark.clause("J12.5")
def test_continue_then_fail_runs_all_iterations_and_ends_in_error() -> None:
    net = job("it (iterate) x", iterations={"it": {"halts": False, "fails": True}})
    case = given(net).then(begun(), elements("it", [1, 2]), failed("it[#0].x"))
    assert case.when(ok("it[#1].x"))[3:5] == [
        "iterator.completed it: 1 ok, 1 failed",
        "component.error it: iteration 0 of `it` failed: no",
    ]


@pytest.mark.clause("J12.5")
def test_failed_iterations_of_a_job_that_went_on_are_counted_at_its_end() -> None:
    case = given(job("it (iterate) x", iterations=CONTINUES)).then(begun(), elements("it", [1, 2]), failed("it[#0].x"))
    assert case.when(ok("it[#1].x"))[-1] == "job.completed"
    assert case.said("job.completed ").failed_iterations == 1
    assert case.said("iterator.completed it").failures == [0]
    assert case.said("component.ok it").after["NB_ITERATION_ERROR"] == 1


@pytest.mark.clause("J12.5")
def test_what_runs_beside_a_failed_iteration_comes_to_its_end_and_no_other_opens() -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", [1, 2, 3, 4], 2))
    assert case.when(failed("it[#0].x"))[-1] == "iteration.error it[#0]"
    assert case.when(ok("it[#1].x"))[2:5] == [
        "iteration.ok it[#1]",
        "iterator.completed it: 1 ok, 1 failed",
        "component.error it: iteration 0 of `it` failed: no",
    ]


# ---- globals of iterations


@pytest.mark.clause("J12.3")
@pytest.mark.parametrize(("mode", "value"), [("accumulate", "[1, 3]"), ("reset", "[3]"), ("override", "[3]")])
def test_what_a_failed_iteration_wrote_counts_in_no_mode(mode: str, value: str) -> None:
    case = given(job("it (iterate) x", iterations=CONTINUES)).then(begun(), elements("it", "pqr", mode=mode))
    case.then(ok("it[#0].x", k=[1]), failed("it[#1].x", k=[2]))
    assert f"global.set k: None -> {value} by it" in case.when(ok("it[#2].x", k=[3]))


@pytest.mark.clause("J12.3")
def test_in_reset_only_what_the_last_iteration_wrote_survives() -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", "pq", mode="reset"), ok("it[#0].x", first=1))
    assert case.when(ok("it[#1].x", last=2))[-4] == "global.set last: None -> 2 by it"
    assert "global.set first: None -> 1 by it" not in case.lines()


@pytest.mark.clause("J12.3")
def test_one_by_one_an_iteration_sees_what_earlier_ones_wrote_unless_each_starts_afresh() -> None:
    for mode, seen in (("accumulate", 1), ("override", 1), ("reset", None)):
        case = given(job("it (iterate) x")).then(begun(), elements("it", "pq", mode=mode), ok("it[#0].x", k=1))
        assert case.when(ok("it[#1].x", k=2))[1] == f"global.set k: {seen} -> 2 by it[#1].x"


@pytest.mark.clause("J12.3", "J4.2")
def test_side_by_side_iterations_do_not_see_each_other_and_come_together_in_their_order() -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", "pqr", 3))
    for index in (2, 0):
        assert case.when(ok(f"it[#{index}].x", k=[index]))[1] == f"global.set k: None -> [{index}] by it[#{index}].x"
    assert "global.set k: None -> [0, 1, 2] by it" in case.when(ok("it[#1].x", k=[1]))


@pytest.mark.clause("J12.3")
def test_lists_are_appended_to_sets_united_and_anything_else_is_replaced() -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", "pq", 2), united("it[#0].x", s=[1, 2]))
    assert "global.set s: None -> [1, 2, 3] by it" in case.when(united("it[#1].x", s=[2, 3]))
    case = given(job("it (iterate) x")).then(begun(), elements("it", "pq", 2), ok("it[#0].x", n=1))
    assert "global.set n: None -> 2 by it" in case.when(ok("it[#1].x", n=2))


@pytest.mark.clause("J12.3")
def test_a_list_that_an_iteration_wrote_back_with_its_own_at_the_end_is_not_doubled() -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", "pq"), ok("it[#0].x", k=[1]))
    assert "global.set k: None -> [1, 2] by it" in case.when(ok("it[#1].x", k=[1, 2]))


@pytest.mark.clause("J12.3", "J5.3")
def test_what_the_last_iteration_to_write_it_has_deleted_is_gone() -> None:
    case = given(job("a (ok) it", "it (iterate) x")).then(begun(), ok("a", k=1), elements("it", "pq"))
    case.then(ok("it[#0].x", k=2))
    assert "global.set k: 1 -> deleted by it" in case.when(deleted("it[#1].x", "k"))


@pytest.mark.clause("J12.3", "J12.2")
def test_what_handles_a_failed_iteration_leaves_its_note_though_the_body_leaves_none() -> None:
    net = job("it (iterate) x", "it (iteration_error) bad", iterations=CONTINUES)
    case = given(net).then(begun(), elements("it", "p"), failed("it[#0].x", k=1))
    told = case.when(ok("it[#0].bad", note="p failed"))
    assert "global.set note: None -> p failed by it" in told
    assert "global.set k: None -> 1 by it" not in told


# ---- dying, conditions


@pytest.mark.clause("J2.2", "J12.5")
def test_a_death_in_an_iteration_ends_the_iterator_though_it_would_go_on_after_failures() -> None:
    net = job("it (iterate) x", "it (ok) after", iterations=CONTINUES)
    case = given(net).then(begun(), elements("it", "pqr"))
    assert case.when(failed("it[#0].x", dies=True, exit_code=9))[2:] == [
        "iteration.error it[#0]",
        "iterator.completed it: 0 ok, 1 failed",
        "component.error it: iteration 0 of `it` failed: no",
        "component.skipped after: the job is ending: `it[#0].x` ended in ERROR and the job dies with it",
        "subjob.error <it>",
        "checkpoint.saved <it>",
        "job.failed: iteration 0 of `it` failed: no",
    ]
    assert case.said("job.failed ").exit_code == 9


@pytest.mark.clause("J8.2", "J12.1")
def test_a_condition_is_judged_before_each_iteration() -> None:
    case = given(job("it (iterate) x", iterations={"it": {"while_": True}}), rounds=2).then(begun())
    assert case.when(elements("it", None))[-1] == "component.started it[#0].x"
    assert case.when(ok("it[#0].x"))[-1] == "component.started it[#1].x"
    assert case.when(ok("it[#1].x"))[3:5] == ["iterator.completed it: 2 ok, 0 failed", "component.ok it"]


@pytest.mark.clause("J1.7", "J12.1")
def test_rows_from_beside_an_iterator_are_waited_for_before_its_body_opens() -> None:
    case = given(job("it (iterate) x", "side.main -> x.input")).then(begun())
    assert case.lines()[1:] == ["subjob.started <side>", "component.started side"]
    assert case.when(gave("side", main=2))[-1] == "component.started it"
    case.then(elements("it", "p"))
    assert case.said("component.started it[#0].x").rows_in == {"input": 2}


# ---- joblets


def call(*links: str, inside: str, **more: object) -> object:
    return expanded(document(*links, j={"type": "@work", **more}), work=inside)


@pytest.mark.clause("J11.1", "J11.2", "J3.3")
def test_a_call_opens_a_scope_and_ends_with_it() -> None:
    case = given(call("a (ok) j", "j (ok) b", inside=document("x (ok) y"))).then(begun())
    assert case.when(ok("a")) == [
        "component.ok a",
        "edge.fired a (ok) j",
        "component.started j",
        "subjob.started <j.__x>",
        "component.started j.__x",
    ]
    case.then(ok("j.__x"))
    assert case.when(ok("j.__y")) == [
        "component.ok j.__y",
        "subjob.ok <j.__x>",
        "checkpoint.saved <j.__x>",
        "component.ok j",
        "edge.fired j (ok) b",
        "component.started b",
    ]


@pytest.mark.clause("J11.2", "J6.2")
def test_a_call_that_is_skipped_opens_nothing() -> None:
    case = given(call("a (error) j", "j (ok) b", inside=document("x (ok) y"))).then(begun())
    assert case.when(ok("a"))[:3] == [
        "component.ok a",
        "component.skipped j: `a` ended OK, so its `error` link did not fire",
        "component.skipped b: `j` was skipped",
    ]
    assert not [one for one in case.lines() if "j.__" in one]


@pytest.mark.clause("J11.4", "J6.3")
def test_an_error_inside_that_nothing_takes_makes_the_call_an_error() -> None:
    case = given(call("j (ok) b", "j (subjob_error) s", inside=document("x (ok) y"))).then(begun())
    assert case.when(failed("j.__x")) == [
        "component.error j.__x: no",
        "component.skipped j.__y: `j.__x` ended in ERROR, so its `ok` link did not fire",
        "subjob.error <j.__x>",
        "checkpoint.saved <j.__x>",
        "component.error j: no",
        "component.skipped b: `j` ended in ERROR, so its `ok` link did not fire",
        "subjob.error <j>",
        "checkpoint.saved <j>",
        "edge.fired j (subjob_error) s",
        "subjob.started <s>",
        "component.started s",
    ]


@pytest.mark.clause("J11.4")
def test_a_handler_inside_that_ends_well_mends_the_call_and_one_that_fails_too_does_not() -> None:
    net = call("j (ok) b", "j (error) e", inside=document("x (error) h"))
    assert given(net).then(begun(), failed("j.__x")).when(ok("j.__h"))[3] == "component.ok j"
    assert given(net).then(begun(), failed("j.__x")).when(failed("j.__h"))[3] == "component.error j: no"


@pytest.mark.clause("J11.4")
def test_links_between_sub_jobs_inside_stay_inside_and_do_not_mend_the_call() -> None:
    case = given(call("j (ok) b", "j (error) e", inside=document("x (subjob_error) h"))).then(begun())
    assert case.when(failed("j.__x"))[-1] == "component.started j.__h"
    assert case.when(ok("j.__h")) == [
        "component.ok j.__h",
        "subjob.ok <j.__h>",
        "checkpoint.saved <j.__h>",
        "component.error j: no",
        "edge.fired j (error) e",
        "component.skipped b: `j` ended in ERROR, so its `ok` link did not fire",
        "component.started e",
    ]


@pytest.mark.clause("J11.5")
def test_die_on_error_of_a_call_is_not_that_of_its_inside_nor_the_other_way_round() -> None:
    """A component inside that fails and is handled there does not end the job because its call would."""
    net = call("j (ok) b", inside=document("x (error) h"), die_on_error=True)
    case = given(net).then(begun(), failed("j.__x"))
    assert case.when(ok("j.__h"))[-1] == "component.started b"
    net = call("j (error) b", inside=document("x (ok) y"))
    assert given(net).then(begun()).when(failed("j.__x"))[-1] == "component.started b"


@pytest.mark.clause("J11.5", "J11.4")
def test_a_component_inside_whose_output_nobody_needs_lets_the_joblet_go_on() -> None:
    case = given(call("j (ok) b", inside=document("y (ok) z", alone="x"))).then(begun(), failed("j.__x"))
    assert case.when(ok("j.__y"))[-1] == "component.started j.__z"
