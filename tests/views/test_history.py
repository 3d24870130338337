"""Step runs as `show` lists them."""

from __future__ import annotations

from pathlib import Path

from penstock.views.answers import step_runs
from penstock.views.run_view import RunView
from tests.engine import play, resume
from tests.views.support import entries, seen


def test_a_step_has_its_tasks_with_attempts_and_the_last_error(tmp_path: Path) -> None:
    play(
        """
        - step: start
          tool:
            - {name: first, kind: noop}
            - name: flaky
              kind: python
              code: raise ValueError("no")
              spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3}}]}}
        """,
        tmp_path,
    )
    (step,) = step_runs(seen(tmp_path), is_live=False)
    assert (step["step"], step["step_run_id"], step["visit"], step["status"]) == ("start", "start@0", 1, "failed")
    first, flaky = step["tasks"]
    assert (first["name"], first["attempts"], first["status"], first["error"]) == ("first", 1, "ok", None)
    assert (flaky["name"], flaky["attempts"], flaky["status"]) == ("flaky", 3, "error")
    assert flaky["error"]["kind"] == "exception"
    assert step["iterations"] == {"total": 0, "done": 0, "failed": 0}


def test_runs_of_a_task_by_jumping_are_not_attempts(tmp_path: Path) -> None:
    play(
        """
        - step: start
          tool:
            - name: count
              kind: noop
              value: "{{ (iter.n | default(0)) + 1 }}"
              spec:
                policy:
                  rules:
                    - when: "{{ outcome.result < 4 }}"
                      then: {do: jump, to: count, set_iter: {n: "{{ outcome.result }}"}}
        """,
        tmp_path,
    )
    (step,) = step_runs(seen(tmp_path), is_live=False)
    (task,) = step["tasks"]
    assert (task["attempts"], task["runs"]) == (1, 4)


def test_a_loop_is_counted_and_its_failure_is_kept(tmp_path: Path) -> None:
    play(
        """
        - step: start
          loop: {in: [1, 2, 3], iterator: x, spec: {policy: {failure: {mode: best_effort}}}}
          spec: {policy: {failure: {mode: best_effort}}}
          tool:
            - name: check
              kind: python
              args: {x: "{{ iter.x }}"}
              code: |
                if x == 2:
                    raise ValueError("two")
        """,
        tmp_path,
    )
    (step,) = step_runs(seen(tmp_path), is_live=False)
    assert step["iterations"] == {"total": 3, "done": 2, "failed": 1}
    (task,) = step["tasks"]
    assert (task["runs"], task["status"]) == (3, "error")


def test_a_refused_token_and_a_join_are_listed_once_in_canonical_order(tmp_path: Path) -> None:
    play(
        """
        - step: start
          tool: [{name: n, kind: noop}]
          next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: shut}]}
        - step: a
          tool: [{name: n, kind: noop}]
          next: {arcs: [{step: both}]}
        - step: b
          tool: [{name: n, kind: noop}]
          next: {arcs: [{step: both}]}
        - step: both
          spec: {join: [a, b]}
          tool: [{name: n, kind: noop}]
        - step: shut
          spec: {policy: {admit: {rules: [{when: "{{ ctx.key }}", then: {allow: true}}]}}}
          tool: [{name: n, kind: noop}]
        """,
        tmp_path,
    )
    listed = [(step["step"], step["status"]) for step in step_runs(seen(tmp_path), is_live=False)]
    assert listed == [("start", "done"), ("a", "done"), ("b", "done"), ("both", "done"), ("shut", "refused")]


def test_what_was_under_way_when_nobody_works_on_it_was_interrupted(tmp_path: Path) -> None:
    play("- step: start\n  tool: [{name: n, kind: noop}]", tmp_path)
    known = entries(tmp_path)
    started = next(at for at, entry in enumerate(known) if entry.type == "task.started")
    half = RunView.of(known[: started + 1])
    assert [step["status"] for step in step_runs(half, is_live=True)] == ["running"]
    assert [step["status"] for step in step_runs(half, is_live=False)] == ["interrupted"]


def test_a_failed_step_that_a_resume_ran_again_is_two_step_runs(tmp_path: Path) -> None:
    play("- step: start\n  tool: [{name: r, kind: files, action: read, path: gate.txt}]", tmp_path)
    (tmp_path / "gate.txt").write_text("open")
    resume(tmp_path)
    first, second = step_runs(seen(tmp_path), is_live=False)
    assert (first["status"], second["status"]) == ("failed", "done")
    assert second["continues"] == first["step_run_id"]


def test_the_fold_gives_the_state_the_run_ended_with(tmp_path: Path) -> None:
    played = play(
        """
        - step: start
          tool:
            - name: n
              kind: noop
              value: 5
              spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {seen: "{{ outcome.result }}"}}}}]}}
        """,
        tmp_path,
    )
    view = RunView.of(entries(tmp_path))
    assert view.root is not None
    assert (view.root.status, view.root.ctx.values, view.root.result) == ("completed", {"seen": 5}, 5)
    assert view.seq == len(played.events)
    assert view.counts["task.done"] == 1


def test_memory_does_not_grow_with_the_number_of_iterations(tmp_path: Path) -> None:
    play("- step: start\n  loop: {in: '{{ range(0, 300) }}', iterator: x}\n  tool: [{name: n, kind: noop}]", tmp_path)
    found = seen(tmp_path)
    assert found.root is not None
    (run,) = found.root.runs.values()
    assert run.fan is not None
    assert (run.fan.total, run.fan.ok, len(run.attempts), len(run.fan.open)) == (300, 300, 0, 0)
