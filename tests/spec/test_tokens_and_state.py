"""P1 and P2: tokens, workload, ctx, iter, pipeline locals, read precedence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dialects.playbook.support import problems
from tests.engine import Played, document, play


@pytest.mark.clause("P1.2")
def test_the_entry_and_every_fired_arc_make_a_token(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          next: {spec: {mode: inclusive}, arcs: [{step: left, args: {n: 1}}, {step: right, args: {n: 2}}]}
        - step: left
        - step: right
        """,
        tmp_path,
    )
    tokens = run.of("token.created")
    assert [(event["payload"]["step"], event["payload"]["args"]) for event in tokens] == [
        ("start", {}),
        ("left", {"n": 1}),
        ("right", {"n": 2}),
    ]
    assert {event["execution_id"] for event in tokens} == {"run-1"}
    assert {event["trace_id"] for event in tokens} == {"trace-1"}
    assert [event["payload"]["parent_step_run_id"] for event in tokens] == [None, "start@0", "start@0"]


@pytest.mark.clause("P2.1")
def test_the_payload_is_merged_deeply_over_the_workload(tmp_path: Path) -> None:
    run = play(
        """
        workload: {api: {url: http://a, size: 10}, names: [a, b]}
        workflow:
          - step: start
            tool: {kind: noop, value: "{{ workload }}"}
        """,
        tmp_path,
        {"api": {"size": 50}, "names": ["c"], "extra": True},
    )
    assert run.result == {"api": {"url": "http://a", "size": 50}, "names": ["c"], "extra": True}


@pytest.mark.clause("P2.1")
def test_the_workload_cannot_be_written_to(tmp_path: Path) -> None:
    run = play(
        """
        workload: {n: [1]}
        workflow:
          - step: start
            tool:
              - {name: change, kind: python, args: {n: "{{ workload.n }}"}, code: "n.append(2); result = n"}
              - {name: look, kind: noop, value: "{{ workload.n }}"}
        """,
        tmp_path,
    )
    assert run.payloads("task.done")[0]["outcome"]["result"] == [1, 2]
    assert run.result == [1]


@pytest.mark.clause("P2.2")
def test_ctx_changes_are_patches_in_the_log_from_which_ctx_can_be_rebuilt(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool:
            - name: a
              kind: noop
              spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {n: 1, who: ann}}}}]}}
          next: {arcs: [{step: more}]}
        - step: more
          tool:
            - name: b
              kind: noop
              spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {n: "{{ ctx.n + 1 }}"}}}}]}}
        """,
        tmp_path,
    )
    patches = [payload["writes"]["ctx"] for payload in run.payloads("step.done")]
    assert patches == [{"n": 1, "who": "ann"}, {"n": 2}]
    rebuilt: dict[str, object] = {}
    for patch in patches:
        rebuilt.update(patch)
    assert rebuilt == run.ctx == {"n": 2, "who": "ann"}


@pytest.mark.clause("P2.3")
def test_iter_is_isolated_per_iteration(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          loop: {in: [a, b, c], iterator: letter, spec: {mode: parallel, max_in_flight: 3}}
          tool:
            - name: mark
              kind: noop
              spec: {policy: {rules: [{else: {then: {do: continue, set_iter: {seen: "{{ iter.letter }}{{ iter.index }}"}}}}]}}
            - {name: look, kind: noop, value: "{{ iter.seen }}"}
        """,
        tmp_path,
    )
    assert run.result["results"] == ["a0", "b1", "c2"]


@pytest.mark.clause("P2.3")
def test_iter_parent_reaches_the_outer_iteration_to_any_depth(tmp_path: Path) -> None:
    level = """
        workload: {{items: []}}
        workflow:
          - step: go
            loop: {{in: "{{{{ workload.items }}}}", iterator: {name}}}
            tool: {tool}
    """
    call = "{{kind: playbook, path: {path}, args: {{items: {items}}}}}"
    from tests.engine import document

    seen = '"{{ iter.parent.parent.x }}{{ iter.parent.y }}{{ iter.z }}/{{ iter.parent.parent.index }}{{ iter.index }}"'
    (tmp_path / "inner.yaml").write_text(document(level.format(name="z", tool=f"{{kind: noop, value: {seen}}}")))
    (tmp_path / "middle.yaml").write_text(
        document(level.format(name="y", tool=call.format(path="inner.yaml", items="[p, q]")))
    )
    run = play(
        level.format(name="x", tool=call.format(path="middle.yaml", items="[m, n]")), tmp_path, {"items": ["a", "b"]}
    )
    assert run.status == "completed", run.error
    inner = [[result["results"] for result in outer["results"]] for outer in run.result["results"]]
    assert inner == [
        [["amp/00", "amq/01"], ["anp/00", "anq/01"]],
        [["bmp/10", "bmq/11"], ["bnp/10", "bnq/11"]],
    ]


