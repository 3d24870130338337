"""Globals and rows: who sees what, who may overwrite what, what a checkpoint holds: sections 5, 7.1 and 10 of the rulebook."""

from __future__ import annotations

import pytest

from tests.rules.notation import begun, deleted, document, expanded, failed, gave, given, job, ok


@pytest.mark.clause("J5.1", "J1.6")
def test_a_component_finds_the_globals_as_they_were_when_it_started() -> None:
    case = given(job("a (ok) b", "a (ok) c")).then(begun(), ok("a", x=1), ok("b", x=2))
    assert case.when(ok("c", x=3))[1] == "global.set x: 1 -> 3 by c"


@pytest.mark.clause("J5.2")
def test_what_a_sub_job_wrote_is_seen_by_those_that_its_end_leads_to_and_by_no_other() -> None:
    case = given(job("a (subjob_ok) b", "a (ok) a2", alone="other")).then(begun(), ok("a", x=1))
    assert case.when(ok("other", x=5))[1] == "global.set x: None -> 5 by other"
    case.then(ok("a2"))
    assert case.when(ok("b", x=2))[1] == "global.set x: 1 -> 2 by b, local"


@pytest.mark.clause("J5.2")
def test_the_handler_of_a_failed_sub_job_sees_what_that_wrote() -> None:
    case = given(job("a (subjob_error) h")).then(begun(), failed("a", x=1))
    assert case.when(ok("h", x=2))[1] == "global.set x: 1 -> 2 by h, local"


@pytest.mark.clause("J5.2")
def test_a_local_value_is_seen_inside_its_sub_job_and_stays_there() -> None:
    net = job("a (subjob_ok) b", "b (ok) c", "b (subjob_ok) d")
    case = given(net).then(begun(), ok("a", x=1), ok("b", x=2))
    assert case.when(ok("c", x=3))[1] == "global.set x: 2 -> 3 by c, local"
    assert case.when(ok("d", x=4))[1] == "global.set x: 1 -> 4 by d, local"


@pytest.mark.clause("J5.2")
def test_what_is_exported_is_seen_behind_the_sub_job() -> None:
    net = job("a (subjob_ok) b", "b (subjob_ok) c", parts={"b": {"exports": ("x",)}})
    case = given(net).then(begun(), ok("a", x=1), ok("b", x=2, y=1))
    assert case.when(ok("c", x=3, y=2))[1:3] == [
        "global.set x: 2 -> 3 by c, local",
        "global.set y: 1 -> 2 by c, local",
    ]


@pytest.mark.clause("J5.3")
def test_a_deleted_global_is_gone_and_whoever_writes_it_next_makes_it_anew() -> None:
    case = given(job("a (ok) b", "b (ok) c")).then(begun(), ok("a", x=1))
    assert case.when(deleted("b", "x"))[1] == "global.set x: 1 -> deleted by b"
    assert case.when(ok("c", x=3))[1] == "global.set x: None -> 3 by c"


@pytest.mark.clause("J5.2", "J5.3")
def test_a_key_that_another_sub_job_has_deleted_for_everyone_belongs_to_whoever_makes_it_anew() -> None:
    net = job("a (subjob_ok) b", "b (subjob_ok) c", parts={"b": {"exports": ("x",)}})
    case = given(net).then(begun(), ok("a", x=1), deleted("b", "x"))
    assert case.when(ok("c", x=3))[1] == "global.set x: None -> 3 by c"


@pytest.mark.clause("J5.3")
def test_each_change_says_in_which_sub_job_it_was_made() -> None:
    case = given(job("a (subjob_ok) b")).then(begun(), ok("a", x=1), ok("b", y=1))
    assert (case.said("global.set a").scope, case.said("global.set b").scope) == ("a", "b")


@pytest.mark.clause("J5.4", "J11.1")
def test_a_joblets_globals_bear_the_names_of_the_call_and_of_the_component() -> None:
    net = expanded(
        document("j (ok) b", j={"type": "@outer"}),
        outer=document(alone="in", **{"in": {"type": "@inner"}}),
        inner=document("x (ok) y"),
    )
    case = given(net).then(begun())
    assert case.when(ok("j.__in.__x", k=1))[1] == "global.set j.__in.__x__k: None -> 1 by j.__in.__x"
    case.then(ok("j.__in.__y"))
    assert case.when(ok("b", **{"j.__in.__x__k": 2}))[1] == "global.set j.__in.__x__k: 1 -> 2 by b, local"


# ---- 7.1: checkpoints


@pytest.mark.clause("J7.1")
def test_a_checkpoint_holds_globals_hashes_of_outputs_and_the_context() -> None:
    case = given(job("a.main -> b.input", "a.rejects -> c.input"), context={"env": "prod"}).then(begun())
    case.then(gave("a", main=3, rejects=1), ok("b", x=1), ok("c", y=2))
    saved = case.said("checkpoint.saved <a>")
    assert (saved.globals, saved.context, saved.status) == ({"x": 1, "y": 2}, {"env": "prod"}, "ok")
    assert saved.outputs == {"a": {"main": "hash of 3", "rejects": "hash of 1"}}


@pytest.mark.clause("J7.1")
def test_a_failed_sub_job_has_its_checkpoint_and_a_skipped_one_has_none() -> None:
    case = given(job("a (subjob_ok) b")).then(begun(), failed("a", x=1))
    assert (case.said("checkpoint.saved <a>").status, case.said("checkpoint.saved <a>").globals) == ("error", {"x": 1})
    assert [one for one in case.lines() if one.startswith("checkpoint")] == ["checkpoint.saved <a>"]


@pytest.mark.clause("J7.1")
def test_a_checkpoint_holds_what_is_everyones_and_not_what_stays_local() -> None:
    case = given(job("a (subjob_ok) b")).then(begun(), ok("a", x=1), ok("b", x=2))
    assert case.said("checkpoint.saved <b>").globals == {"x": 1}


# ---- 10: rows


@pytest.mark.clause("J10.1")
def test_what_a_component_hands_over_is_counted_at_whoever_gets_it() -> None:
    case = given(job("a.main -> b.input", "a.rejects -> c.input")).then(begun(), gave("a", main=3, rejects=1))
    assert case.said("component.started b").rows_in == {"input": 3}
    assert case.said("component.started c").rows_in == {"input": 1}
    assert case.said("component.ok a").after["NB_LINE_OUT_rejects"] == 1


@pytest.mark.clause("J10.1", "J2.8")
def test_a_port_that_got_nothing_feeds_nobody() -> None:
    case = given(job("a.main -> b.input", "a.rejects -> c.input")).then(begun())
    assert case.when(gave("a", main=3)) == [
        "component.ok a",
        "component.started b",
        "component.skipped c: its input `input` cannot be fed: `a` ended OK and handed nothing over on `rejects`",
    ]


@pytest.mark.clause("J10.2")
def test_rows_of_several_links_into_one_port_come_together_when_all_are_there() -> None:
    case = given(job("a.main -> c.input", "b.main -> c.input")).then(begun())
    assert "component.started c" not in case.when(gave("a", main=3))
    assert case.when(gave("b", main=4)) == ["component.ok b", "component.started c"]
    assert case.said("component.started c").rows_in == {"input": 7}


@pytest.mark.clause("J10.2", "J6.1")
def test_a_port_of_several_links_is_not_fed_when_one_of_them_gives_nothing() -> None:
    case = given(job("a.main -> c.input", "b.main -> c.input")).then(begun(), gave("a", main=3))
    assert case.when(failed("b"))[1] == "component.skipped c: its input `input` cannot be fed: `b` ended in ERROR"
