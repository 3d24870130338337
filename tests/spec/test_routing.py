"""P8: arcs, joins and ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine import play

BOOM = '{kind: python, code: "raise ValueError(1)"}'


@pytest.mark.clause("P8.1")
@pytest.mark.parametrize(
    ("tool", "loop", "boundary"),
    [
        ("{kind: noop}", "desc: plain", "step.done"),
        (BOOM, "desc: plain", "step.failed"),
        ("{kind: noop}", "loop: {in: [1, 2], iterator: n}", "loop.done"),
        (BOOM, "loop: {in: [1, 2], iterator: n}", "step.failed"),
    ],
)
def test_arcs_are_evaluated_on_the_three_boundary_events(tmp_path: Path, tool: str, loop: str, boundary: str) -> None:
    run = play(
        f"""
        - step: start
          {loop}
          tool: {tool}
          next:
            arcs:
              - {{step: failed, when: "{{{{ event.name == 'step.failed' }}}}"}}
              - {{step: looped, when: "{{{{ event.name == 'loop.done' }}}}"}}
              - {{step: done, when: "{{{{ event.name == 'step.done' }}}}"}}
        - step: failed
          tool: {{kind: noop, value: step.failed}}
        - step: looped
          tool: {{kind: noop, value: loop.done}}
        - step: done
          tool: {{kind: noop, value: step.done}}
        """,
        tmp_path,
    )
    assert run.status == "completed", run.error
    assert run.result == boundary
    assert run.payloads("next.selected")[0]["on"] == boundary


@pytest.mark.clause("P8.1")
def test_an_arc_without_a_guard_does_not_take_a_failure(tmp_path: Path) -> None:
    run = play(f"- step: start\n  tool: {BOOM}\n  next: {{arcs: [{{step: b}}]}}\n- step: b", tmp_path)
    assert run.status == "failed"
    assert run.steps() == ["start"]


@pytest.mark.clause("P8.1")
def test_guards_see_the_event_ctx_workload_and_results(tmp_path: Path) -> None:
    run = play(
        """
        workload: {limit: 3}
        workflow:
          - step: start
            tool: {kind: noop, value: {n: 5}, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {seen: true}}}}]}}}
            next:
              arcs:
                - step: big
                  when: "{{ event.result.n > workload.limit and ctx.seen and start.n == 5 and event.step == 'start' }}"
          - step: big
        """,
        tmp_path,
    )
    assert run.steps() == ["start", "big"]


@pytest.mark.clause("P8.2")
def test_arc_args_are_rendered_into_the_token_and_reach_the_step(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool: {kind: noop, value: {rows: [1, 2]}}
          next: {arcs: [{step: use, args: {rows: "{{ event.result.rows }}", label: "n={{ event.result.rows | length }}"}}]}
        - step: use
          tool: {kind: noop, value: ["{{ args.rows }}", "{{ label }}"]}
        """,
        tmp_path,
    )
    assert run.of("token.created")[1]["payload"]["args"] == {"rows": [1, 2], "label": "n=2"}
    assert run.result == [[1, 2], "n=2"]


ROUTER = """
    - step: start
      next:
        spec: {{mode: {mode}}}
        arcs:
          - {{step: a, when: "{{{{ false }}}}"}}
          - {{step: b, when: "{{{{ true }}}}"}}
          - {{step: c}}
    - step: a
    - step: b
    - step: c
"""


@pytest.mark.clause("P8.3")
@pytest.mark.parametrize(("mode", "taken"), [("exclusive", ["b"]), ("inclusive", ["b", "c"])])
def test_exclusive_takes_the_first_match_and_inclusive_every_one(tmp_path: Path, mode: str, taken: list[str]) -> None:
    run = play(ROUTER.format(mode=mode), tmp_path)
    assert run.steps()[1:] == taken
    assert run.payloads("next.selected")[0]["steps"] == taken


@pytest.mark.clause("P8.4")
def test_a_failed_step_that_no_arc_takes_fails_the_run(tmp_path: Path) -> None:
    run = play(f"- step: start\n  tool: {BOOM}", tmp_path)
    assert (run.status, run.summary.exit_code) == ("failed", 1)
    assert run.events[-1]["event_type"] == "playbook.failed"
    assert run.error["step"] == "start"


