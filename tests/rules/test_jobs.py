"""The rulebook, rule by rule: what follows from each end, as whole lists of facts."""

from __future__ import annotations

import pytest

from tests.rules.notation import begun, cancelled, elements, failed, given, job, ok, resumed


@pytest.mark.clause("J1.7", "J13.1", "J13.2", "J3.2")
def test_all_that_is_startable_starts_at_once_each_with_its_sub_job() -> None:
    case = given(job("a (ok) b", alone="c"))
    assert case.when(begun()) == [
        "subjob.started <a>",
        "component.started a",
        "subjob.started <c>",
        "component.started c",
    ]


@pytest.mark.clause("J2.1", "J1.5")
def test_ok_fires_to_every_target_before_any_of_them_starts() -> None:
    case = given(job("a (ok) b, c")).then(begun())
    assert case.when(ok("a")) == [
        "component.ok a",
        "edge.fired a (ok) b",
        "edge.fired a (ok) c",
        "component.started b",
        "component.started c",
    ]


@pytest.mark.clause("J2.2", "J6.1")
def test_of_ok_and_error_exactly_one_fires() -> None:
    net = job("a (ok) b", "a (error) c")
    assert given(net).then(begun()).when(ok("a")) == [
        "component.ok a",
        "edge.fired a (ok) b",
        "component.started b",
        "component.skipped c: `a` ended OK, so its `error` link did not fire",
    ]
    assert given(net).then(begun()).when(failed("a")) == [
        "component.error a: no",
        "edge.fired a (error) c",
        "component.skipped b: `a` ended in ERROR, so its `ok` link did not fire",
        "component.started c",
    ]


@pytest.mark.clause("J2.3")
def test_if_links_are_judged_in_rising_order_and_every_true_one_fires() -> None:
    case = given(job('a (if 3: "x") b', 'a (if 1: "y") c', 'a (if 2: "z") d'), "x", "y").then(begun())
    assert case.when(ok("a")) == [
        "component.ok a",
        "edge.fired a (if) c",
        "edge.fired a (if) b",
        "component.started b",
        "component.started c",
        "component.skipped d: the condition `z` of the `if` link from `a` was not true",
    ]


@pytest.mark.clause("J2.4")
def test_an_if_that_cannot_be_judged_is_the_error_of_its_component() -> None:
    case = given(job('a (if 1: "x") b', "a (error) c"), "!x").then(begun())
    assert case.when(ok("a")) == [
        "component.error a: x",
        "edge.fired a (error) c",
        "component.skipped b: `a` ended in ERROR, so its `if` link did not fire",
        "component.started c",
    ]


FORK = ("f (parallelise) a, b", "a, b (synchronise) j")


@pytest.mark.clause("J2.5", "J4.1")
def test_each_target_of_a_fork_is_a_sub_job_of_its_own() -> None:
    case = given(job(*FORK)).then(begun())
    assert case.when(ok("f")) == [
        "component.ok f",
        "edge.fired f (parallelise) a",
        "edge.fired f (parallelise) b",
        "subjob.ok <f>",
        "checkpoint.saved <f>",
        "subjob.started <a>",
        "component.started a",
        "subjob.started <b>",
        "component.started b",
    ]


@pytest.mark.clause("J2.6")
def test_a_join_is_reached_when_its_last_branch_has_ended() -> None:
    case = given(job(*FORK)).then(begun(), ok("f"))
    assert case.when(ok("b")) == ["component.ok b", "subjob.ok <b>", "checkpoint.saved <b>"]
    assert case.when(ok("a")) == [
        "component.ok a",
        "subjob.ok <a>",
        "checkpoint.saved <a>",
        "edge.fired a (synchronise) j",
        "edge.fired b (synchronise) j",
        "subjob.started <j>",
        "component.started j",
    ]


