"""What an examiner found who wrote playbooks from the documents alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialects.playbook.support import errors, tasks
from tests.engine import play


@pytest.mark.clause("P6.4")
def test_what_a_task_sets_is_in_force_before_its_policy_is_asked(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          loop: {in: [1, 2], iterator: x}
          tool:
            - name: a
              kind: noop
              value: "{{ x }}"
              set: {iter.tens: "{{ outcome.result * 10 }}", ctx.last: "{{ output.data }}"}
              spec:
                policy:
                  rules:
                    - when: "{{ iter.tens == 10 and ctx.last == 1 }}"
                      then: {do: break, set: {ctx.stopped_at: "{{ iter.tens }}"}}
            - {name: b, kind: noop, value: "b{{ iter.tens }}"}
        """,
        tmp_path,
    )
    assert run.result["results"] == [1, "b20"]
    assert run.ctx == {"last": 2, "stopped_at": 10}


@pytest.mark.clause("P2.4")
@pytest.mark.parametrize(("value", "shown"), [("5", 5), ("hello", "hello"), ("[1, 2]", [1, 2]), ("{data: 7}", 7)])
def test_data_of_a_name_is_its_own_data_or_the_whole_result(tmp_path: Path, value: str, shown: object) -> None:
    run = play(
        f"""
        - step: start
          tool:
            - {{name: one, kind: noop, value: {value}}}
            - {{name: two, kind: noop, value: "{{{{ one.data }}}}"}}
          next: {{arcs: [{{step: fin, when: "{{{{ start.data == start }}}}"}}]}}
        - step: fin
          tool: {{kind: noop, value: "{{{{ start.data }}}}"}}
        """,
        tmp_path,
    )
    assert run.result == shown
    assert run.steps() == ["start", "fin"]


@pytest.mark.clause("P2.4")
def test_data_of_anything_but_a_result_is_undefined_when_it_has_none(tmp_path: Path) -> None:
    run = play(
        """
        workload: {text: words}
        workflow:
          - step: start
            tool: {kind: noop, value: ["{{ workload.text.data | default('none') }}", "{{ text.data | default('none') }}"]}
        """,
        tmp_path,
    )
    assert run.result == ["none", "none"]


@pytest.mark.clause("P2.3", "P2.2")
def test_dots_in_the_keys_of_writes_reach_into_mappings_everywhere(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          loop: {in: [3, 1], iterator: x, spec: {mode: parallel}}
          tool:
            - name: a
              kind: noop
              spec: {policy: {rules: [{else: {then: {set_iter: {page.n: 1, page.more: true}, append_ctx: {log.seen: "{{ x }}"}}}}]}}
            - {name: b, kind: noop, set: {iter.page.n: "{{ iter.page.n + x }}"}}
            - {name: c, kind: noop, value: "{{ iter.page }}"}
          next: {arcs: [{step: fin}]}
        - step: fin
          tool: {kind: noop, value: "{{ ctx.log.seen }}", spec: {policy: {rules: [{else: {then: {append_ctx: {log.seen: 9}}}}]}}}
        """,
        tmp_path,
    )
    assert run.payloads("loop.done")[0]["result"]["results"] == [{"n": 4, "more": True}, {"n": 2, "more": True}]
    assert run.result == [3, 1]
    assert run.ctx == {"log": {"seen": [3, 1, 9]}}


CLASH = """
    - step: start
      loop: {{in: [0, 1], iterator: x, spec: {{mode: parallel}}}}
      tool:
        name: a
        kind: noop
        spec: {{policy: {{rules: [{{when: "{{{{ x == 0 }}}}", then: {{{first}}}}}, {{else: {{then: {{{second}}}}}}}]}}}}
"""


@pytest.mark.clause("P6.5")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("set_ctx: {k.a: 1}", "set_ctx: {k: 7}"),
        ("set_ctx: {k: 7}", "set_ctx: {k.a: 1}"),
        ("append_ctx: {k: 1}", "set_ctx: {k: [2]}"),
        ("set_ctx: {k: [2]}", "append_ctx: {k: 1}"),
        ("set_ctx: {k: 7}", "append_ctx: {k.list: 1}"),
    ],
)
def test_writes_of_a_parallel_loop_that_cannot_stand_side_by_side_are_a_conflict(
    tmp_path: Path, first: str, second: str
) -> None:
    run = play(CLASH.format(first=first, second=second), tmp_path)
    assert run.status == "failed"
    assert run.error["kind"] == "ctx_conflict"
    assert run.error["writers"] == [0, 1]


@pytest.mark.clause("P6.5")
def test_different_keys_under_one_mapping_are_no_conflict(tmp_path: Path) -> None:
    run = play(CLASH.format(first="set_ctx: {k.a: 1}", second="set_ctx: {k.b: 2}"), tmp_path)
    assert (run.status, run.ctx) == ("completed", {"k": {"a": 1, "b": 2}})


@pytest.mark.clause("P6.3")
def test_attempts_and_delay_may_be_numbers_in_quotes(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool:
            name: t
            kind: python
            code: raise RuntimeError("no")
            spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: "2", delay: "0.001"}}]}}
        """,
        tmp_path,
    )
    assert run.tasks() == ["t", "t"]


