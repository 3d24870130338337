"""Words of today's public playbooks, read as aliases without a warning; the workbook; sub-playbooks."""

import pytest

from penstock.kernel.net import Writes
from tests.cases import cases
from tests.dialects.playbook.support import HEAD, codes, errors, net_of, node_of, problems, steps, tasks


def test_input_is_args():
    one = net_of(tasks("- { name: a, kind: python, args: { x: 1 }, code: result = x }\n"))
    other = net_of(tasks("- { name: a, kind: python, input: { x: 1 }, code: result = x }\n"))
    assert one == other
    assert codes(tasks("- { name: a, kind: python, input: { x: 1 }, code: result = x }\n")) == []


def test_input_stays_input_where_the_tool_has_a_parameter_of_that_name():
    (task,) = node_of(tasks("- { name: a, kind: shell, run: cat, input: hello }\n")).tasks
    assert task.params == {"run": "cat", "input": "hello"}


def test_output_is_seen_where_outcome_is():
    text = """
        - name: a
          kind: noop
          set: { n: "{{ output.data }}" }
          spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: fail } }] } }
        """
    assert codes(tasks(text)) == []


def test_set_on_a_task_writes_to_where_its_keys_say():
    (task,) = node_of(tasks("- { name: a, kind: noop, set: { ctx.x: 1, iter.y: 2, z: 3, ctx.deep.w: 4 } }\n")).tasks
    assert task.on_ok == Writes(iter={"y": 2, "z": 3}, ctx={"x": 1, "deep.w": 4})


def test_set_in_a_rule_joins_the_longer_words():
    text = "- name: a\n  kind: noop\n  spec: { policy: { rules: [{ else: { set: { ctx.x: 1, y: 2 }, set_ctx: { z: 3 } } }] } }\n"
    (rule,) = node_of(tasks(text)).tasks[0].rules or ()
    assert rule.then.writes == Writes(iter={"y": 2}, ctx={"x": 1, "z": 3})


def test_set_on_a_step_writes_to_ctx_when_it_is_done():
    assert node_of(steps("- step: start\n  set: { ctx.x: 1, y: 2 }\n")).on_done == Writes(ctx={"x": 1, "y": 2})


def test_set_on_an_arc_writes_ctx_and_makes_args_of_the_rest():
    text = """
        - step: start
          next: { arcs: [{ step: end, args: { a: 1 }, set: { ctx.x: 1, b: 2, args.c: 3, d.e: 4 } }] }
        - step: end
        """
    (edge,) = node_of(steps(text)).edges
    assert edge.writes == Writes(ctx={"x": 1})
    assert edge.args == {"a": 1, "b": 2, "c": 3, "d": {"e": 4}}


@pytest.mark.parametrize("key", ["workload.x", "keychain.x", "event.x"])
def test_set_cannot_write_what_never_changes(key):
    assert errors(tasks(f"- {{ name: a, kind: noop, set: {{ {key}: 1 }} }}\n")) == ["P0408"]


def test_an_empty_else_beside_then_is_read_as_else():
    text = """
        - name: r
          choose:
            - { when: "{{ workload.go }}", then: [{ name: a, kind: noop }] }
            - { else: , then: [{ name: b, kind: noop }] }
        """
    assert [task.label for task in node_of(tasks(text)).tasks] == ["r.choose", "r.1.a", "r.2.b", "r.end"]


# ---- workbook

CALL = "workflow:\n  - step: start\n    tool: { name: run, kind: workbook, task: greet }\n"
BODY = "{ kind: python, args: { who: you, n: 1 }, code: result = who, spec: { timeout: 3 } }"
BOOKS = [
    f"workbook:\n  - {{ name: greet, {BODY[2:]}\n",
    f"workbook:\n  - {{ name: greet, tool: {BODY} }}\n",
    f"workbook:\n  - {{ name: greet, tool: [{BODY}] }}\n",
    f"workbook: {{ tasks: {{ greet: {BODY} }} }}\n",
    f"workbook: {{ greet: {BODY} }}\n",
]


@cases("book", BOOKS)
def test_every_shape_of_a_workbook_gives_the_same_plan(book):
    assert codes(HEAD + CALL + book) == []
    (task,) = net_of(HEAD + CALL + book).nodes["start"].tasks
    assert (task.label, task.kind) == ("run", "python")
    assert task.params == {"args": {"who": "you", "n": 1}, "code": "result = who"}
    assert task.spec == {"timeout": 3}


def test_what_a_call_gives_is_laid_over_the_workbooks_task():
    call = """\
workflow:
  - step: start
    tool:
      kind: workbook
      name: greet
      input: { who: me }
      spec: { retry: 2, policy: { rules: [{ else: { do: break } }] } }
      set: { ctx.greeting: "{{ outcome.result }}" }
"""
    (task,) = net_of(HEAD + call + BOOKS[0]).nodes["start"].tasks
    assert task.label == "greet"
    assert task.params["args"] == {"who": "me", "n": 1}
    assert task.spec == {"timeout": 3, "retry": 2}
    assert task.rules is not None
    assert task.on_ok.ctx == {"greeting": "{{ outcome.result }}"}


def test_an_empty_workbook_is_no_problem():
    assert codes(HEAD + "workflow:\n  - step: start\nworkbook: { tasks: {} }\n") == []


@cases(
    "call, book, expected",
    [
        ("task: great", BOOKS[0], ["P0511", "P0512"]),
        ("desc: x", BOOKS[0], ["P0511", "P0512"]),
        ("task: greet", "", ["P0511"]),
        ("task: greet", "workbook: 3\n", ["P0511", "P0101"]),
        ("task: greet", "workbook:\n  - { kind: noop }\n", ["P0511", "P0105"]),
        ("task: greet", "workbook:\n  - { name: greet, kind: workbook, task: x }\n", ["P0517"]),
        ("task: greet", "workbook:\n  - { name: greet, choose: [{ else: [{ kind: noop }] }] }\n", ["P0517"]),
        ("task: greet", "workbook:\n  - { name: greet, kind: noop }\n  - { name: greet, kind: noop }\n", ["P0510"]),
        ("task: greet, args: 1", "workbook:\n  - { name: greet, kind: noop }\n", ["P0509"]),
        ("task: greet", "workbook:\n  - { name: greet, kind: noop, ulr: x }\n", ["P0505"]),
    ],
)
def test_a_call_that_cannot_be_made_is_reported(call, book, expected):
    document = HEAD + f"workflow:\n  - step: start\n    tool: {{ kind: workbook, {call} }}\n" + book
    assert codes(document) == expected


def test_a_misspelt_workbook_task_is_shown_the_one_that_is_meant():
    (problem,) = problems(HEAD + CALL.replace("task: greet", "task: great") + BOOKS[0], "P0511")
    assert problem.label == "did you mean `greet`?"


def test_a_task_of_a_workbook_may_jump_within_the_pipeline_that_calls_it():
    document = """\
workflow:
  - step: start
    tool:
      - { name: a, kind: noop }
      - { name: b, kind: workbook, task: again }
workbook:
  - name: again
    kind: noop
    spec: { policy: { rules: [{ when: "{{ workload.x is defined }}", then: { do: jump, to: a } }] } }
"""
    rules = net_of(HEAD + document).nodes["start"].tasks[1].rules
    assert rules is not None
    assert rules[0].then.to == "a"
    assert errors(HEAD + document.replace("to: a", "to: c")) == ["P0414"]