@pytest.mark.clause("J2.6", "J4.3")
def test_a_branch_in_error_skips_the_join_and_lets_the_others_go_on() -> None:
    case = given(job(*FORK, "b (ok) more")).then(begun(), ok("f"))
    assert case.when(failed("a")) == ["component.error a: no", "subjob.error <a>", "checkpoint.saved <a>"]
    assert case.when(ok("b")) == ["component.ok b", "edge.fired b (ok) more", "component.started more"]
    assert case.when(ok("more")) == [
        "component.ok more",
        "subjob.ok <b>",
        "checkpoint.saved <b>",
        "component.skipped j: of the branches that it joins, sub-job `a` ended in ERROR at `a`",
        "subjob.skipped <j>",
        "job.failed: no",
    ]


@pytest.mark.clause("J2.6")
def test_an_error_link_leads_to_a_join_whose_branch_failed() -> None:
    case = given(job(*FORK, "a (error) j")).then(begun(), ok("f"), ok("b"))
    assert case.when(failed("a"))[-2:] == ["subjob.started <j>", "component.started j"]


@pytest.mark.clause("J2.7", "J3.2")
def test_the_end_of_a_sub_job_fires_its_links() -> None:
    net = job("a (subjob_ok) b", "a (subjob_error) c")
    assert given(net).then(begun()).when(ok("a")) == [
        "component.ok a",
        "subjob.ok <a>",
        "checkpoint.saved <a>",
        "edge.fired a (subjob_ok) b",
        "subjob.started <b>",
        "component.started b",
        "component.skipped c: sub-job `a` ended OK, so its `subjob_error` link did not fire",
        "subjob.skipped <c>",
    ]


@pytest.mark.clause("J2.8", "J1.7")
def test_data_alone_starts_nothing() -> None:
    case = given(job("a.main -> c.input", "b (ok) c")).then(begun())
    assert case.when(ok("a")) == ["component.ok a"]
    assert case.when(ok("b")) == ["component.ok b", "edge.fired b (ok) c", "component.started c"]


@pytest.mark.clause("J2.9", "J6.2")
def test_a_skip_goes_on_to_every_descendant_without_another_way_in() -> None:
    case = given(job("a (ok) b", "b (ok) c", "a (error) d", "c (ok) e", "d (ok) e")).then(begun())
    assert case.when(failed("a")) == [
        "component.error a: no",
        "edge.fired a (error) d",
        "component.skipped b: `a` ended in ERROR, so its `ok` link did not fire",
        "component.started d",
        "component.skipped c: `b` was skipped",
    ]
    assert case.when(ok("d")) == ["component.ok d", "edge.fired d (ok) e", "component.started e"]


@pytest.mark.clause("J1.7", "J6.1")
def test_an_input_that_cannot_be_fed_any_more_skips_its_component() -> None:
    case = given(job("a.main -> b.input", "a (error) h")).then(begun())
    assert case.when(failed("a")) == [
        "component.error a: no",
        "edge.fired a (error) h",
        "component.skipped b: its input `input` cannot be fed: `a` ended in ERROR",
        "component.started h",
    ]


@pytest.mark.clause("J6.3")
def test_an_error_that_a_link_inside_took_leaves_the_sub_job_ok() -> None:
    case = given(job("a (error) h")).then(begun(), failed("a"))
    assert case.when(ok("h")) == ["component.ok h", "subjob.ok <a>", "checkpoint.saved <a>", "job.completed"]


@pytest.mark.clause("J6.3")
@pytest.mark.parametrize("aborts", [False, True])
def test_after_an_unhandled_error_the_job_goes_on_unless_its_policy_aborts(aborts: bool) -> None:
    case = given(job("a (subjob_error) h", alone="b", aborts=aborts)).then(begun())
    assert case.when(failed("a")) == [
        "component.error a: no",
        "subjob.error <a>",
        "checkpoint.saved <a>",
        "edge.fired a (subjob_error) h",
        "subjob.started <h>",
        "component.started h",
    ]


