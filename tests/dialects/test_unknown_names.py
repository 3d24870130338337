"""Names that nothing defines, wherever an expression stands, in both languages: one problem for one slip, with what was meant."""

from __future__ import annotations

import pytest

from penstock.components.registry import ComponentRegistry
from penstock.dialects.job.compile import compile_text as compile_job
from penstock.dialects.playbook import compile_text as compile_playbook
from penstock.dialects.problems import Problem
from penstock.tools.registry import Registry
from tests.cases import cases

TOOLS, COMPONENTS = Registry(), ComponentRegistry()
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t}\nworkload: {day: 1}\nstate: {cursor: 0}\n"
ONE = "workflow:\n  - step: start\n    tool: [{name: a, kind: noop}]\n"
TWO = "    next: {arcs: [{step: b, ARC}]}\n  - step: b\n    tool: [{name: x, kind: noop}]\n"
TASK = "workflow:\n  - step: start\n    tool: [{name: a, TASK}]\n"

PLAYBOOK_SITES = {
    "arc when": ONE + TWO.replace("ARC", "when: 'EXPR'"),
    "arc args": ONE + TWO.replace("ARC", "args: {z: 'EXPR'}"),
    "arc set": ONE + TWO.replace("ARC", "set: {ctx.z: 'EXPR'}"),
    "step set": ONE + "    set: {ctx.z: 'EXPR'}\n",
    "task set": TASK.replace("TASK", "kind: noop, set: {ctx.z: 'EXPR'}"),
    "parameter": TASK.replace("TASK", "kind: log, message: 'EXPR'"),
    "args": TASK.replace("TASK", "kind: python, args: {x: 'EXPR'}, code: pass"),
    "args of a sub-playbook": TASK.replace("TASK", "kind: playbook, path: x, args: {x: 'EXPR'}"),
    "policy": TASK.replace("TASK", "kind: noop, spec: {policy: {rules: [{when: 'EXPR', then: {do: continue}}]}}"),
    "policy set": TASK.replace(
        "TASK", "kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {z: 'EXPR'}}}}]}}"
    ),
    "admission": ONE.replace(
        "    tool:", "    spec: {policy: {admit: {rules: [{when: 'EXPR', then: {allow: true}}]}}}\n    tool:"
    ),
    "loop": ONE.replace("    tool:", "    loop: {in: 'EXPR', iterator: n}\n    tool:"),
    "paged loop": ONE.replace("    tool:", "    loop: {in: {lines: {path: 'EXPR'}}, iterator: n}\n    tool:"),
    "keychain": "keychain: [{name: k, kind: env, var: 'EXPR'}]\n" + ONE,
    "choose": ONE.replace(
        "[{name: a, kind: noop}]", "[{name: c, choose: [{when: 'EXPR', then: [{name: a, kind: noop}]}]}]"
    ),
    "workbook": "workbook: [{name: w, kind: log, message: 'EXPR'}]\n"
    + ONE.replace("kind: noop", "kind: workbook, task: w"),
}

JOB_HEAD = "context: {day: 1}\nstate: {cursor: 0}\n"
JOB_SITES = {
    "parameter": "components: [{name: a, type: warn, params: {message: '{{ EXPR }}'}}]\n",
    "global": "components: [{name: a, type: set_global, params: {values: {x: '{{ EXPR }}'}}}]\n",
    "if link": "components: [{name: a, type: noop}, {name: b, type: noop}]\nconnections: {control: ['a (if: EXPR) b']}\n",
    "while": "components: [{name: a, type: iterate_while, params: {while: EXPR}}, {name: b, type: noop}]\n"
    "connections: {control: ['a (iterate) b']}\n",
    "iterator": "components: [{name: a, type: iterate_list, params: {items: '{{ EXPR }}'}}, {name: b, type: noop}]\n"
    "connections: {control: ['a (iterate) b']}\n",
    "called job": "components: [{name: a, type: run_job, params: {path: x, context: {q: '{{ EXPR }}'}}}]\n",
    "joblet call": "components: [{name: a, type: '@part', params: {p: '{{ EXPR }}'}}]\n",
    "keychain": "keychain: [{name: k, kind: env, var: '{{ EXPR }}'}]\ncomponents: [{name: a, type: noop}]\n",
}
PART = "kind: Joblet\nparams: {p: 1}\ncomponents: [{name: n, type: warn, params: {message: '{{ params.p }}'}}]\n"


