"""Every refused construct: its code, its place, and the rewrite where it is mechanical."""

import pytest

from tests.cases import cases
from tests.dialects.playbook.support import (
    HEAD,
    errors,
    place_within_steps,
    place_within_tasks,
    problems,
    steps,
    tasks,
    whole,
)

STEP_WHEN = """\
spec:
  policy:
    admit:
      rules:
        - when: "{{ workload.go }}"
          then:
            allow: true
        - else:
            then:
              allow: false"""

EVAL = """\
spec:
  policy:
    rules:
      - when: "{{ outcome.status == 'error' }}"
        then:
          do: retry
          attempts: 3
      - else:
          then:
            do: continue"""

RETRY = """\
spec:
  policy:
    rules:
      - when: "{{ outcome.status == 'error' }}"
        then:
          do: retry
          attempts: 5
          delay: 2"""

CHOICE = """\
- name: choice
  choose:
    - when: "{{ workload.go }}"
      then:
        - name: a
          kind: noop"""

END = "- step: end\n"
RULES = "- name: a\n  kind: noop\n  spec:\n    policy:\n      rules:\n"

# (entries, code, line and column within them, rewrite)
STEPS = [
    ('- step: start\n  when: "{{ workload.go }}"\n', "P0202", 2, 3, STEP_WHEN),
    (
        '- step: start\n  case:\n    - { when: "{{ workload.go }}", then: { next: [{ step: end }] } }\n' + END,
        "P0203", 2, 3, 'next:\n  arcs:\n    - step: end\n      when: "{{ workload.go }}"',
    ),
    ("- step: start\n  pipe: [{ name: a, kind: noop }]\n", "P0204", 2, 3, "tool:\n  - name: a\n    kind: noop"),
    ("- step: start\n  vars: { x: 1 }\n", "P0201", 2, 3, "set:\n  ctx.x: 1"),
    (
        "- step: start\n  next: [end]\n" + END,
        "P0207", 2, 3, "next:\n  spec:\n    mode: exclusive\n  arcs:\n    - step: end",
    ),
    (
        '- step: start\n  next: [{ when: "{{ workload.go }}", then: [{ step: end }] }, { else: [{ step: start }] }]\n' + END,
        "P0207", 2, 3,
        'next:\n  spec:\n    mode: exclusive\n  arcs:\n    - step: end\n      when: "{{ workload.go }}"\n    - step: start',
    ),
    (
        "- step: start\n  next: [a, b]\n- step: a\n- step: b\n",
        "P0207", 2, 3, "next:\n  spec:\n    mode: inclusive\n  arcs:\n    - step: a\n    - step: b",
    ),
    (
        "- step: start\n  next: end\n" + END,
        "P0207", 2, 3, "next:\n  spec:\n    mode: exclusive\n  arcs:\n    - step: end",
    ),
    (
        "- step: start\n  next: { step: end }\n" + END,
        "P0208", 2, 11, "next:\n  spec:\n    mode: exclusive\n  arcs:\n    - step: end",
    ),
    ("- step: start\n  type: http\n  url: x\n", "P0211", 2, 3, "tool:\n  kind: http\n  url: x"),
    ("- step: start\n  tool: noop\n", "P0217", 2, 9, "tool:\n  kind: noop"),
    ("- step: start\n  policy: { failure: { mode: fail_fast } }\n", "P0213", 2, 3,
     "spec:\n  policy:\n    failure:\n      mode: fail_fast"),
    ("- step: start\n  join: [a]\n", "P0213", 2, 3, "spec:\n  join:\n    - a"),
    ("- step: start\n  loop: { in: [1], iterator: x, mode: parallel }\n", "P0213", 2, 33, "spec:\n  mode: parallel"),
    (
        '- step: start\n  next:\n    arcs:\n      - { step: end, expr: "{{ workload.go }}" }\n' + END,
        "P0206", 4, 22, '- step: end\n  when: "{{ workload.go }}"',
    ),
    ("- step: start\n  retry: 4\n", "P0210", 2, 3,
     RETRY.replace("attempts: 5\n          delay: 2", "attempts: 4")),
]  # fmt: skip

