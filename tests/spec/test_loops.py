"""P7: loops."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.engine import Played, play


def overlap(run: Played) -> int:
    """The most iterations that were open at once, from the order of events."""
    open_now = most = 0
    for event in run.events:
        if event["event_type"] == "loop.iteration.started":
            open_now += 1
        elif event["event_type"] in ("loop.iteration.done", "loop.iteration.failed"):
            open_now -= 1
        most = max(most, open_now)
    return most


LOOP = """
    - step: start
      loop: {{in: [1, 2, 3, 4, 5, 6, 7], iterator: n{spec}}}
      tool:
        - {{name: wait, kind: sleep, seconds: "{{{{ 8 - iter.n }}}}"}}
        - {{name: double, kind: noop, value: "{{{{ iter.n * 2 }}}}"}}
"""


@pytest.mark.clause("P7.1")
@pytest.mark.parametrize(
    ("spec", "most"),
    [
        ("", 1),
        (", spec: {mode: sequential}", 1),
        (", spec: {mode: parallel, max_in_flight: 3}", 3),
        (", spec: {mode: parallel, max_in_flight: 50}", 7),
        (", spec: {mode: parallel, max_in_flight: '{{ 1 + 1 }}'}", 2),
    ],
)
def test_a_loop_runs_once_per_element_so_many_at_a_time(tmp_path: Path, spec: str, most: int) -> None:
    run = play(LOOP.format(spec=spec), tmp_path, virtual=True)
    assert run.result == {"total": 7, "done": 7, "failed": 0, "results": [2, 4, 6, 8, 10, 12, 14]}
    assert overlap(run) == most


@pytest.mark.clause("P7.1")
def test_loop_done_comes_after_all_iterations_and_takes_the_place_of_step_done(tmp_path: Path) -> None:
    run = play(LOOP.format(spec=", spec: {mode: parallel, max_in_flight: 4}"), tmp_path, virtual=True)
    types = run.types("loop.iteration.done", "loop.done", "step.done")
    assert types == ["loop.iteration.done"] * 7 + ["loop.done"]


@pytest.mark.clause("P7.2")
def test_every_iteration_has_its_events(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          spec: {policy: {failure: {mode: best_effort}}}
          loop: {in: [1, 2, 0], iterator: n}
          tool: {kind: python, args: {n: "{{ iter.n }}"}, code: "result = 1 / n"}
        """,
        tmp_path,
    )
    counts = Counter(run.types())
    assert counts["loop.started"] == 1
    assert counts["loop.iteration.started"] == 3
    assert counts["loop.iteration.done"] == 2
    assert counts["loop.iteration.failed"] == 1
    assert counts["loop.done"] == 1
    assert run.payloads("loop.started")[0]["total"] == 3
    assert run.of("loop.iteration.failed")[0]["payload"]["error"]["kind"] == "exception"
    assert run.status == "completed"


def test_a_loop_over_nothing_is_done_at_once(tmp_path: Path) -> None:
    run = play("- step: start\n  loop: {in: [], iterator: n}\n  tool: {kind: noop}", tmp_path)
    assert run.result == {"total": 0, "done": 0, "failed": 0, "results": []}
    assert run.types("loop.started", "loop.done") == ["loop.started", "loop.done"]


@pytest.mark.parametrize("value", [None, 5, "text"])
def test_a_collection_that_is_no_list_fails_the_step_and_says_so(tmp_path: Path, value: object) -> None:
    text = "- step: start\n  loop: {in: '{{ workload.items }}', iterator: n}\n  tool: {kind: noop}"
    run = play(text, tmp_path, {"items": value})
    assert run.status == "failed"
    assert "loop.in" in run.error["message"]


def test_a_mapping_is_walked_by_key_and_value_also_when_it_is_kept_by_reference(tmp_path: Path) -> None:
    text = """
- step: start
  tool: {kind: python, code: "result = {'a': 'x' * 2_000_000, 'b': 'y'}"}
  next: {arcs: [{step: walk}]}
- step: walk
  loop: {in: '{{ start }}', iterator: pair}
  tool: {kind: noop, value: '{{ iter.pair.key }}{{ iter.pair.value | length }}'}
"""
    assert play(text, tmp_path).result["results"] == ["a2000000", "b1"]


def test_a_range_need_not_be_a_list(tmp_path: Path) -> None:
    run = play(
        "- step: start\n  loop: {in: {range: {start: 2, stop: 8, step: 2}}, iterator: n}\n"
        "  tool: {kind: noop, value: '{{ iter.n }}'}",
        tmp_path,
    )
    assert run.result["results"] == [2, 4, 6]


def test_results_that_outgrow_the_payload_limit_are_kept_by_reference_in_order(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_payload_bytes: 2000}}}}
        workflow:
          - step: start
            loop: {in: "{{ range(300) }}", iterator: n, spec: {mode: parallel, max_in_flight: 7}}
            tool: {kind: noop, value: "item {{ iter.n }}"}
            next: {arcs: [{step: look}]}
          - step: look
            tool: {kind: noop, value: ["{{ start.results[299] }}", "{{ start.results | length }}"]}
        """,
        tmp_path,
    )
    reference = run.payloads("loop.done")[0]["result"]["results"]
    assert reference["$ref"] == "result"
    assert reference["schema_hint"] == {"type": "array", "length": 300}
    assert run.result == ["item 299", 300]


def test_a_pipeline_breaks_out_of_its_own_iteration_only(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          loop: {in: [1, 2, 3], iterator: n}
          tool:
            - {name: a, kind: noop, value: "{{ iter.n }}", spec: {policy: {rules: [{when: "{{ iter.n == 2 }}", then: {do: break}}]}}}
            - {name: b, kind: noop, value: "{{ iter.n * 10 }}"}
        """,
        tmp_path,
    )
    assert run.result["results"] == [10, 2, 30]


@pytest.mark.clause("P7.1")
@pytest.mark.parametrize("where", ["", ", loop_mode: fanout"])
@pytest.mark.parametrize("given", ["0", "-1", "none", "true", "1.5", "[1]", "'many'"])
def test_a_number_at_once_that_is_none_fails_the_step_and_says_what_it_was(
    tmp_path: Path, where: str, given: str
) -> None:
    loop = LOOP.format(spec=f', spec: {{mode: parallel{where}, max_in_flight: "{{{{ {given} }}}}"}}')
    run = play(loop, tmp_path, virtual=True)
    assert run.status == "failed"
    assert "`max_in_flight` gives" in run.error["message"]
