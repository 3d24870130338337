"""J1.3: equal inputs, context and code give equal data and equal events, whatever happens to run faster."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.app.embedded import Embedded
from penstock.components.base import Action, Call, Component, ComponentFailure
from penstock.components.registry import ComponentRegistry
from penstock.server.documents import Documents
from penstock.server.runs import RunSummary
from penstock.views.canonical import canonical_hash
from tests.chaos.engines import MemoryHome, virtually
from tests.chaos.workshop import Workshop
from tests.depth import times

RUNS = times(10)


class UnevenParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    sets: dict[str, Any] = {}
    fails: bool = False


class Uneven(Action[UnevenParams]):
    """Wait for a while that nobody knows, write globals, fail if told so."""

    type = "uneven"
    Params = UnevenParams
    chance = random.Random()

    async def run(self, params: UnevenParams, call: Call) -> str:
        await call.clock.sleep(self.chance.choice((0.0, 0.001, 0.01, 0.1, 1.0)) * self.chance.random())
        call.globals.update(params.sets)
        if params.fails:
            raise ComponentFailure("told", "it was told to fail")
        return call.place


class Shop(ComponentRegistry):
    """The registry, and a component that takes now shorter and now longer."""

    def __init__(self) -> None:
        super().__init__(with_lineage=False)

    def find(self, name: str) -> type[Component[Any]] | None:
        return Uneven if name == "uneven" else super().find(name)


RICH = """
context: {limit: 2}
job_config: {fail_strategy: continue, engine: {kind: duckdb, threads: 1}}
components:
  - {name: begin, type: uneven, params: {sets: {who: begin, list: [0]}}}
  - {name: orders, type: fixed_rows, params: {columns: [id, k], rows: [[1, a], [2, b], [3, a], [4, c]]}}
  - {name: fork, type: uneven}
  - {name: left, type: uneven, params: {sets: {who: left, of_left: 1}}}
  - {name: left2, type: uneven, global_export: who, params: {sets: {who: left2}}}
  - {name: right, type: uneven, global_export: who, params: {sets: {who: right, of_right: "{{ global.who }}"}}}
  - {name: right2, type: uneven, params: {fails: true, sets: {lost: "{{ global.of_right }}"}}}
  - {name: mend, type: uneven, params: {sets: {mended: true}}}
  - {name: bad, type: uneven, params: {fails: true}}
  - {name: never, type: uneven}
  - {name: met, type: uneven, global_export: who, params: {sets: {who: "{{ global.who }}!"}}}
  - {name: kept, type: filter, params: {where: "id > {{ context.limit }}"}}
  - {name: groups, type: iterate_rows, params: {parallel: 3}}
  - {name: first, type: uneven, global_export: [list], params: {sets: {list: ["{{ iteration.index }}"], last: "{{ iteration.item.k }}"}}}
  - {name: second, type: uneven, params: {sets: {seen: "{{ global.last }}"}}}
  - {name: handled, type: uneven}
  - {name: numbers, type: iterate_range, params: {start: 0, stop: 6, parallel: 2, globals: override}}
  - {name: each, type: uneven, params: {fails: "{{ iteration.item == 4 }}", sets: {number: "{{ iteration.item }}"}}}
  - {name: sorry, type: uneven, params: {sets: {sorry: "{{ iteration.index }}"}}}
  - {name: ended, type: uneven}
  - {name: told, type: uneven}
  - {name: call, type: "@inner"}
  - {name: last, type: uneven, params: {sets: {all: "{{ global.who }} {{ global.number }} {{ global.list }}"}}}
connections:
  data: |
    orders.main -> kept.input
    kept.main -> groups.input
  control: |
    begin (ok) fork
    fork (parallelise) left, right, bad
    left (ok) left2
    right (ok) right2
    right2 (error) mend
    bad (ok) never
    bad (subjob_error) told
    left, right (synchronise) met
    met (ok) groups
    groups (iterate) first
    first (ok) second
    groups (iteration_ok) handled
    met (ok) numbers
    numbers (iterate) each
    numbers (iteration_error) sorry
    numbers (iterator_complete) ended
    groups (ok) call
    ended (ok) last
    call (ok) last
