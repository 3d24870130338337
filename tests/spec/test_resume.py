"""Resume: what ended OK is not run again, and what follows finds everything as it was."""

from __future__ import annotations

from pathlib import Path

from penstock.tools.base import Call, ToolFailure, tool
from penstock.tools.registry import register
from tests.engine import document, play, resume

MENDED = "import pathlib\nif not pathlib.Path(flag).exists():\n    raise RuntimeError('not yet')\nresult = {value}\n"


def code(value: str, indent: int) -> str:
    return "|\n" + "\n".join(" " * indent + line for line in MENDED.format(value=value).splitlines())


def test_a_failed_pipeline_goes_on_at_the_task_that_failed(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    text = f"""
    workload: {{flag: "{flag}"}}
    workflow:
      - step: start
        tool:
          - {{name: one, kind: noop, value: 1, set: {{iter.kept: yes, ctx.seen: one}}}}
          - name: two
            kind: python
            args: {{flag: "{{{{ workload.flag }}}}", prev: "{{{{ _prev }}}}", kept: "{{{{ iter.kept }}}}"}}
            code: {code("[prev, kept]", 14)}
          - {{name: three, kind: noop, value: "{{{{ two + [one] }}}}"}}
        next: {{arcs: [{{step: last}}]}}
      - step: last
        tool: {{kind: noop, value: "{{{{ start }}}}"}}
    """
    failed = play(text, tmp_path)
    assert failed.status == "failed"
    flag.touch()
    run = resume(tmp_path)
    assert (run.status, run.ctx) == ("completed", {"seen": "one"}), run.error
    assert run.result == [1, "yes", 1]
    assert run.tasks() == ["one", "two", "two", "three", "last_task"]
    assert run.payloads("playbook.resumed")[0]["reopened"] == ["start@0"]


def test_a_failed_loop_runs_only_what_is_missing(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    text = f"""
    workload: {{flag: "{flag}"}}
    workflow:
      - step: start
        loop: {{in: [0, 1, 2, 3, 4], iterator: n}}
        tool:
          - {{name: a, kind: noop, value: "{{{{ iter.n }}}}"}}
          - name: b
            kind: python
            args: {{flag: "{{{{ workload.flag if iter.n == 2 else '/' }}}}", n: "{{{{ _prev }}}}"}}
            code: {code("n * 10", 14)}
    """
    assert play(text, tmp_path).status == "failed"
    flag.touch()
    run = resume(tmp_path)
    assert run.result == {"total": 5, "done": 5, "failed": 0, "results": [0, 10, 20, 30, 40]}
    ran = [event["scope"] for event in run.of("task.done") if event["payload"]["task"] == "a"]
    assert ran == ["start@0[0]", "start@0[1]", "start@0[2]", "start@1[3]", "start@1[4]"]


def test_a_failed_sub_playbook_goes_on_inside(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    child = f"""
    workload: {{flag: ""}}
    workflow:
      - step: a
        tool: {{kind: noop, value: done before}}
        next: {{arcs: [{{step: b}}]}}
      - step: b
        tool:
          - {{name: x, kind: noop, value: 5}}
          - name: y
            kind: python
            args: {{flag: "{{{{ workload.flag }}}}", prev: "{{{{ _prev }}}}", a: "{{{{ a }}}}"}}
            code: {code("[prev, a]", 14)}
    """
    (tmp_path / "child.yaml").write_text(document(child))
    text = f'- step: start\n  tool: {{kind: playbook, path: child.yaml, args: {{flag: "{flag}"}}}}'
    failed = play(text, tmp_path)
    assert failed.status == "failed"
    assert "not yet" in failed.error["message"]
    flag.touch()
    run = resume(tmp_path)
    assert (run.status, run.result) == ("completed", [5, "done before"]), run.error
    assert run.tasks().count("a_task") == 1
    assert run.tasks().count("x") == 1


def test_an_effect_has_one_name_over_retries_and_another_for_every_round_of_a_jump(tmp_path: Path) -> None:
    @register
    @tool("named_effect")
    def named_effect(call: Call, fail_before: int = 1) -> dict[str, str]:
        """Says the name of its effect, and fails until an attempt is reached."""
        seen.append(call.idempotency_key)
        if call.attempt < fail_before:
            raise ToolFailure("not_yet", "not yet")
        return {"key": call.idempotency_key}

    seen: list[str] = []
    run = play(
        """
        - step: start
          tool:
            - name: post
              kind: named_effect
              fail_before: 3
              spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3}}]}}
            - name: again
              kind: noop
              spec: {policy: {rules: [{when: "{{ ctx.n | default(0) < 1 }}", then: {do: jump, to: post, set_ctx: {n: 1}}}]}}
        """,
        tmp_path,
    )
    assert run.status == "completed", run.error
    assert seen == ["run-1/start@0/post#1"] * 3 + ["run-1/start@0/post#4"] * 3


def test_an_effect_keeps_its_name_when_a_failed_run_is_resumed(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    @register
    @tool("flagged_effect")
    def flagged_effect(call: Call) -> dict[str, str]:
        """Fails until the flag is there."""
        seen.append(call.idempotency_key)
        if not flag.exists():
            raise ToolFailure("not_yet", "not yet")
        return {"key": call.idempotency_key}

    seen: list[str] = []
    text = "- step: start\n  loop: {in: [1], iterator: n}\n  tool: {name: post, kind: flagged_effect}"
    assert play(text, tmp_path).status == "failed"
    flag.touch()
    assert resume(tmp_path).status == "completed"
    assert seen == ["run-1/start@0[0]/post#1"] * 2