FAILURES = """
    executor: {{spec: {{policy: {{{executor}}}}}}}
    workflow:
      - step: start
        spec: {{policy: {{{step}}}}}
        loop: {{in: [1, 0, 2], iterator: x, spec: {{policy: {{{loop}}}}}}}
        tool: {{kind: python, args: {{x: "{{{{ iter.x }}}}"}}, code: "result = 4 / x"}}
"""
BEST, FAST = "failure: {mode: best_effort}", "failure: {mode: fail_fast}"


@pytest.mark.clause("P3.1", "P4.3")
@pytest.mark.parametrize(
    ("executor", "step", "loop", "status"),
    [
        ("", "", "", "failed"),
        (BEST, "", "", "completed"),
        (BEST, FAST, "", "failed"),
        (FAST, BEST, "", "completed"),
        ("", BEST, FAST, "failed"),
        ("", FAST, BEST, "completed"),
    ],
)
def test_the_innermost_failure_mode_governs_a_loop(
    tmp_path: Path, executor: str, step: str, loop: str, status: str
) -> None:
    assert play(FAILURES.format(executor=executor, step=step, loop=loop), tmp_path).status == status


@pytest.mark.clause("P10.1")
def test_expressions_read_a_large_text_like_any_other(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_payload_bytes: 100}}}}
        workflow:
          - step: start
            tool:
              - {name: big, kind: python, code: "result = 'x' * 500"}
              - name: kept
                kind: noop
                value: ["{{ big | length }}", "{{ big[:2] }}", "{{ 'xx' in big }}", "{{ big == _prev }}", "{{ big.data | upper | length }}"]
                set: {ctx.text: "{{ big }}", ctx.both: {a: "{{ big }}", b: "{{ big }}"}}
              - name: fin
                kind: python
                args: {seen: "{{ kept }}", text: "{{ ctx.text }}", length: "{{ ctx.both.a | length }}", both: "{{ ctx.both }}"}
                code: "result = [seen, len(text), length, len(both['b'])]"
        """,
        tmp_path,
    )
    assert run.result == [[500, "xx", True, True, 500], 500, 500, 500]
    assert len(str(run.payloads("task.done")[0]["outcome"]["result"])) < 400


@pytest.mark.clause("P10.1")
def test_a_list_of_large_results_that_is_itself_too_large_can_be_read(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_payload_bytes: 1000}}}}
        workflow:
          - step: start
            loop: {in: {range: 20}, iterator: x}
            tool: {kind: python, args: {x: "{{ iter.x }}"}, code: "result = {'x': x, 'pad': 'y' * 2000}"}
            next: {arcs: [{step: fin, when: "{{ event.result.results[7].x == 7 }}"}]}
          - step: fin
            tool: {kind: python, args: {all: "{{ start.results }}", one: "{{ start.results[3].x }}"}, code: "result = [sum(r['x'] for r in all), one]"}
        """,
        tmp_path,
    )
    assert run.result == [190, 3]


@pytest.mark.clause("P8.1")
def test_guards_see_the_terminal_event_under_the_names_of_its_envelope(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool: {kind: noop, value: {n: 1}}
          next:
            arcs:
              - step: fin
                when: "{{ event.name == event.event_type and event.payload.result.n == event.result.n and event.status == 'done' }}"
        - step: fin
          tool: {kind: noop}
        """,
        tmp_path,
    )
    assert run.steps() == ["start", "fin"]


def test_the_task_run_limit_ends_a_pipeline_whose_policies_go_on_after_every_error(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_task_runs: 20}}}}
        workflow:
          - step: start
            tool:
              - {name: a, kind: noop, spec: {policy: {rules: [{else: {then: {do: continue}}}]}}}
              - {name: b, kind: noop, spec: {policy: {rules: [{when: "{{ ctx.stop }}", then: {do: break}}, {else: {then: {do: jump, to: a}}}]}}}
        """,
        tmp_path,
    )
    assert run.error["kind"] == "task_run_limit"
    assert len(run.tasks()) == 21


def test_of_playbooks_within_playbooks_the_innermost_failure_is_told_once(tmp_path: Path) -> None:
    run = play("- step: start\n  tool: {kind: playbook, path: playbook.yaml}", tmp_path)
    said, _, chain = run.error["message"].partition(" (called through ")
    assert said == "playbook `playbook.yaml` failed: executions are nested deeper than 32"
    assert chain == "`playbook.yaml` -> `playbook.yaml` -> `playbook.yaml` -> … -> `playbook.yaml`, 32 deep)"
    assert run.error["cause"]["kind"] == "refused"


@pytest.mark.clause("P2.2")
def test_a_template_in_the_name_of_a_write_is_refused() -> None:
    assert errors(tasks('- {name: a, kind: noop, set: {"ctx.seen_{{ 1 }}": true}}')) == ["P0408"]
