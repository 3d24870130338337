"""Section 2: what makes a link fire, and what a link never does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import run_job
from tests.spec_jobs.support import FAILS, job, python, sets, sleeps


@pytest.mark.clause("J2.2")
def test_error_fires_with_die_on_error_too_and_then_the_job_ends(tmp_path: Path) -> None:
    text = job(
        "a (error) help", "help (ok) more_help", "other (ok) later", a={**FAILS, "die_on_error": True}, other=sleeps(60)
    )
    run = run_job(text, tmp_path, virtual=True)
    assert run.fired() == ["a (error) help", "help (ok) more_help", "other (ok) later"]
    assert run.states() == {"a": "ERROR", "help": "OK", "more_help": "OK", "other": "OK", "later": "SKIPPED"}
    assert (run.status, run.exit_code) == ("failed", 1)
    assert "the job is ending" in run.component("later")["cause"]
    assert run.error["component"] == "a"


@pytest.mark.clause("J2.2")
def test_die_ends_the_job_with_its_own_exit_code_after_its_error_path(tmp_path: Path) -> None:
    text = job(
        "bad (error) help", "bad (ok) after", bad={"type": "die", "params": {"message": "no orders", "code": 42}}
    )
    run = run_job(text, tmp_path)
    assert run.states() == {"bad": "ERROR", "help": "OK", "after": "SKIPPED"}
    assert (run.status, run.exit_code) == ("failed", 42)
    assert run.error["message"] == "no orders"


def test_after_a_death_not_even_the_sub_job_that_mended_itself_leads_on(tmp_path: Path) -> None:
    """Nothing starts but what the error links reach (D38): a later sub-job is not among it, however the first one ended."""
    text = job("bad (error) help", "bad (subjob_ok) load", bad={**FAILS, "die_on_error": True})
    run = run_job(text, tmp_path)
    assert run.states() == {"bad": "ERROR", "help": "OK", "load": "SKIPPED"}


def test_an_iterator_on_the_error_path_of_a_death_runs_its_body(tmp_path: Path) -> None:
    text = job(
        "bad (error) it",
        "it (iterate) tell",
        bad={"type": "die", "params": {"code": 3}},
        it={"type": "iterate_list", "params": {"items": ["ops", "sales"]}},
    )
    run = run_job(text, tmp_path)
    assert run.states() == {"bad": "ERROR", "it": "OK", "it[#0].tell": "OK", "it[#1].tell": "OK"}
    assert run.exit_code == 3


SEEN = {
    "a global of its own": ("global.n == 5", True),
    "a global by its bare name": ("n == 5", True),
    "a global from before": ("global.before == 'yes'", True),
    "the context": ("context.limit == 10 and limit > 9", True),
    "an after-variable by its bare name": ("NB_LINE == 0 and ERROR_MESSAGE is none", True),
    "an after-variable of an earlier component": ("global.first.NB_LINE == 0", True),
    "its own after-variable in full": ("global.a.NB_LINE == 0", True),
    "a missing global": ("global.nowhere == 5", False),
    "a missing global, negated": ("not (global.nowhere == 5)", False),
    "a missing global beside something true": ("global.nowhere == 5 or global.n == 5", False),
    "a missing global that is asked about": ("global.nowhere is not defined", True),
    "a missing global with a default": ("default(global.nowhere, 5) == 5", True),
}


@pytest.mark.clause("J2.4")
@pytest.mark.parametrize("what", SEEN)
def test_a_condition_sees_globals_context_and_after_variables(tmp_path: Path, what: str) -> None:
    condition, is_true = SEEN[what]
    condition = condition.replace("default(global.nowhere, 5)", "(global.nowhere | default(5))")
    links = ("first (ok) a", f'a (if 1: "{condition}") b')
    text = job(*links, first=sets(before="yes"), a=sets(n=5), context={"limit": 10})
    run = run_job(text, tmp_path)
    assert run.component("a")["state"] == "OK"
    assert run.component("b")["state"] == ("OK" if is_true else "SKIPPED")


@pytest.mark.clause("J2.4")
@pytest.mark.parametrize("condition", ["1 / global.zero > 1", "global.text > 5", "len(global.zero) > 1"])
def test_a_condition_that_fails_is_an_error_of_its_component(tmp_path: Path, condition: str) -> None:
    links = (f'a (if 2: "{condition}") b', 'a (if 1: "True") c', "a (ok) d", "a (error) e")
    run = run_job(job(*links, a=sets(zero=0, text="x")), tmp_path)
    assert run.states() == {"a": "ERROR", "b": "SKIPPED", "c": "SKIPPED", "d": "SKIPPED", "e": "OK"}
    assert run.fired() == ["a (error) e"]
    error = run.component("a")["error"]
    assert error["kind"] == "expression"
    assert "from `a` to `b`" in error["message"]
    assert run.globals == {"text": "x", "zero": 0}
    assert run.status == "completed"


@pytest.mark.clause("J2.9")
def test_the_cause_of_a_skip_that_lack_of_rows_brought_about_names_the_port(tmp_path: Path) -> None:
    text = job(
        data=("feeder.main -> target.input",), feeder=python("raise ValueError('no rows')"), target={"type": "log_rows"}
    )
    run = run_job(text, tmp_path)
    assert run.states() == {"feeder": "ERROR", "target": "SKIPPED"}
    assert run.component("target")["cause"] == "its input `input` cannot be fed: `feeder` ended in ERROR"