"""

ROWS = """
components:
  - {name: fork, type: uneven}
  - {name: a, type: uneven}
  - {name: b, type: uneven}
  - {name: left, type: generate_rows, params: {count: 5000, columns: {id: i, k: i % 7}}}
  - {name: right, type: generate_rows, params: {count: 3000, columns: {id: i + 5000, k: i % 5}}}
  - {name: even, type: filter, params: {where: id % 2 = 0}}
  - {name: met, type: union}
  - {name: names, type: generate_rows, params: {count: 7, columns: {k: i, name: "'n' || i"}}}
  - {name: joined, type: join, params: {on: [k]}}
  - {name: counted, type: aggregate, params: {by: [name], measures: {n: count(*), all: sum(id)}}}
  - {name: odd, type: uneven}
  - {name: kept, type: python, params: {code: "globals['rows'] = sorted([row['name'], row['n'], int(row['all'])] for row in inputs['input'])"}}
connections:
  data: |
    left.main -> even.input
    even.main -> met.input_a
    right.main -> met.input_b
    met.main -> joined.main
    names.main -> joined.lookup
    joined.main -> counted.input
    counted.main -> kept.input
  control: |
    fork (parallelise) a, b
    a (ok) left
    b (ok) right
    a, b (synchronise) met
    right (ok) odd
"""

INNER = """
kind: Joblet
components:
  - {name: a, type: uneven, params: {sets: {g: inner}}}
  - {name: b, type: uneven}
  - {name: c, type: uneven, params: {sets: {g: "{{ global.g }}!"}}}
connections:
  control: |
    a (parallelise) b, c
"""


class Stage:
    """One job, read once and run many times, in memory and in virtual time."""

    def __init__(self, home: Path, text: str) -> None:
        (home / "job.yaml").write_text(text)
        (home / "inner.yaml").write_text(INNER)
        self.home = home
        self.components = Shop()
        self.documents = Documents(Workshop(), self.components)
        self.document = self.documents.open(home / "job.yaml")

    def played(self, seed: int) -> tuple[RunSummary, str, tuple[str, ...]]:
        """Its summary, its canonical hash, and the order in which components really ended."""
        memory = MemoryHome.at(self.home)
        Uneven.chance.seed(seed)

        async def body(engine: Embedded) -> RunSummary:
            engine.components = self.components
            run = engine.run("run-1", self.documents)
            return await run.start(self.document, {}, label=None, trace_id="trace-1")

        summary = virtually(memory.open, body)
        entries = memory.entries()
        order = tuple(entry.scope for entry in entries if entry.type in ("component.ok", "component.error"))
        return summary, canonical_hash(entries, "run-1"), order


@pytest.mark.clause("J1.3")
def test_runs_under_shuffled_scheduling_have_one_canonical_hash(tmp_path: Path) -> None:
    stage = Stage(tmp_path, RICH)
    hashes: dict[str, int] = {}
    globals_: list[Any] = []
    orders = set()
    for seed in range(RUNS):
        summary, digest, order = stage.played(seed)
        assert summary.status == "completed", (seed, summary.error)
        hashes.setdefault(digest, seed)
        orders.add(order)
        if summary.ctx not in globals_:
            globals_.append(summary.ctx)
    assert len(orders) > RUNS / 2, "the scheduling was not shuffled"
    assert len(hashes) == 1, f"the first seeds of different timelines: {sorted(hashes.values())}"
    assert len(globals_) == 1


@pytest.mark.clause("J1.3")
def test_rows_have_the_same_hashes_and_counts_whatever_ran_faster(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ROWS)
    seen: dict[str, Any] = {}
    for seed in range(times(4)):
        summary, digest, _ = stage.played(seed)
        assert summary.status == "completed", (seed, summary.error)
        seen[digest] = summary.ctx
    assert len(seen) == 1, seen