@pytest.mark.clause("J2.2", "J6.3")
def test_a_job_that_dies_starts_nothing_but_its_error_path() -> None:
    case = given(job("a (error) h", "b (ok) c", "h (ok) i")).then(begun())
    assert case.when(failed("a", dies=True)) == [
        "component.error a: no",
        "edge.fired a (error) h",
        "component.started h",
    ]
    assert case.when(ok("b"))[-3:] == [
        "component.skipped c: the job is ending: `a` ended in ERROR and the job dies with it",
        "subjob.ok <b>",
        "checkpoint.saved <b>",
    ]
    assert case.when(ok("h")) == ["component.ok h", "edge.fired h (ok) i", "component.started i"]
    assert case.when(ok("i"))[-1] == "job.failed: no"


@pytest.mark.clause("J1.6", "J5.3")
def test_globals_are_committed_between_the_end_and_the_links_with_old_value_and_writer() -> None:
    case = given(job("a (ok) b")).then(begun())
    assert case.when(ok("a", x=1)) == [
        "component.ok a",
        "global.set x: None -> 1 by a",
        "edge.fired a (ok) b",
        "component.started b",
    ]
    assert case.when(ok("b", x=2))[:2] == ["component.ok b", "global.set x: 1 -> 2 by b"]


@pytest.mark.clause("J5.2")
def test_a_global_of_another_sub_job_changes_only_locally_unless_it_is_exported() -> None:
    net = job("a (subjob_ok) b")
    assert given(net).then(begun(), ok("a", x=1)).when(ok("b", x=2))[1] == "global.set x: 1 -> 2 by b, local"
    net = job("a (subjob_ok) b", parts={"b": {"exports": ("x",)}})
    assert given(net).then(begun(), ok("a", x=1)).when(ok("b", x=2))[1] == "global.set x: 1 -> 2 by b"


@pytest.mark.clause("J7.1", "J7.2", "J7.3")
def test_a_resume_keeps_what_ended_well_and_starts_the_rest_over() -> None:
    case = given(job(*FORK)).then(begun(), ok("f"), ok("a"), failed("b"))
    assert case.status == "failed"
    assert case.when(resumed()) == [
        "job.started, keeping <f>, <a>",
        "subjob.started <b>",
        "component.started b",
    ]
    assert case.when(ok("b"))[-3:] == ["edge.fired b (synchronise) j", "subjob.started <j>", "component.started j"]


@pytest.mark.clause("J12.1", "J12.2")
def test_iterations_run_one_after_another_each_as_a_sub_job_of_its_own() -> None:
    case = given(job("it (iterate) x", "it (ok) after")).then(begun())
    assert case.when(elements("it", ["p", "q"])) == [
        "iterator.started it",
        "iteration.started it[#0]",
        "component.started it[#0].x",
    ]
    assert case.when(ok("it[#0].x")) == [
        "component.ok it[#0].x",
        "checkpoint.saved it[#0]",
        "iteration.ok it[#0]",
        "iteration.started it[#1]",
        "component.started it[#1].x",
    ]
    assert case.when(ok("it[#1].x")) == [
        "component.ok it[#1].x",
        "checkpoint.saved it[#1]",
        "iteration.ok it[#1]",
        "iterator.completed it: 2 ok, 0 failed",
        "component.ok it",
        "edge.fired it (ok) after",
        "component.started after",
    ]


@pytest.mark.clause("J12.1")
def test_with_parallel_so_many_iterations_are_open_at_a_time() -> None:
    case = given(job("it (iterate) x")).then(begun())
    assert case.when(elements("it", [1, 2, 3], 2)) == [
        "iterator.started it",
        "iteration.started it[#0]",
        "iteration.started it[#1]",
        "component.started it[#0].x",
        "component.started it[#1].x",
    ]
    assert case.when(ok("it[#1].x"))[-2:] == ["iteration.started it[#2]", "component.started it[#2].x"]


