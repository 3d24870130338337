"""Names in expressions: what is seen from where, what nothing defines, and where secrets may stand."""

import pytest

from penstock.dialects.problems import Severity
from tests.cases import cases
from tests.dialects.playbook.support import HEAD, WORKLOAD, codes, place_within_tasks, problems, steps, tasks

SECRETS = HEAD + WORKLOAD + "keychain: [{ name: token, kind: env, var: TOKEN }]\n"


def message(expression: str) -> str:
    return tasks(f'- {{ name: first, kind: noop }}\n- name: tell\n  kind: log\n  message: "{{{{ {expression} }}}}"\n')


@cases(
    "expression",
    [
        "workload.city", "city", "city | upper", "first", "first.data.x", "start.rows", "_prev", "_task", "_attempt",
        "args.anything",
        "ctx.a | default(1)", "nothing | default(1)", "nothing is defined", "nothing.deep.er | default('')", "execution.id",
        "execution_id", "iter.index", "iter.parent.x", "workload.items | length", "workload['city']", "1 + 1", "workload",
    ],
)  # fmt: skip
def test_names_that_are_there_are_not_reported(expression):
    assert codes(message(expression)) == []


@cases(
    "expression, code, label",
    [
        ("zebra", "P0701", ""),
        ("workload.citi", "P0702", "did you mean `city`?"),
        ("workload.zebra", "P0702", ""),
        ("ctx.total", "P0702", ""),
        ("iter.page", "P0702", ""),
        ("outcome.result", "P0703", ""),
        ("event.name", "P0703", ""),
    ],
)
def test_a_name_that_nothing_defines_is_a_warning(expression, code, label):
    (problem,) = problems(message(expression))
    assert (problem.code, problem.severity, problem.label) == (code, Severity.WARNING, label)


@cases(
    "expression, label",
    [
        ("citi", "did you mean `city`?"),
        ("worklod.city", "did you mean `workload`?"),
        ("wrkload.city", "did you mean `workload`?"),
        ("frist.data", "did you mean `first`?"),
        ("contxt.city", "did you mean `ctx`?"),
        ("context.city", "did you mean `ctx`?"),
        ("zebra.stripes", ""),
    ],
)
def test_a_root_name_that_there_is_not_is_an_error(expression, label):
    (problem,) = problems(message(expression))
    assert (problem.code, problem.severity, problem.label) == ("P0701", Severity.ERROR, label)


@pytest.mark.parametrize(
    ("value", "hint"),
    [("'{{ workload.city }} '", "leave the blanks out"), ("|\n    {{ workload.city }}", "write `|-`")],
)
def test_blanks_beside_an_expression_are_a_warning_with_the_remedy(value, hint):
    """D61."""
    text = f"- name: a\n  kind: noop\n  value: {value}\n"
    (problem,) = [found for found in problems(tasks(text)) if found.code == "P0707"]
    assert problem.severity is Severity.WARNING
    assert hint in problem.hint


def test_a_condition_in_a_block_is_a_condition_all_the_same():
    text = "- step: start\n  next:\n    arcs:\n      - step: end\n        when: |\n          {{ workload.go }}\n- step: end\n"
    assert codes(steps(text)) == []


def test_the_caret_stands_under_the_name():
    (problem,) = problems(message("workload.city ~ ctx.total.x"))
    assert place_within_tasks(problem) == (4, 32)
    assert problem.position.end_column - problem.position.column == len("ctx.total")


def test_in_a_block_of_text_the_caret_stands_in_the_right_line():
    text = "- name: a\n  kind: postgres\n  command: |\n    SELECT 1\n    FROM {{ tabel }}\n"
    (problem,) = problems(tasks(text))
    assert (problem.code, place_within_tasks(problem)) == ("P0701", (5, 13))


def test_conditions_are_checked_for_slips_too():
    text = """
        - step: start
          tool: { kind: noop, set: { ctx.store_ok: true } }
          next: { arcs: [{ step: end, when: "{{ ctx.stoer_ok == true }}" }] }
        - step: end
        """
    (problem,) = problems(steps(text))
    assert (problem.code, problem.label) == ("P0702", "did you mean `store_ok`?")


