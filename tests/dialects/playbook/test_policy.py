"""Policies typed by their scope; rules and directives."""

import pytest

from penstock.kernel.net import AdmitRule, Backoff, Do, FailureMode, Rule, Then, Writes
from tests.cases import cases
from tests.dialects.playbook.support import (
    HEAD,
    codes,
    compiled,
    errors,
    node_of,
    place_within_tasks,
    problems,
    steps,
    tasks,
)

FAILED = "{{ outcome.status == 'error' }}"


def policy(rules: str) -> str:
    """A document with one task `a`, whose policy has these rules."""
    return tasks(f"- name: a\n  kind: noop\n  spec:\n    policy:\n      rules: {rules}\n- {{ name: b, kind: noop }}\n")


def rules_of(rules: str) -> tuple[Rule, ...] | None:
    return node_of(policy(rules)).tasks[0].rules


CONTROL = [
    ("step", "- step: start\n  spec: { policy: { rules: [{ else: { do: retry } }] } }\n  tool: { kind: noop }\n"),
    (
        "step, deeper",
        "- step: start\n  spec: { policy: { failure: { mode: fail_fast, do: retry } } }\n  tool: { kind: noop }\n",
    ),
    (
        "loop",
        "- step: start\n  loop: { in: [1], iterator: n, spec: { policy: { rules: [] } } }\n  tool: { kind: noop }\n",
    ),
    ("router", "- step: start\n  next: { spec: { policy: { retry: 3 } }, arcs: [] }\n  tool: { kind: noop }\n"),
    ("arc", "- step: start\n  next: { arcs: [{ step: start, when: 'ctx.x is defined', spec: { do: fail } }] }\n"),
    ("admission", "- step: start\n  spec: { policy: { admit: { rules: [{ else: { then: { do: fail } } }] } } }\n"),
]


@pytest.mark.clause("P3.2")
@cases("text", [text for _, text in CONTROL])
def test_a_control_action_outside_a_tasks_policy_is_refused(text):
    assert "P0402" in errors(steps(text))


@pytest.mark.clause("P3.2")
def test_the_executors_policy_has_no_control_action_either():
    head = HEAD + "executor: { spec: { policy: { rules: [{ else: { do: fail } }] } } }\n"
    (problem,) = problems(steps("- step: start\n", head))
    assert problem.code == "P0402"
    assert "spec.policy.rules" in problem.hint


@pytest.mark.clause("P3.2")
@cases(
    "given, expected",
    [
        ("policy: []", ["P0401"]),
        ("policy: retry", ["P0401"]),
        ("policy: {}", ["P0401"]),
        ("policy: { mode: exclusive }", ["P0401"]),
        ("policy: { rules: 3 }", ["P0101"]),
        ("policy: { rules: [3] }", ["P0101"]),
        ("policy: { rules: [], admit: {} }", ["P0102"]),
        ("policy: { rules: [], before: [{ kind: noop }] }", ["P0417"]),
        ("policy: { rules: [], on_unmatched: fail }", ["P0417"]),
        ("policy: { rules: [], mode: exclusive, on_unmatched: continue, before: [], after: [], finally: [] }", []),
    ],
)
def test_a_tasks_policy_is_a_mapping_with_rules_and_no_other_shape(given, expected):
    assert codes(tasks(f"- name: a\n  kind: noop\n  spec: {{ {given} }}\n")) == expected


def test_no_policy_differs_from_an_empty_one():
    assert node_of(tasks("- { name: a, kind: noop }\n")).tasks[0].rules is None
    assert rules_of("[]") == ()


@pytest.mark.parametrize(
    "spelling",
    [
        "{ else: { then: { do: break } } }",
        "{ else: { do: break } }",
        "{ else: , then: { do: break } }",
        "{ else: {}, then: { do: break } }",
    ],
)
def test_every_spelling_of_else_means_the_same(spelling):
    if spelling.startswith("{ else: {},"):
        assert errors(policy(f"[{spelling}]")) == ["P0403"]
    else:
        assert rules_of(f"[{spelling}]") == (Rule(None, Then(do=Do.BREAK)),)


def test_a_rule_carries_its_directive_with_all_its_options():
    rules = rules_of(
        f'[{{ when: "{FAILED}", then: {{ do: retry, attempts: 5, backoff: exponential,'
        " delay: 2, max_delay: 60, jitter: 0.1 } },"
        " { when: true, then: { do: jump, to: b, set_iter: { page: 1 }, set_ctx: { n: 2 }, append_ctx: { all: 3 } } }]"
    )
    assert rules == (
        Rule(FAILED, Then(Do.RETRY, 5, Backoff.EXPONENTIAL, 2.0, 60.0, 0.1)),
        Rule("{{ true }}", Then(Do.JUMP, to="b", writes=Writes({"page": 1}, {"n": 2}, {"all": 3}))),
    )


def test_attempts_and_delay_may_be_expressions():
    (rule,) = rules_of('[{ else: { do: retry, attempts: "{{ workload.x }}", delay: "{{ workload.x * 2 }}" } }]') or ()
    assert rule.then.attempts == "{{ workload.x }}"
    assert rule.then.delay == "{{ workload.x * 2 }}"


def test_then_without_a_directive_continues_and_only_writes():
    assert rules_of("[{ else: { then: { set_ctx: { n: 1 } } } }]") == (Rule(None, Then(writes=Writes(ctx={"n": 1}))),)