@pytest.mark.clause("J12.2")
def test_the_end_of_an_iteration_leads_to_what_handles_it() -> None:
    net = job(
        "it (iterate) x", "it (iteration_ok) good", "it (iteration_error) bad", iterations={"it": {"halts": False}}
    )
    case = given(net).then(begun(), elements("it", ["p"]))
    assert case.when(failed("it[#0].x")) == [
        "component.error it[#0].x: no",
        "checkpoint.saved it[#0]",
        "iteration.error it[#0]",
        "edge.fired it (iteration_error) it[#0].bad",
        "subjob.started it[#0].<bad>",
        "component.started it[#0].bad",
    ]


@pytest.mark.clause("J12.4")
def test_without_elements_an_iterator_is_complete_at_once_and_ok() -> None:
    case = given(job("it (iterate) x")).then(begun())
    assert case.when(elements("it", [])) == [
        "iterator.started it",
        "iterator.completed it: 0 ok, 0 failed",
        "component.ok it",
        "subjob.ok <it>",
        "checkpoint.saved <it>",
        "job.completed",
    ]


@pytest.mark.clause("J12.5")
def test_halt_stops_at_the_first_failure_and_continue_goes_on() -> None:
    net = job("it (iterate) x")
    stopped = given(net).then(begun(), elements("it", [1, 2])).when(failed("it[#0].x"))
    assert stopped[2:5] == [
        "iteration.error it[#0]",
        "iterator.completed it: 0 ok, 1 failed",
        "component.error it: iteration 0 of `it` failed: no",
    ]
    net = job("it (iterate) x", iterations={"it": {"halts": False}})
    goes_on = given(net).then(begun(), elements("it", [1, 2])).when(failed("it[#0].x"))
    assert goes_on[2:] == ["iteration.error it[#0]", "iteration.started it[#1]", "component.started it[#1].x"]


@pytest.mark.clause("J12.3")
@pytest.mark.parametrize(("mode", "value"), [("accumulate", [1, 2]), ("reset", [2]), ("override", [2])])
def test_globals_of_iterations_come_together_as_the_mode_says(mode: str, value: list[int]) -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", ["p", "q"], mode=mode), ok("it[#0].x", k=[1]))
    assert f"global.set k: None -> {value} by it" in case.when(ok("it[#1].x", k=[2]))


@pytest.mark.clause("J12.6", "J7.2")
def test_a_resume_runs_only_the_iterations_that_did_not_end_well() -> None:
    case = given(job("it (iterate) x")).then(begun(), elements("it", [1, 2]), ok("it[#0].x"), failed("it[#1].x"))
    assert case.when(resumed()) == ["job.started, keeping nothing", "subjob.started <it>", "component.started it"]
    assert case.when(elements("it", [1, 2])) == [
        "iterator.started it",
        "iteration.started it[#1]",
        "component.started it[#1].x",
    ]


@pytest.mark.clause("J8.2")
def test_a_condition_that_is_judged_again_and_again_is_cut_off() -> None:
    net = job("it (iterate) x", iterations={"it": {"while_": True}})
    case = given(net, rounds=1_000).then(begun())
    case.when(elements("it", None))
    for index in range(100):
        case.when(ok(f"it[#{index}].x"))
    last = case.when(ok("it[#100].x"))
    assert "iterator.completed it: 101 ok, 0 failed" in last
    assert last[4].startswith("component.error it: CONDITION_REEVALUATION_LIMIT")


@pytest.mark.clause("J8.5")
def test_a_cancelled_job_starts_nothing_more() -> None:
    case = given(job("a (ok) b")).then(begun())
    assert case.when(cancelled()) == ["job.cancelling"]
    assert case.when(failed("a", "stopped")) == [
        "component.error a: stopped",
        "component.skipped b: the run was cancelled",
        "subjob.error <a>",
        "checkpoint.saved <a>",
        "job.cancelled",
    ]
