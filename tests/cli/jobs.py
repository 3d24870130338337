"""Small jobs for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

ORDERS = """
kind: Job
metadata: {name: orders}
context:
  least: 10
  groups: {strict: {least: 30}}
components:
  - name: orders
    type: fixed_rows
    params: {columns: [customer, amount], rows: [[anna, 12], [ben, 7], [anna, 31], [carl, 25]]}
  - name: large
    type: filter
    params: {where: "amount >= {{ context.least }}"}
  - name: totals
    type: aggregate
    params: {by: [customer], measures: {total: sum(amount)}}
  - {name: show, type: log_rows}
  - {name: small, type: log_rows}
  - name: done
    type: set_global
    params: {values: {customers: "{{ global.totals.NB_LINE_OUT_main }}"}}
connections:
  data: |
    orders.main -> large.input
    large.main -> totals.input
    totals.main -> show.input
    large.reject -> small.input
  control: |
    totals (subjob_ok) done
"""

# `fix` exists or not: with it a resume goes through.
FAILS = """
kind: Job
components:
  - {name: first, type: set_global, params: {values: {n: 1}}}
  - name: second
    type: python
    params:
      code: |
        from pathlib import Path
        with open("marks", "a") as file:
            file.write("x")
        if not Path("fix").exists():
            raise ValueError("no luck")
  - {name: third, type: noop}
connections:
  control: |
    first (subjob_ok) second
    second (ok) third
"""

LOOP = """
kind: Job
job_config: {fail_strategy: continue}
components:
  - {name: each, type: iterate_list, params: {items: [a, b, c]}}
  - name: work
    type: python
    params:
      code: |
        if "{{ iteration.item }}" == "b":
            raise ValueError("bad b")
  - {name: last, type: noop}
connections:
  control: |
    each (iterate) work
    each (iterator_complete) last
"""

# Waits until the test makes the file `gate`.
WAITS = """
kind: Job
components:
  - {name: first, type: noop}
  - name: wait
    type: python
    params:
      code: |
        import time
        from pathlib import Path
        Path("waiting").touch()
        while not Path("gate").exists():
            time.sleep(0.01)
  - {name: last, type: noop}
connections:
  control: |
    first (subjob_ok) wait
    wait (ok) last
"""


def write_job(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name
