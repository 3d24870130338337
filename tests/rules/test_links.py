"""Which links fire, what is skipped and why, what a sub-job comes to: sections 1 to 4 and 6 of the rulebook."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.kernel.errors import Refused
from tests.cases import cases
from tests.rules.notation import (
    Case,
    begun,
    document,
    expanded,
    failed,
    gave,
    given,
    job,
    looked,
    ok,
)

# ---- 1: order, states


@pytest.mark.clause("J1.1", "J1.7")
def test_a_component_starts_when_the_last_of_its_links_has_settled() -> None:
    case = given(job("a (ok) d", "b (ok) d", "c (error) d")).then(begun())
    assert case.when(ok("a")) == ["component.ok a", "edge.fired a (ok) d"]
    assert case.when(ok("b")) == ["component.ok b", "edge.fired b (ok) d"]
    assert case.when(ok("c")) == ["component.ok c", "component.started d"]


@pytest.mark.clause("J1.2", "J13.2")
def test_what_does_not_depend_on_a_component_goes_on_while_that_runs() -> None:
    case = given(job("a (ok) b", "b (ok) c", alone="slow")).then(begun(), ok("a"))
    assert case.when(ok("b")) == ["component.ok b", "edge.fired b (ok) c", "component.started c"]


@pytest.mark.clause("J1.3", "J4.2")
def test_the_timeline_is_the_same_whichever_branch_is_faster() -> None:
    net = job("f (parallelise) a, b", "a (ok) a2", "a2, b (synchronise) j")
    one = given(net).then(begun(), ok("f"), ok("a", k=1), ok("a2", k=2), ok("b", k=3), ok("j"))
    other = given(net).then(begun(), ok("f"), ok("b", k=3), ok("a", k=1), ok("a2", k=2), ok("j"))
    assert one.lines() != other.lines()
    assert one.timeline() == other.timeline()


@pytest.mark.clause("J1.4")
def test_a_component_that_has_ended_does_not_end_again_and_nothing_happens() -> None:
    case = given(job("a (ok) b")).then(begun())
    first = case.state.runs["a"]
    case.then(ok("a"))
    before = case.lines()
    case.state.runs["a"] = first
    with pytest.raises(Refused, match="`a` is not running"):
        case.when(failed("a"))
    assert case.lines() == before


@pytest.mark.clause("J1.4", "J9.1")
def test_a_look_at_a_folded_log_decides_nothing_a_second_time() -> None:
    case = given(job("a (ok) b", "a (error) c", alone="d")).then(begun(), ok("a"))
    assert case.when(looked()) == []


@pytest.mark.clause("J1.5")
def test_all_links_fire_and_all_sub_jobs_close_before_anything_starts() -> None:
    case = given(job("a (ok) b", 'a (if 1: "x") c', "a (parallelise) d, e", "a.main -> b.input"), "x").then(begun())
    assert [said.split()[0] for said in case.when(ok("a", k=1))] == [
        "component.ok",
        "global.set",
        "edge.fired",
        "edge.fired",
        "edge.fired",
        "edge.fired",
        "component.started",
        "component.started",
        "subjob.started",
        "component.started",
        "subjob.started",
        "component.started",
    ]


@pytest.mark.clause("J1.6", "J5.3")
def test_what_a_component_wrote_before_it_failed_is_committed_with_its_error() -> None:
    case = given(job("a (error) h")).then(begun())
    assert case.when(failed("a", k=1)) == [
        "component.error a: no",
        "global.set k: None -> 1 by a",
        "edge.fired a (error) h",
        "component.started h",
    ]
    assert case.when(ok("h", k=2))[1] == "global.set k: 1 -> 2 by h"


@pytest.mark.clause("J1.7")
@pytest.mark.parametrize("order", [("rows", "green"), ("green", "rows")])
def test_rows_and_a_green_light_are_both_waited_for(order: tuple[str, str]) -> None:
    case = given(job("rows.main -> c.input", "green (ok) c")).then(begun())
    assert "component.started c" not in case.when(ok(order[0]))
    assert case.when(ok(order[1]))[-1] == "component.started c"


@pytest.mark.clause("J1.7", "J13.1")
def test_rows_from_a_source_without_control_links_start_what_they_lead_to() -> None:
    case = given(job("a.main -> b.input", "a.main -> c.input")).then(begun())
    assert case.when(ok("a")) == ["component.ok a", "component.started b", "component.started c"]


# ---- 2 and 6: the propagation matrix

ENDS = {"OK": ok("a"), "ERROR": failed("a")}
MATRIX: list[tuple[str, str, str]] = [
    # How `a` ended, the link from it to `b`, what follows for `b`.
    ("OK", "ok", "started"),
    ("OK", "error", "`a` ended OK, so its `error` link did not fire"),
    ("OK", "if", "started"),
    ("OK", "subjob_ok", "started"),
    ("OK", "subjob_error", "sub-job `a` ended OK, so its `subjob_error` link did not fire"),
    ("ERROR", "ok", "`a` ended in ERROR, so its `ok` link did not fire"),
    ("ERROR", "error", "started"),
    ("ERROR", "if", "`a` ended in ERROR, so its `if` link did not fire"),
    ("ERROR", "subjob_ok", "sub-job `a` ended in ERROR, so its `subjob_ok` link did not fire"),
    ("ERROR", "subjob_error", "started"),
    ("SKIPPED", "ok", "`a` was skipped"),
    ("SKIPPED", "error", "`a` was skipped"),
    ("SKIPPED", "if", "`a` was skipped"),
]


def ended(state: str, *links: str, alone: str = "") -> Case:
    """`a` has come to this end. It is skipped because `z` ended OK."""
    if state == "SKIPPED":
        return given(job("z (error) a", *links, alone=alone), "x").then(begun(), ok("z"))
    return given(job(*links, alone=alone), "x").then(begun(), ENDS[state])


def become_of(case: Case, name: str) -> str:
    said = [one for one in case.lines() if one.startswith(("component.started ", "component.skipped "))]
    [found] = [one for one in said if one.partition(":")[0].split()[1] == name]
    return "started" if found.startswith("component.started") else found.partition(": ")[2]


@pytest.mark.clause("J6.1", "J2.1", "J2.2", "J2.7", "J2.9")
@cases("state, on, follows", MATRIX)
def test_what_follows_from_each_end_over_each_kind_of_link(state: str, on: str, follows: str) -> None:
    condition = '(if 1: "x")' if on == "if" else f"({on})"
    case = ended(state, f"a {condition} b")
    assert become_of(case, "b") == follows
    fired = [one for one in case.lines() if one.startswith("edge.fired a")]
    assert fired == ([f"edge.fired a ({on}) b"] if follows == "started" else [])


@pytest.mark.clause("J6.1", "J2.5")
@pytest.mark.parametrize("state", ["OK", "ERROR", "SKIPPED"])
def test_a_fork_is_opened_by_an_ok_end_alone(state: str) -> None:
    case = ended(state, "a (parallelise) b, c")
    opened = [one for one in case.lines() if one in ("subjob.started <b>", "subjob.started <c>")]
    assert len(opened) == (2 if state == "OK" else 0)
    assert [become_of(case, name) == "started" for name in "bc"] == [state == "OK"] * 2


@pytest.mark.clause("J2.3", "J6.1")
def test_a_condition_is_not_asked_where_the_component_failed() -> None:
    case = given(job('a (if 1: "x") b', "a (error) h"), "!x").then(begun())
    assert case.when(failed("a", "its own"))[0] == "component.error a: its own"


@pytest.mark.clause("J2.2")
def test_die_on_error_ends_the_job_when_the_error_path_is_through() -> None:
    net = job("a (error) h", alone="b", parts={"a": {"die_on_error": True}})
    case = given(net).then(begun())
    assert case.when(failed("a", exit_code=7)) == [
        "component.error a: no",
        "edge.fired a (error) h",
        "component.started h",
    ]
    assert case.when(ok("b"))[0] == "component.ok b"
    assert case.when(ok("h"))[-1] == "job.failed: no"
    assert case.said("job.failed ").exit_code == 7


@pytest.mark.clause("J2.2")
def test_a_component_with_die_on_error_that_ends_well_ends_nothing() -> None:
    case = given(job("a (ok) b", parts={"a": {"die_on_error": True}})).then(begun())
    assert case.when(ok("a"))[-1] == "component.started b"


@pytest.mark.clause("J2.2", "J6.3")
def test_what_runs_always_starts_in_a_job_that_is_dying_too() -> None:
    net = job("a (subjob_done) after", alone="b", parts={"after": {"always": True}})
    case = given(net).then(begun(), failed("a", dies=True))
    assert "component.started after" in case.lines()


@pytest.mark.clause("J2.7", "J6.3")
def test_an_error_is_told_outside_when_the_last_member_of_the_sub_job_has_ended() -> None:
    case = given(job("a (ok) b", "a (ok) c", "a (subjob_error) h")).then(begun(), ok("a"))
    assert case.when(failed("b")) == ["component.error b: no"]
    assert case.when(ok("c")) == [
        "component.ok c",
        "subjob.error <a>",
        "checkpoint.saved <a>",
        "edge.fired a (subjob_error) h",
        "subjob.started <h>",
        "component.started h",
    ]


@pytest.mark.clause("J2.7", "J3.2")
def test_any_member_of_a_sub_job_stands_for_it_in_a_link() -> None:
    case = given(job("a (ok) b", "b (subjob_ok) c")).then(begun(), ok("a"))
    assert case.when(ok("b"))[-3:] == ["edge.fired b (subjob_ok) c", "subjob.started <c>", "component.started c"]


@pytest.mark.clause("J2.7", "J6.1")
def test_a_sub_job_of_which_nothing_ran_fires_neither() -> None:
    case = given(job("z (subjob_error) a", "a (subjob_ok) b", "a (subjob_error) c")).then(begun(), ok("z"))
    assert [become_of(case, name) for name in "bc"] == ["sub-job `a` was skipped"] * 2
    assert "subjob.skipped <a>" in case.lines()


@pytest.mark.clause("J6.3")
def test_an_error_whose_handler_was_skipped_is_not_handled() -> None:
    """Its link fired, and its rows never came."""
    case = given(job("a (error) h", "x.main -> h.input")).then(begun(), failed("a"))
    assert [one.partition(":")[0] for one in case.when(gave("x"))] == [
        "component.ok x",
        "component.skipped h",
        "subjob.error <a>",
        "checkpoint.saved <a>",
        "job.failed",
    ]


@pytest.mark.clause("J6.3")
def test_a_handler_that_fails_too_leaves_the_sub_job_in_error() -> None:
    case = given(job("a (error) h", "a (subjob_error) s")).then(begun(), failed("a"))
    assert case.when(failed("h", "worse"))[:4] == [
        "component.error h: worse",
        "subjob.error <a>",
        "checkpoint.saved <a>",
        "edge.fired a (subjob_error) s",
    ]
    assert case.when(ok("s"))[-1] == "job.completed"


@pytest.mark.clause("J6.3")
def test_a_failure_whose_handler_ended_well_leaves_the_job_completed_and_one_whose_handler_failed_does_not() -> None:
    net = job("a (subjob_error) h")
    assert given(net).then(begun(), failed("a")).when(ok("h"))[-1] == "job.completed"
    assert given(net).then(begun(), failed("a")).when(failed("h", "worse"))[-1] == "job.failed: no"


@pytest.mark.clause("J6.3")
def test_of_a_job_whose_policy_aborts_nothing_starts_but_the_way_of_the_error() -> None:
    net = job("a (subjob_error) h", "b (ok) c", aborts=True)
    case = given(net).then(begun(), failed("a"))
    assert become_of(case, "h") == "started"
    case.then(ok("b"), ok("h"))
    assert become_of(case, "c") == "the job is ending: sub-job `a` ended in ERROR and `on_subjob_error` is abort"


@pytest.mark.clause("J6.3", "J4.3")
def test_several_failures_are_told_by_the_first_with_the_number_of_the_others() -> None:
    case = given(job(alone="a b c")).then(begun(), failed("b", "two"), failed("c", "three"))
    assert case.when(failed("a", "one"))[-1] == "job.failed: one"
    error = case.said("job.failed ").error
    assert (error["component"], error["others"]) == ("a", 2)


@pytest.mark.clause("J6.2")
def test_a_cascade_of_skips_goes_as_deep_as_there_is_no_other_way_in() -> None:
    links = ("a (ok) b", "b (ok) c", "c (ok) d", "d (ok) e")
    case = given(job(*links)).then(begun())
    assert [said.partition(":")[0] for said in case.when(failed("a"))][1:5] == [
        "component.skipped b",
        "component.skipped c",
        "component.skipped d",
        "component.skipped e",
    ]
    case = given(job(*links, "x (ok) d")).then(begun(), failed("a"))
    assert case.when(ok("x")) == ["component.ok x", "edge.fired x (ok) d", "component.started d"]


@pytest.mark.clause("J6.2", "J2.9")
def test_a_skip_is_told_with_what_decided_it() -> None:
    case = given(job("a (ok) b")).then(begun(), failed("a"))
    skipped = case.said("component.skipped b")
    assert (skipped.upstream, skipped.link, skipped.subjob) == ("a", "ok", "<a>")


# ---- 2.1.4: forks and joins

FORK = ("f (parallelise) a, b", "a, b (synchronise) j")


@pytest.mark.clause("J2.6")
def test_a_branch_that_was_skipped_counts_as_come_through() -> None:
    case = given(job("f (parallelise) a, b", 'f (if 1: "x") s', "s (ok) t", "a, t (synchronise) j")).then(begun())
    case.then(ok("f"))
    assert case.when(ok("a"))[-2:] == ["subjob.started <j>", "component.started j"]


@pytest.mark.clause("J2.6", "J6.2")
def test_a_join_of_which_all_branches_were_skipped_is_skipped() -> None:
    case = given(job(*FORK)).then(begun(), failed("f"))
    assert become_of(case, "j") == "all of the branches that it joins were skipped: sub-job `a` and sub-job `b`"


@pytest.mark.clause("J2.6")
def test_an_ok_link_does_not_lead_to_a_join_whose_branch_failed() -> None:
    case = given(job(*FORK, "z (ok) j")).then(begun(), ok("f"), ok("b"), ok("z"), failed("a"))
    assert become_of(case, "j") == "of the branches that it joins, sub-job `a` ended in ERROR at `a`"


@pytest.mark.clause("J2.6", "J3.3")
def test_a_branch_that_mended_itself_has_come_through() -> None:
    case = given(job(*FORK, "a (error) mend")).then(begun(), ok("f"), ok("b"), failed("a"))
    assert case.when(ok("mend"))[-1] == "component.started j"


@pytest.mark.clause("J2.6", "J3.2")
def test_a_branch_is_the_whole_sub_job_and_not_only_the_component_that_is_named() -> None:
    case = given(job(*FORK, "a (ok) more")).then(begun(), ok("f"), ok("b"))
    assert "component.started j" not in case.when(ok("a"))
    assert case.when(ok("more"))[-1] == "component.started j"


@pytest.mark.clause("J3.3")
def test_forks_nest_and_the_outer_branch_ignores_what_was_handled_inside() -> None:
    net = job("f (parallelise) a, b", "a (parallelise) a1, a2", "a1, a2 (synchronise) aj", "a1 (error) help")
    case = given(net).then(begun(), ok("f"), ok("b"), ok("a"))
    assert [one for one in case.lines() if one.startswith("subjob.started")] == [
        "subjob.started <f>",
        "subjob.started <a>",
        "subjob.started <b>",
        "subjob.started <a1>",
        "subjob.started <a2>",
    ]
    case.then(ok("a2"), failed("a1"))
    assert case.when(ok("help")) == [
        "component.ok help",
        "subjob.ok <a1>",
        "checkpoint.saved <a1>",
        "edge.fired a1 (synchronise) aj",
        "edge.fired a2 (synchronise) aj",
        "subjob.started <aj>",
        "component.started aj",
    ]
    assert case.when(ok("aj"))[-1] == "job.completed"


@pytest.mark.clause("J4.4")
def test_each_join_waits_for_its_own_branches_alone() -> None:
    case = given(job("f (parallelise) a, b, c, d", "a, b (synchronise) j", "c, d (synchronise) k")).then(
        begun(), ok("f")
    )
    case.then(ok("a"), failed("c"))
    assert case.when(ok("b"))[-1] == "component.started j"
    case.then(ok("d"))
    assert become_of(case, "k") == "of the branches that it joins, sub-job `c` ended in ERROR at `c`"


@pytest.mark.clause("J4.1", "J2.5")
def test_a_branch_sees_what_was_written_before_the_fork_and_nothing_of_its_siblings() -> None:
    case = given(job(*FORK)).then(begun(), ok("f", k=0))
    assert case.when(ok("a", k=1, n=1))[1:3] == ["global.set k: 0 -> 1 by a, local", "global.set n: None -> 1 by a"]
    assert case.when(ok("b", k=2, n=2))[1:3] == ["global.set k: 0 -> 2 by b, local", "global.set n: None -> 2 by b"]


@pytest.mark.clause("J4.2")
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_at_a_join_the_higher_logical_clock_wins_whichever_branch_ended_first(order: str) -> None:
    case = given(job(*FORK)).then(begun(), ok("f"))
    for name in order:
        case.then(ok(name, k=name))
    assert case.when(ok("j", k="j"))[1] == "global.set k: b -> j by j, local"


@pytest.mark.clause("J4.2")
def test_a_write_that_knew_of_another_replaces_it_whatever_their_clocks_are() -> None:
    net = job("f (parallelise) a, b", "b (subjob_ok) c", "a, c (synchronise) j", parts={"a": {"exports": ("k",)}})
    case = given(net).then(begun(), ok("f", k=0), ok("b"), ok("c"), ok("a", k=1))
    assert case.when(ok("j", k=2))[1] == "global.set k: 1 -> 2 by j, local"


# ---- 3: sub-jobs, as the planner finds them


def subjobs_of(text: str, **joblets: Any) -> dict[str, tuple[str, ...]]:
    """Sub-job -> its members, as facts tell them of a job whose components all end well."""
    net = expanded(text, **joblets)
    return {region.name: region.members for region in net.containers[""].regions}


@pytest.mark.clause("J3.1")
@cases(
    "links, data, regions",
    [
        (("a (ok) b", "b (error) c", 'c (if 1: "1 == 1") d'), (), ["a b c d"]),
        (("a (parallelise) b, c", "b (ok) d"), (), ["a", "b d", "c"]),
        (("a (parallelise) b, c", "b, c (synchronise) d", "d (ok) e"), (), ["a", "b", "c", "d e"]),
        (("a (subjob_ok) b", "a (subjob_error) c", "b (ok) d"), (), ["a", "b d", "c"]),
        (("a (parallelise) b, c", "b, c (synchronise) d", "b (error) d"), (), ["a", "b", "c", "d"]),
    ],
)
def test_a_sub_job_is_what_data_ok_error_and_if_links_join(
    links: tuple[str, ...], data: tuple[str, ...], regions: list[str]
) -> None:
    assert [" ".join(members) for members in subjobs_of(document(*links, data=data)).values()] == regions


@pytest.mark.clause("J3.4", "J3.1")
def test_a_component_without_control_links_belongs_to_what_gives_it_rows() -> None:
    keep = {"type": "filter", "params": {"where": "id > 0"}}
    text = document("z (ok) a", data=("a.main -> b.input",), a=ROWS, b=keep)
    assert list(subjobs_of(text).values()) == [("z", "a", "b")]


@pytest.mark.clause("J3.2")
def test_a_sub_job_starts_with_its_first_component_and_ends_with_its_last() -> None:
    case = given(job("a (ok) b", "a (ok) c", "z (subjob_ok) a")).then(begun())
    case.then(ok("z"), ok("a"), ok("c"), ok("b"))
    about = [one for one in case.lines() if "<a>" in one or (one.startswith("component") and one[-1] in "abc")]
    assert (about[:2], about[-2:]) == (
        ["subjob.started <a>", "component.started a"],
        ["subjob.ok <a>", "checkpoint.saved <a>"],
    )


ROWS = {"type": "fixed_rows", "params": {"columns": ["id"], "rows": [[1]]}}


@pytest.mark.clause("J13.1")
def test_a_startable_member_of_a_triggered_sub_job_starts_at_once_unless_the_job_says_otherwise() -> None:
    """`read` has no link of its own; `work`, which it feeds, waits for the trigger of their sub-job (D58)."""
    keep = {"type": "filter", "params": {"where": "id > 0"}}
    more: dict[str, Any] = {"data": ("read.main -> work.input",), "read": ROWS, "work": keep}
    case = given(expanded(document("z (subjob_ok) work", **more))).then(begun())
    assert {"component.started z", "component.started read"} <= set(case.lines())
    case = given(expanded(document("z (subjob_ok) work", **more, config={"start": "subjob"})))
    assert [one for one in case.when(begun()) if one.startswith("component")] == ["component.started z"]
    assert "component.started read" in case.when(ok("z"))


@pytest.mark.clause("J13.1", "J1.7")
def test_a_component_marked_startable_needs_no_control_link_to_fire() -> None:
    case = given(expanded(document("z (error) read", read=ROWS | {"startable": True}))).then(begun())
    assert case.when(ok("z"))[:2] == ["component.ok z", "component.started read"]
