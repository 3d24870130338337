"""Sections 5 and 13.4: globals and the context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jobs import Ran, run_job
from tests.spec_jobs.support import FAILS, job, python, sets, sleeps


def result(run: Ran, component: str) -> Any:
    return next(one["result"] for one in run.payloads("component.ok") if one["component"] == component)


@pytest.mark.clause("J5.1")
def test_inside_a_component_globals_are_read_and_written(tmp_path: Path) -> None:
    code = (
        "globals['n'] = globals['n'] + 1\nglobals['new'] = 'x'\nresult = [globals['n'], 'new' in globals, len(globals)]"
    )
    run = run_job(job("a (ok) b", a=sets(n=1), b=python(code)), tmp_path)
    assert result(run, "b") == [2, True, 2]
    assert run.globals == {"n": 2, "new": "x"}


@pytest.mark.clause("J5.1")
def test_what_a_component_does_to_a_value_after_it_returned_has_no_effect(tmp_path: Path) -> None:
    """A thread that the code left behind goes on changing the list it put into a global."""
    gate = tmp_path / "gate"
    writer = (
        "import pathlib, threading, time\nkept = ['as committed']\nglobals['kept'] = kept\n"
        f"def later():\n    while not pathlib.Path({str(gate)!r}).exists():\n        time.sleep(0.001)\n"
        f"    kept.append('too late')\n    pathlib.Path({str(gate) + '2'!r}).touch()\n"
        "threading.Thread(target=later, daemon=True).start()\n"
    )
    reader = (
        f"import pathlib, time\npathlib.Path({str(gate)!r}).touch()\n"
        f"while not pathlib.Path({str(gate) + '2'!r}).exists():\n    time.sleep(0.001)\nresult = list(globals['kept'])\n"
    )
    run = run_job(job("a (ok) b", a=python(writer), b=python(reader)), tmp_path)
    assert result(run, "b") == ["as committed"]
    assert run.globals == {"kept": ["as committed"]}


@pytest.mark.clause("J5.1")
def test_a_value_that_a_reader_changes_in_place_is_a_write_of_the_readers_own(tmp_path: Path) -> None:
    """What was committed stays as it is for everyone else; the change is recorded like any other, or discarded like any other."""
    look = python("result = globals['deep']")
    text = job(
        "a (ok) b, beside",
        "b (ok) c",
        "beside (ok) after",
        a=sets(deep={"list": [1]}),
        b=python("globals['deep']['list'].append(2)"),
        beside=sleeps(60),
        c=look,
        after=look,
    )
    run = run_job(text, tmp_path, virtual=True)
    assert (result(run, "c"), result(run, "after")) == ({"list": [1, 2]}, {"list": [1]})
    changes = [(one["writer"], one["old"], one["new"]) for one in run.payloads("global.set")]
    assert changes == [("a", None, {"list": [1]}), ("b", {"list": [1]}, {"list": [1, 2]})]


@pytest.mark.clause("J5.1")
def test_reading_a_global_is_no_write(tmp_path: Path) -> None:
    run = run_job(
        job("a (ok) b", a=sets(deep={"list": [1]}, n=1), b=python("result = [globals['deep'], *globals]")), tmp_path
    )
    assert [one["writer"] for one in run.payloads("global.set")] == ["a", "a"]


def test_a_global_too_large_for_the_log_is_read_like_any_other(tmp_path: Path) -> None:
    big = python("globals['big'] = {'text': ['x' * 1000] * 2000}")
    run = run_job(job("a (ok) b", a=big, b=python("globals['n'] = len(globals['big']['text'])")), tmp_path)
    assert run.globals["n"] == 2000
    assert sum(len(str(event)) for event in run.events) < 50_000


@pytest.mark.clause("J5.2")
def test_globals_of_a_sub_job_are_seen_downstream_once_it_has_closed(tmp_path: Path) -> None:
    look = python("result = globals.get('x', 'nothing')")
    text = job(
        "a (ok) rest", "a (subjob_ok) after", alone="a beside", a=sets(x=1), rest=sleeps(60), beside=look, after=look
    )
    run = run_job(text, tmp_path, virtual=True)
    assert result(run, "beside") == "nothing"
    assert result(run, "after") == 1
    kinds = [(event["event_type"], event["scope"]) for event in run.events]
    assert kinds.index(("subjob.ok", "<a>")) < kinds.index(("component.started", "after"))


@pytest.mark.clause("J5.2")
def test_globals_are_seen_after_subjob_error_too(tmp_path: Path) -> None:
    text = job("a (ok) b", "a (subjob_error) told", a=sets(x=1), b=FAILS, told=python("result = globals['x']"))
    assert result(run_job(text, tmp_path), "told") == 1


@pytest.mark.clause("J5.2")
def test_a_key_of_another_sub_job_is_read_only_without_an_export(tmp_path: Path) -> None:
    """The writer's own sub-job sees the new value; everyone else the old one, and the log is warned."""
    links = ("a (subjob_ok) b", "b (ok) c", "b (subjob_ok) d")
    look = python("result = globals['x']")
    run = run_job(job(*links, a=sets(x="old"), b=sets(x="new", own=1), c=look, d=look), tmp_path)
    assert (result(run, "c"), result(run, "d")) == ("new", "old")
    assert run.globals == {"x": "old", "own": 1}
    written = {(one["writer"], one["key"]): one["local"] for one in run.payloads("global.set")}
    assert written == {("a", "x"): False, ("b", "x"): True, ("b", "own"): False}
    lines = (tmp_path / ".penstock" / "logs" / "run-1.ndjson").read_text()
    assert "warning: the global `x` was made by another sub-job" in lines
    assert "global_export" in lines


