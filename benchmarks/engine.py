"""Penstock itself, embedded: from a compiled document to the end of its run, with the real log on the real disk."""

from __future__ import annotations

import asyncio
import resource
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks import floors, playbooks

if TYPE_CHECKING:
    from penstock.server.documents import Pinned

EXECUTION = "benchmark"
# A little more than the events asked for, so that a resume has something left to do.
EVENTS_PER_ITERATION = 4
LEFT_OVER = 1_000
# What pays for an fsync each time is measured in turns with its floor, because the speed of a disk changes by the second.
ROUNDS = 3


def chain(folder: Path, count: int) -> dict[str, float]:
    return timed(folder, playbooks.chain(count), count)


def strict_chain(folder: Path, count: int) -> dict[str, float]:
    return _beside_floor(folder, playbooks.chain(count, strict=True), count)


def hops(folder: Path, count: int) -> dict[str, float]:
    return _beside_floor(folder, playbooks.hops(count), count)


def fan(folder: Path, count: int) -> dict[str, float]:
    return timed(folder, playbooks.fan(count), count)


def compiling(folder: Path, count: int) -> dict[str, float]:
    """Reading and checking the document of the chain: paid once per run, before its first event."""
    from penstock.server.documents import Documents, Pinned
    from penstock.tools.registry import Registry

    documents = Documents(Registry(), strict=False)
    documents.compile(Pinned(str(folder / "warm.yaml"), playbooks.chain(2)))
    document = Pinned(str(folder / "playbook.yaml"), playbooks.chain(count))
    began, busy = time.perf_counter(), time.process_time()
    documents.compile(document)
    return {
        "ms": (time.perf_counter() - began) * 1000 / count,
        "cpu_ms": (time.process_time() - busy) * 1000 / count,
    }


def interrupted(folder: Path, count: int) -> dict[str, float]:
    """A run stopped with `count` events in its log, and little left to do: what the resumes are measured on."""
    from penstock.app.embedded import embedded

    document = _document(folder, playbooks.fan(count // EVENTS_PER_ITERATION + LEFT_OVER))

    async def main() -> int:
        engine = embedded(folder / "home")
        run = engine.run(EXECUTION)
        loop = asyncio.get_running_loop()

        def watch(entry: Any) -> None:
            if entry.seq == count:
                loop.call_soon(run.interrupt, "the benchmark has enough events", 0.0)

        engine.observers.append(watch)
        summary = await run.start(document, {}, label=None, trace_id="benchmark")
        await engine.close()
        if summary.status != "interrupted":
            raise RuntimeError(f"the run to be resumed is {summary.status}, not interrupted")
        return int(str(summary.counts["events"]))

    return {"events": asyncio.run(main())}


def resume(folder: Path) -> dict[str, float]:
    """Imports included: from nothing to the end of the resumed run."""
    began, busy = time.perf_counter(), time.process_time()
    from penstock.app.embedded import embedded

    async def main() -> str:
        engine = embedded(folder / "home")
        summary = await engine.run(EXECUTION).resume()
        await engine.close()
        return summary.status

    if (status := asyncio.run(main())) != "completed":
        raise RuntimeError(f"the resumed run is {status}")
    return {"s": time.perf_counter() - began, "cpu_s": time.process_time() - busy, "rss_mb": _peak_mb()}


def _document(folder: Path, text: str) -> Pinned:
    from penstock.server.documents import Pinned

    path = folder / "playbook.yaml"
    path.write_text(text, encoding="utf-8")
    return Pinned(str(path), text)


def timed(folder: Path, text: str, count: int) -> dict[str, float]:
    from penstock.app.embedded import embedded

    document = _document(folder, text)

    async def main() -> dict[str, float]:
        engine = embedded(folder / "home")
        run = engine.run(EXECUTION)
        run.services.documents.compile(document)
        began, busy = time.perf_counter(), time.process_time()
        summary = await run.start(document, {}, label=None, trace_id="benchmark")
        took, used = time.perf_counter() - began, time.process_time() - busy
        await engine.close()
        if summary.status != "completed":
            raise RuntimeError(f"the run is {summary.status}: {summary.error}")
        return {"ms": took * 1000 / count, "cpu_ms": used * 1000 / count, "rss_mb": _peak_mb()}

    return asyncio.run(main())


def _beside_floor(folder: Path, text: str, count: int) -> dict[str, float]:
    own: list[dict[str, float]] = []
    floor: list[float] = []
    for number in range(ROUNDS):
        place = folder / str(number)
        place.mkdir()
        floor.append(floors.chain_with_fsync(place, count)["ms"])
        own.append(timed(place, text, count))
    return {
        "ms": median(run["ms"] for run in own),
        "cpu_ms": median(run["cpu_ms"] for run in own),
        "floor_ms": median(floor),
        "ratio": median(run["ms"] / bare for run, bare in zip(own, floor, strict=True)),
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
