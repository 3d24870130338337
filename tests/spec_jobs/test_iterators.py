"""Section 12: one sub-job per element, its links, its globals, and what a failure does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jobs import Ran, run_job
from tests.spec_jobs.support import FAILS, OK, each, job, positions, python, rows, sets, sleeps

FAILS_AT_ONE = python("if iteration['index'] == 1:\n    raise ValueError('one is bad')\nresult = iteration['item']")


def results(run: Ran) -> dict[str, Any]:
    return {one["component"]: one["result"] for one in run.payloads("component.ok")}


@pytest.mark.clause("J12.1")
def test_an_iterator_opens_one_sub_job_per_element(tmp_path: Path) -> None:
    text = job(
        "it (iterate) a", "a (ok) b", it=each("x", "y", "z"), a=sets(seen="{{ iteration.item }}{{ iteration.index }}")
    )
    run = run_job(text, tmp_path)
    assert run.subjobs() == {"it": "OK", "it[#0]": "OK", "it[#1]": "OK", "it[#2]": "OK"}
    assert [one["members"] for one in run.standing.subjobs] == [
        ["it"],
        ["it[#0].a", "it[#0].b"],
        ["it[#1].a", "it[#1].b"],
        ["it[#2].a", "it[#2].b"],
    ]
    assert [(one["index"], one["item"]) for one in run.payloads("iteration.started")] == [(0, "x"), (1, "y"), (2, "z")]
    assert [one["new"] for one in run.payloads("global.set")][:3] == ["x0", "y1", "z2"]
    at = positions(run.events)
    assert (
        at["component.started it"]
        < at["iteration.started it[#0]"]
        < at["iteration.ok it[#0]"]
        < at["iteration.started it[#1]"]
    )


COLLECTIONS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "a list": (each("a", "b"), ["a", "b"]),
    "numbers": ({"type": "iterate_range", "params": {"start": 3, "stop": 6}}, [3, 4, 5]),
    "rows": ({"type": "iterate_rows"}, [{"id": 7}, {"id": 8}]),
    "files": ({"type": "iterate_files", "params": {"path": "drop", "pattern": "*.csv"}}, ["1.csv", "2.csv"]),
}


@pytest.mark.clause("J12.1")
@pytest.mark.parametrize("what", COLLECTIONS)
def test_elements_are_items_numbers_rows_and_files(tmp_path: Path, what: str) -> None:
    iterator, expected = COLLECTIONS[what]
    (tmp_path / "drop").mkdir()
    for name in ("2.csv", "1.csv", "other.txt"):
        (tmp_path / "drop" / name).touch()
    body = python(
        "item = iteration['item']\nresult = item['name'] if isinstance(item, dict) and 'name' in item else item"
    )
    feeds = {"source": rows(7, 8)} if what == "rows" else {}
    data = ("source.main -> it.input",) if what == "rows" else ()
    run = run_job(job("it (iterate) body", data=data, it=iterator, body=body, **feeds), tmp_path)
    assert run.status == "completed", run.error
    found = results(run)
    assert [found[f"it[#{index}].body"] for index in range(len(expected))] == expected


@pytest.mark.clause("J12.1")
def test_groups_of_rows_arrive_in_the_body_as_rows(tmp_path: Path) -> None:
    text = job(
        data=("source.main -> it.input", "it.item -> body.input"),
        source={"type": "fixed_rows", "params": {"columns": ["k", "v"], "rows": [["a", 1], ["b", 2], ["a", 3]]}},
        it={"type": "iterate_groups", "params": {"by": ["k"]}},
        body=python("result = [row['v'] for row in inputs['input']]"),
    )
    run = run_job(text, tmp_path)
    assert run.status == "completed", run.error
    assert [results(run)[f"it[#{index}].body"] for index in range(2)] == [[1, 3], [2]]


@pytest.mark.clause("J12.1")
def test_iterators_nest_and_the_outer_element_is_the_parent(tmp_path: Path) -> None:
    inner = each("x", "y")
    body = python("result = [iteration['parent']['item'], iteration['item']]")
    run = run_job(
        job("outer (iterate) inner", "inner (iterate) body", outer=each(1, 2), inner=inner, body=body), tmp_path
    )
    assert [results(run)[f"outer[#{a}].inner[#{b}].body"] for a in (0, 1) for b in (0, 1)] == [
        [1, "x"],
        [1, "y"],
        [2, "x"],
        [2, "y"],
    ]


@pytest.mark.clause("J12.1")
def test_iterations_run_side_by_side_when_asked_to(tmp_path: Path) -> None:
    run = run_job(job("it (iterate) body", it=each(*range(6), parallel=3), body=sleeps(60)), tmp_path, virtual=True)
    assert 2 * 60_000 <= run.played.summary.duration_ms < 2.2 * 60_000
    open_now = most = 0
    for event in run.events:
        open_now += {"iteration.started": 1, "iteration.ok": -1}.get(str(event["event_type"]), 0)
        most = max(most, open_now)
    assert most == 3


@pytest.mark.clause("J12.2")
def test_what_handles_an_iteration_sees_its_element_and_its_globals(tmp_path: Path) -> None:
    body = python("globals['made'] = iteration['item'].upper()")
    good = python("result = [iteration['item'], globals['made']]")
    run = run_job(job("it (iterate) body", "it (iteration_ok) good", it=each("a", "b"), body=body, good=good), tmp_path)
    assert results(run)["it[#1].good"] == ["b", "B"]


MODES: dict[str, dict[str, Any]] = {
    "accumulate": {"names": ["a", "c"], "last": "c", "tags": ["t", "u"]},
    "reset": {"names": ["c"], "last": "c", "tags": ["u"]},
    "override": {"names": ["c"], "last": "c", "tags": ["u"]},
}


@pytest.mark.clause("J12.3")
@pytest.mark.parametrize("mode", MODES)
def test_globals_of_iterations_in_three_modes_with_one_that_fails(tmp_path: Path, mode: str) -> None:
    """Three iterations, the second fails after it has written."""
    body = python(
        "globals['names'] = [iteration['item']]\nglobals['last'] = iteration['item']\n"
        "globals['tags'] = ['t'] if iteration['index'] < 2 else ['u']\n"
        "if iteration['index'] == 1:\n    globals['of_failed'] = 1\n    raise ValueError('bad')\n"
    )
    text = job(
        "it (iterate) body", it=each("a", "b", "c", globals=mode), body=body, config={"fail_strategy": "continue"}
    )
    run = run_job(text, tmp_path)
    assert run.globals == MODES[mode]
    assert run.status == "completed"


@pytest.mark.clause("J12.3")
def test_in_accumulate_sets_are_united_and_lists_appended(tmp_path: Path) -> None:
    body = python("globals['kinds'] = {iteration['item'], 'always'}\nglobals['log'] = [iteration['item'], 'always']")
    run = run_job(job("it (iterate) body", it=each("a", "b"), body=body), tmp_path)
    assert sorted(run.globals["kinds"]) == ["a", "always", "b"]
    assert run.globals["log"] == ["a", "always", "b", "always"]


@pytest.mark.clause("J12.3")
def test_a_list_that_iterations_extend_is_not_doubled(tmp_path: Path) -> None:
    """One at a time, each sees what the ones before it wrote: reading, extending and writing back gives every element once."""
    body = python("globals['seen'] = globals.get('seen', []) + [iteration['item']]")
    run = run_job(
        job("begin (ok) it", "it (iterate) body", begin=sets(seen=["z"]), it=each("a", "b", "c"), body=body), tmp_path
    )
    assert run.globals["seen"] == ["z", "a", "b", "c"]


@pytest.mark.clause("J12.3")
@pytest.mark.parametrize("mode", MODES)
def test_side_by_side_the_order_of_the_elements_decides(tmp_path: Path, mode: str) -> None:
    """The first element takes the longest."""
    text = job(
        "it (iterate) wait",
        "wait (ok) body",
        it=each("a", "b", "c", globals=mode, parallel=3),
        wait={"type": "sleep", "params": {"seconds": "{{ 30 - 10 * iteration.index }}"}},
        body=python("globals['names'] = [iteration['item']]\nglobals['last'] = iteration['item']"),
    )
    run = run_job(text, tmp_path, virtual=True)
    ends = [event["scope"] for event in run.events if event["event_type"] == "iteration.ok"]
    assert ends == ["it[#2]", "it[#1]", "it[#0]"]
    assert run.globals["last"] == "c"
    assert run.globals["names"] == (["a", "b", "c"] if mode == "accumulate" else ["c"])


@pytest.mark.clause("J12.5")
def test_continue_records_the_failure_and_goes_on(tmp_path: Path) -> None:
    links = ("it (iterate) body", "it (ok) next", "it (error) never", "it (iterator_complete) end")
    run = run_job(job(*links, it=each(*"abcd"), body=FAILS_AT_ONE, config={"fail_strategy": "continue"}), tmp_path)
    assert run.component("it")["state"] == "OK"
    assert (run.component("next")["state"], run.component("never")["state"]) == ("OK", "SKIPPED")
    completed = run.payloads("iterator.completed")[0]
    assert (completed["status"], completed["ok"], completed["failed"], completed["failures"]) == ("error", 3, 1, [1])
    assert (run.status, run.exit_code) == ("completed", 0)
    assert (run.standing.iterations["failed"], run.standing.iterations["failures"]) == (1, ["it[#1]"])
    assert run.played.summary.counts["failed_iterations"] == 1


@pytest.mark.clause("J12.5")
def test_an_iteration_that_mended_itself_is_ok(tmp_path: Path) -> None:
    run = run_job(job("it (iterate) body", "body (error) mend", it=each(*"abc"), body=FAILS_AT_ONE), tmp_path)
    assert run.status == "completed"
    assert run.payloads("iterator.completed")[0]["failed"] == 0


@pytest.mark.parametrize("strategy", ["halt", "continue"])
@pytest.mark.parametrize("last", [1, 4])
def test_a_death_in_an_iteration_ends_the_job_with_its_exit_code(tmp_path: Path, strategy: str, last: int) -> None:
    """Also in the last iteration, after which there is nothing left to stop (D38)."""
    text = job(
        "it (iterate) first",
        'first (if 1: "iteration.item == context.last") bad',
        "it (ok) next",
        it=each(1, 2, 3, 4),
        bad={"type": "die", "params": {"message": "enough", "code": 42}},
        config={"fail_strategy": strategy},
        context={"last": last},
    )
    run = run_job(text, tmp_path)
    assert (run.status, run.exit_code) == ("failed", 42)
    assert len(run.payloads("iteration.started")) == last
    assert (run.component("it")["state"], run.component("next")["state"]) == ("ERROR", "SKIPPED")
    assert "enough" in run.error["message"]


BODY = """
kind: Joblet
components:
  - {name: a, type: noop}
  - {name: b, type: set_global, params: {values: {n: "{{ iteration.item }}"}}}
  - {name: c, type: noop}
connections:
  control: |
    a (parallelise) b, c
"""


@pytest.mark.clause("J12.1")
def test_a_body_may_be_a_joblet_with_sub_jobs_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "work.yaml").write_text(BODY)
    run = run_job(job("it (ok) next", it=each(5, 6, body="@work"), next=OK), tmp_path)
    assert run.status == "completed", run.error
    assert [name for name in run.started() if name.endswith("b")] == ["it[#0].__b", "it[#1].__b"]
    assert run.payloads("iterator.completed")[0]["ok"] == 2
    assert run.globals == {"it.__b__n": 6}


@pytest.mark.clause("J12.5")
def test_a_failing_body_that_is_a_joblet_fails_its_iteration(tmp_path: Path) -> None:
    (tmp_path / "work.yaml").write_text(BODY.replace("{name: c, type: noop}", "{name: c, type: die}"))
    run = run_job(job("it (error) told", it=each(5, 6, body="@work"), told=FAILS), tmp_path)
    assert run.component("it")["state"] == "ERROR"
    assert [one["index"] for one in run.payloads("iteration.started")] == [0]