@pytest.mark.parametrize(
    "writer",
    [
        "set: { ctx.total: 1 }",
        "spec: { policy: { rules: [{ else: { set_ctx: { total: 1 } } }] } }",
        "spec: { policy: { rules: [{ else: { append_ctx: { total: 1 } } }] } }",
        "spec: { policy: { rules: [{ else: { set: { ctx.total.x: 1 } } }] } }",
    ],
)
def test_a_key_that_any_task_writes_to_ctx_is_known(writer):
    text = f"- {{ name: a, kind: noop, {writer} }}\n- {{ name: b, kind: log, message: '{{{{ ctx.total }}}} {{{{ total }}}}' }}\n"
    assert codes(tasks(text)) == []


def test_keys_of_iter_are_known_within_their_step_only():
    text = """
        - step: start
          loop: { in: "{{ workload.items }}", iterator: item }
          tool:
            - { name: a, kind: noop, set: { iter.page: 1 } }
            - { name: b, kind: log, message: "{{ iter.item }} {{ item }} {{ iter.page }} {{ page }} {{ iter.index }}" }
          next: { arcs: [{ step: end }] }
        - step: end
          tool: { kind: log, message: "{{ iter.page }}" }
        """
    assert [(problem.code, problem.message) for problem in problems(steps(text))] == [
        ("P0702", "nothing in this document writes `iter.page`")
    ]


def test_args_of_a_step_are_those_that_arcs_pass_to_it():
    text = """
        - step: start
          next: { arcs: [{ step: end, args: { rows: 1 }, set: { more: 2 } }] }
        - step: end
          tool: { kind: log, message: "{{ args.rows }} {{ rows }} {{ args.more }} {{ args.row }}" }
        """
    (problem,) = problems(steps(text))
    assert (problem.message, problem.label) == ("nothing in this document passes `args.row`", "did you mean `rows`?")


def test_args_of_a_join_are_the_steps_it_waits_for():
    text = """
        - step: start
          next: { arcs: [{ step: end }] }
        - step: end
          spec: { join: [start] }
          tool: { kind: log, message: "{{ args.start }} {{ args.stat }}" }
        """
    assert [problem.label for problem in problems(steps(text))] == ["did you mean `start`?"]


def test_without_a_declared_workload_its_keys_cannot_be_known():
    assert codes(tasks("- { name: a, kind: log, message: '{{ workload.x }}' }\n", HEAD)) == []


def admission(when: str) -> str:
    return f"- step: start\n  spec: {{ policy: {{ admit: {{ rules: [{{ when: {when}, then: {{ allow: true }} }}] }} }} }}\n"


def policy(rule: str) -> str:
    return f"- {{ name: a, kind: noop, spec: {{ policy: {{ rules: [{rule}] }} }} }}\n"


@pytest.mark.clause("P4.2")
@pytest.mark.parametrize("name", ["_prev", "outcome.status", "iter.x", "_attempt"])
def test_admission_sees_no_pipeline(name):
    text = admission(f"'{{{{ {name} }}}}'")
    (problem,) = problems(steps(text))
    assert problem.code == "P0703"
    assert "admission" in problem.message


@cases("name", ["ctx.x is defined", "workload.go", "args.n", "event.name", "execution.id", "start", "go"])
def test_admission_sees_what_the_server_knows(name):
    text = admission(f"'{{{{ {name} }}}}'")
    assert codes(steps(text)) == []


def arc(when: str) -> str:
    return steps(f"""\
- step: start
  tool: {{ name: fetch, kind: noop }}
  next: {{ arcs: [{{ step: end, when: "{{{{ {when} }}}}" }}] }}
- step: end
""")


@cases("when", ["event.name == 'step.done'", "event.result.x", "start.rows", "go", "args.n", "iter.parent.x"])
def test_an_arc_sees_the_event_and_the_steps(when):
    assert codes(arc(when)) == []


@pytest.mark.parametrize("when", ["fetch.rows", "outcome.status", "_prev", "iter.item"])
def test_an_arc_does_not_see_into_the_pipeline(when):
    assert codes(arc(when)) == ["P0703"]


def test_a_condition_of_sugar_has_no_outcome_of_its_own():
    text = "- name: r\n  choose: [{ when: \"{{ outcome.status == 'ok' }}\", then: [{ name: a, kind: noop }] }]\n"
    (problem,) = problems(tasks(text))
    assert problem.code == "P0703"
    assert "_prev" in problem.hint


@pytest.mark.parametrize("word", ["statu", "reslt"])
def test_a_slip_in_the_fields_of_an_outcome_is_seen(word):
    assert codes(tasks(policy(f"{{ when: '{{{{ outcome.{word} }}}}', then: {{ do: fail }} }}"))) == ["P0702"]


