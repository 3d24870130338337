"""Reachability: dead steps, arcs that never fire, circles without exit, joins that can never be complete."""

import pytest

from penstock.dialects.problems import Severity
from tests.cases import cases
from tests.dialects.playbook.support import codes, errors, node_of, place_within_steps, problems, steps, tasks

LOOP = "loop: { in: [1], iterator: n }"


def router(arcs: str, step: str = "", mode: str = "exclusive") -> str:
    return steps(f"""\
- step: start
  {step or "desc: x"}
  next: {{ spec: {{ mode: {mode} }}, arcs: [{arcs}] }}
- step: a
- step: b
""")


@pytest.mark.clause("P15.1")
def test_a_step_that_no_arc_leads_to_is_reported():
    (problem,) = problems(steps("- step: start\n- step: lonely\n"))
    assert (problem.code, problem.severity) == ("P0801", Severity.WARNING)
    assert problem.message == "the step `lonely` is never reached"
    assert place_within_steps(problem) == (2, 9)


@pytest.mark.clause("P15.1")
def test_steps_that_lead_only_to_each_other_are_dead_too():
    text = "- step: start\n- step: a\n  next: { arcs: [{ step: b }] }\n- step: b\n"
    assert codes(steps(text)) == ["P0801", "P0801"]


@pytest.mark.clause("P15.1")
def test_a_step_behind_an_arc_that_never_fires_is_dead():
    text = "- step: start\n  next: { arcs: [{ step: a, when: false }] }\n- step: a\n"
    assert codes(steps(text)) == ["P0802", "P0801"]


@pytest.mark.clause("P15.1")
@cases(
    "arcs, expected",
    [
        ("{ step: a }, { step: b }", ["P0802", "P0801"]),
        ("{ step: a, when: true }, { step: b }", ["P0802", "P0801"]),
        ("{ step: a, when: '{{ true }}' }, { step: b, when: '{{ workload.go }}' }", ["P0802", "P0801"]),
        ("{ step: a, when: '{{ workload.go }}' }, { step: b, when: '{{workload.go}}' }", ["P0802", "P0801"]),
        ("{ step: a, when: \"{{ event.name == 'step.done' }}\" }, { step: b }", ["P0802", "P0801"]),
        ("{ step: a, when: '{{ 1 == 2 }}' }, { step: b }", ["P0802", "P0801"]),
        ("{ step: a, when: '{{ not true }}' }, { step: b }", ["P0802", "P0801"]),
        # An arc without a guard does not fire on a failure, so one for the failure may stand below it (D49).
        ("{ step: a }, { step: b, when: \"{{ event.name == 'step.failed' }}\" }", []),
        # A condition that does not read `event` says nothing about a failure either (D57).
        ("{ step: a }, { step: b, when: true }", ["P0802", "P0801"]),
        ("{ step: a }, { step: b, when: '{{ workload.go }}' }", ["P0802", "P0801"]),
        ("{ step: a }, { step: b, when: \"{{ event.name != 'step.done' }}\" }", []),
        ("{ step: a }, { step: b, when: \"{{ event.name in ['step.failed', 'step.done'] }}\" }", []),
        ("{ step: a, when: '{{ workload.go }}' }, { step: b }", []),
        ("{ step: a, when: '{{ workload.go or true }}' }, { step: b }", ["P0802", "P0801"]),
        ("{ step: a, when: '{{ workload.go and false }}' }, { step: b }", ["P0802", "P0801"]),
    ],
)
def test_an_arc_that_never_fires_in_an_exclusive_router_is_reported(arcs, expected):
    assert codes(router(arcs)) == expected


@pytest.mark.clause("P15.1")
def test_in_an_inclusive_router_only_guards_that_never_hold_are_reported():
    assert codes(router("{ step: a }, { step: b }", mode="inclusive")) == []
    assert codes(router("{ step: a }, { step: b, when: false }", mode="inclusive")) == ["P0802", "P0801"]


@pytest.mark.clause("P15.1")
@cases(
    "step, name, label",
    [
        ("", "loop.done", "did you mean `step.done`?"),
        (LOOP, "step.done", "did you mean `loop.done`?"),
        ("", "step.doen", "did you mean `step.done`?"),
        ("", "step.exit", "did you mean `step.done`?"),
        ("", "step.error", "did you mean `step.failed`?"),
    ],
)
def test_an_arc_that_waits_for_an_end_the_step_never_has_is_reported(step, name, label):
    arcs = f"{{ step: a, when: \"{{{{ event.name == '{name}' }}}}\" }}, {{ step: b }}"
    found = problems(router(arcs, step))
    assert [problem.code for problem in found] == ["P0809", "P0801"]
    assert found[0].label == label


