"""The documents that tests of the page look at and run. Those that wait do so for the file `workload.gate`, so that a test decides when
they go on."""

from __future__ import annotations

from textwrap import dedent

from tests import documents

PLAYBOOK = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: NAME}\n"
JOB = "apiVersion: penstock/v1\nkind: Job\nmetadata: {name: NAME}\n"


def playbook(name: str, text: str) -> str:
    return PLAYBOOK.replace("NAME", name) + dedent(text).lstrip("\n")


def job(name: str, text: str) -> str:
    return JOB.replace("NAME", name) + dedent(text).lstrip("\n")


HELLO = playbook("hello", f"workload: {{who: world, times: 2, loud: false}}\n{documents.GREETING}")

FAILS = playbook(
    "import",
    """
    workload: {country: AT}
    workflow:
      - step: fetch
        tool:
          - name: read
            kind: python
            code: |
              print("fetching prices")
              result = {"prices": [12, 7, "n/a"]}
        next: {arcs: [{step: check}]}
      - step: check
        tool:
          - name: verify
            kind: python
            args: {prices: "{{ fetch.prices }}"}
            code: |
              print("checking", len(prices), "prices")
              bad = [one for one in prices if not isinstance(one, int)]
              if bad:
                  raise ValueError(f"a price is not a number: {bad[0]}")
              result = {"good": len(prices)}
        next:
          arcs:
            - step: publish
            - step: report
              when: "{{ event.name == 'step.failed' }}"
      - step: publish
        tool: [{name: send, kind: noop, value: "{{ check.good }}"}]
      - step: report
        tool:
          - name: tell
            kind: python
            code: |
              print("telling somebody")
              raise RuntimeError("nobody was there")
    """,
)
"""Fails twice: the second time after the first was handled."""

LOOP = playbook(
    "regions",
    """
    workload: {gate: gate}
    workflow:
      - step: start
        tool: [{name: list, kind: noop, value: [0, 1, 2, 3, 4, 5]}]
        next: {arcs: [{step: load}]}
      - step: load
        loop: {in: "{{ start }}", iterator: region, spec: {mode: sequential}}
        tool:
          - name: one
            kind: python
            args: {region: "{{ iter.region }}", gate: "{{ workload.gate }}"}
            code: |
              import time
              from pathlib import Path
              while not Path(f"{gate}-{region}").exists():
                  time.sleep(0.01)
              print("loaded", region)
              result = region
        next: {arcs: [{step: fin}]}
      - step: fin
        tool: [{name: done, kind: noop, value: finished}]
    """,
)

RETRIED = playbook(
    "flaky",
    """
    workload: {gate: gate, delay: 30}
    workflow:
      - step: call
        tool:
          - name: ask
            kind: python
            args: {gate: "{{ workload.gate }}"}
            code: |
              from pathlib import Path
              if not Path(gate).exists():
                  raise ConnectionError("the other side is away")
              result = "there"
            spec:
              policy:
                rules:
                  - when: "{{ outcome.status == 'error' }}"
                    then: {do: retry, attempts: 1000, delay: "{{ workload.delay }}"}
    """,
)

WAITS = playbook(
    "nightly",
    """
    workload: {gate: gate}
    workflow:
      - step: first
        tool: [{name: begin, kind: noop, value: 1}]
        next: {arcs: [{step: wait}]}
      - step: wait
        tool:
          - name: poll
            kind: python
            args: {gate: "{{ workload.gate }}"}
            code: |
              import time
              from pathlib import Path
              print("waiting for the gate")
              Path(f"{gate}-waiting").touch()
              while not Path(gate).exists():
                  time.sleep(0.01)
              print("through the gate")
        next: {arcs: [{step: last}]}
      - step: last
        tool: [{name: end, kind: noop, value: finished}]
    """,
)

ORDERS = job("orders", documents.ORDERS)

GROWS = job(
    "grows",
    """
    context: {gate: gate}
    components:
      - {name: each, type: iterate_list, params: {items: [0, 1, 2]}}
      - name: hold
        type: python
        params:
          code: |
            import time
            from pathlib import Path
            while not Path("{{ context.gate }}-{{ iteration.item }}").exists():
                time.sleep(0.01)
      - name: rows
        type: fixed_rows
        params: {columns: [n], rows: [[1], [2], [3], [4]]}
      - {name: shown, type: log_rows}
    connections:
      data: rows.main -> shown.input
      control: |
        each (iterate) hold
        hold (ok) rows
    """,
)

MANY = playbook(
    "many",
    """
    workload: {many: 6000}
    workflow:
      - step: start
        tool: [{name: begin, kind: noop, value: 1}]
        next: {arcs: [{step: work}]}
      - step: work
        loop: {in: "{{ range(workload.many) }}", iterator: n, spec: {mode: parallel, max_in_flight: 64}}
        tool: [{name: one, kind: noop, value: "{{ iter.n }}"}]
        next: {arcs: [{step: fin}]}
      - step: fin
        tool: [{name: done, kind: noop, value: finished}]
    """,
)
"""More than 20,000 events."""

DOCUMENTS = {
    "hello": HELLO,
    "import": FAILS,
    "regions": LOOP,
    "flaky": RETRIED,
    "nightly": WAITS,
    "orders": ORDERS,
    "grows": GROWS,
}