def test_tools_may_add_fields_of_their_own_to_an_outcome():
    assert codes(tasks(policy("{ when: '{{ outcome.http.status == 404 }}', then: { do: fail } }"))) == []


# ---- secrets


def test_a_secret_may_stand_in_a_tools_parameters():
    text = "- { name: a, kind: http, url: x, headers: { A: 'Bearer {{ keychain.token }}' } }\n"
    assert codes(tasks(text, SECRETS)) == []


def test_a_secret_that_is_not_declared_is_an_error():
    (problem,) = problems(tasks("- { name: a, kind: http, url: '{{ keychain.tokn }}' }\n", SECRETS))
    assert (problem.code, problem.severity, problem.label) == ("P0705", Severity.ERROR, "did you mean `token`?")


USE = "'{{ keychain.token }}'"
OUTSIDE = {
    "a task's set": f"- step: start\n  tool: {{ kind: noop, set: {{ ctx.x: {USE} }} }}\n",
    "a rule's condition": "- step: start\n  tool:\n    " + policy(f"{{ when: {USE}, then: {{ do: fail }} }}"),
    "a rule's write": "- step: start\n  tool:\n    " + policy(f"{{ else: {{ set_ctx: {{ x: {USE} }} }} }}"),
    "an arc's condition": f"- step: start\n  next: {{ arcs: [{{ step: end, when: {USE} }}] }}\n- step: end\n",
    "an arc's args": f"- step: start\n  next: {{ arcs: [{{ step: end, args: {{ x: {USE} }} }}] }}\n- step: end\n",
    "a loop": f"- step: start\n  loop: {{ in: {USE}, iterator: x }}\n",
    "admission": admission(USE),
    "a step's set": f"- step: start\n  set: {{ ctx.x: {USE} }}\n",
    "a choice": f"- step: start\n  tool: [{{ choose: [{{ when: {USE}, then: [{{ kind: noop }}] }}] }}]\n",
}


@cases("text", list(OUTSIDE.values()))
def test_a_secret_anywhere_else_is_an_error(text):
    (problem,) = problems(steps(text, SECRETS))
    assert (problem.code, problem.severity) == ("P0704", Severity.ERROR)


# ---- expressions themselves


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("workload.city +", "E0101"),
        ("workload.city | uper", "E0102"),
        ("open(workload.city)", "E0103"),
        ("workload.city.__class__", "E0105"),
    ],
)
def test_an_expression_that_cannot_be_evaluated_is_an_error_at_its_place(expression, code):
    (problem,) = problems(message(expression))
    assert (problem.code, problem.severity, problem.position.line) == (code, Severity.ERROR, 11)


def test_a_condition_may_be_written_without_braces():
    assert codes(arc("workload.go").replace("{{ workload.go }}", "workload.go")) == []


@pytest.mark.parametrize(("when", "expected"), [("'workload.go'", ["E0108"]), ("true", []), ("workload.go", [])])
def test_a_condition_that_never_changes_is_most_often_a_name_in_quotes(when, expected):
    assert codes(arc(when)) == expected


@cases(
    "expression, label",
    [
        ("state.cursr", "did you mean `cursor`?"),
        ("ctx.state.cursr", "did you mean `cursor`?"),
        ("state.zebra", ""),
        ("state.cursor", None),
        ("state.cursr | default(0)", None),
        ("state", None),
    ],
)
def test_what_is_read_from_state_is_declared_there(expression, label):
    text = message(expression).replace("workflow:", "state: { cursor: 0 }\nworkflow:", 1)
    found = [(one.code, one.severity, one.label) for one in problems(text)]
    assert found == ([] if label is None else [("P0830", Severity.ERROR, label)])


@cases(
    "path, meant",
    [
        ("err.kind", "error"),
        ("error.retriable", "retryable"),
        ("error.mesage", "message"),
        ("error.sqlstate", None),
        ("http.status", None),
    ],
)
def test_a_field_of_an_outcome_that_is_nearly_one_is_told_of(path, meant):
    text = tasks(
        f"- name: a\n  kind: http\n  url: http://x\n  spec: {{ policy: {{ rules: ["
        f'{{ when: "{{{{ outcome.{path} }}}}", then: {{ do: fail }} }}, {{ else: {{ do: continue }} }}] }} }}\n'
    )
    assert [one.label for one in problems(text)] == ([] if meant is None else [f"did you mean `{meant}`?"])
