"""Why: each kind of answer, from logs of real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.kernel.errors import Refused
from tests.engine import play, resume
from tests.views.support import entries, explained, text_of

ROUTES = """
workload: {limit: 3}
workflow:
  - step: start
    tool: [{name: n, kind: noop, value: {size: 5}}]
    next:
      arcs:
        - {step: small, when: "{{ event.result.size < workload.limit }}"}
        - {step: large, when: "{{ event.result.size >= workload.limit }}"}
        - {step: other}
  - step: small
    tool: [{name: n, kind: noop}]
    next: {arcs: [{step: after_small}]}
  - step: after_small
    tool: [{name: n, kind: noop}]
  - step: large
    tool: [{name: n, kind: noop}]
  - step: other
    tool: [{name: n, kind: noop}]
"""

RETRIES = """
- step: start
  tool:
    - {name: before, kind: noop}
    - name: flaky
      kind: python
      code: raise ValueError("no luck")
      spec: {policy: {rules: [{when: "{{ outcome.error.kind == 'exception' }}", then: {do: retry, attempts: 2, delay: 7}}]}}
    - {name: behind, kind: noop}
  next: {arcs: [{step: fin}, {step: rescue, when: "{{ event.name == 'step.failed' and workload.rescue }}"}]}
- step: fin
  tool: [{name: n, kind: noop}]
- step: rescue
  tool: [{name: n, kind: noop}]
"""

JOINS = """
- step: start
  tool: [{name: n, kind: noop}]
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  tool: [{name: n, kind: noop}]
  next: {arcs: [{step: both}]}
- step: b
  tool: [{name: n, kind: noop}]
  next: {arcs: [{step: both, when: "{{ workload.go }}"}]}
- step: both
  spec: {join: [a, b]}
  tool: [{name: n, kind: noop}]