@pytest.mark.clause("J5.2")
def test_with_an_export_the_new_value_is_everyones(tmp_path: Path) -> None:
    b = {**sets(x="new"), "global_export": ["x"]}
    run = run_job(
        job("a (subjob_ok) b", "b (subjob_ok) d", a=sets(x="old"), b=b, d=python("result = globals['x']")), tmp_path
    )
    assert result(run, "d") == "new"
    assert run.globals == {"x": "new"}


@pytest.mark.clause("J5.2")
def test_within_its_sub_job_a_key_may_be_overwritten_freely(tmp_path: Path) -> None:
    run = run_job(
        job("a (ok) b", "a (subjob_ok) c", a=sets(x=1), b=sets(x=2), c=python("result = globals['x']")), tmp_path
    )
    assert result(run, "c") == 2


@pytest.mark.clause("J5.3")
def test_the_log_has_old_value_new_value_and_writer_of_every_change(tmp_path: Path) -> None:
    text = job("a (ok) b", "b (ok) c", a=sets(x=1), b=sets(x=2, y=[1]), c=python("globals['x'] = None"))
    run = run_job(text, tmp_path)
    changes = [(one["key"], one["old"], one["new"], one["writer"], one["scope"]) for one in run.payloads("global.set")]
    assert changes == [
        ("x", None, 1, "a", "a"),
        ("x", 1, 2, "b", "a"),
        ("y", None, [1], "b", "a"),
        ("x", 2, None, "c", "a"),
    ]


def test_a_global_that_holds_a_set_is_kept_as_a_sorted_list(tmp_path: Path) -> None:
    run = run_job(job(alone="a", a=python("globals['s'] = {3, 1, 2}")), tmp_path)
    assert run.globals == {"s": [1, 2, 3]}


INNER = """
kind: Joblet
components:
  - {name: inner, type: set_global, params: {values: {G: 5}}}
  - {name: reader, type: python, params: {code: "result = [globals['G'], 'outer' in globals]"}}
connections:
  control: inner (ok) reader
"""

OUTER = """
kind: Joblet
components:
  - {name: before, type: noop}
  - {name: nested, type: "@inner"}
connections:
  control: before (ok) nested
"""


@pytest.mark.clause("J5.4")
def test_a_joblets_globals_are_written_and_read_under_the_callers_name(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(INNER)
    text = job(
        "first (ok) caller",
        "caller (ok) after",
        'caller (if 1: "global.caller.__inner__G == 5") by_condition',
        first=sets(outer=1),
        caller={"type": "@inner"},
        after=python("result = globals['caller.__inner__G']"),
    )
    run = run_job(text, tmp_path)
    assert run.globals == {"outer": 1, "caller.__inner__G": 5}
    assert result(run, "caller.__reader") == [5, True]
    assert result(run, "after") == 5
    assert run.component("by_condition")["state"] == "OK"


@pytest.mark.clause("J5.4")
def test_globals_of_a_joblet_in_a_joblet_are_prefixed_twice(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(INNER)
    (tmp_path / "outer.yaml").write_text(OUTER)
    text = job(
        "caller (ok) after", caller={"type": "@outer"}, after=sets(copied="{{ global['caller.__nested.__inner__G'] }}")
    )
    run = run_job(text, tmp_path)
    assert run.globals == {"caller.__nested.__inner__G": 5, "copied": 5}
    assert result(run, "caller.__nested.__reader") == [5, False]


@pytest.mark.clause("J5.4")
def test_two_calls_of_one_joblet_do_not_share_globals(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(INNER)
    run = run_job(job("one (ok) two", one={"type": "@inner"}, two={"type": "@inner"}), tmp_path)
    assert run.globals == {"one.__inner__G": 5, "two.__inner__G": 5}


@pytest.mark.clause("J5.5")
@pytest.mark.parametrize(
    "code",
    [
        "context['who'] = 'eve'",
        "context['new'] = 1",
        "del context['who']",
        "context['deep']['a'] = 2",
        "context['list'].append(3)",
    ],
)
def test_writing_to_the_context_puts_the_component_into_error(tmp_path: Path, code: str) -> None:
    context = {"who": "ada", "deep": {"a": 1}, "list": [1, 2]}
    text = job("a (error) b", a=python(code), b=python("result = {**context}"), context=context)
    run = run_job(text, tmp_path)
    assert run.states() == {"a": "ERROR", "b": "OK"}
    assert "read-only" in run.component("a")["error"]["message"]
    assert result(run, "b") == context


@pytest.mark.clause("J5.5")
def test_the_context_is_the_same_snapshot_for_the_whole_run(tmp_path: Path) -> None:
    text = job(
        "a (ok) b",
        a=sets(first="{{ context.who }} {{ who }}"),
        b=sets(second="{{ context.who }}"),
        context={"who": "ada", "groups": {"prod": {"who": "grace"}}},
    )
    assert run_job(text, tmp_path / "1").globals == {"first": "ada ada", "second": "ada"}
    assert run_job(text, tmp_path / "2", group="prod").globals["second"] == "grace"
    assert run_job(text, tmp_path / "3", {"who": "eve"}, group="prod").globals["second"] == "eve"