def playbook(site: str, expression: str) -> list[Problem]:
    text = HEAD + PLAYBOOK_SITES[site].replace("EXPR", "{{ " + expression + " }}")
    return list(compile_playbook(text, "t.yaml", TOOLS).problems)


def job(text: str) -> list[Problem]:
    return list(compile_job(text, "t.yaml", COMPONENTS, read=lambda path: PART).problems)


@cases("site", PLAYBOOK_SITES)
def test_a_misspelt_name_in_a_playbook_is_one_error_that_says_what_was_meant(site: str) -> None:
    for expression, meant in (
        ("workloda.day", "workload"),
        ("evnt.name", "event"),
        ("itr.index", "iter"),
        ("dya", "day"),
    ):
        (found,) = playbook(site, expression)
        assert (found.code, found.severity.value, found.label) == ("P0701", "error", f"did you mean `{meant}`?"), (
            expression
        )
    assert playbook(site, "workload.day") == []


def test_a_misspelt_name_that_could_not_be_seen_anyway_is_told_so() -> None:
    (found,) = playbook("arc args", "itr.index")
    assert found.hint.startswith("`iter` cannot be seen from an arc: it is seen in ")


def test_names_of_a_workbook_task_that_nobody_calls_are_looked_at() -> None:
    text = HEAD + "workbook: [{name: w, kind: log, message: '{{ workloda.x }} {{ a.y }}'}]\n" + ONE
    found = compile_playbook(text, "t.yaml", TOOLS).problems
    assert [(one.code, one.label) for one in found] == [("P0512", ""), ("P0701", "did you mean `workload`?")]


@cases("site", JOB_SITES)
def test_a_misspelt_name_in_a_job_is_one_error_that_says_what_was_meant(site: str) -> None:
    for expression, meant in (("contxt.day", "context"), ("globl.x", "global"), ("workload.day", "context")):
        (found,) = job(JOB_HEAD + JOB_SITES[site].replace("EXPR", expression))
        assert (found.code, found.severity.value, found.label) == ("J0701", "error", f"did you mean `{meant}`?"), (
            expression
        )
        assert found.position.line > 2
    assert job(JOB_HEAD + JOB_SITES[site].replace("EXPR", "context.day")) == []


def test_a_misspelt_name_in_a_joblet_is_found_in_it_and_in_a_job_that_calls_it() -> None:
    wrong = PART.replace("params.p", "parms.p")
    for problems in (
        list(compile_job(wrong, "part.yaml", COMPONENTS).problems),
        list(
            compile_job(
                "components: [{name: a, type: '@part'}]\n", "t.yaml", COMPONENTS, read=lambda path: wrong
            ).problems
        ),
    ):
        (found,) = problems
        assert (found.code, found.label, found.position.file) == ("J0701", "did you mean `params`?", "part.yaml")
    # By itself a joblet knows nothing of the context that it will be used in.
    assert list(compile_job(PART.replace("params.p", "env.region"), "part.yaml", COMPONENTS).problems) == []


@pytest.mark.parametrize("expression", ["state.cursr", "ctx.state.cursr"])
def test_what_a_playbook_reads_of_its_state_must_be_declared(expression: str) -> None:
    (found,) = playbook("parameter", expression)
    assert (found.code, found.severity.value, found.label) == ("P0830", "error", "did you mean `cursor`?")
    assert playbook("parameter", f"{expression} | default(1)") == []
    assert playbook("parameter", "state.cursor") == []


@pytest.mark.parametrize("expression", ["state.cursr", "context.state.cursr"])
def test_what_a_job_reads_of_its_state_must_be_declared(expression: str) -> None:
    (found,) = job(JOB_HEAD + JOB_SITES["parameter"].replace("EXPR", expression))
    assert (found.code, found.severity.value, found.label) == ("J0701", "error", "did you mean `cursor`?")
    assert job(JOB_HEAD + JOB_SITES["parameter"].replace("EXPR", "state.cursor")) == []