@cases(
    "rules, expected",
    [
        ("[{ else: { do: rety } }]", ["P0412"]),
        ("[{ else: { do: 3 } }]", ["P0412"]),
        ("[{ else: { do: jump } }]", ["P0413"]),
        ("[{ else: { do: jump, to: c } }]", ["P0414"]),
        ("[{ else: { do: continue, to: b } }]", ["P0415"]),
        ("[{ else: { to: b } }]", ["P0415"]),
        ("[{ else: { attempts: 3, delay: 1 } }]", ["P0415", "P0415"]),
        ("[{ else: { do: retry } }]", ["P0416"]),
        ("[{ else: { do: retry, attempts: 0 } }]", ["P0107"]),
        ("[{ else: { do: retry, attempts: often } }]", ["P0101"]),
        ("[{ else: { do: retry, attempts: 2, backoff: expo } }]", ["P0106"]),
        ("[{ else: { do: retry, attempts: 2, delay: -1 } }]", ["P0107"]),
        ("[{ then: { do: fail } }]", ["P0403"]),
        ("[{ when: true, else: , then: { do: fail } }]", ["P0403"]),
        ("[{ when: true }]", ["P0406"]),
        ("[{ else: }]", ["P0406"]),
        ("[{ when: 3, then: { do: fail } }]", ["P0101"]),
        ("[{ when: '', then: { do: fail } }]", ["P0101"]),
        ("[{ when: true, then: break }]", ["P0101"]),
        ("[{ else: { do: break } }, { when: true, then: { do: fail } }]", ["P0404"]),
        ("[{ else: { do: continue, set: { workload.x: 1 } } }]", ["P0408"]),
        ("[{ else: { do: continue, sett: {} } }]", ["P0102"]),
    ],
)
def test_a_rule_that_cannot_mean_anything_is_reported(rules, expected):
    assert [code for code in codes(policy(rules)) if code != "P0807"] == expected


def test_a_misspelt_directive_points_at_the_word():
    (problem,) = problems(policy("[{ else: { then: { do: rety, attempts: 5 } } }]"))
    assert problem.message == "`rety` is not a directive"
    assert problem.label == "did you mean `retry`?"
    assert place_within_tasks(problem) == (5, 37)


def test_admission_rules_are_read_in_every_spelling():
    text = """
        - step: start
          spec:
            policy:
              admit:
                mode: exclusive
                rules:
                  - when: "{{ workload.go }}"
                    then: { allow: true }
                  - else:
                    then: { allow: false }
        """
    assert node_of(steps(text)).admit == (AdmitRule("{{ workload.go }}", True), AdmitRule(None, False))
    assert node_of(
        steps("- step: start\n  spec: { policy: { admit: { rules: [{ else: { allow: true } }] } } }\n")
    ).admit == (AdmitRule(None, True),)
    assert node_of(steps("- step: start\n")).admit is None


@cases(
    "rules, expected",
    [
        ("[{ else: { then: { allow: maybe } } }]", ["P0405"]),
        ("[{ when: true }]", ["P0405"]),
        ("[{ when: true, then: { alow: true } }]", ["P0405", "P0102"]),
        ("[{ then: { allow: true } }]", ["P0403"]),
        ("{ allow: true }", ["P0101"]),
    ],
)
def test_an_admission_rule_ends_in_a_verdict(rules, expected):
    assert codes(steps(f"- step: start\n  spec: {{ policy: {{ admit: {{ rules: {rules} }} }} }}\n")) == expected


def test_a_steps_policy_sets_its_time_limits_and_failure_mode():
    text = """
        - step: start
          spec: { policy: { lifecycle: { timeout_s: 600, deadline_s: 0.5 }, failure: { mode: best_effort } } }
          loop: { in: [1], iterator: n }
          tool: { kind: noop }
        """
    node = node_of(steps(text))
    assert (node.timeout_s, node.deadline_s) == (600.0, 0.5)
    assert node.fan is not None
    assert node.fan.failure is FailureMode.BEST_EFFORT


def test_a_then_written_as_text_shows_the_rewrite():
    (problem,) = [one for one in compiled(policy("[{ when: true, then: break }]")).problems if one.code == "P0101"]
    assert problem.rewrite == "then:\n  do: break"


RETRY = "then: { do: retry, attempts: 3 }"


@cases(
    "rules, expected",
    [
        ('[{ when: "{{ outcome.error.retryable }}", RETRY }]', ["P0811"]),
        ('[{ when: "{{ outcome.http.status in [429, 503] }}", RETRY }]', ["P0811"]),
        ("[{ when: \"{{ outcome.status == 'error' and _attempt < 3 }}\", RETRY }]", ["P0811"]),
        ("[{ when: \"{{ outcome.status == 'ok' }}\", then: { do: break } }]", ["P0811"]),
        ("[{ when: \"{{ outcome.status == 'error' }}\", RETRY }]", []),
        ("[{ when: \"{{ outcome.status != 'ok' }}\", RETRY }]", []),
        ('[{ when: "{{ outcome.error }}", RETRY }]', []),
        ('[{ when: "{{ outcome.error.retryable }}", RETRY }, { else: { do: continue } }]', []),
        (
            '[{ when: "{{ outcome.error.retryable }}", RETRY },'
            " { when: \"{{ outcome.status == 'error' and not outcome.error.retryable }}\", then: { do: fail } }]",
            [],
        ),
        # What else a rule reads cannot be known.
        ('[{ when: "{{ outcome.error.retryable and workload.patient | default(true) }}", RETRY }]', []),
    ],
)
def test_a_policy_that_passes_over_errors_is_told_of(rules, expected):
    task = f"- name: a\n  kind: http\n  url: http://x\n  spec:\n    policy:\n      rules: {rules.replace('RETRY', RETRY)}\n"
    assert codes(tasks(task)) == expected
    # A noop has nothing that could fail.
    assert codes(tasks(task.replace("kind: http\n  url: http://x", "kind: noop"))) == []
