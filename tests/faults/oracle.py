"""What must be true of every run that a trial leaves behind, whatever happened while it ran."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from penstock.app.embedded import embedded
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore
from penstock.ports.log import Entry, EventLog
from penstock.ports.results import decode
from penstock.server.documents import Pinned
from penstock.server.execution_owner import EVERY_S
from penstock.views.canonical import canonical
from tests.faults.documents import Effects, Work
from tests.faults.fleet import Fleet
from tests.faults.logs import check_log


def timeline(log: EventLog, run: str) -> list[JsonMap]:
    """Everything that happened in it, but for where its document lies."""
    return [{**event, "payload": _placeless(event["payload"])} for event in canonical(log.read(run), run)]


def _placeless(payload: object) -> Json:
    assert isinstance(payload, dict)
    return {key: value for key, value in payload.items() if key not in ("digest", "document")}


def unbroken_timeline(work: Work, folder: Path) -> list[JsonMap]:
    """What the run comes to in one process, where nothing happens to anybody."""
    folder.mkdir()
    for name, text in {f"{work.name}.yaml": work.text, **work.sources}.items():
        (folder / name).write_text(text)

    async def run() -> list[JsonMap]:
        engine = embedded(folder / ".penstock")
        try:
            pinned = Pinned(str(folder / f"{work.name}.yaml"), work.text)
            summary = await engine.run("run").start(pinned, work.payload, label=None, trace_id="trace")
            assert summary.status == "completed", summary.error
            return timeline(engine.log, "run")
        finally:
            await engine.close()

    return asyncio.run(run())


def check_run(log: EventLog, blobs: BlobStore, work: Work, run: str, unbroken: list[JsonMap]) -> None:
    """The log of one run: whole, once, equal to that of a run to which nothing happened, and decided the same again."""
    entries = check_log(log, blobs, run)
    for step, elements in work.elements.items():
        check_loop(entries, f"{step}@", elements)
    assert_same(timeline(log, run), unbroken)


def check_loop(entries: list[Entry], step: str, elements: int) -> None:
    """Every element was counted in one report, and the counters are what these reports come to."""
    told = [(entry.type, _data(entry)) for entry in entries if entry.scope.startswith(step) and "/" not in entry.scope]
    done = sorted((data["lo"], data["hi"]) for kind, data in told if kind == "loop.shard.done")
    assert [lo for lo, _ in done] == [0, *(hi for _, hi in done[:-1])], done
    assert done[-1][1] == elements
    (fanin,) = [data for kind, data in told if kind == "loop.fanin.completed"]
    counted = sum(data["done"] for kind, data in told if kind == "loop.shard.done")
    assert (fanin["total"], fanin["succeeded"], fanin["failed"], fanin["skipped"]) == (elements, elements, 0, 0)
    assert counted == elements
    shared: Counter[str] = Counter()
    for kind, data in told:
        if kind == "loop.shard.done":
            shared.update(data["shared"])
    assert fanin["shared"] == shared
    if "total" in shared:
        assert shared["total"] == sum(range(elements))


def assert_same(found: list[JsonMap], unbroken: list[JsonMap]) -> None:
    for place, (one, other) in enumerate(zip(found, unbroken, strict=False)):
        assert one == other, f"event {place} of the canonical timeline is\n  {one}\nand not\n  {other}"
    assert len(found) == len(unbroken), f"{len(found)} events and not {len(unbroken)}"


def check_effects(effects: Effects, work: Work, run: str) -> None:
    for step, elements in work.elements.items() if work.has_effects else ():
        shards = {f"{step}@0[{index}]" for index in range(elements)}
        assert effects.counts("keyed", run) == dict.fromkeys(shards, 1)
        assert effects.counts("unkeyed", run).keys() == shards  # Once at least: nobody promised more.


def check_nothing_is_left(fleet: Fleet) -> None:
    """No lease, no note, nothing asked: what is over leaves nothing that somebody would have to clear away. (A server that dies
    between the end of a cancelled run and its clearing away may leave the bare record that a lease had come back.)"""
    asked = (
        "SELECT (SELECT count(*) FROM dispatch_lease AS l WHERE l.state <> 'back' OR NOT EXISTS "
        "(SELECT FROM execution AS x WHERE x.execution_id = l.execution_id AND x.status = 'cancelled')) "
        "+ (SELECT count(*) FROM dispatch_note) + (SELECT count(*) FROM request)"
    )
    fleet.until(lambda: fleet.rows(asked) == [(0,)], 2 * EVERY_S, "no lease, note or request is left")


def _data(entry: Entry) -> Any:
    return decode(entry.payload)
