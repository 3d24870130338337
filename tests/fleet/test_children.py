"""Executions within executions on a fleet: a holder asks, the server drives, and whoever dies the same child goes on."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock.kernel.values import JsonMap
from tests.depth import times
from tests.engine import document
from tests.fleet.deaths import with_deaths
from tests.fleet.scene import on_fleet
from tests.fleet.test_jobs import embedded_timeline

PARENT = """
- step: start
  loop: {in: [1, 2], iterator: n, spec: {mode: parallel, max_in_flight: 2}}
  tool:
  - {name: wait, kind: sleep, seconds: 1}
  - name: call
    kind: playbook
    path: child
    args: {n: "{{ iter.n }}"}
    return_step: twice
  next: {arcs: [{step: load, args: {got: "{{ event.result.results }}"}}]}
- step: load
  tool:
  - {name: job, kind: job, path: job, args: {}}
  - {name: end, kind: noop, value: "{{ args.got }}"}
"""
CHILD = """
workload: {n: 0}
workflow:
- step: start
  tool:
  - {name: wait, kind: sleep, seconds: 3}
  next: {arcs: [{step: twice}]}
- step: twice
  tool:
  - {name: wait, kind: sleep, seconds: "{{ workload.n }}"}
  - {name: out, kind: noop, value: "{{ workload.n * 2 }}"}
"""
JOB = """
apiVersion: penstock/v1
kind: Job
metadata: {name: inner}
components:
  a: {type: sleep, params: {seconds: 2}}
  b: {type: set_global, params: {values: {x: 1}}}
  c: {type: playbook, params: {path: child.yaml, args: {n: 1}}}
connections:
  control:
  - a (subjob_ok) b
  - b (ok) c
"""


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "child.yaml").write_text(document(CHILD), encoding="utf-8")
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    file = folder / "parent.yaml"
    file.write_text(document(PARENT), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def unbroken(parent: Path) -> list[JsonMap]:
    return embedded_timeline(parent, parent.parent)


@pytest.mark.parametrize("seed", range(times(6)))
def test_children_go_on_whoever_dies(tmp_path: Path, parent: Path, unbroken: list[JsonMap], seed: int) -> None:
    deaths = (1, 3) if seed else (0, 0)
    timeline = on_fleet(tmp_path, lambda scene: with_deaths(scene, parent, random.Random(seed), deaths, slots=2))
    assert timeline == unbroken
