"""P10: large results by reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine import play

BIG = """
    executor: {{spec: {{policy: {{limits: {{max_payload_bytes: {limit}}}}}}}}}
    workflow:
      - step: make
        tool:
          - {{name: big, kind: python, args: {{n: {count}}}, code: "result = {{'rows': [{{'id': i, 'text': 'x' * 50}} for i in range(n)]}}"}}
          - {{name: peek, kind: noop, value: "{{{{ big.rows[3].id }}}}/{{{{ big.rows | length }}}}"}}
        next: {{arcs: [{{step: use, args: {{all: "{{{{ make }}}}", first: "{{{{ make }}}}"}}}}]}}
      - step: use
        tool: {{kind: noop, value: 1}}
"""


@pytest.mark.clause("P10.1")
def test_a_result_over_the_limit_is_a_reference_in_the_log_that_templates_read_through(tmp_path: Path) -> None:
    run = play(BIG.format(limit=10_000, count=1000), tmp_path)
    assert run.status == "completed", run.error
    reference = run.payloads("task.done")[0]["outcome"]["result"]
    assert set(reference) >= {"store", "key", "size", "checksum", "schema_hint"}
    assert reference["size"] > 60_000
    assert reference["schema_hint"] == {"type": "object", "keys": ["rows"]}
    assert run.payloads("task.done")[1]["outcome"]["result"] == "3/1000"
    assert max(len(str(event)) for event in run.events) < 3_000


@pytest.mark.clause("P10.1")
def test_a_result_of_many_megabytes_goes_through(tmp_path: Path) -> None:
    run = play(
        """
        - step: make
          tool:
            - {name: big, kind: python, code: "result = {'text': 'y' * 20_000_000, 'n': 7}"}
            - {name: peek, kind: noop, value: "{{ big.n }}"}
        """,
        tmp_path,
    )
    reference = run.payloads("task.done")[0]["outcome"]["result"]
    assert reference["size"] > 20_000_000
    assert run.result == 7


@pytest.mark.clause("P10.1")
def test_a_value_that_only_passes_through_stays_a_reference(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_payload_bytes: 1000}}}}
        workflow:
          - step: make
            tool:
              - name: big
                kind: python
                code: "result = ['z' * 100] * 100"
                spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {kept: "{{ outcome.result }}"}}}}]}}
            next: {arcs: [{step: use, args: {given: "{{ event.result }}"}}]}
          - step: use
            tool: {kind: noop, value: ["{{ args.given[0] | length }}", "{{ ctx.kept | length }}"]}
        """,
        tmp_path,
    )
    assert run.of("token.created")[1]["payload"]["args"]["given"]["$ref"] == "result"
    assert run.payloads("task.done")[0]["writes"]["ctx"]["kept"]["$ref"] == "result"
    assert run.result == [100, 100]


def test_tools_are_given_the_value_and_not_the_reference(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_payload_bytes: 1000}}}}
        workflow:
          - step: make
            tool:
              - {name: big, kind: python, code: "result = list(range(2000))"}
              - {name: add, kind: python, args: {rows: "{{ big }}"}, code: "result = sum(rows)"}
        """,
        tmp_path,
    )
    assert run.result == 1999000
