"""Runs of jobs on any log: in memory under a virtual clock, or on the real file; and what they must leave behind, which is nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.app.embedded import Embedded
from penstock.ports.log import Entry
from penstock.server.documents import Documents
from penstock.views.canonical import canonical
from tests.chaos.engines import RUN, Deed, Told, _driven
from tests.chaos.logs import PassingLog
from tests.chaos.workshop import Workshop


class DecisionLog(PassingLog):
    """Notes after which entries the log may end: a decision about a job is appended whole, or not at all.

    A decision begins with the end of a component, unless that is one of `openers`: those end when what they opened has closed.
    """

    def __init__(self, log: Any, *openers: str) -> None:
        super().__init__(log)
        self._openers = openers
        self.boundaries: set[int] = set()
        self.appended: set[int] = set()

    def append(self, execution_id: str, epoch: int, entries: Sequence[Entry], *more: Any) -> int:
        for entry in entries:
            if entry.type in ("component.ok", "component.error") and entry.scope not in self._openers:
                self.boundaries.add(entry.seq - 1)
        if entries:
            self.boundaries.add(entries[-1].seq)
            self.appended.add(entries[-1].seq)
        return super().append(execution_id, epoch, entries, *more)


async def started(
    engine: Embedded,
    path: Path,
    context: Mapping[str, Any] | None = None,
    *deeds: Deed,
    execution_id: str = RUN,
) -> Told:
    """Start a job and drive it to its end, while `deeds` do things to it."""
    documents = Documents(engine.tools, engine.components)
    document = documents.open(path, context)
    run = engine.run(execution_id, documents)
    driving = run.start(document, context or {}, label=None, trace_id="trace-1")
    return await _driven(engine, run, driving, deeds)


def timeline(entries: list[Entry]) -> list[Any]:
    return list(canonical(entries, RUN))


def leftovers(home: Path) -> list[str]:
    """What lies in the work folder of a state folder: after the end of a run there must be nothing."""
    work = home / "work"
    return sorted(str(path.relative_to(work)) for path in work.rglob("*")) if work.exists() else []


def on_disk(home: Path, **more: Any) -> Embedded:
    from penstock.app.embedded import embedded

    engine = embedded(home / ".penstock", **more)
    engine.tools = Workshop()
    return engine


def really(home: Path, body: Any, **more: Any) -> Any:
    """`body` with an engine on the real log and the real clock."""

    async def main() -> Any:
        engine = on_disk(home, **more)
        try:
            async with asyncio.timeout(60):
                return await body(engine)
        finally:
            await engine.close()

    return asyncio.run(main())


__all__ = ["RUN", "DecisionLog", "Told", "leftovers", "on_disk", "really", "started", "timeline"]
