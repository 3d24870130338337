"""What a worker works with: the tools it knows and the services it lends them. One set serves all leases of an execution."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.kernel.values import Json
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore, ResultRef
from penstock.ports.leases import Keys
from penstock.ports.plugins import at_folder
from penstock.ports.results import loader
from penstock.ports.rows import Engines
from penstock.tools.base import Resources, Settings, Threads, Tool

if TYPE_CHECKING:
    from penstock.components.base import Component


class Toolbox(Protocol):
    def get(self, kind: str) -> Tool[Any]: ...

    def convert(self, kind: str, values: dict[str, Any]) -> Any: ...


class ComponentBox(Protocol):
    def get(self, type: str) -> Component[Any]: ...

    def convert(self, type: str, values: Mapping[str, Any]) -> Any: ...


def _ignored(place: str, port: str, rows: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class WorkerServices:
    tools: Toolbox
    clock: Clock
    blobs: BlobStore
    resources: Resources
    threads: Threads
    settings: Settings
    say: Callable[[str, str | None, str], None]
    """`say(scope, task_run_id, line)`: a line for the run's log."""
    components: ComponentBox | None = None
    work: Path | None = None
    """Where jobs keep their rows while they run."""
    engines: Engines | None = None
    """What runs the rows of jobs."""
    progress: Callable[[str, str, int], None] = _ignored
    """`progress(component, port, rows)`: the number of rows so far."""
    caller: Path | None = None
    """The working folder of the process that was asked to run the document, where that is known."""
    _tools_at: dict[str, Toolbox] = field(default_factory=dict)

    def tools_at(self, folder: Path) -> Toolbox:
        """The tools, including the plug-ins of documents in that folder, which are searched for once."""
        found = self._tools_at.get(str(folder))
        if found is None:
            found = self._tools_at[str(folder)] = at_folder(self.tools, folder)
        return found

    def load(self, ref: ResultRef) -> Json:
        return loader(self.blobs)(ref)


# ---- what all tasks of one execution share, such as connection pools: created on first use, closed when it is over


class SharedResources:
    def __init__(self) -> None:
        self._held: dict[object, Any] = {}
        self._making: defaultdict[object, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._close: list[Callable[[], Awaitable[None]]] = []

    async def get(self, key: object, make: Callable[[], Awaitable[tuple[Any, Callable[[], Awaitable[None]]]]]) -> Any:
        if key in self._held:
            return self._held[key]
        async with self._making[key]:
            if key not in self._held:
                self._held[key], close = await make()
                self._close.append(close)
        return self._held[key]

    async def close(self) -> list[BaseException]:
        """Close in reverse order. Errors on closing are returned, not raised: the run is over already."""
        closing, self._close = self._close[::-1], []
        self._held.clear()
        outcomes = [(await asyncio.gather(close(), return_exceptions=True))[0] for close in closing]
        return [outcome for outcome in outcomes if isinstance(outcome, BaseException)]


# ---- the result store as tools get it: what they stream into it is redacted first, if there are secrets


# Held back from each piece, so that a secret split between two pieces is seen whole with the next one.
HELD_BACK = 8192


class VeiledBlobs:
    """`is_needed`: is there a secret by now? Asked when something is stored."""

    def __init__(
        self, store: BlobStore, hide: Callable[[bytes], bytes], is_needed: Callable[[], bool] = lambda: True
    ) -> None:
        self._store = store
        self._hide = hide
        self._is_needed = is_needed

    @staticmethod
    def of(store: BlobStore, keys: Keys) -> VeiledBlobs:
        return VeiledBlobs(store, keys.hide_bytes, lambda: keys.hides)

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        return self._store.put(self._veiled(chunks) if self._is_needed() else chunks, media, schema_hint)

    def _veiled(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        rest = b""
        for chunk in chunks:
            rest = self._hide(rest + chunk)
            if len(rest) > HELD_BACK:
                yield rest[:-HELD_BACK]
                rest = rest[-HELD_BACK:]
        yield rest

    def get(self, ref: ResultRef) -> bytes:
        return self._store.get(ref)

    def path(self, ref: ResultRef) -> str:
        return self._store.path(ref)

    def delete(self, ref: ResultRef) -> None:
        self._store.delete(ref)
