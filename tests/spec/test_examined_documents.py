"""What a second examiner found, who wrote playbooks in odd combinations; and what held, where nothing else had shown it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from penstock.server.documents import DocumentInvalid
from tests.dialects.playbook.support import HEAD, codes, errors, problems, steps, tasks
from tests.engine import play

CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child}
workload: {n: 0}
workflow:
- step: start
  tool: {kind: python, args: {n: "{{ n }}"}, code: "result = 10 / n"}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, value: "end {{ start }}"}
"""


@pytest.mark.clause("P6.3")
@pytest.mark.parametrize(
    ("attempts", "said"),
    [("{{ ctx.nope }}", "`ctx.nope` is undefined"), ("{{ workload.nothing }}", "`attempts` is null, not a number")],
)
def test_a_number_of_attempts_that_is_none_names_what_is_missing(tmp_path: Path, attempts: str, said: str) -> None:
    run = play(
        f"""
        workload: {{nothing: null}}
        workflow:
          - step: start
            tool:
              - name: a
                kind: python
                code: "raise ValueError('x')"
                spec: {{policy: {{rules: [{{else: , then: {{do: retry, attempts: "{attempts}"}}}}]}}}}
        """,
        tmp_path,
    )
    assert run.error["message"] == f"policy rule 1 of task `a`: {said}"


@pytest.mark.parametrize("step", ["strat", "fin"])
def test_a_step_to_return_that_the_other_playbook_lacks_is_an_error_before_that_runs(tmp_path: Path, step: str) -> None:
    (tmp_path / "child.yaml").write_text(CHILD, encoding="utf-8")
    call = "- step: start\n  tool: {kind: playbook, path: child, return_step: STEP, args: {n: 5}}"
    with pytest.raises(DocumentInvalid, match=f"has no step `{step}`"):
        play(call.replace("STEP", step), tmp_path)
    run = play(call.replace("STEP", f"\"{{{{ '{step}' }}}}\""), tmp_path, execution_id="run-2")
    assert run.status == "failed"
    assert run.error["message"] == f"`child` has no step `{step}` to return"
    assert run.error["hint"] == ("did you mean `start`?" if step == "strat" else "it has `start`, `end`")
    assert run.steps() == ["start"]


def test_a_retried_playbook_is_run_anew_with_other_args(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(CHILD, encoding="utf-8")
    run = play(
        """
        - step: start
          tool:
            - name: c
              kind: playbook
              path: child.yaml
              args: {n: "{{ _attempt - 1 }}"}
              spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3}}]}}
        """,
        tmp_path,
    )
    assert run.result == "end 10.0"


@pytest.mark.clause("P2.5")
def test_a_result_that_the_workload_hides_is_warned_of_where_it_is_read() -> None:
    text = tasks(
        """
        - {name: city, kind: noop, value: Bergen}
        - {name: b, kind: noop, value: "{{ city }} {{ workload.city }}"}
        """
    )
    (found,) = problems(text, "P0706")
    assert found.message == "`city` is read from the workload, not from the task of that name"
    assert "P0706" not in codes(text.replace("name: city", "name: town").replace("{{ city }}", "{{ town }}"))


def test_a_result_of_a_step_that_the_workload_hides_is_warned_of_in_arcs_too() -> None:
    text = steps(
        """
        - step: x
          tool: {kind: noop}
          next: {arcs: [{step: b, when: "{{ x == 1 }}"}]}
        - step: b
          tool: {kind: noop}
        """
    )
    assert codes(text).count("P0706") == 1


def test_what_ctx_takes_over_from_a_task_of_the_same_name_is_not_warned_of() -> None:
    text = tasks(
        """
        - {name: city, kind: noop, value: Bergen, set: {ctx.city: "{{ outcome.result }}"}}
        - {name: b, kind: noop, value: "{{ city }}"}
        """
    )
    assert "P0706" not in codes(text)


def test_a_result_that_ctx_hides_is_warned_of_where_it_is_read() -> None:
    text = steps(
        """
        - step: page
          tool: [{name: t, kind: noop, value: {n: 1}}]
          set: {ctx.page: "{{ ctx.page + 1 }}"}
          next: {arcs: [{step: b, when: "{{ page.n == 1 }}"}]}
        - step: b
        """
    )
    (found,) = problems(text, "P0706")
    assert found.message == "`page` is read from ctx, not from the step of that name"
    assert "P0706" not in codes(text.replace("ctx.page", "ctx.number"))


def test_args_do_not_see_each_other_so_that_a_name_there_is_not_the_arg() -> None:
    text = tasks(
        """
        - {name: city, kind: noop, value: {name: Bergen}}
        - {name: b, kind: python, args: {city: "{{ city.name }}"}, code: result = city}
        """
    )
    assert [one.code for one in problems(text, "P0706")] == ["P0706"]


@pytest.mark.clause("P8.2")
@pytest.mark.parametrize(
    "text",
    [
        'tool: {kind: noop, value: [{"{{ x }}": 1}]}',
        'tool: {kind: noop, args: {"{{ x }}": 1}}',
        'tool: {kind: noop}\n  next: {arcs: [{step: start, when: "{{ workload.go }}", args: {"{{ x }}": 1}}]}',
    ],
)
def test_a_template_in_a_key_is_refused_where_it_stands(text: str) -> None:
    (found,) = problems(steps(f"- step: start\n  {text}\n"), "P0110")
    assert found.position.end_column - found.position.column == len('"{{ x }}"')


def test_a_workbook_task_that_cannot_be_read_is_reported_once() -> None:
    text = HEAD + dedent(
        """
        workbook: [{name: greet, kind: workbook, task: other}, {name: other, kind: noop}]
        workflow: [{step: start, tool: {kind: workbook, task: greet}}]
        """
    )
    assert errors(text) == ["P0517"]


def test_a_name_whose_accent_is_a_character_of_its_own_is_told_so() -> None:
    (found,) = problems(steps("- step: e\u0301te\n  tool: {kind: noop}\n"), "P0301")
    assert "(Unicode NFC)" in found.hint
    assert errors(steps("- step: \u00e9te\n  tool: {kind: noop}\n")) == []


@pytest.mark.clause("P2.3")
def test_iterations_are_seen_through_two_playbooks(tmp_path: Path) -> None:
    head = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: c}\nworkflow:\n"
    (tmp_path / "mid.yaml").write_text(
        head + "- step: m\n  loop: {in: [a, b], iterator: v}\n  tool: {kind: playbook, path: leaf}\n", encoding="utf-8"
    )
    leaf = """\
- step: first
  tool: {kind: noop, value: "{{ iter.parent.v }}{{ iter.parent.parent.w }}"}
  next: {arcs: [{step: last}]}
- step: last
  loop: {in: ["{{ first }}"], iterator: u}
  tool: {kind: noop, value: "{{ iter.u }}.{{ iter.parent.v }}{{ iter.parent.parent.w }}"}
"""
    (tmp_path / "leaf.yaml").write_text(head + leaf, encoding="utf-8")
    run = play(
        """
        - step: start
          loop: {in: [1, 2], iterator: w, spec: {mode: parallel}}
          tool: {kind: playbook, path: mid.yaml}
        """,
        tmp_path,
    )
    found = [[leaf["results"] for leaf in mid["results"]] for mid in run.result["results"]]
    assert found == [[["a1.a1"], ["b1.b1"]], [["a2.a2"], ["b2.b2"]]]