@pytest.mark.clause("P8.4")
def test_a_finished_step_without_a_matching_arc_consumes_its_token(tmp_path: Path) -> None:
    run = play('- step: start\n  next: {arcs: [{step: b, when: "{{ false }}"}]}\n- step: b', tmp_path)
    assert run.payloads("next.selected")[0]["steps"] == []
    assert (run.status, run.summary.exit_code) == ("completed", 0)
    assert run.events[-1]["event_type"] == "playbook.completed"


@pytest.mark.clause("P8.4")
@pytest.mark.parametrize(("mode", "later"), [("best_effort", True), ("fail_fast", False)])
def test_other_tokens_run_to_their_ends_unless_the_run_is_fail_fast(tmp_path: Path, mode: str, later: bool) -> None:
    run = play(
        f"""
        executor: {{spec: {{policy: {{failure: {{mode: {mode}}}}}}}}}
        workflow:
          - step: start
            next: {{spec: {{mode: inclusive}}, arcs: [{{step: bad}}, {{step: slow}}]}}
          - step: bad
            tool: {BOOM}
          - step: slow
            tool: {{kind: sleep, seconds: 50}}
            next: {{arcs: [{{step: after}}]}}
          - step: after
        """,
        tmp_path,
        virtual=True,
    )
    assert run.status == "failed"
    assert ("after" in run.steps()) is later
    assert run.error["step"] == "bad"


JOIN = """
    - step: start
      next: {{spec: {{mode: inclusive}}, arcs: [{{step: a}}, {{step: b, when: "{{{{ workload.both }}}}"}}]}}
    - step: a
      tool: {{kind: sleep, seconds: {slow}}}
      next: {{arcs: [{{step: both, args: {{x: 1}}}}]}}
    - step: b
      tool: {{kind: noop}}
      next: {{arcs: [{{step: both, args: {{y: 2}}}}]}}
    - step: both
      spec: {{join: [a, b]}}
      tool: {{kind: noop, value: "{{{{ args }}}}"}}
"""


@pytest.mark.clause("P8.1")
@pytest.mark.parametrize("slow", [0, 30])
def test_a_join_runs_once_when_a_token_has_come_from_each(tmp_path: Path, slow: int) -> None:
    run = play(JOIN.format(slow=slow), tmp_path, {"both": True}, virtual=True)
    assert run.status == "completed", run.error
    assert run.steps().count("both") == 1
    assert run.result == {"a": {"x": 1}, "b": {"y": 2}}


@pytest.mark.clause("P8.1")
def test_tokens_left_waiting_are_stranded_and_fail_the_run_naming_what_was_missing(tmp_path: Path) -> None:
    run = play(JOIN.format(slow=0), tmp_path, {"both": False})
    assert run.status == "failed"
    assert run.payloads("token.stranded")[0]["missing"] == ["b"]
    assert "`b`" in run.error["message"]


def test_without_a_join_every_token_makes_a_run_of_its_own(tmp_path: Path) -> None:
    run = play(JOIN.format(slow=0).replace("spec: {join: [a, b]}", "desc: no join"), tmp_path, {"both": True})
    assert run.steps().count("both") == 2
    assert [event["payload"]["visit"] for event in run.of("step.scheduled") if event["step"] == "both"] == [1, 2]


def test_a_runaway_execution_is_ended_by_the_visit_limit(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_step_visits: 20}}}}
        workflow:
          - step: start
            next: {arcs: [{step: start, when: "{{ workload.stop is undefined }}"}]}
        """,
        tmp_path,
    )
    assert run.status == "failed"
    assert run.error["kind"] == "visit_limit"
    assert run.steps() == ["start"] * 20


def test_the_entry_is_start_when_there_is_one_and_otherwise_the_first_step(tmp_path: Path) -> None:
    assert play("- step: a\n- step: start", tmp_path, execution_id="one").steps() == ["start"]
    assert play("- step: a\n- step: b", tmp_path, execution_id="two").steps() == ["a"]


def test_a_guard_that_cannot_be_evaluated_fails_the_run_and_says_which(tmp_path: Path) -> None:
    text = '- step: start\n  next: {arcs: [{step: b, when: "{{ workload.n + 1 > 2 }}"}]}\n- step: b'
    run = play(text, tmp_path, {"n": [1]})
    assert run.status == "failed"
    assert "arc 1 of step `start`" in run.error["message"]


def test_in_a_join_a_steps_name_means_its_result_unless_its_arc_passed_something_on(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
        - step: a
          tool: {kind: noop, value: result of a}
          next: {arcs: [{step: both}]}
        - step: b
          tool: {kind: noop, value: result of b}
          next: {arcs: [{step: both, args: {from: arc}}]}
        - step: both
          spec: {join: [a, b]}
          tool: {kind: noop, value: ["{{ a }}", "{{ b.from }}", "{{ args.a }}"]}
        """,
        tmp_path,
    )
    assert run.result == ["result of a", "arc", {}]