TASKS = [
    (
        "- name: a\n  kind: noop\n  eval:\n    - { expr: \"{{ outcome.status == 'error' }}\", do: retry, attempts: 3 }\n"
        "    - else: { do: continue }\n",
        "P0205", 3, 3, EVAL,
    ),
    ("- name: a\n  kind: http\n  url: x\n  retry: { max_attempts: 5, delay: 2 }\n", "P0210", 4, 3, RETRY),
    ("- name: a\n  type: noop\n", "P0211", 2, 3, "kind: noop"),
    ('- name: a\n  kind: noop\n  when: "{{ workload.go }}"\n', "P0212", 3, 3, CHOICE),
    ("- name: a\n  kind: noop\n  policy: { rules: [] }\n", "P0213", 3, 3, "spec:\n  policy:\n    rules: []"),
    ("- name: a\n  kind: noop\n  rules: []\n", "P0213", 3, 3, "spec:\n  policy:\n    rules: []"),
    ("- name: a\n  kind: noop\n  sink: { tool: { kind: postgres, command: X } }\n", "P0209", 3, 3,
     "tool:\n  - name: store\n    kind: postgres\n    command: X"),
    ("- name: a\n  tool: { kind: noop }\n", "P0217", 2, 3, "- name: a\n  kind: noop"),
    (
        RULES + "        - { when: \"{{ outcome.status == 'error' }}\", do: fail }\n",
        "P0407", 6, 54, "- when: \"{{ outcome.status == 'error' }}\"\n  then:\n    do: fail",
    ),
    (
        RULES + "        - { expr: \"{{ ctx.x is defined }}\", then: { do: fail } }\n",
        "P0206", 6, 13, '- when: "{{ ctx.x is defined }}"\n  then:\n    do: fail',
    ),
    (
        "- name: a\n  kind: noop\n  spec:\n    policy:\n      - else: { do: fail }\n",
        "P0401", 5, 7, "policy:\n  rules:\n    - else:\n        do: fail",
    ),
]  # fmt: skip


@pytest.mark.clause("P1.3")
@cases("text, code, line, column, rewrite", STEPS)
def test_a_refused_word_of_a_step_names_what_replaces_it(text, code, line, column, rewrite):
    found = problems(steps(text), code)
    assert [place_within_steps(problem) for problem in found] == [(line, column)]
    assert found[0].rewrite == rewrite
    assert found[0].hint


@pytest.mark.clause("P1.3")
@cases("text, code, line, column, rewrite", TASKS)
def test_a_refused_word_of_a_task_names_what_replaces_it(text, code, line, column, rewrite):
    found = problems(tasks(text), code)
    assert [place_within_tasks(problem) for problem in found] == [(line, column)]
    assert found[0].rewrite == rewrite


@pytest.mark.clause("P1.3")
@cases("text", [text for text, *_ in STEPS])
def test_a_rewrite_of_the_ways_on_is_itself_without_error(text):
    """What is shown can be pasted: a step with the rewritten `next` compiles."""
    for problem in problems(steps(text)):
        if problem.rewrite.startswith("next:"):
            arcs = "\n".join("  " + line for line in problem.rewrite.splitlines())
            targets = "- step: end\n- step: a\n- step: b\n"
            assert errors(steps(f"- step: start\n{arcs}\n{targets}")) == []


def test_a_refused_word_does_not_make_the_rest_look_wrong():
    """The arcs of a refused `next` are not known, so nothing is said about which steps are reached."""
    assert [problem.code for problem in problems(steps("- step: start\n  next: [end]\n- step: end\n"))] == ["P0207"]


def test_a_word_that_the_tool_itself_has_is_never_refused():
    assert errors(tasks("- { name: a, kind: shell, run: cat, input: hello }\n")) == []


@cases(
    "key, meant",
    [
        ("name", "step"),
        ("description", "desc"),
        ("tasks", "tool"),
        ("foreach", "loop"),
        ("arcs", "next"),
        ("tol", "tool"),
    ],
)
def test_words_from_elsewhere_lead_to_the_word_that_is_meant(key, meant):
    found = problems(steps(f"- step: start\n  {key}: x\n"), "P0102")
    assert [problem.label for problem in found] == [f"did you mean `{meant}`?"]


@pytest.mark.parametrize(
    ("example", "meant"),
    [
        ("- step: start\n  loop: { collection: [1], iterator: x }\n", "in"),
        ("- step: start\n  loop: { in: [1], element: x }\n", "iterator"),
        ("- step: start\n  next: { arcs: [{ to: start }] }\n", "step"),
        ("- step: start\n  spec: { policy: { lifecycle: { timeout: 3 } } }\n", "timeout_s"),
    ],
)
def test_words_of_other_scopes_have_synonyms_too(example, meant):
    assert f"did you mean `{meant}`?" in [problem.label for problem in problems(whole(example))]


@pytest.mark.parametrize("key", ["version", "name", "description", "tags"])
def test_what_describes_the_playbook_belongs_to_its_metadata(key):
    (problem,) = problems(HEAD + f"{key}: x\nworkflow:\n  - step: start\n")
    assert problem.code == "P0216"
    assert problem.rewrite == f"metadata:\n  name: {'x' if key == 'name' else 'test'}" + (
        "" if key == "name" else f"\n  {key}: x"
    )
