"""Section 11: joblets are expanded in place, and what goes wrong inside is told outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs import Ran, problems, resume_job, run_job
from tests.spec_jobs.support import FAILS, OK, job, python, rows, sets, sleeps


def joblet(home: Path, name: str, text: str, **sections: Any) -> None:
    document = {"kind": "Joblet", **json.loads(text), **sections}
    (home / f"{name}.yaml").write_text(json.dumps(document, indent=1))


def result(run: Ran, component: str) -> Any:
    return next(one["result"] for one in run.payloads("component.ok") if one["component"] == component)


def cleaner(home: Path) -> None:
    """Keeps what is larger than a limit, and counts it."""
    inside = job(
        data=("keep.main -> copy.input",),
        keep={"type": "filter", "params": {"where": "id > {{ params.over }}"}},
        copy={"type": "derive", "params": {"columns": {"twice": "id * 2"}}},
    )
    joblet(
        home, "cleaner", inside, inputs={"customers": "keep.input"}, outputs={"clean": "copy.main"}, params={"over": 1}
    )


@pytest.mark.clause("J11.1")
def test_a_joblet_is_expanded_in_place_and_its_components_carry_the_callers_name(tmp_path: Path) -> None:
    joblet(tmp_path, "work", job("first (ok) second"))
    run = run_job(job("a (ok) j", "j (ok) b", j={"type": "@work"}), tmp_path)
    assert run.states() == {"a": "OK", "j": "OK", "j.__first": "OK", "j.__second": "OK", "b": "OK"}
    assert run.started() == ["a", "j", "j.__first", "j.__second", "b"]
    assert run.fired() == ["a (ok) j", "j.__first (ok) j.__second", "j (ok) b"]


@pytest.mark.clause("J11.1")
def test_joblets_lie_beside_the_job_or_in_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "joblets").mkdir()
    joblet(tmp_path / "joblets", "far", job(alone="x"))
    joblet(tmp_path, "near", job(alone="y"))
    run = run_job(job(alone="a b", a={"type": "@far"}, b={"type": "@near"}), tmp_path)
    assert run.states() == {"a": "OK", "a.__x": "OK", "b": "OK", "b.__y": "OK"}


@pytest.mark.clause("J11.2")
def test_rows_go_into_a_joblet_and_come_out_of_it(tmp_path: Path) -> None:
    cleaner(tmp_path)
    text = job(
        data=("extract.main -> tidy.customers", "tidy.clean -> load.input"),
        extract=rows(1, 2, 3),
        tidy={"type": "@cleaner", "params": {"over": 2}},
        load=python("result = [dict(row) for row in inputs['input']]"),
    )
    run = run_job(text, tmp_path)
    assert run.status == "completed", run.error
    assert result(run, "load") == [{"id": 3, "twice": 6}]
    assert run.component("tidy")["rows_in"] == {"customers": 3}
    assert run.component("tidy")["rows_out"] == {"clean": 1}
    assert run.component("tidy.__keep")["rows_in"] == {"input": 3}


@pytest.mark.clause("J11.2")
def test_the_inside_waits_for_the_callers_links(tmp_path: Path) -> None:
    """`green` fires a minute after the rows are there; nothing inside begins before."""
    cleaner(tmp_path)
    text = job(
        "green (ok) tidy",
        data=("extract.main -> tidy.customers", "tidy.clean -> load.input"),
        extract=rows(1, 2, 3),
        green=sleeps(60),
        tidy={"type": "@cleaner"},
        load=python("result = len(inputs['input'])"),
    )
    run = run_job(text, tmp_path, virtual=True)
    assert run.status == "completed", run.error
    started = run.started()
    assert started.index("tidy") < started.index("tidy.__keep") < started.index("tidy.__copy") < started.index("load")
    kinds = [(event["event_type"], event["scope"]) for event in run.events]
    assert kinds.index(("component.ok", "green")) < kinds.index(("component.started", "tidy.__keep"))


@pytest.mark.clause("J11.2")
def test_a_call_is_a_scope_of_its_own_inside_the_callers_sub_job(tmp_path: Path) -> None:
    joblet(tmp_path, "work", job("first (parallelise) left, right"))
    run = run_job(job("a (ok) j", "j (ok) b", "a (subjob_ok) c", j={"type": "@work"}), tmp_path)
    kinds = [(event["event_type"], event["scope"]) for event in run.events]
    inner = [scope for kind, scope in kinds if kind == "subjob.started"]
    assert inner == ["<a>", "<j.__first>", "<j.__left>", "<j.__right>", "<c>"]
    assert (
        kinds.index(("subjob.ok", "<j.__right>"))
        < kinds.index(("component.ok", "j"))
        < kinds.index(("component.started", "b"))
    )
    assert (
        kinds.index(("component.ok", "b")) < kinds.index(("subjob.ok", "<a>")) < kinds.index(("component.started", "c"))
    )


def nested(home: Path, depth: int) -> str:
    """A job whose joblets call each other, `depth` deep."""
    for level in range(1, depth):
        joblet(home, f"level{level}", job(alone="down", down={"type": f"@level{level + 1}"}))
    joblet(home, f"level{depth}", job(alone="bottom"))
    return job(alone="top", top={"type": "@level1"})


@pytest.mark.clause("J11.3")
def test_joblets_nest_twenty_deep(tmp_path: Path) -> None:
    run = run_job(nested(tmp_path, 20), tmp_path)
    assert run.status == "completed"
    assert run.component("top." + "__down." * 19 + "__bottom")["state"] == "OK"


@pytest.mark.clause("J11.3")
def test_twenty_one_deep_is_refused(tmp_path: Path) -> None:
    found = problems(nested(tmp_path, 21), tmp_path)
    assert "J0903" in [one.code for one in found]
    assert any("JOBLET_RECURSION_DEPTH" in str(one) for one in found)


@pytest.mark.clause("J11.3")
@pytest.mark.parametrize("chain", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_a_joblet_that_calls_itself_is_refused_with_the_chain(tmp_path: Path, chain: list[str]) -> None:
    for name, calls in zip(chain, [*chain[1:], chain[0]], strict=True):
        joblet(tmp_path, name, job(alone="x", x={"type": f"@{calls}"}))
    found = problems(job(alone="top", top={"type": "@a"}), tmp_path)
    assert [one.code for one in found] == ["J0903"]
    assert " -> ".join(f"`{name}`" for name in [*chain, chain[0]]) in found[0].message


def test_a_job_that_runs_itself_is_told_so_in_one_line_with_the_chain(tmp_path: Path) -> None:
    run = run_job(job(again={"type": "run_job", "params": {"path": "job.yaml"}}), tmp_path)
    assert run.error["message"] == (
        "job `job.yaml` failed: executions are nested deeper than 32; does this document call itself? "
        "(called through `job.yaml` -> `job.yaml` -> `job.yaml` -> … -> `job.yaml`, 32 deep)"
    )
    assert run.error["cause"]["kind"] == "refused"
    assert "cause" not in run.error["cause"]


def test_a_failure_in_a_job_of_a_job_is_told_with_the_way_to_it(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(job(bad=FAILS))
    (tmp_path / "outer.yaml").write_text(job(down={"type": "run_job", "params": {"path": "inner.yaml"}}))
    run = run_job(job(down={"type": "run_job", "params": {"path": "outer.yaml"}}), tmp_path)
    said = run.error["message"]
    assert said.startswith("job `outer.yaml` failed: ValueError: broken")
    assert said.endswith(" (called through `outer.yaml` -> `inner.yaml`)")


@pytest.mark.clause("J11.4")
def test_a_joblet_that_is_the_body_of_an_iterator_fails_the_iteration_likewise(tmp_path: Path) -> None:
    joblet(tmp_path, "work", job("bad (subjob_error) mend", bad=FAILS))
    each = {"type": "iterate_list", "params": {"items": [1], "body": "@work"}}
    run = run_job(job("it (ok) next", it=each), tmp_path)
    assert (run.states()["it"], run.states()["next"], run.status) == ("ERROR", "SKIPPED", "failed")


@pytest.mark.clause("J11.4")
def test_a_joblet_that_failed_is_resumed_with_what_its_failure_led_to_inside(tmp_path: Path) -> None:
    """D64: had `bad` ended OK the first time, `mend` would not have run."""
    flag = tmp_path / "flag"
    bad = python(f"import pathlib\nif not pathlib.Path({str(flag)!r}).exists(): raise ValueError('not yet')")
    joblet(tmp_path, "work", job("bad (subjob_error) mend", "bad (subjob_ok) on", bad=bad))
    assert run_job(job("j (ok) next", j={"type": "@work"}), tmp_path).status == "failed"
    flag.touch()
    run = resume_job(tmp_path)
    assert run.status == "completed"
    assert run.states() == {"j": "OK", "j.__bad": "OK", "j.__mend": "SKIPPED", "j.__on": "OK", "next": "OK"}


@pytest.mark.clause("J11.5")
def test_a_component_in_error_whose_output_nobody_needs_lets_the_joblet_go_on(tmp_path: Path) -> None:
    joblet(tmp_path, "work", job("good (ok) after", alone="bad", bad=FAILS, good=sleeps(60)))
    run = run_job(job("j (error) told", j={"type": "@work"}), tmp_path, virtual=True)
    assert run.component("j.__after")["state"] == "OK", "it does not depend on what failed"
    assert run.component("j")["state"] == "ERROR", "and the failure is told all the same"
    assert run.component("told")["state"] == "OK"


@pytest.mark.clause("J11.5")
def test_die_on_error_of_the_caller_does_not_reach_the_inside(tmp_path: Path) -> None:
    """`after` inside still runs although `bad` beside it has failed and the call would die of its own error only."""
    joblet(tmp_path, "work", job("good (ok) after", "bad (error) mend", bad=FAILS, good=sleeps(60)))
    text = job("other (ok) later", alone="j", j={"type": "@work", "die_on_error": True}, other=sleeps(120))
    run = run_job(text, tmp_path, virtual=True)
    assert run.component("j.__after")["state"] == run.component("j")["state"] == run.component("later")["state"] == "OK"
    assert run.status == "completed"


@pytest.mark.clause("J11.5")
def test_die_on_error_of_an_inner_component_ends_the_job_and_not_only_the_joblet(tmp_path: Path) -> None:
    inner = job("bad (error) mend", "good (ok) after", bad={**FAILS, "die_on_error": True}, good=sleeps(60))
    joblet(tmp_path, "work", inner)
    run = run_job(job("j (ok) next", "other (ok) later", j={"type": "@work"}, other=sleeps(60)), tmp_path, virtual=True)
    assert run.component("j.__mend")["state"] == "OK"
    assert {run.component(name)["state"] for name in ("j.__after", "next", "later")} == {"SKIPPED"}
    assert (run.status, run.exit_code) == ("failed", 1)


@pytest.mark.clause("J11.5")
def test_without_die_on_error_a_failing_joblet_leaves_the_rest_of_the_job_alone(tmp_path: Path) -> None:
    joblet(tmp_path, "work", job(alone="bad", bad=FAILS))
    run = run_job(job("other (ok) later", alone="j", j={"type": "@work"}, other=sleeps(60)), tmp_path, virtual=True)
    assert (run.component("j")["state"], run.component("later")["state"]) == ("ERROR", "OK")
    assert run.status == "failed"


def test_a_post_job_has_its_turn_after_a_death_with_the_joblet_it_calls(tmp_path: Path) -> None:
    joblet(tmp_path, "tidy", job("x (ok) y"))
    text = job(
        "post (ok) clean",
        "post (ok) each_one",
        "each_one (iterate) body",
        alone="bad post",
        bad={"type": "die", "params": {"code": 9}},
        post={"type": "post_job"},
        clean={"type": "@tidy"},
        each_one={"type": "iterate_list", "params": {"items": [1, 2]}},
    )
    run = run_job(text, tmp_path)
    states = run.states()
    assert states.pop("bad") == "ERROR"
    assert set(states) == {
        "post",
        "clean",
        "clean.__x",
        "clean.__y",
        "each_one",
        "each_one[#0].body",
        "each_one[#1].body",
    }
    assert set(states.values()) == {"OK"}
    assert run.exit_code == 9


@pytest.mark.clause("J11.2")
def test_inside_a_joblet_bare_names_are_the_callers_own_first_then_those_outside(tmp_path: Path) -> None:
    joblet(
        tmp_path,
        "work",
        job("w (ok) r", w=sets(mine="inner"), r=python("result = [globals['mine'], globals['outer']]")),
    )
    run = run_job(
        job(
            "a (ok) j",
            "j (ok) b",
            a=sets(mine="outside", outer=1),
            j={"type": "@work"},
            b=python("result = globals['mine']"),
        ),
        tmp_path,
    )
    assert result(run, "j.__r") == ["inner", 1]
    assert result(run, "b") == "outside"


@pytest.mark.clause("J11.1")
def test_after_variables_of_inner_components_are_read_outside(tmp_path: Path) -> None:
    joblet(tmp_path, "work", job(data=("src.main -> out.input",), src=rows(1, 2, 3), out={"type": "log_rows"}))
    run = run_job(
        job(
            'j (if 1: "global.j.__out.NB_LINE == 3") yes',
            "j (ok) say",
            j={"type": "@work"},
            say=sets(n="{{ global.j.__src.NB_LINE_OUT_main }}"),
            yes=OK,
        ),
        tmp_path,
    )
    assert run.component("yes")["state"] == "OK"
    assert run.globals == {"n": 3}