@pytest.mark.clause("P2.4")
def test_pipeline_locals_are_there(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool:
            - {name: one, kind: noop, value: 1}
            - {name: two, kind: noop, value: "{{ _prev }}/{{ _task }}/{{ _attempt }}/{{ one }}"}
            - name: three
              kind: noop
              value: {rows: [1, 2]}
              spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {saw: "{{ outcome.result.rows | length }}"}}}}]}}
            - {name: four, kind: noop, value: "{{ three.rows[1] + one }}"}
        """,
        tmp_path,
    )
    results = [payload["outcome"].get("result") for payload in run.payloads("task.done")]
    assert results == [1, "1/two/1/1", {"rows": [1, 2]}, 3]
    assert run.ctx == {"saw": 2}


@pytest.mark.clause("P2.4")
def test_the_first_task_has_a_previous_result_of_null(tmp_path: Path) -> None:
    assert play("- step: start\n  tool: {kind: noop, value: '{{ _prev is none }}'}", tmp_path).result is True


@pytest.mark.clause("P2.5")
@pytest.mark.parametrize(
    ("workload", "iterator", "ctx", "args", "expected"),
    [
        ("w", False, None, None, "w"),
        ("w", True, None, None, "i"),
        ("w", True, "c", None, "c"),
        ("w", True, "c", "a", "a"),
        ("w", False, None, "a", "a"),
    ],
)
def test_a_bare_name_reads_args_then_ctx_then_iter_then_workload(
    tmp_path: Path, workload: str, iterator: bool, ctx: str | None, args: str | None, expected: str
) -> None:
    writes = f"set_ctx: {{name: {ctx}}}" if ctx else "set_ctx: {other: 1}"
    arc = f"args: {{name: {args}}}" if args else "args: {}"
    loop = "loop: {in: [i], iterator: name}" if iterator else "desc: no loop"
    run = play(
        f"""
        workload: {{name: {workload}}}
        workflow:
          - step: start
            tool: {{kind: noop, spec: {{policy: {{rules: [{{else: {{then: {{do: continue, {writes}}}}}}}]}}}}}}
            next: {{arcs: [{{step: look, {arc}}}]}}
          - step: look
            {loop}
            tool: {{kind: noop, value: "{{{{ name }}}}"}}
        """,
        tmp_path,
    )
    value = run.result["results"][0] if iterator else run.result
    assert value == expected


def test_a_steps_last_result_goes_by_the_steps_name(tmp_path: Path) -> None:
    run = play(
        """
        - step: fetch
          tool: {kind: noop, value: {rows: [1, 2, 3]}}
          next: {arcs: [{step: use}]}
        - step: use
          tool: {kind: noop, value: ["{{ fetch.rows | length }}", "{{ fetch.data.rows[0] }}"]}
        """,
        tmp_path,
    )
    assert run.result == [3, 1]


def test_an_undefined_value_in_a_tools_parameters_is_an_error_that_names_it(tmp_path: Path) -> None:
    run = play("- step: start\n  tool: {kind: noop, value: '{{ workload.nowhere.at.all }}'}", tmp_path)
    assert run.status == "failed"
    assert run.error["kind"] == "expression"
    assert "workload.nowhere" in run.error["message"]


def test_a_default_takes_the_place_of_what_is_missing_at_any_depth(tmp_path: Path) -> None:
    run = play("- step: start\n  tool: {kind: noop, value: \"{{ a.b.c | default('x') }}\"}", tmp_path)
    assert run.result == "x"


def test_a_tasks_own_args_are_seen_by_its_other_parameters_whatever_the_tool(tmp_path: Path) -> None:
    run = play(
        """
        workbook:
          - {name: greet, kind: noop, args: {who: nobody, mark: "!"}, value: "{{ args.who }}{{ mark }}"}
        workflow:
          - step: start
            tool:
              - {name: plain, kind: noop, input: {n: 5, s: "{{ workload.s }}"}, value: ["{{ args.n + 1 }}", "{{ s }}"]}
              - {name: call, kind: workbook, task: greet, args: {who: ann}}
              - {name: after, kind: noop, value: ["{{ plain }}", "{{ call }}", "{{ args.n is defined }}"]}
        """,
        tmp_path,
        {"s": "x"},
    )
    assert run.status == "completed", run.error
    assert run.result == [[6, "x"], "ann!", False]


def lines_of(run: Played) -> list[str]:
    text = (run.home / ".penstock" / "logs" / "run-1.ndjson").read_text(encoding="utf-8")
    return [json.loads(line)["line"] for line in text.splitlines()]


UNDEFINED = """
executor: {spec: {strict: %s}}
workflow:
  - step: start
    tool:
      - name: page
        kind: noop
        value: {rows: [1]}
        set: {ctx.next: "{{ page.next }}", iter.label: "next: {{ page.next }}"}
        spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {cursor: "{{ outcome.result.cursor }}"}}}}]}}
    set: {ctx.size: "{{ start.size }}", ctx.known: "{{ start.size | default(0) }}"}
    next: {arcs: [{step: fin, args: {a: {b: ["{{ iter.x }}"]}}, set: {ctx.more: "{{ output.more }}"}}]}
  - step: fin
    tool: {kind: noop, value: "{{ args }}"}
