"""Section 8: cycles, endless conditions, resources that run out, documents that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import problems, run_job
from tests.spec_jobs.support import FAILS, job, python, rows

CYCLES = {
    "of control links": (("a (ok) b", "b (ok) c", "c (error) a"), (), {"a", "b", "c"}),
    "of one component": (("start (ok) a", "a (ok) a"), (), {"a"}),
    "of rows": ((), ("a.main -> b.input", "b.main -> a.input"), {"a", "b"}),
    "of rows and control": (("b (ok) a",), ("a.main -> b.input",), {"a", "b"}),
    "through sub-jobs": (("a (subjob_ok) b", "b (subjob_ok) a"), (), {"a", "b"}),
    "through a fork": (("a (parallelise) b, c", "b, c (synchronise) d", "d (ok) a"), (), {"a", "b", "d"}),
}


@pytest.mark.clause("J8.1")
@pytest.mark.parametrize("what", CYCLES)
def test_a_cycle_is_an_error_that_names_the_components_on_it(tmp_path: Path, what: str) -> None:
    links, data, members = CYCLES[what]
    passes = {"type": "filter", "params": {"where": "TRUE"}}
    components = dict.fromkeys("ab", passes) if data else {}
    found = [one for one in problems(job(*links, data=data, **components), tmp_path) if one.code == "J0306"]
    assert len(found) == 1
    assert "CYCLE_DETECTED" in str(found[0])
    assert all(f"`{name}`" in found[0].message for name in members)


ENDLESS = """
job_config: {limits: {max_reevaluations: %s}}
components:
  - {name: begin, type: set_global, params: {values: {n: 0}}}
  - {name: again, type: iterate_while, params: {while: "global.n >= 0", globals: override}}
  - {name: count, type: set_global, params: {values: {n: "{{ global.n + 1 }}"}}}
  - {name: told, type: noop}
  - {name: after, type: noop}
connections:
  control: |
    begin (ok) again
    again (iterate) count
    again (error) told
    again (ok) after
