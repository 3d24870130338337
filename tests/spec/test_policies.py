"""P6: what rules make of outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine import play
from tests.virtual import EPOCH


@pytest.mark.clause("P6.1")
def test_rules_go_from_top_to_bottom_and_the_first_match_wins(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool:
            - name: a
              kind: noop
              value: 5
              spec:
                policy:
                  rules:
                    - {when: "{{ outcome.result > 9 }}", then: {do: fail}}
                    - {when: "{{ outcome.result > 4 }}", then: {do: continue, set_ctx: {which: second}}}
                    - {when: "{{ true }}", then: {do: fail}}
                    - {else: {then: {do: fail}}}
        """,
        tmp_path,
    )
    assert (run.status, run.ctx) == ("completed", {"which": "second"})
    assert run.payloads("task.done")[0]["rule"] == 1


@pytest.mark.clause("P6.1")
def test_jump_break_and_fail_move_the_cursor(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool:
            - {name: a, kind: noop, spec: {policy: {rules: [{else: {then: {do: jump, to: c}}}]}}}
            - {name: b, kind: noop, value: never}
            - name: c
              kind: noop
              value: 3
              spec: {policy: {rules: [{when: "{{ outcome.result == 3 }}", then: {do: break}}]}}
            - {name: d, kind: noop, value: never}
          next: {arcs: [{step: bad}]}
        - step: bad
          tool:
            - {name: e, kind: noop, spec: {policy: {rules: [{else: {then: {do: fail}}}]}}}
            - {name: f, kind: noop}
        """,
        tmp_path,
    )
    assert run.tasks() == ["a", "c", "e"]
    assert run.types("step.done", "step.failed") == ["step.done", "step.failed"]
    assert run.payloads("step.done")[0]["result"] == 3
    assert run.status == "failed"


@pytest.mark.clause("P6.2")
def test_without_a_policy_an_error_fails_the_step_and_with_an_unmatched_one_it_goes_on(tmp_path: Path) -> None:
    boom = "kind: python, code: \"raise ValueError('no')\""
    assert play(f"- step: start\n  tool: {{{boom}}}", tmp_path, execution_id="plain").status == "failed"
    matched = f'- step: start\n  tool: {{{boom}, spec: {{policy: {{rules: [{{when: "{{{{ false }}}}", then: {{do: fail}}}}]}}}}}}'
    assert play(matched, tmp_path, execution_id="unmatched").status == "completed"


FLAKY = """
    - step: start
      tool:
        - name: flaky
          kind: python
          args: {{n: "{{{{ _attempt }}}}"}}
          code: |
            if n < {works_at}:
                raise RuntimeError("attempt " + str(n))
            result = n
          spec:
            policy:
              rules:
                - when: "{{{{ outcome.status == 'error' }}}}"
                  then: {{do: retry, attempts: {attempts}, backoff: {backoff}, delay: {delay}}}
"""


@pytest.mark.clause("P6.3")
@pytest.mark.parametrize(
    ("backoff", "delay", "starts"),
    [
        ("none", "2", [0, 2, 4, 6]),
        ("linear", "2", [0, 2, 6, 12]),
        ("exponential", "2.0", [0, 2, 6, 14]),
        ("exponential", '"{{ _attempt }}"', [0, 1, 5, 17]),
        ("exponential", "200", [0, 200, 500, 800]),
    ],
)
def test_attempts_start_when_the_backoff_says(tmp_path: Path, backoff: str, delay: str, starts: list[int]) -> None:
    run = play(FLAKY.format(works_at=4, attempts=5, backoff=backoff, delay=delay), tmp_path, virtual=True)
    assert run.result == 4
    times = [payload["outcome"]["meta"]["started_at"] - EPOCH for payload in run.payloads("task.done")]
    first = times[0]
    assert [round(time - first, 1) for time in times] == starts
    assert [payload["attempt"] for payload in run.payloads("task.started")] == [1, 2, 3, 4]


@pytest.mark.clause("P6.3")
def test_used_up_retries_fail_the_step_with_the_last_error(tmp_path: Path) -> None:
    run = play(FLAKY.format(works_at=99, attempts=3, backoff="none", delay=0), tmp_path)
    assert run.status == "failed"
    assert len(run.of("task.started")) == 3
    assert "attempt 3" in run.error["message"]


@pytest.mark.clause("P6.4")
def test_a_jump_reads_what_it_has_just_set(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          loop: {in: [1], iterator: x}
          tool:
            - {name: init, kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_iter: {page: 1}}}}]}}}
            - {name: fetch, kind: noop, value: "page {{ iter.page }}"}
            - name: decide
              kind: noop
              spec:
                policy:
                  rules:
                    - when: "{{ iter.page < 4 }}"
                      then: {do: jump, to: fetch, set_iter: {page: "{{ (iter.page | int) + 1 }}"}, append_ctx: {seen: "{{ iter.page }}"}}
                    - else: {then: {do: break}}
        """,
        tmp_path,
    )
    pages = [payload["outcome"]["result"] for payload in run.payloads("task.done") if payload["task"] == "fetch"]
    assert pages == ["page 1", "page 2", "page 3", "page 4"]
    assert run.ctx == {"seen": [1, 2, 3]}


