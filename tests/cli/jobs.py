"""Small jobs for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

from tests import documents

ORDERS = f"\nkind: Job\nmetadata: {{name: orders}}\n{documents.ORDERS}"

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