def test_an_end_that_is_only_one_of_several_is_still_worth_a_word():
    arcs = (
        "{ step: a, when: \"{{ event.name == 'loop.done' or event.name == 'step.done' }}\" },"
        "{ step: b, when: \"{{ event.name == 'step.failed' }}\" }"
    )
    assert codes(router(arcs)) == ["P0809"]


def test_a_loop_step_ends_in_loop_done_or_step_failed():
    arcs = "{ step: a, when: \"{{ event.name == 'loop.done' }}\" }, { step: b, when: \"{{ event.name == 'step.failed' }}\" }"
    assert codes(router(arcs, LOOP)) == []


def jumping(rules: str, kind: str = "noop") -> str:
    return tasks(f"""\
- {{ name: a, kind: {kind} }}
- name: b
  kind: noop
  spec: {{ policy: {{ rules: [{rules}] }} }}
- {{ name: c, kind: noop }}
""")


@pytest.mark.clause("P15.1")
@cases(
    "rules, expected",
    [
        ("{ else: { do: jump, to: a } }", ["P0803", "P0807"]),
        ("{ when: true, then: { do: jump, to: a } }", ["P0803", "P0807"]),
        ("{ when: '{{ workload.go }}', then: { do: jump, to: a } }, { else: { do: jump, to: b } }", ["P0803", "P0807"]),
        ("{ when: false, then: { do: break } }, { else: { do: jump, to: a } }", ["P0803", "P0807"]),
        ("{ when: '{{ workload.go }}', then: { do: jump, to: a } }", []),
        ("{ when: '{{ workload.go }}', then: { do: break } }, { else: { do: jump, to: a } }", ["P0807"]),
        ("{ when: '{{ workload.go }}', then: { do: fail } }, { else: { do: jump, to: a } }", ["P0807"]),
        ("{ when: '{{ workload.go }}', then: { do: jump, to: c } }, { else: { do: jump, to: a } }", []),
    ],
)
def test_a_circle_of_jumps_without_an_exit_is_an_error(rules, expected):
    assert codes(jumping(rules)) == expected


@pytest.mark.clause("P15.1")
def test_a_circle_that_only_a_failure_ends_is_a_warning():
    found = problems(jumping("{ else: { do: jump, to: a } }", kind="python, code: x"), "P0803")
    assert [problem.severity for problem in found] == [Severity.WARNING]


def test_a_task_that_is_always_jumped_over_never_runs():
    assert codes(jumping("{ else: { do: break } }")) == ["P0807"]


@pytest.mark.clause("P15.1")
def test_a_circle_of_steps_that_no_token_leaves_is_reported():
    text = "- step: start\n  next: { arcs: [{ step: a }] }\n- step: a\n  next: { arcs: [{ step: start }] }\n"
    (problem,) = problems(steps(text))
    assert (problem.code, problem.severity) == ("P0804", Severity.ERROR)
    assert problem.message == "a token never leaves the circle of `start`, `a`"


@pytest.mark.parametrize(
    "arcs",
    [
        "{ step: start, when: '{{ workload.again }}' }",
        "{ step: end, when: '{{ workload.go }}' }, { step: start }",
    ],
)
def test_a_circle_with_a_way_out_is_not_reported(arcs):
    text = f"- step: start\n  next: {{ arcs: [{{ step: a }}] }}\n- step: a\n  next: {{ arcs: [{arcs}] }}\n- step: end\n"
    assert "P0804" not in codes(steps(text))


def test_a_step_that_may_refuse_a_token_is_a_way_out():
    text = """
        - step: start
          spec:
            policy: { admit: { rules: [{ when: "{{ workload.go }}", then: { allow: true } }, { else: { allow: false } }] } }
          next: { arcs: [{ step: start }] }
        """
    assert codes(steps(text)) == []


def test_an_inclusive_router_that_always_returns_is_a_circle_even_with_a_way_out():
    text = "- step: start\n  next: { spec: { mode: inclusive }, arcs: [{ step: end }, { step: start }] }\n- step: end\n"
    assert codes(steps(text)) == ["P0804"]