CONFLICT = """
    - step: start
      spec: {{policy: {{failure: {{mode: best_effort}}}}}}
      loop: {{in: [3, 2, 1], iterator: n, spec: {{mode: parallel, max_in_flight: 3}}}}
      tool:
        - name: wait
          kind: sleep
          seconds: "{{{{ iter.n }}}}"
          spec: {{policy: {{rules: [{{else: {{then: {{do: continue, set_ctx: {{key: {value}}}}}}}}}]}}}}
"""


@pytest.mark.clause("P6.5")
def test_conflicting_writes_in_a_parallel_loop_fail_the_later_index_whoever_was_faster(tmp_path: Path) -> None:
    run = play(CONFLICT.format(value='"{{ iter.index }}"'), tmp_path, virtual=True)
    failed = run.payloads("loop.iteration.failed")
    assert [payload["index"] for payload in failed] == [1, 2]
    assert failed[0]["error"]["kind"] == "ctx_conflict"
    assert failed[0]["error"]["key"] == "key"
    assert failed[0]["error"]["writers"] == [0, 1]
    assert run.ctx == {"key": 0}


@pytest.mark.clause("P6.5")
def test_the_same_value_twice_is_no_conflict_and_appends_stand_in_order_of_index(tmp_path: Path) -> None:
    assert play(CONFLICT.format(value="same"), tmp_path, virtual=True).ctx == {"key": "same"}
    appended = CONFLICT.replace("set_ctx: {{key: {value}}}", 'append_ctx: {{key: "{{{{ iter.index }}}}"}}').format()
    run = play(appended, tmp_path, virtual=True, execution_id="run-2")
    assert run.ctx == {"key": [0, 1, 2]}
    assert run.of("loop.iteration.failed") == []


def test_a_sequential_loop_sees_what_earlier_iterations_wrote(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          loop: {in: [5, 6, 7], iterator: n}
          tool:
            - name: add
              kind: noop
              spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {sum: "{{ (ctx.sum | default(0)) + iter.n }}"}}}}]}}
        """,
        tmp_path,
    )
    assert run.ctx == {"sum": 18}


@pytest.mark.clause("P6.6")
def test_every_policy_attempt_is_a_task_run_with_events_of_its_own(tmp_path: Path) -> None:
    run = play(FLAKY.format(works_at=3, attempts=5, backoff="none", delay=0), tmp_path)
    assert [event["task_run_id"] for event in run.of("task.started")] == [f"start@0/flaky#{n}" for n in (1, 2, 3)]
    assert len(run.of("task.done")) == 3


def test_a_rule_that_cannot_be_evaluated_fails_the_step_and_names_itself(tmp_path: Path) -> None:
    rule = '{when: "{{ outcome.result + [] > 1 }}", then: {do: continue}}'
    run = play(
        f"- step: start\n  tool: {{name: a, kind: noop, value: 1, spec: {{policy: {{rules: [{rule}]}}}}}}", tmp_path
    )
    assert run.status == "failed"
    assert "policy rule 1 of task `a`" in run.error["message"]


def test_a_pipeline_that_jumps_for_ever_is_ended_by_the_task_run_limit(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_task_runs: 50}}}}
        workflow:
          - step: start
            tool:
              - {name: a, kind: noop}
              - {name: b, kind: noop, spec: {policy: {rules: [{when: "{{ ctx.stop }}", then: {do: break}}, {when: "{{ outcome.status == 'ok' }}", then: {do: jump, to: a}}, {else: {then: {do: fail}}}]}}}
        """,
        tmp_path,
    )
    assert run.status == "failed"
    assert run.error["kind"] == "task_run_limit"


@pytest.mark.clause("P2.4", "P6.3")
def test_every_attempt_finds_the_previous_result_as_the_first_one_did(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool:
            - {name: first, kind: noop, value: 7}
            - name: flaky
              kind: python
              args: {prev: "{{ _prev }}", n: "{{ _attempt }}"}
              code: |
                if n < 3:
                    raise RuntimeError(prev)
                result = prev
              spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3}}]}}
        """,
        tmp_path,
    )
    assert run.result == 7
