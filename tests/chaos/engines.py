"""Runs on any log: in memory under a virtual clock for thousands of trials, or on the real file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.log_queue import Standing
from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.adapters.memory.log import Execution, MemoryLog, MemoryStore
from penstock.adapters.sqlite.log import SqliteLog
from penstock.app.embedded import Embedded
from penstock.kernel.values import JsonMap
from penstock.ports.blobs import BlobStore
from penstock.ports.log import Entry, EventLog
from penstock.server.documents import Documents, Pinned
from penstock.server.runs import LocalRun, RunSummary
from penstock.views.canonical import canonical
from tests.chaos.workshop import Workshop
from tests.engine import document
from tests.envelopes import checked_events
from tests.virtual import VirtualClock, run_virtually

RUN = "run-1"


@dataclass(frozen=True)
class Told:
    """What became of a run: its summary, its entries in the order they were written, and its canonical timeline."""

    summary: RunSummary
    entries: list[Entry]

    @property
    def status(self) -> str:
        return self.summary.status

    @property
    def timeline(self) -> list[JsonMap]:
        return list(canonical(self.entries, self.summary.execution_id))

    @property
    def outcome(self) -> tuple[Any, ...]:
        """All that two runs of the same playbook must agree on."""
        summary = self.summary
        return summary.status, summary.ctx, summary.result, summary.error, self.timeline


@dataclass
class MemoryHome:
    """What outlives a process in a simulation: a log and a result store. Opening it again is a new process."""

    folder: Path
    store: MemoryStore
    blobs: BlobStore
    tools: Workshop

    @staticmethod
    def at(folder: Path, tools: Workshop | None = None) -> MemoryHome:
        return MemoryHome(folder, MemoryStore(), MemoryBlobs(), tools or Workshop())

    def open(self, log: EventLog | None = None) -> Embedded:
        return Embedded(self.folder, log or MemoryLog(self.store), self.blobs, self.tools, clock=VirtualClock())

    def entries(self, execution_id: str = RUN) -> list[Entry]:
        return list(self.store.executions[execution_id].entries)

    def cut(self, at: int, execution_id: str = RUN) -> MemoryHome:
        """The same home as a power loss after entry `at` would have left it."""
        old = self.store.executions[execution_id]
        store = MemoryStore()
        header = replace(old.header, status="running", ended_at=None)
        store.executions[execution_id] = Execution(header, old.document, Standing(1, None, at), old.entries[:at])
        return MemoryHome(self.folder, store, self.blobs, self.tools)


Deed = Callable[[LocalRun], Awaitable[Any]]


def write(folder: Path, text: str, name: str = "playbook.yaml") -> Path:
    path = folder / name
    path.write_text(document(text), encoding="utf-8")
    return path


async def started(
    engine: Embedded,
    path: Path,
    payload: Mapping[str, Any] | None = None,
    *deeds: Deed,
    execution_id: str = RUN,
) -> Told:
    """Start a run and drive it to its end, while `deeds` do things to it."""
    run = engine.run(execution_id)
    pinned = Pinned(str(path), path.read_text(encoding="utf-8"))
    return await _driven(engine, run, run.start(pinned, payload or {}, label=None, trace_id="trace-1"), deeds)


async def resumed(engine: Embedded, *deeds: Deed, execution_id: str = RUN) -> Told:
    run = engine.run(execution_id)
    return await _driven(engine, run, run.resume(), deeds)


async def _driven(engine: Embedded, run: LocalRun, driving: Awaitable[RunSummary], deeds: Sequence[Deed]) -> Told:
    doing = [asyncio.ensure_future(_coroutine(deed, run)) for deed in deeds]
    await asyncio.sleep(0)  # Whatever they listen to, they listen before anything can happen.
    try:
        summary = await driving
    finally:
        for one in doing:
            one.cancel()
        done = await asyncio.gather(*doing, return_exceptions=True)
    for one in done:
        if isinstance(one, Exception):
            raise one
    checked_events(engine.log, run.execution_id)
    return Told(summary, list(engine.log.read(run.execution_id)))


async def _coroutine(deed: Deed, run: LocalRun) -> None:
    await deed(run)


_COMPILED: dict[Any, Any] = {}


def _compiled_once(documents: Documents, document: Pinned) -> Any:
    """A simulation is many processes, each of which would compile the same text again: most of its time would go there."""
    tools: Any = documents._catalog
    key = (document, type(tools), *tools.kinds(), type(documents._components), documents._strict)
    found = _COMPILED.get(key)
    if found is None:
        found = _compile(documents, document)
        is_whole = bool(document.sources) or not getattr(found, "sources", None)
        if found.net is not None and is_whole:  # All that it was compiled from is in its key.
            if len(_COMPILED) > 100:
                _COMPILED.clear()
            _COMPILED[key] = found
    return found


_compile = Documents._again


def virtually(engine_of: Callable[[], Embedded], body: Callable[[Embedded], Awaitable[Any]]) -> Any:
    """`body` with an engine under virtual time; the engine is closed at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Documents, "_again", _compiled_once)
        return _virtually(engine_of, body)


def _virtually(engine_of: Callable[[], Embedded], body: Callable[[Embedded], Awaitable[Any]]) -> Any:

    async def main(loop: Any) -> Any:
        engine = engine_of()
        loop.is_busy = lambda: engine.log.backlog > 0 or engine.threads.busy > 0
        try:
            return await body(engine)
        finally:
            await engine.close()

    return run_virtually(main)


def really(home: Path, body: Callable[[Embedded], Awaitable[Any]], tools: Workshop | None = None, **more: Any) -> Any:
    """`body` with an engine on the real log and the real clock."""

    async def main() -> Any:
        engine = on_disk(home, tools, **more)
        try:
            return await body(engine)
        finally:
            await engine.close()

    return asyncio.run(main())


def on_disk(home: Path, tools: Workshop | None = None, **more: Any) -> Embedded:
    from penstock.app.embedded import embedded

    engine = embedded(home / ".penstock", **more)
    engine.tools = tools or Workshop()
    return engine


def entries_on_disk(home: Path, execution_id: str = RUN) -> list[Entry]:
    """What a reader finds; an execution that never came to be has none."""
    log = SqliteLog(home / ".penstock")
    try:
        return list(log.read(execution_id)) if log.header(execution_id) is not None else []
    finally:
        asyncio.run(log.close())
