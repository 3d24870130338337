"""What the runs of a trial do: steps with retries, local loops, fanned-out loops with and without effects, children, a forking job."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import psycopg

from tests.engine import document
from tests.fleet.forks import forks

MIXED = """
- step: start
  tool:
  - {name: wait, kind: sleep, seconds: 0.1}
  - {name: a, kind: noop, value: 5}
  next:
    spec: {mode: inclusive}
    arcs:
    - {step: each, args: {n: 6}}
    - {step: fan}
    - {step: side}
- step: each
  loop:
    in: "{{ [1, 2, 3, 4, 5, 6] }}"
    iterator: x
    spec: {mode: parallel, max_in_flight: 2}
  tool:
  - {name: wait, kind: sleep, seconds: "{{ iter.x / 20 }}"}
  - name: out
    kind: noop
    value: "{{ iter.x * args.n }}"
    spec:
      policy:
        rules:
        - else: {then: {do: continue, append_ctx: {seen: "{{ outcome.result }}"}}}
  next: {arcs: [{step: done}]}
- step: fan
  spec: {loop_mode: fanout, reducers: {total: sum}, fanout: {range_size: 50}}
  loop: {in: {range: 600}, iterator: i}
  tool:
  - {name: out, kind: noop, value: "{{ iter.i * 2 }}", set_shared: {total: "{{ iter.i }}"}}
  next: {arcs: [{step: done, args: {fan: "{{ event.result.done }}"}}]}
- step: side
  tool:
  - name: flaky
    kind: noop
    value: "{{ _attempt }}"
    spec:
      policy:
        rules:
        - when: "{{ outcome.result < 3 }}"
          then: {do: retry, attempts: 5, delay: 0.1}
        - else: {then: {do: continue, set_ctx: {tries: "{{ outcome.result }}"}}}
- step: done
  spec: {join: [each, fan]}
  tool:
  - {name: z, kind: noop, value: "{{ ctx.seen }}"}
"""

EFFECTS = """
workload: {effects: "", elements: 60}
workflow:
- step: start
  spec: {loop_mode: fanout, fanout: {range_size: 6}}
  loop: {in: {range: "{{ workload.elements }}"}, iterator: i}
  tool:
  - name: keyed
    kind: postgres
    url: "{{ workload.effects }}"
    idempotency: true
    command: INSERT INTO keyed VALUES (:run, :shard)
    params: {run: "{{ execution_id }}", shard: "{{ iter.shard_id }}"}
  - name: unkeyed
    kind: postgres
    url: "{{ workload.effects }}"
    command: INSERT INTO unkeyed VALUES (:run, :shard)
    params: {run: "{{ execution_id }}", shard: "{{ iter.shard_id }}"}
"""

PARENT = """
- step: start
  loop: {in: [1, 2], iterator: n, spec: {mode: parallel, max_in_flight: 2}}
  tool:
  - name: call
    kind: playbook
    path: child
    args: {n: "{{ iter.n }}"}
    return_step: twice
  next: {arcs: [{step: load, args: {got: "{{ event.result.results }}"}}]}
- step: load
  tool:
  - {name: end, kind: noop, value: "{{ args.got }}"}
"""
CHILD = """
workload: {n: 0}
workflow:
- step: start
  tool:
  - {name: wait, kind: sleep, seconds: 0.1}
  next: {arcs: [{step: twice}]}
- step: twice
  tool:
  - {name: wait, kind: sleep, seconds: "{{ workload.n / 10 }}"}
  - {name: out, kind: noop, value: "{{ workload.n * 2 }}"}
"""

FORKS = forks([1, 2], go=0.05, left=0.2, right=0.1, body=0.1, beside=0.3)


@dataclass(frozen=True)
class Work:
    """A document as it is submitted. `elements`: of its fanned-out loops, by step."""

    name: str
    text: str
    elements: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    payload: dict[str, Any] = field(default_factory=dict)
    has_effects: bool = False

    @property
    def document(self) -> dict[str, Any]:
        return {"text": self.text, "file": f"{self.name}.yaml", "sources": self.sources}


class Effects:
    """Tables outside the fleet, in which tasks leave something. Theirs is a server that nobody harms."""

    def __init__(self, url: str) -> None:
        schema = f"effects_{uuid.uuid4().hex[:12]}"
        mark = "&" if "?" in url else "?"
        self.url = f"{url}{mark}options={quote(f'-csearch_path={schema}')}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
            for table in ("keyed", "unkeyed"):
                connection.execute(f"CREATE TABLE {schema}.{table} (run text, shard text)")

    def counts(self, table: str, run: str) -> dict[str, int]:
        """Element -> how often its task has happened."""
        with psycopg.connect(self.url) as connection:
            statement = f"SELECT shard, count(*) FROM {table} WHERE run = %s GROUP BY shard"
            return dict(connection.execute(statement, [run]).fetchall())


def works(effects: Effects) -> list[Work]:
    return [
        Work("mixed", document(MIXED), {"fan": 600}),
        Work("effects", document(EFFECTS), {"start": 60}, payload={"effects": effects.url}, has_effects=True),
        Work("parent", document(PARENT), sources={"child.yaml": document(CHILD)}),
        Work("forks", FORKS.lstrip("\n")),
    ]