@pytest.mark.clause("P14.1")
def test_a_loop_in_a_loop_in_an_else_in_an_else_runs_as_it_reads(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          loop: {in: [1, 2, 3], iterator: x}
          tool:
            - name: r
              choose:
                - {when: "{{ iter.x == 1 }}", then: [{name: one, kind: noop, value: one}]}
                - else:
                  then:
                    - name: rr
                      choose:
                        - {when: "{{ iter.x == 2 }}", then: [{name: two, kind: noop, value: two}]}
                        - else:
                          then:
                            - name: u
                              until:
                                do:
                                  - name: w
                                    while:
                                      when: "{{ (iter.k | default(0)) < 2 }}"
                                      do:
                                        - name: k
                                          kind: noop
                                          value: "{{ (iter.k | default(0)) + 1 }}"
                                          set: {iter.k: "{{ outcome.result }}"}
                                      max: 5
                                  - name: m
                                    kind: noop
                                    value: "{{ (iter.m | default(0)) + 1 }}"
                                    set: {iter.m: "{{ outcome.result }}"}
                                when: "{{ iter.m >= 3 }}"
                                max: 9
                            - {name: three, kind: noop, value: "three k{{ iter.k }} m{{ iter.m }}"}
            - {name: z, kind: noop, value: "{{ _prev }}"}
        """,
        tmp_path,
    )
    assert run.result["results"] == ["one", "two", "three k2 m3"]


@pytest.mark.clause("P14.1")
def test_the_rounds_of_a_while_are_counted_anew_each_time_it_is_come_to(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool:
            - name: again
              kind: noop
              value: "{{ (ctx.r | default(0)) + 1 }}"
              set: {ctx.r: "{{ outcome.result }}", ctx.i: 0}
            - name: w
              while:
                when: "{{ ctx.i < 2 }}"
                max: 2
                do: [{name: a, kind: noop, value: "{{ ctx.i + 1 }}", set: {ctx.i: "{{ outcome.result }}"}}]
            - name: back
              kind: noop
              value: "{{ ctx.r }}"
              spec: {policy: {rules: [{when: "{{ ctx.r < 3 }}", then: {do: jump, to: again}}]}}
        """,
        tmp_path,
    )
    assert run.result == 3


@pytest.mark.clause("P8.1")
def test_a_join_waits_for_a_step_that_is_retried_and_takes_a_failure_that_is_led_on(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool: {kind: noop}
          next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
        - step: a
          tool:
            kind: python
            args: {n: "{{ _attempt }}"}
            code: "result = 1 / (n - 1)"
            spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2}}]}}
          next: {arcs: [{step: j, args: {v: "{{ event.result }}"}}]}
        - step: b
          tool: {kind: python, code: "raise ValueError('b')"}
          next: {arcs: [{step: j, when: "{{ event.name == 'step.failed' }}", args: {kind: "{{ event.error.kind }}"}}]}
        - step: j
          spec:
            join: [a, b]
            policy: {admit: {rules: [{when: "{{ args.a.v == 1 }}", then: {allow: true}}]}}
          tool: {kind: noop, value: ["{{ args.a.v }}", "{{ args.b.kind }}"]}
        """,
        tmp_path,
    )
    assert run.result == [1.0, "exception"]
    assert run.steps().count("j") == 1
