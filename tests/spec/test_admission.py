"""P4: the gate before a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine import play

GATED = """
    - step: start
      next: {{arcs: [{{step: gated, args: {{n: 5}}}}]}}
    - step: gated
      spec: {{policy: {{admit: {{rules: {rules}}}}}}}
      tool: {{kind: noop, value: in}}
"""


@pytest.mark.clause("P4.1")
@pytest.mark.parametrize(
    ("rules", "admitted", "rule"),
    [
        ('[{when: "{{ args.n > 3 }}", then: {allow: true}}, {else: {then: {allow: false}}}]', True, 0),
        ('[{when: "{{ args.n > 9 }}", then: {allow: true}}, {else: {then: {allow: false}}}]', False, 1),
        ('[{when: "{{ args.n > 3 }}", then: {allow: false}}, {when: "{{ true }}", then: {allow: true}}]', False, 0),
        ('[{when: "{{ args.n > 9 }}", then: {allow: true}}]', False, None),
    ],
)
def test_the_first_rule_that_matches_decides(tmp_path: Path, rules: str, admitted: bool, rule: int | None) -> None:
    run = play(GATED.format(rules=rules), tmp_path)
    assert run.status == "completed"
    assert run.steps() == (["start", "gated"] if admitted else ["start"])
    if admitted:
        assert run.of("step.scheduled")[1]["payload"]["rule"] == rule
    else:
        assert [payload["rule"] for payload in run.payloads("token.refused")] == [rule]


@pytest.mark.clause("P4.1")
def test_without_rules_every_token_is_let_in(tmp_path: Path) -> None:
    run = play("- step: start\n  next: {arcs: [{step: b}]}\n- step: b", tmp_path)
    assert run.steps() == ["start", "b"]
    assert run.of("token.refused") == []


@pytest.mark.clause("P4.1")
def test_admission_is_the_servers_and_comes_before_the_scheduling(tmp_path: Path) -> None:
    run = play(GATED.format(rules="[{else: {then: {allow: false}}}]"), tmp_path)
    refused = run.of("token.refused")[0]
    assert (refused["source"], refused["step"]) == ("server", "gated")
    assert "gated" not in run.steps()


@pytest.mark.clause("P4.2")
@pytest.mark.parametrize("name", ["_prev", "_task", "_attempt", "outcome", "iter"])
def test_pipeline_locals_are_not_there_at_admission(tmp_path: Path, name: str) -> None:
    rules = f'[{{when: "{{{{ {name} is defined }}}}", then: {{allow: true}}}}, {{else: {{then: {{allow: false}}}}}}]'
    run = play(GATED.format(rules=rules), tmp_path)
    assert len(run.of("token.refused")) == 1


@pytest.mark.clause("P4.2")
def test_admission_sees_ctx_workload_args_and_the_tokens_event(tmp_path: Path) -> None:
    run = play(
        """
        workload: {w: 1}
        workflow:
          - step: start
            tool: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {c: 2}}}}]}}}
            next: {arcs: [{step: gated, args: {a: 3}}]}
          - step: gated
            spec:
              policy:
                admit:
                  rules:
                    - when: "{{ workload.w == 1 and ctx.c == 2 and args.a == 3 and event.step == 'start' }}"
                      then: {allow: true}
        """,
        tmp_path,
    )
    assert run.steps() == ["start", "gated"]


def test_a_rule_that_cannot_be_evaluated_fails_the_run_and_says_which(tmp_path: Path) -> None:
    run = play(GATED.format(rules="[{when: \"{{ args.n + 'x' > 1 }}\", then: {allow: true}}]"), tmp_path)
    assert run.status == "failed"
    assert run.error["kind"] == "expression"
    assert "admission rule 1 of step `gated`" in run.error["message"]


@pytest.mark.clause("P4.3")
@pytest.mark.parametrize("limit", ["timeout", "deadline"])
def test_a_step_that_outlives_its_limit_fails(tmp_path: Path, limit: str) -> None:
    run = play(
        f"""
        - step: start
          spec: {{policy: {{lifecycle: {{{limit}_s: 30}}}}}}
          tool:
            - {{name: quick, kind: sleep, seconds: 20}}
            - {{name: slow, kind: sleep, seconds: 20}}
          next: {{arcs: [{{step: after, when: "{{{{ event.name == 'step.failed' }}}}"}}]}}
        - step: after
          tool: {{kind: noop, value: recovered}}
        """,
        tmp_path,
        virtual=True,
    )
    failed = run.of("step.failed")[0]["payload"]
    assert failed["error"]["kind"] == limit
    assert f"lifecycle.{limit}_s" in failed["error"]["message"]
    assert [(payload["task"], payload["outcome"]["status"]) for payload in run.payloads("task.done")][:2] == [
        ("quick", "ok"),
        ("slow", "error"),
    ]
    assert (run.status, run.result) == ("completed", "recovered")


@pytest.mark.clause("P4.3")
@pytest.mark.parametrize(
    ("mode", "end", "status"), [("fail_fast", "step.failed", "failed"), ("best_effort", "loop.done", "completed")]
)
def test_failure_mode_governs_the_loop(tmp_path: Path, mode: str, end: str, status: str) -> None:
    run = play(
        f"""
        - step: start
          spec: {{policy: {{failure: {{mode: {mode}}}}}}}
          loop: {{in: [0, 1, 2, 3], iterator: n}}
          tool: {{kind: python, args: {{n: "{{{{ iter.n }}}}"}}, code: "result = 10 // (n - 1)"}}
        """,
        tmp_path,
    )
    assert run.status == status
    counts = run.payloads(end)[0]["result"]
    if mode == "fail_fast":
        assert (counts["total"], counts["done"], counts["failed"]) == (4, 1, 1)
        assert run.error["iteration"] == 1
    else:
        assert counts == {"total": 4, "done": 3, "failed": 1, "results": [-10, None, 10, 5]}