ONWARD = """
- step: start
  tool: {kind: python, code: "raise ValueError('no page')"}
  next:
    arcs:
      - {step: last, when: "{{ start.has_more != true }}"}
      - {step: rescue, when: "{{ %s }}"}
- step: last
- step: rescue
  tool: {kind: noop, value: rescued}
"""


@pytest.mark.clause("P8.1")
def test_a_guard_over_data_alone_does_not_carry_a_failed_step_onward(tmp_path: Path) -> None:
    """D57: what the step did not give cannot stand for what it would have given."""
    run = play(ONWARD % "workload.rescue is undefined", tmp_path)
    assert (run.status, run.steps()) == ("failed", ["start"])
    assert run.payloads("next.selected") == [
        {"on": "step.failed", "arcs": [], "steps": [], "writes": {}, "unhandled": True, "abort": False, "error": None}
    ]


@pytest.mark.clause("P8.1")
def test_a_guard_that_reads_event_takes_the_failure_and_sees_the_last_outcome(tmp_path: Path) -> None:
    """D57, D66."""
    run = play(ONWARD % "event.name == 'step.failed' and output.error.kind == 'exception'", tmp_path)
    assert (run.status, run.steps(), run.result) == ("completed", ["start", "rescue"], "rescued")


@pytest.mark.clause("P8.1")
def test_a_guard_over_data_alone_is_asked_at_the_end_of_a_loop_that_went_well(tmp_path: Path) -> None:
    loop = "- step: start\n  loop: {in: [%s], iterator: n}\n  tool: {kind: noop, value: '{{ 6 // iter.n }}'}\n"
    arcs = "  next: {arcs: [{step: fin, when: \"{{ output.total == 2 and output.status == 'ok' }}\"}]}\n- step: fin\n"
    assert play(loop % "1, 2" + arcs, tmp_path).steps() == ["start", "fin"]
    failed = play(loop % "1, 0" + arcs, tmp_path, execution_id="run-2")
    assert (failed.status, failed.steps()) == ("failed", ["start"])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("output", {"status": "mine", "rows": [1, 2], "error": "none"}),
        ("output.status", "ok"),
        ("output.data.status", "mine"),
        ("output.result.error", "none"),
        ("output.error", None),
        ("output.rows", [1, 2]),
        ("output.rows | length", 2),
        ("output | length", 3),
        ("output['rows'][1]", 2),
        ("output.meta.attempt", 1),
        ("output is mapping", True),
    ],
)
def test_output_is_a_view_whose_own_fields_are_the_outcomes_and_all_else_the_results(
    expression: str, expected: object, tmp_path: Path
) -> None:
    """D66: in a policy, in the writes of a task and of a step, and in an arc."""
    use = f"{{{{ {expression} }}}}"
    run = play(
        f"""
        - step: start
          tool:
            kind: noop
            value: {{status: mine, rows: [1, 2], error: none}}
            set: {{ctx.task: "{use}"}}
            spec: {{policy: {{rules: [{{else: {{then: {{do: continue, set_ctx: {{rule: "{use}"}}}}}}}}]}}}}
          set: {{ctx.step: "{use}"}}
          next: {{arcs: [{{step: fin, args: {{arc: "{use}"}}, set: {{ctx.arc: "{use}"}}}}]}}
        - step: fin
          tool: {{kind: noop, value: "{{{{ args.arc }}}}"}}
        """,
        tmp_path,
    )
    assert run.ctx == {"task": expected, "rule": expected, "step": expected, "arc": expected}
    assert run.result == expected


def test_output_in_an_arc_is_the_outcome_that_a_policy_let_pass(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool:
            kind: python
            code: raise ValueError("never mind")
            spec: {policy: {rules: [{else: {then: {do: continue}}}]}}
          next: {arcs: [{step: fin, args: {why: "{{ output.error.message }}", status: "{{ output.status }}"}}]}
        - step: fin
          tool: {kind: noop, value: "{{ args }}"}
        """,
        tmp_path,
    )
    assert run.result["status"] == "error"
    assert run.result["why"].startswith("ValueError: never mind")
