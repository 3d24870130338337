"""A job with all that sub-jobs can do to each other: branches that meet again, an iterator after them, and one beside it all."""

from __future__ import annotations

_JOB = """
apiVersion: penstock/v1
kind: Job
metadata: {name: forks}
components:
  src: {type: fixed_rows, params: {columns: [id, v], rows: [[1, 10], [2, 20], [3, 30]]}}
  go: {type: sleep, params: {seconds: GO}}
  a: {type: derive, params: {columns: {w: "v * 2"}}}
  a2: {type: sleep, params: {seconds: LEFT}}
  b: {type: aggregate, params: {by: [], measures: {s: "sum(v)"}}}
  b2: {type: sleep, params: {seconds: RIGHT}}
  b3: {type: set_global, params: {values: {done: true}}}
  j: {type: sql, params: {query: "select count(*) as n from input"}}
  it: {type: iterate_list, params: {items: ITEMS}}
  wait: {type: sleep, params: {seconds: BODY}}
  body: {type: set_global, params: {values: {last: "{{ iteration.item }}", seen: "{{ global.done }}"}}}
  other: {type: sleep, params: {seconds: BESIDE}}
  after: {type: set_global, params: {values: {after: 1}}}
connections:
  data:
  - src.main -> a.input
  - src.main -> b.input
  - a.main -> j.input
  control:
  - src (ok) go
  - go (parallelise) a, b
  - a (ok) a2
  - b (ok) b2
  - b2 (ok) b3
  - a, b (synchronise) j
  - j (ok) it
  - it (iterate) wait
  - wait (ok) body
  - other (subjob_ok) after
"""


def forks(items: list[int], *, go: float, left: float, right: float, body: float, beside: float) -> str:
    """With so many seconds at each place."""
    text = _JOB.replace("ITEMS", str(items))
    for name, seconds in {"GO": go, "LEFT": left, "RIGHT": right, "BODY": body, "BESIDE": beside}.items():
        text = text.replace(f"seconds: {name}}}", f"seconds: {seconds:g}}}")
    return text