"""


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(ROUTES, tmp_path_factory.mktemp("routes")).home


@pytest.fixture(scope="module")
def retried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(RETRIES, tmp_path_factory.mktemp("retries"), {"rescue": False}, virtual=True).home


def test_a_step_that_ran_is_explained_from_the_start_with_the_condition_and_its_values(routed: Path) -> None:
    text = text_of(explained(routed, "large"))
    assert "`large@1` is done" in text
    assert "began with its entry step, as `start@0`" in text
    assert "arc 2 fired: `{{ event.result.size >= workload.limit }}` was true" in text
    assert "event.result.size = 5" in text
    assert "workload.limit = 3" in text
    assert "playbook.yaml:" in text


def test_a_step_that_never_ran_names_the_arc_its_condition_and_what_it_saw(routed: Path) -> None:
    answer = explained(routed, "small")
    assert answer.status == "never ran"
    text = text_of(answer)
    assert "`start` (arc 1 when `{{ event.result.size < workload.limit }}`)" in text
    assert "`start@0` was done: `{{ event.result.size < workload.limit }}` was false" in text
    assert "event.result.size = 5" in text


def test_an_exclusive_arc_behind_the_one_that_fired_was_not_looked_at(routed: Path) -> None:
    assert "not looked at: arc 2 fired first, and the arcs are exclusive" in text_of(explained(routed, "other"))


def test_a_step_behind_one_that_never_ran_is_traced_back_to_where_the_token_went(routed: Path) -> None:
    text = text_of(explained(routed, "after_small"))
    assert "`small` (arc 1): it never ran either" in text
    assert "`start@0` was done: `{{ event.result.size < workload.limit }}` was false" in text


def test_what_followed_says_of_every_arc_why(routed: Path) -> None:
    followed = explained(routed, "start").sections[-1]
    assert followed.title == "what followed"
    assert [line.partition(":")[0] for line in followed.lines] == [
        "arc 1 → `small`",
        "arc 2 → `large`",
        "arc 3 → `other`",
    ]


def test_an_arc_that_was_not_considered_says_that_the_step_failed_and_what_it_does_not_read(tmp_path: Path) -> None:
    """D57."""
    text = """
    - step: start
      tool: {kind: python, code: "raise ValueError('no')"}
      next: {arcs: [{step: last, when: "{{ start.more != true }}"}]}
    - step: last
    """
    assert play(text, tmp_path).status == "failed"
    said = "not considered: the step failed, and `{{ start.more != true }}` does not read `event`"
    assert said in text_of(explained(tmp_path, "last"))
    assert said in text_of(explained(tmp_path, "start"))


def test_retries_and_the_failure_are_told_with_the_rule_that_judged_them(retried: Path) -> None:
    text = text_of(explained(retried, "start"))
    assert "`start@0` failed" in text
    assert "task `flaky` (python), attempt 1: error" in text
    assert "ValueError: no luck" in text
    assert "rule 1 `{{ outcome.error.kind == 'exception' }}` → retry after 7.0 s" in text
    assert "asked for a retry, and all 2 attempts were used → the pipeline failed" in text
    assert "arc 1 → `fin`: an arc without `when` does not take a failure" in text
    assert "no arc took the failure, so the execution failed" in text


def test_a_retry_that_waits_says_so(retried: Path) -> None:
    first_end = next(
        at for at, one in enumerate(entries(retried)) if one.type == "task.done" and b'"retry"' in one.payload
    )
    text = text_of(explained(retried, "start", upto=first_end + 1, is_live=True))
    assert "`start@0` is running" in text
    assert "retry after 7.0 s (it waits for that now)" in text


def test_a_task_that_was_never_reached_says_what_happened_instead(retried: Path) -> None:
    answer = explained(retried, "start/behind")
    assert answer.status == "not reached"
    assert "task `flaky` (python), attempt 2" in text_of(answer)


def test_a_bare_task_label_is_enough_when_only_one_step_has_it(retried: Path) -> None:
    answer = explained(retried, "flaky")
    assert answer.node == "start@0/flaky"
    assert "2 runs, up to attempt 2" in answer.headline


def test_one_task_run_can_be_asked_for_by_its_id(retried: Path) -> None:
    did = explained(retried, "start@0/flaky#2").sections[0]
    assert len(did.lines) == 1
    assert "attempt 2" in did.lines[0]


def test_a_stranded_join_names_what_was_missing_and_where_that_token_went(tmp_path: Path) -> None:
    play(JOINS, tmp_path, {"go": False})
    answer = explained(tmp_path, "both")
    assert answer.status == "stranded"
    text = text_of(answer)
    assert "it joins tokens from `a` and `b`; it has those from `a`" in text
    assert "none has come from `b`: `b@1` was done and its token went to nowhere" in text


def test_a_join_that_ran_names_all_the_tokens_it_took(tmp_path: Path) -> None:
    play(JOINS, tmp_path, {"go": True})
    text = text_of(explained(tmp_path, "both"))
    assert "`a@0.0.0` was done" in text
    assert "`{{ workload.go }}` was true (workload.go = true)" in text
    assert "a token had now come from `a` and `b`" in text


def test_a_refused_token_shows_the_rules_and_what_they_saw(tmp_path: Path) -> None:
    play(
        """
        - step: start
          tool: [{name: n, kind: noop}]
          next: {arcs: [{step: gated, args: {size: 5}}]}
        - step: gated
          spec: {policy: {admit: {rules: [{when: "{{ args.size > 10 }}", then: {allow: true}}]}}}
          tool: [{name: n, kind: noop}]
        """,
        tmp_path,
    )
    answer = explained(tmp_path, "gated")
    assert answer.status == "refused"
    text = text_of(answer)
    assert "rule 1, `{{ args.size > 10 }}`, was false (args.size = 5)" in text
    assert "no rule matched, and there is no `else`" in text


def test_iterations_are_explained_one_by_one(tmp_path: Path) -> None:
    play(
        """
        - step: start
          loop: {in: [1, 2, 3, 4], iterator: x}
          tool:
            - name: check
              kind: python
              args: {x: "{{ iter.x }}"}
              code: |
                if x == 2:
                    raise ValueError("two is bad")
        """,
        tmp_path,
    )
    assert explained(tmp_path, "start[0]").status == "done"
    failed = explained(tmp_path, "start[1]")
    assert failed.status == "failed"
    assert "its element: x = 2" in text_of(failed)
    assert "two is bad" in text_of(failed)
    unstarted = explained(tmp_path, "start@0[3]")
    assert unstarted.status == "not started"
    assert "iteration [1] failed and the loop is fail_fast" in text_of(unstarted)
    with pytest.raises(Refused, match="4 iterations, numbered from 0"):
        explained(tmp_path, "start[9]")


def test_a_failure_inside_a_sub_playbook_is_led_to_and_explained_through_its_caller(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: child}\nworkflow:\n"
        "  - step: begin\n    tool: [{name: boom, kind: python, code: 'raise ValueError(1)'}]\n"
    )
    play("- step: start\n  tool: [{name: call, kind: playbook, path: child.yaml}]", tmp_path)
    inner = "start@0/call#1/begin@0"
    assert f"ran the playbook `child`: failed, in `{inner}`" in text_of(explained(tmp_path, "start"))
    text = text_of(explained(tmp_path, inner))
    assert "the run of `test` began with its entry step, as `start@0`" in text
    assert "task `start@0/call#1` runs the playbook `child`" in text
    assert explained(tmp_path, "begin").node == inner


def test_a_run_that_was_resumed_after_a_failure_says_so(tmp_path: Path) -> None:
    play("- step: start\n  tool: [{name: r, kind: files, action: read, path: gate.txt}]", tmp_path)
    (tmp_path / "gate.txt").write_text("open")
    resume(tmp_path)
    assert "`start@0` had failed, and a resume gave it another run, `start@1`" in text_of(explained(tmp_path, "start"))
    assert "a resume ran it again as `start@1`" in text_of(explained(tmp_path, "start@0"))


def test_a_long_chain_is_cut_in_the_middle(tmp_path: Path) -> None:
    play(
        """
        - step: start
          tool:
            - name: n
              kind: noop
              spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {n: "{{ (ctx.n | default(0)) + 1 }}"}}}}]}}
          next: {arcs: [{step: start, when: "{{ ctx.n < 60 }}"}, {step: fin}]}
        - step: fin
          tool: [{name: n, kind: noop}]
        """,
        tmp_path,
    )
    why = explained(tmp_path, "fin").sections[0]
    assert len(why.lines) < 20
    assert any("48 more step runs" in line for line in why.lines)
    visits = explained(tmp_path, "start").sections[0]
    assert "visited 60 times" in visits.title
    assert visits.lines[0] == "… 40 earlier ones"


def test_an_unknown_node_is_refused_with_what_was_probably_meant(routed: Path) -> None:
    with pytest.raises(Refused, match="did you mean `large`") as caught:
        explained(routed, "larg")
    assert "the steps are `start`, `small`" in (caught.value.hint or "")
    with pytest.raises(Refused, match="no step run `large@7`") as caught:
        explained(routed, "large@7")
    assert "`large@1`" in (caught.value.hint or "")
    with pytest.raises(Refused, match="has no task `nix`"):
        explained(routed, "large/nix")


def test_what_is_under_way_when_the_run_stopped_will_be_taken_up(routed: Path) -> None:
    started = next(at for at, one in enumerate(entries(routed)) if one.type == "task.started")
    answer = explained(routed, "start", upto=started + 1)
    assert answer.status == "interrupted"
    assert "a resume takes it up" in answer.headline
    assert "task `n` (noop): was under way when the run stopped" in text_of(answer)
    assert "tokens may still come from" in text_of(explained(routed, "large", upto=started + 1, is_live=True))


def test_a_large_result_is_not_loaded_to_be_named(tmp_path: Path) -> None:
    play(
        """
        executor: {spec: {policy: {limits: {max_payload_bytes: 1000}}}}
        workflow:
          - step: start
            tool: [{name: n, kind: python, code: "result = {'rows': list(range(5000))}"}]
            next: {arcs: [{step: fin, when: "{{ event.result }}"}]}
          - step: fin
            tool: [{name: n, kind: noop}]
        """,
        tmp_path,
    )
    assert "event.result = a stored result of" in text_of(explained(tmp_path, "fin"))
