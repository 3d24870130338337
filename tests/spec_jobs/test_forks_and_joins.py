"""Sections 2.1.4 and 4: parallelise and synchronise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import problems, run_job
from tests.spec_jobs.support import FAILS, job, positions, python, rows, sets, sleeps


def codes(text: str, home: Path) -> list[str]:
    return [one.code for one in problems(text, home)]


FORK = ("fork (parallelise) left, right", "left, right (synchronise) met")


@pytest.mark.clause("J2.5")
def test_a_fork_with_one_target_is_refused_and_shown(tmp_path: Path) -> None:
    found = problems(job("a (parallelise) b"), tmp_path)
    assert [one.code for one in found] == ["J0307"]
    assert "`a`" in found[0].message


@pytest.mark.clause("J2.5")
def test_every_target_of_a_fork_is_the_root_of_a_sub_job(tmp_path: Path) -> None:
    run = run_job(job("fork (parallelise) left, right", "left (ok) more"), tmp_path)
    assert [(one["name"], one["members"]) for one in run.standing.subjobs] == [
        ("fork", ["fork"]),
        ("left", ["left", "more"]),
        ("right", ["right"]),
    ]
    assert run.fired("parallelise") == ["fork (parallelise) left", "fork (parallelise) right"]


@pytest.mark.clause("J2.5")
@pytest.mark.clause("J4.1")
def test_branches_inherit_globals_and_context_and_do_not_see_each_other(tmp_path: Path) -> None:
    """`right` looks after `left` has written; it finds what the fork left, and its own."""
    look = "globals['seen_by_right'] = [globals['n'], globals.get('of_left'), context['who']]"
    text = job(
        *FORK,
        "right (ok) look",
        fork=sets(n=1),
        left=sets(of_left="secret", n=2),
        right=sleeps(60),
        look=python(look),
        context={"who": "ada"},
    )
    run = run_job(text, tmp_path, virtual=True)
    at = positions(run.events)
    assert at["component.ok left"] < at["component.started look"]
    assert run.globals["seen_by_right"] == [1, None, "ada"]
    assert run.globals["of_left"] == "secret"


@pytest.mark.clause("J4.1")
def test_branches_run_side_by_side(tmp_path: Path) -> None:
    text = job(*FORK, left=sleeps(3600), right=sleeps(3600))
    run = run_job(text, tmp_path, virtual=True)
    assert 3600_000 <= run.played.summary.duration_ms < 3700_000
    at = positions(run.events)
    assert max(at["component.started left"], at["component.started right"]) < min(
        at["component.ok left"], at["component.ok right"]
    )


@pytest.mark.clause("J2.6")
@pytest.mark.parametrize(("left", "right"), [(10, 500), (500, 10)])
def test_a_join_starts_when_the_slowest_branch_has_ended(tmp_path: Path, left: int, right: int) -> None:
    text = job(
        *FORK, "left (ok) left2", "right (ok) right2", left=sleeps(left), right={"type": "noop"}, right2=sleeps(right)
    )
    run = run_job(text, tmp_path, virtual=True)
    at = positions(run.events)
    ends = [at[f"component.ok {name}"] for name in ("left2", "right2")] + [
        at["subjob.ok <left>"],
        at["subjob.ok <right>"],
    ]
    assert at["component.started met"] > max(ends)
    assert run.fired("synchronise") == ["left (synchronise) met", "right (synchronise) met"]


@pytest.mark.clause("J2.6")
def test_a_branch_that_was_skipped_does_not_stop_the_join(tmp_path: Path) -> None:
    run = run_job(job("fork (parallelise) left, right", "left (error) rare", "rare, right (synchronise) met"), tmp_path)
    assert run.component("rare")["state"] == "SKIPPED"
    assert run.component("met")["state"] == "OK"


@pytest.mark.clause("J2.6")
def test_a_join_all_of_whose_branches_were_skipped_is_skipped(tmp_path: Path) -> None:
    run = run_job(job("a (error) fork", *FORK, "met (ok) after"), tmp_path)
    assert run.subjobs() == {"a": "OK", "left": "SKIPPED", "right": "SKIPPED", "met": "SKIPPED"}
    assert run.component("met")["state"] == run.component("after")["state"] == "SKIPPED"
    why = "all of the branches that it joins were skipped: sub-job `left` and sub-job `right`"
    assert run.component("met")["cause"] == why
    assert run.fired() == []


@pytest.mark.clause("J2.6")
def test_a_join_with_a_branch_in_error_is_skipped_and_so_is_what_follows(tmp_path: Path) -> None:
    run = run_job(job(*FORK, "met (ok) after", left=FAILS), tmp_path)
    assert run.states() == {"left": "ERROR", "fork": "OK", "right": "OK", "met": "SKIPPED", "after": "SKIPPED"}
    assert run.component("met")["cause"] == "of the branches that it joins, sub-job `left` ended in ERROR at `left`"
    assert (run.status, run.exit_code) == ("failed", 1)


@pytest.mark.clause("J2.6")
def test_a_join_with_an_error_link_runs_in_spite_of_a_branch_in_error(tmp_path: Path) -> None:
    run = run_job(job(*FORK, "left (error) met", "met (ok) after", left=FAILS), tmp_path)
    assert run.component("met")["state"] == run.component("after")["state"] == "OK"
    assert run.fired("error") == ["left (error) met"]
    assert run.fired("synchronise") == []
    assert run.subjobs() == {"fork": "OK", "left": "ERROR", "right": "OK", "met": "OK"}


@pytest.mark.clause("J2.6")
def test_a_branch_that_mended_itself_counts_as_ok(tmp_path: Path) -> None:
    run = run_job(job(*FORK, "left (error) mend", left=FAILS), tmp_path)
    assert run.states() == {"left": "ERROR", "fork": "OK", "right": "OK", "met": "OK", "mend": "OK"}
    assert run.status == "completed"


@pytest.mark.clause("J4.2")
@pytest.mark.parametrize(("left", "right"), [(10, 500), (500, 10)])
def test_at_a_join_the_branch_with_the_higher_logical_clock_wins_whichever_was_faster(
    tmp_path: Path, left: int, right: int
) -> None:
    text = job(
        *FORK,
        "left (ok) write_left",
        "right (ok) write_right",
        left=sleeps(left),
        right=sleeps(right),
        write_left=sets(who="left", only_left=1),
        write_right=sets(who="right"),
        met=python("result = globals['who']"),
    )
    run = run_job(text, tmp_path, virtual=True)
    order = [one["writer"] for one in run.payloads("global.set") if one["key"] == "who"]
    assert order == (["write_left", "write_right"] if left < right else ["write_right", "write_left"])
    assert next(one["result"] for one in run.payloads("component.ok") if one["component"] == "met") == "right"
    assert run.globals == {"who": "right", "only_left": 1}


@pytest.mark.clause("J4.2")
def test_what_wins_at_a_join_is_decided_by_the_place_in_the_document(tmp_path: Path) -> None:
    """The sub-job index is that of the first component in the document; swapping the two swaps the winner."""
    for order in (["left", "right"], ["right", "left"]):
        text = job(*FORK, alone=" ".join(order), left=sets(who="left"), right=sets(who="right"))
        run = run_job(text, tmp_path / order[0])
        assert run.globals["who"] == order[-1]


@pytest.mark.clause("J4.3")
def test_when_one_branch_fails_the_others_go_on(tmp_path: Path) -> None:
    text = job("fork (parallelise) a, b, c", "b (ok) b2", "c (ok) c2", a=FAILS, b=sleeps(60), c=sleeps(30))
    run = run_job(text, tmp_path, virtual=True)
    assert run.subjobs() == {"a": "ERROR", "b": "OK", "fork": "OK", "c": "OK"}
    at = positions(run.events)
    assert at["component.error a"] < at["component.started b2"]
    assert at["component.error a"] < at["component.started c2"]


@pytest.mark.clause("J4.4")
def test_every_join_has_its_own_branches(tmp_path: Path) -> None:
    links = (
        "fork (parallelise) a, b, c, d",
        "a, b (synchronise) first",
        "c, d (synchronise) second",
        "first (ok) after",
    )
    run = run_job(job(*links, c=FAILS), tmp_path)
    assert run.component("first")["state"] == run.component("after")["state"] == "OK"
    assert run.component("second")["state"] == "SKIPPED"


@pytest.mark.clause("J4.4")
def test_one_branch_may_lead_into_several_joins(tmp_path: Path) -> None:
    links = ("fork (parallelise) a, b, c", "a, b (synchronise) first", "b, c (synchronise) second")
    run = run_job(job(*links), tmp_path)
    assert run.component("first")["state"] == run.component("second")["state"] == "OK"


AMBIGUOUS = {
    "two synchronise links": ("f (parallelise) a, b, c, d", "a, b (synchronise) j", "c, d (synchronise) j"),
    "a branch listed twice": ("f (parallelise) a, b", "a (ok) a2", "a, a2, b (synchronise) j"),
    "branches of two forks": ("f (parallelise) a, b", "g (parallelise) c, d", "a, c (synchronise) j"),
    "no fork at all": ("x (ok) a", "y (ok) b", "a, b (synchronise) j"),
}


@pytest.mark.clause("J4.4")
@pytest.mark.parametrize("what", AMBIGUOUS)
def test_an_ambiguous_join_is_refused(tmp_path: Path, what: str) -> None:
    assert codes(job(*AMBIGUOUS[what]), tmp_path) == ["J0308"]


@pytest.mark.clause("J2.6")
def test_rows_that_cross_into_a_join_are_needed_beside_its_synchronise(tmp_path: Path) -> None:
    """Fork, work, join: the rows of both branches are handed over by reference (D31)."""
    text = job(
        *FORK,
        data=("left.main -> met.input_a", "right.main -> met.input_b", "met.main -> shown.input"),
        left=rows(1, 2),
        right=rows(3),
        met={"type": "union"},
        shown=python("result = sorted(row['id'] for row in inputs['input'])"),
    )
    run = run_job(text, tmp_path)
    assert run.status == "completed", run.error
    assert sorted(run.subjobs()) == ["fork", "left", "met", "right"]
    assert run.component("met")["rows_in"] == {"input_a": 2, "input_b": 1}
    assert next(one["result"] for one in run.payloads("component.ok") if one["component"] == "shown") == [1, 2, 3]