"""


@pytest.mark.clause("J8.2")
def test_a_condition_that_stays_true_ends_the_job(tmp_path: Path) -> None:
    run = run_job(ENDLESS.replace("job_config: {limits: {max_reevaluations: %s}}", ""), tmp_path)
    assert run.component("again")["error"]["kind"] == "CONDITION_REEVALUATION_LIMIT"
    assert "CONDITION_REEVALUATION_LIMIT" in run.error["message"]
    assert (run.status, run.exit_code) == ("failed", 1)
    assert len(run.payloads("iteration.started")) == 101, "one evaluation and a hundred re-evaluations were true"
    assert (run.component("told")["state"], run.component("after")["state"]) == ("OK", "SKIPPED")


@pytest.mark.clause("J8.2")
def test_the_limit_of_re_evaluations_can_be_set(tmp_path: Path) -> None:
    run = run_job(ENDLESS % 5, tmp_path)
    assert run.component("again")["error"]["limit"] == 5
    assert len(run.payloads("iteration.started")) == 6


@pytest.mark.clause("J8.2")
def test_a_condition_that_becomes_false_in_time_ends_well(tmp_path: Path) -> None:
    text = (ENDLESS % 5).replace("global.n >= 0", "global.n < 5")
    run = run_job(text, tmp_path)
    assert (run.status, run.globals) == ("completed", {"n": 5})
    assert run.component("after")["state"] == "OK"


@pytest.mark.clause("J8.2")
def test_a_while_ends_where_its_own_maximum_says_and_that_is_no_error(tmp_path: Path) -> None:
    text = (ENDLESS % 50).replace("globals: override", "globals: override, max: 3")
    run = run_job(text, tmp_path)
    assert (run.status, run.globals) == ("completed", {"n": 3})


@pytest.mark.clause("J8.3")
def test_a_component_over_its_memory_limit_is_in_error_and_the_rest_goes_on(tmp_path: Path) -> None:
    """One value larger than the limit cannot be spilled: the component fails, its error link fires, a neighbour runs."""
    text = job(
        "huge (error) told",
        data=("huge.main -> sink.input", "small.main -> other.input"),
        huge={"type": "generate_rows", "params": {"count": 8, "columns": {"t": "repeat('x', 40000000) || i::VARCHAR"}}},
        sink={"type": "log_rows"},
        small=rows(1, 2),
        other=python("result = len(inputs['input'])"),
        config={"memory_limit": "64MB"},
    )
    run = run_job(text, tmp_path)
    assert run.states() == {"huge": "ERROR", "sink": "SKIPPED", "small": "OK", "other": "OK", "told": "OK"}
    assert "memory" in run.component("huge")["error"]["message"].lower()


@pytest.mark.clause("J8.3")
def test_a_full_disk_puts_the_component_into_error(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.fail("this machine has no /dev/full")
    code = "with open('/dev/full', 'w') as file:\n    file.write('x' * 100000)\n"
    run = run_job(job("writer (error) told", "writer (ok) after", writer=python(code)), tmp_path)
    assert run.states() == {"writer": "ERROR", "told": "OK", "after": "SKIPPED"}
    assert "No space left" in run.component("writer")["error"]["message"]


@pytest.mark.clause("J8.3")
def test_a_memory_error_in_code_is_the_components_error(tmp_path: Path) -> None:
    run = run_job(job("hungry (error) told", hungry=python("x = bytearray(1 << 62)")), tmp_path)
    assert run.states() == {"hungry": "ERROR", "told": "OK"}
    assert "MemoryError" in run.component("hungry")["error"]["message"]


@pytest.mark.clause("J8.3")
def test_endless_recursion_in_code_is_the_components_error(tmp_path: Path) -> None:
    run = run_job(job("deep (error) told", deep=python("def f():\n    return f()\nf()")), tmp_path)
    assert run.states() == {"deep": "ERROR", "told": "OK"}


MALFORMED = {
    "a tab": ("components:\n\t- {name: a, type: noop}\n", 2),
    "a bracket that is never closed": ("components:\n  - {name: a, type: noop\n", 2),
    "a duplicate key": ("components:\n  - name: a\n    type: noop\n    name: b\n", 4),
    "a list where a mapping belongs": ("components:\n  - [a, noop]\n", 2),
    "an unknown key": ("components:\n  - {name: a, type: noop, kinds: x}\n", 2),
    "a component without a type": ("components:\n  - {name: a}\n", 2),
    "a wrong value": ("components:\n  - {name: a, type: noop, startable: perhaps}\n", 2),
    "a missing parameter": ("components:\n  - {name: a, type: python}\n", 2),
    "a link to nowhere": ("components:\n  - {name: a, type: noop}\nconnections:\n  control: a (ok) b\n", 4),
}


@pytest.mark.clause("J8.4")
@pytest.mark.parametrize("what", MALFORMED)
def test_a_document_that_cannot_be_read_is_reported_with_its_place(tmp_path: Path, what: str) -> None:
    text, line = MALFORMED[what]
    found = problems(text, tmp_path)
    assert found
    assert found[0].position.line == line
    assert found[0].position.column >= 1
    assert str(found[0].position.file).endswith("job.yaml")


@pytest.mark.clause("J8.4")
def test_the_message_says_where_in_the_document_it_is(tmp_path: Path) -> None:
    from penstock.cli.main import main

    path = tmp_path / "job.yaml"
    path.write_text("components:\n  - {name: a, type: noop}\n  - {name: b, type: noop, startable: perhaps}\n")
    assert main(["validate", str(path)]) == 2
    found = problems(path.read_text(), tmp_path)
    assert "components[1].startable" in found[0].path


def test_an_error_in_code_that_nobody_handles_fails_the_run_with_the_line_of_the_document(tmp_path: Path) -> None:
    run = run_job(job(alone="a", a=FAILS), tmp_path)
    assert (run.status, run.exit_code) == ("failed", 1)
    assert "ValueError: broken" in run.error["message"]
    assert run.error["line"] >= 1
