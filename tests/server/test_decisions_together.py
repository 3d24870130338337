"""What a server evaluates for one decision is bounded as a whole: its event loop does nothing else meanwhile."""

from __future__ import annotations

from tests.engine import document, play
from tests.jobs import run_job

COSTLY = "range(60000) | map('string') | list | length < 0"


def test_the_guards_of_all_arcs_of_a_step_pay_together(tmp_path):
    arcs = "\n".join(f'      - {{step: fin, when: "{{{{ {COSTLY} }}}}"}}' for _ in range(100))
    text = document(f"""
- step: start
  tool: [{{name: n, kind: noop}}]
  next:
    spec: {{mode: inclusive}}
    arcs:
{arcs}
- step: fin
  tool: [{{name: n, kind: noop}}]
""")
    played = play(text, tmp_path)
    assert played.status == "failed"
    assert "need more than 2,000,000 steps; do this work in a task" in str(played.events)


def test_the_if_links_of_a_component_pay_together(tmp_path):
    links = "\n".join(
        f'    - {{from: a, to: b{n}, on: if, order: {n + 1}, when: "context.one == context.other and false"}}'
        for n in range(30)
    )
    parts = "\n".join(f"  - {{name: b{n}, type: noop}}" for n in range(30))
    ran = run_job(
        f"""
apiVersion: penstock/v1
kind: Job
metadata: {{name: j}}
context: {{one: [], other: []}}
components:
  - {{name: a, type: noop}}
{parts}
connections:
  control:
{links}
""",
        tmp_path,
        {"one": list(range(100_000)), "other": list(range(100_000))},
    )
    assert "need more than 2,000,000 steps; do this work in a task" in str(ran.events)
