"""Globals that are deleted (D62, rulebook 13.4): they are as if they had never been for whoever comes after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jobs import resume_job, run_job
from tests.spec_jobs.support import each, job, python, sets, when
from tests.spec_jobs.test_resume import Shop


def deletes(*names: str) -> dict[str, Any]:
    return {"type": "set_global", "params": {"delete": list(names)}}


def result(run: Any, component: str) -> Any:
    [ended] = [one for one in run.payloads("component.ok") if one["component"] == component]
    return ended["result"]


@pytest.mark.clause("J5.1")
@pytest.mark.parametrize("gone", [deletes("x"), python("del globals['x']")])
def test_a_deleted_global_is_gone_for_whoever_comes_after_and_the_log_says_so(
    tmp_path: Path, gone: dict[str, Any]
) -> None:
    seen = python(
        "result = ['x' in globals, globals.get('x', 'nothing'), sorted(name for name in globals if len(name) == 1)]"
    )
    run = run_job(job("a (ok) b", "b (ok) c", a=sets(x=1, y=2), b=gone, c=seen), tmp_path)
    assert run.globals == {"y": 2}
    assert result(run, "c") == [False, "nothing", ["y"]]
    event = run.payloads("global.set")[-1]
    assert (event["key"], event["old"], event["new"], event["deleted"], event["writer"]) == ("x", 1, None, True, "b")
    assert not run.payloads("global.set")[0]["deleted"]
    assert run.payloads("checkpoint.saved")[-1]["globals"] == {"y": 2}


def test_a_global_that_is_not_there_cannot_be_deleted_by_code_and_is_left_alone_by_set_global(tmp_path: Path) -> None:
    run = run_job(job("a (error) b", a=python("del globals['x']"), b=deletes("x")), tmp_path)
    assert run.states() == {"a": "ERROR", "b": "OK"}
    assert "KeyError" in str(run.component("a")["error"])
    assert result(run, "b") == {"names": [], "deleted": []}
    assert not run.payloads("global.set")


def test_what_was_deleted_can_be_made_anew_by_another_sub_job(tmp_path: Path) -> None:
    """It belongs to nobody by then, so nothing has to be exported."""
    text = job(
        "a (ok) b",
        "b (subjob_ok) c",
        "c (subjob_ok) d",
        a=sets(x=1),
        b=deletes("x"),
        c=sets(x=2),
        d=python("result = globals['x']"),
    )
    run = run_job(text, tmp_path)
    assert run.globals == {"x": 2}
    assert result(run, "d") == 2


def test_a_global_of_another_sub_job_is_deleted_for_everyone_only_if_it_is_exported(tmp_path: Path) -> None:
    links = ("a (subjob_ok) b", "b (ok) c", "b (subjob_ok) d")
    there = python("result = 'x' in globals")
    kept = run_job(job(*links, a=sets(x=1), b=deletes("x"), c=there, d=there), tmp_path)
    assert kept.globals == {"x": 1}
    assert (result(kept, "c"), result(kept, "d")) == (False, True)
    (other := tmp_path / "other").mkdir()
    gone = run_job(job(*links, a=sets(x=1), b={**deletes("x"), "global_export": ["x"]}, c=there, d=there), other)
    assert gone.globals == {}
    assert (result(gone, "c"), result(gone, "d")) == (False, False)


def test_an_if_link_that_reads_a_deleted_global_does_not_fire(tmp_path: Path) -> None:
    links = (when("b", "c", "global.x == 1"), when("b", "d", "global.x is not defined"))
    run = run_job(job("a (ok) b", *links, a=sets(x=1), b=deletes("x")), tmp_path)
    assert (run.states()["c"], run.states()["d"]) == ("SKIPPED", "OK")


@pytest.mark.clause("J5.2")
def test_where_branches_meet_a_delete_is_a_write_like_any_other(tmp_path: Path) -> None:
    """It knew of the value that it deleted, and so replaces it; against a write beside it the later place wins."""
    links = ("a (parallelise) b, c", "b, c (synchronise) d")
    there = python("result = globals.get('x', 'gone')")
    export = {"global_export": ["x"]}
    one = run_job(job(*links, a=sets(x=1), b={**deletes("x"), **export}, c=sets(y=1), d=there), tmp_path)
    assert result(one, "d") == "gone"
    (other := tmp_path / "other").mkdir()
    both = run_job(job(*links, a=sets(x=1), b={**deletes("x"), **export}, c={**sets(x=3), **export}, d=there), other)
    assert result(both, "d") == 3


@pytest.mark.parametrize(("mode", "left"), [("accumulate", [3]), ("override", [3]), ("reset", [3])])
def test_iterations_may_delete_what_earlier_ones_wrote(tmp_path: Path, mode: str, left: list[int]) -> None:
    body = python(
        "if iteration['item'] == 2:\n    globals.pop('x', None)\nelse:\n    globals['x'] = [iteration['item']]\n"
        "globals['seen'] = ['x' in globals]"
    )
    text = job("it (iterate) body", "before (ok) it", before=sets(x=[0]), it=each(1, 2, 3, globals=mode), body=body)
    assert run_job(text, tmp_path).globals["x"] == left


def test_an_iterator_whose_last_iteration_deletes_a_global_deletes_it(tmp_path: Path) -> None:
    body = python("if iteration['item'] == 2: del globals['x']")
    run = run_job(job("before (ok) it", "it (iterate) body", before=sets(x=[0]), it=each(1, 2), body=body), tmp_path)
    assert run.globals == {}
    assert [one["writer"] for one in run.payloads("global.set") if one["deleted"]] == ["it[#1].body", "it"]


def test_inside_a_joblet_the_bare_name_is_deleted_as_it_is_read(tmp_path: Path) -> None:
    inner = job(
        "a (ok) b",
        "b (ok) c",
        a=sets(x=1),
        b=python("del globals['x']\ndel globals['outer']", global_export=["outer"]),
        c=python("globals['left'] = 'x' in globals"),
    )
    (tmp_path / "inner.yaml").write_text('{"kind": "Joblet", ' + inner.lstrip()[1:])
    run = run_job(job("before (ok) j", before=sets(outer=1, other=2), j={"type": "@inner"}), tmp_path)
    assert run.globals == {"other": 2, "j.__c__left": False}


def test_after_a_resume_what_was_deleted_stays_so(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        "a (ok) b",
        "b (subjob_ok) c",
        a=sets(x=1, y=1),
        b=deletes("x"),
        c=shop.fails("c", "True", "result = 'x' in globals"),
    )
    assert run_job(text, tmp_path).status == "failed"
    shop.mend()
    run = resume_job(tmp_path)
    assert run.globals == {"y": 1}
    assert result(run, "c") is False


def test_nothing_to_set_and_nothing_to_delete_is_a_mistake(tmp_path: Path) -> None:
    from tests.jobs import problems

    [problem] = problems(job(alone="a", a={"type": "set_global"}), tmp_path)
    assert "sets nothing and deletes nothing" in problem.message
    [both] = problems(
        job(alone="a", a={"type": "set_global", "params": {"values": {"x": 1}, "delete": ["x"]}}), tmp_path
    )
    assert "set and deleted at once" in both.message
