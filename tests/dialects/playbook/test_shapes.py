"""Four shapes of `tool`, one plan; and the other spellings of tasks."""

import pytest

from penstock.dialects.problems import Severity
from tests.cases import cases
from tests.dialects.playbook.support import codes, errors, net_of, node_of, place_within_tasks, problems, steps, tasks

POLICY = "spec: { timeout: 3, policy: { rules: [{ else: { then: { do: continue } } }] } }"


def one_step(tool: str) -> str:
    return steps(f"- step: load\n  tool:{tool}")


@pytest.mark.clause("P5.1")
def test_four_shapes_of_a_task_give_one_plan():
    body = f"kind: http, url: x, {POLICY}"
    named = net_of(one_step(f"\n    - {{ name: load_task, {body} }}\n"))
    labelled = net_of(one_step(f"\n    - load_task: {{ {body} }}\n"))
    single = net_of(one_step(f" {{ {body} }}\n"))
    assert named == labelled == single
    unnamed = net_of(one_step(f"\n    - {{ {body} }}\n"))
    renamed = net_of(one_step(f"\n    - {{ name: task_0, {body} }}\n"))
    assert unnamed == renamed
    assert unnamed.nodes["load"].tasks[0].params == named.nodes["load"].tasks[0].params


@pytest.mark.clause("P5.1")
def test_unnamed_tasks_are_numbered_by_their_place_in_the_list():
    node = node_of(tasks("- { kind: noop }\n- { name: b, kind: noop }\n- { kind: noop }\n"))
    assert [task.label for task in node.tasks] == ["task_0", "b", "task_2"]


@pytest.mark.clause("P5.1")
def test_a_label_map_is_read_with_a_warning_that_shows_the_rewrite():
    (problem,) = problems(tasks("- fetch: { kind: http, url: x }\n"))
    assert (problem.code, problem.severity) == ("P0501", Severity.WARNING)
    assert place_within_tasks(problem) == (1, 3)
    assert problem.rewrite == "- name: fetch\n  kind: http\n  url: x"


def test_a_single_object_may_have_a_name_of_its_own():
    assert [task.label for task in node_of(steps("- step: start\n  tool: { name: probe, kind: noop }\n")).tasks] == [
        "probe"
    ]


@pytest.mark.parametrize("tool", ["", "  tool:\n", "  tool: []\n"])
def test_a_step_without_tasks_only_routes(tool):
    assert node_of(steps(f"- step: start\n{tool}")).tasks == ()


def test_every_key_that_is_not_a_word_is_a_parameter():
    (task,) = node_of(
        tasks("- { name: a, desc: Try, kind: http, url: x, headers: { A: b }, set: { ctx.n: 1 } }\n")
    ).tasks
    assert task.params == {"url": "x", "headers": {"A": "b"}}
    assert task.on_ok.ctx == {"n": 1}


@cases(
    "tool, expected",
    [
        (" { fetch: { kind: noop } }\n", ["P0502"]),
        ("\n    - { a: { kind: noop }, b: { kind: noop } }\n", ["P0502"]),
        ("\n    - noop\n", ["P0101"]),
        (" 3\n", ["P0217"]),
        (" {}\n", ["P0503"]),
        ("\n    - { name: a, url: x }\n", ["P0503"]),
        ("\n    - { name: 'a b', kind: noop }\n", ["P0301"]),
        ("\n    - { name: a.b, kind: noop }\n", ["P0301"]),
        ("\n    - { name: a, kind: noop }\n    - { name: a, kind: noop }\n", ["P0510"]),
        ("\n    - a: { name: b, kind: noop }\n", ["P0501", "P0516"]),
        ("\n    - { name: ctx, kind: noop }\n", ["P0303"]),
    ],
)
def test_other_shapes_are_refused(tool, expected):
    assert codes(one_step(tool)) == expected


def test_a_mapping_of_labels_is_shown_as_a_list():
    (problem,) = problems(one_step("\n    a: { kind: noop }\n    b: { kind: noop }\n"))
    assert problem.rewrite == "tool:\n  - name: a\n    kind: noop\n  - name: b\n    kind: noop"


def test_two_steps_may_have_tasks_of_the_same_name():
    text = "- step: start\n  tool: [{ name: a, kind: noop }]\n  next: { arcs: [{ step: end }] }\n"
    assert errors(steps(text + "- step: end\n  tool: [{ name: a, kind: noop }]\n")) == []


def test_a_task_without_a_kind_can_still_be_jumped_to():
    text = """
        - { name: a, url: x }
        - name: b
          kind: noop
          spec: { policy: { rules: [{ when: "{{ workload.again }}", then: { do: jump, to: a } }] } }
        """
    assert errors(tasks(text)) == ["P0503"]
