"""Sections 2.1.4 and 4: parallelise and synchronise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import problems, run_job
from tests.spec_jobs.support import job, positions, python, rows, sets, sleeps


def codes(text: str, home: Path) -> list[str]:
    return [one.code for one in problems(text, home)]


FORK = ("fork (parallelise) left, right", "left, right (synchronise) met")


@pytest.mark.clause("J2.5")
def test_a_fork_with_one_target_is_refused_and_shown(tmp_path: Path) -> None:
    found = problems(job("a (parallelise) b"), tmp_path)
    assert [one.code for one in found] == ["J0307"]
    assert "`a`" in found[0].message


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
    text = job(*FORK, left=sleeps(60), right=sleeps(60))
    run = run_job(text, tmp_path, virtual=True)
    assert 60_000 <= run.played.summary.duration_ms < 65_000
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
