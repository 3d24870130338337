"""What is stored of leases while they are out: servers and workers of two releases work beside each other during an upgrade, so its
form is fixed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.kernel.ranges import ElementsEnded, Failed, RangeFailed, RangeOpened, RangeReport
from penstock.ports.blobs import ResultRef
from penstock.ports.briefing import unpacked
from penstock.ports.leases import FanRange
from penstock.ports.reports import decoded, report_of_failure, report_of_range
from penstock.ports.results import encode, loader
from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet

NOW = 1700000002.0
SHARED: dict[str, Any] = {"v": 1, "execution_id": "x", "document": {}, "workload": {}, "iter_parent": None, "depth": 0}
SCOPE: dict[str, Any] = {
    "place": ["", []],
    "name": "test",
    "digest": "d",
    "started_at": NOW,
    "resumed_at": 0.0,
    "trace_id": "t",
    "results": {},
}
RUN: dict[str, Any] = {
    "step": "start",
    "path": [0],
    "visit": 1,
    "place": ["start@0", [[0]]],
    "args": {},
    "ctx": {},
    "scheduled_at": NOW,
    "counter": 4,
    "started_at": NOW,
    "loop_id": None,
}
SHARDS: dict[str, Any] = {
    "number": 1,
    "lo": 2,
    "hi": 4,
    "attempt": 0,
    "most": 2,
    "base": 0,
    "token": None,
    "until": None,
    "is_started": False,
    "failed": 0,
}
ITEMS: dict[str, Any] = {"kind": "list", "items": [3, 4], "first": 2}
STEP: dict[str, Any] = {**SHARED, "kind": "run", "scope": SCOPE, "run": RUN}
RANGE: dict[str, Any] = {
    **SHARED,
    "kind": "range",
    "scope": SCOPE,
    "run": RUN,
    "shards": SHARDS,
    "collection": ITEMS,
    "opened_at": 3,
    "lanes": 1,
    "emits": False,
}
PLAYBOOK = """
- step: start
  spec: {%s}
  loop: {in: [1, 2, 3, 4], iterator: i}
  tool: [{name: a, kind: noop}]
"""


def kept(blobs: MemoryBlobs) -> ResultRef:
    return blobs.put([b""], "application/octet-stream")


def test_a_briefing_of_a_step_run_is_read() -> None:
    found = unpacked(encode(STEP), MemoryBlobs())
    assert (found.run.step, found.run.path, found.run.counter, found.scope.name) == ("start", (0,), 4, "test")
    assert found.part is found.run


def test_a_briefing_of_a_range_is_read() -> None:
    part = unpacked(encode(RANGE), MemoryBlobs()).part
    assert isinstance(part, FanRange)
    assert (part.key, part.elements.lo, part.elements.hi) == ("start@0#1", 2, 4)
    assert (part.opened_at, part.collection, part.lanes, part.emits) == (3, ITEMS, 1, False)


@pytest.mark.parametrize(("stretch", "held"), [(None, ("", None)), (["each", 0, 2], ("each", (0, 2)))])
def test_a_briefing_of_a_sub_job_or_of_iterations_is_read(stretch: Any, held: Any) -> None:
    blobs = MemoryBlobs()
    ref = kept(blobs)
    job = {"region": "<a>", "history": ref.as_json(), "outputs": [["a", "main"]], "sample": 5, "stretch": stretch}
    found = unpacked(encode({**SHARED, "kind": "subjob", "scope": {"place": ["", []]}, **job}), blobs)
    elements = None if found.elements is None else (found.elements.lo, found.elements.hi)
    assert (found.region, found.history, found.sample) == ("<a>", ref, 5)
    assert (found.outputs, (found.iterator, elements)) == (frozenset({("a", "main")}), held)


@pytest.mark.parametrize(
    ("spec", "stored"), [("loop_mode: local", STEP), ("loop_mode: fanout, fanout: {range_size: 2}", RANGE)]
)
def test_an_offer_has_the_fields_that_others_read(tmp_path: Path, spec: str, stored: dict[str, Any]) -> None:
    file = tmp_path / "playbook.yaml"
    file.write_text(document(PLAYBOOK % spec))

    async def scenario(scene: Fleet) -> list[Any]:
        await scene.serve()
        run = await scene.submit(file)
        await scene.until(lambda: bool(scene.dispatch_store.leases))
        payloads = [msgspec.json.decode(lease.offer.payload) for lease in scene.dispatch_store.leases.values()]
        scene.work("w1")
        await asyncio.wait_for(scene.ended(run), 3600.0)
        return payloads

    for payload in on_fleet(tmp_path, scenario):
        assert payload.keys() == stored.keys()
        assert (payload["scope"].keys(), payload["run"].keys()) == (SCOPE.keys(), RUN.keys())
        assert payload.get("shards", SHARDS).keys() == SHARDS.keys()


ENDED = {
    "lo": 0,
    "hi": 2,
    "failures": [[1, "1", {"kind": "exception"}]],
    "results": [5, None],
    "same": False,
    "writes": [],
    "shared": {},
    "ms": 1.5,
    "keys": None,
    "tasks": [],
}
REPORTS: list[tuple[str, Any, RangeReport]] = [
    ("opened", {"hi": 9, "next": "p2", "is_end": False}, RangeOpened(9, "p2", False)),
    ("report", ENDED, ElementsEnded(0, 2, [Failed(1, "1", {"kind": "exception"})], [5, None], ms=1.5)),
    ("failed", {"kind": "collection"}, RangeFailed({"kind": "collection"})),
]


@pytest.mark.parametrize(("name", "data", "report"), REPORTS)
def test_a_report_of_a_range_is_written_and_read_as_before(name: str, data: Any, report: RangeReport) -> None:
    written = msgspec.msgpack.decode(report_of_range(report))
    assert {key: msgspec.json.decode(value) for key, value in written.items()} == {name: data}
    stored = msgspec.msgpack.encode({name: encode(data)})
    assert decoded(stored, loader(MemoryBlobs())).range == report


def test_why_a_lease_was_given_back_is_written_and_read_as_before() -> None:
    body = report_of_failure("w1: no key", {"kind": "refused"})
    assert msgspec.msgpack.decode(body) == {"reason": b'"w1: no key"', "refusal": b'{"kind":"refused"}'}
    found = decoded(body, loader(MemoryBlobs()))
    assert (found.reason, found.refusal, found.facts) == ("w1: no key", {"kind": "refused"}, [])