"""


@pytest.mark.clause("P2.2")
def test_an_undefined_value_that_is_written_is_null_and_said_in_the_runs_own_lines(tmp_path: Path) -> None:
    """D67: in the writes of a task, of a rule, of a step and of an arc, and in an arc's args."""
    run = play(UNDEFINED % "false", tmp_path)
    assert run.ctx == {"next": None, "cursor": None, "size": None, "known": 0, "more": None}
    assert run.result == {"a": {"b": [None]}}
    told = [line.partition("; write `|")[0] for line in lines_of(run)]
    assert told == [
        "warning: `iter.label`, written by `set` of task `page`, lacks a value: `page.next` is undefined",
        "warning: `ctx.next`, written by `set` of task `page`, is null: `page.next` is undefined",
        "warning: `ctx.cursor`, written by policy rule 1 of task `page`, is null: `outcome.result.cursor` is undefined",
        "warning: `ctx.size`, written by `set` of step `start`, is null: `start.size` is undefined",
        "warning: `args.a`, written by arc 1 of step `start` (to `fin`), is null: `iter.x` is undefined",
        "warning: `ctx.more`, written by arc 1 of step `start` (to `fin`), is null: `output.more` is undefined",
    ]


@pytest.mark.parametrize(
    ("left_out", "where"),
    [
        ((), "`set` of task `page`"),
        (("next", "label"), "policy rule 1 of task `page`"),
        (("next", "label", "cursor"), "`set` of step `start`"),
        (("next", "label", "cursor", "size"), "arc 1 of step `start` (to `fin`)"),
    ],
)
def test_a_strict_playbook_fails_where_an_undefined_value_is_written(
    left_out: tuple[str, ...], where: str, tmp_path: Path
) -> None:
    text = UNDEFINED % "true"
    if left_out:
        text = text.replace('ctx.next: "{{ page.next }}", iter.label: "next: {{ page.next }}"', "ctx.next: 1")
    if "cursor" in left_out:
        text = text.replace("{{ outcome.result.cursor }}", "x")
    if "size" in left_out:
        text = text.replace('ctx.size: "{{ start.size }}", ', "")
    run = play(text, tmp_path)
    assert (run.status, run.error["kind"]) == ("failed", "expression")
    assert run.error["message"].startswith(f"{where}: ")
    assert "is undefined" in run.error["message"]


def test_iter_in_the_args_of_an_arc_is_known_to_be_nothing_before_the_run() -> None:
    found = [problem for problem in problems(document(UNDEFINED % "false")) if "`iter`" in problem.message]
    assert [(problem.code, problem.message) for problem in found] == [
        ("P0703", "`iter` cannot be seen from an arc: it is null there")
    ]