JOIN = """\
- step: start
  next: {{ spec: {{ mode: {mode} }}, arcs: [{{ step: a }}, {{ step: b, when: "{{{{ workload.go }}}}" }}] }}
- step: a
  next: {{ arcs: [{{ step: both }}] }}
- step: b
  next: {{ arcs: [{{ step: {target} }}] }}
- step: both
  spec: {{ join: [{join}] }}
- step: other
"""


def test_a_join_waits_for_a_token_from_each_of_its_steps():
    node = node_of(steps(JOIN.format(mode="inclusive", target="both", join="a, b")), "both")
    assert node.joins == ("a", "b")
    assert node.gate.value == "join"


@pytest.mark.clause("P15.1")
@pytest.mark.parametrize(
    ("mode", "target", "join", "expected"),
    [
        ("inclusive", "other", "a, b", ["P0805"]),
        ("inclusive", "both", "a", ["P0808"]),
        ("inclusive", "both", "a, b, c", ["P0305"]),
        ("inclusive", "both", "a, a, b", ["P0607"]),
    ],
)
def test_tokens_that_can_never_be_consumed_are_errors(mode, target, join, expected):
    assert errors(steps(JOIN.format(mode=mode, target=target, join=join))) == expected


@pytest.mark.clause("P15.1")
def test_a_join_of_steps_behind_one_exclusive_router_is_reported():
    text = JOIN.format(mode="exclusive", target="both", join="a, b").replace(
        '{ step: a }, { step: b, when: "{{ workload.go }}" }', '{ step: b, when: "{{ workload.go }}" }, { step: a }'
    )
    found = [problem for problem in problems(steps(text)) if problem.code == "P0806"]
    assert [problem.message for problem in found] == ["`a` and `b` are never both reached: `start` takes one arc only"]


def test_the_first_step_cannot_wait_for_others():
    text = """
        - step: start
          spec: { join: [a] }
          next: { arcs: [{ step: a }] }
        - step: a
          next: { arcs: [{ step: start }] }
        """
    assert "P0805" in errors(steps(text))


@pytest.mark.parametrize(
    ("text", "code", "label"),
    [
        ("- step: start\n  next: { arcs: [{ step: ends }] }\n- step: end\n", "P0304", "did you mean `end`?"),
        ("- step: start\n  spec: { join: [ends] }\n- step: end\n", "P0305", "did you mean `end`?"),
    ],
)
def test_a_step_that_does_not_exist_is_an_error_with_the_closest_name(text, code, label):
    (problem,) = problems(steps(text), code)
    assert (problem.severity, problem.label) == (Severity.ERROR, label)


def test_a_long_chain_of_steps_is_checked_without_running_out_of_stack():
    count = 1200  # more than Python lets calls be nested
    chain = "".join(f"- step: s{n}\n  next: {{ arcs: [{{ step: s{n + 1} }}] }}\n" for n in range(count))
    assert codes(steps(chain + f"- step: s{count}\n")) == []


def guarded(condition: str) -> list[tuple[str, str]]:
    text = f'- step: start\n  tool: {{ kind: noop }}\n  next: {{ arcs: [{{ step: a, when: "{{{{ {condition} }}}}" }}] }}\n- step: a\n'
    return [(problem.code, problem.rewrite) for problem in problems(steps(text)) if problem.code != "P0801"]


@pytest.mark.clause("P8.1")
@cases(
    "condition, expected",
    [
        ("output.status == 'error'", "event.name == 'step.failed'"),
        ("output.status != 'ok'", "event.name == 'step.failed'"),
        (
            "output.status == 'error' and output.error.kind == 'timeout'",
            "event.name == 'step.failed' and output.status == 'error' and output.error.kind == 'timeout'",
        ),
        ("output.error", "event.name == 'step.failed' and output.error"),
        (
            "output.error is defined or workload.go",
            "event.name == 'step.failed' and (output.error is defined or workload.go)",
        ),
    ],
)
def test_an_arc_that_looks_for_a_failure_without_reading_event_is_shown_how_to_say_it(condition: str, expected: str):
    """D57."""
    found = [rewrite for code, rewrite in guarded(condition) if code == "P0810"]
    assert found == [f'when: "{{{{ {expected} }}}}"']


@pytest.mark.parametrize(
    "condition",
    [
        "output.status == 'ok'",
        "output.total > 3",
        "event.name == 'step.failed' and output.error.kind == 'timeout'",
        "output.status == 'error' and event.name == 'step.failed'",
    ],
)
def test_an_arc_that_does_not_miss_a_failure_is_left_alone(condition: str):
    assert guarded(condition) == []
