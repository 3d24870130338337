"""What a page asks of a server that runs jobs in its own process: kept rows, rows made again, a run decided again, columns.

Law: each of these works on copies. Nothing is written to the log or the result store, and code of a document runs only where its
runs do, with the addresses that these may reach.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.adapters.files.projects import UnpackedProjects
from penstock.app.library import lazy_components
from penstock.app.stores import StoreLocations
from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.blobs import BlobStore
from penstock.ports.log import Entry, EventLog, Header
from penstock.server.documents import Documents, Pinned, inputs_of
from penstock.tools.addresses import Addresses
from penstock.tools.base import Settings
from penstock.tools.registry import Registry

if TYPE_CHECKING:
    from penstock.api.backend import Backend
    from penstock.dialects.job import CompiledJob

MOST_REPLAYED = 300_000
"""Events: a replay holds all of them in memory."""


def kept_rows(
    blobs: BlobStore, header: Header, entries: Iterable[Entry], component: str, port: str, offset: int, limit: int
) -> JsonMap:
    """Kept rows of a port, as `RowsOut`."""
    from penstock.app.rows import rows_of  # Loads DuckDB.

    found = rows_of(header, iter(entries), blobs, f"{component}.{port}")
    return {
        "component": component,
        "port": port,
        "source": "kept",
        "columns": [{"name": name, "type": type} for name, type in found.columns.items()],
        "rows": [[as_json(value) for value in row] for row in found.page(offset, limit)],
        "total": len(found),
        "note": None,
    }


@dataclass(frozen=True, slots=True)
class Inspection:
    """`reads_files`: documents are files of this machine."""

    locations: StoreLocations
    log: EventLog
    blobs: BlobStore
    addresses: Addresses
    reads_files: bool

    def give_to(self, backend: Backend) -> None:
        backend.preview, backend.replay, backend.columns = self.preview, self.replay, self.columns

    # ---- rows made again

    async def preview(self, header: Header, component: str, port: str | None, rows: int) -> JsonMap:
        kept = self.log.document(header.execution_id)
        document, inputs = Pinned.from_bytes(kept), inputs_of(kept) or {}
        wanted = component if port is None else f"{component}.{port}"

        def made() -> Any:
            return asyncio.run(self._made(document, inputs, wanted, rows))

        # In a thread with a loop of its own: neither the API nor the executions of this server wait for it.
        found = await asyncio.to_thread(made)
        is_elsewhere = found.made_by != f"{found.component}.{found.port}"
        known = await asyncio.to_thread(self.columns, document, True)
        schema = known.schemas.get(_end(found.made_by)) if known is not None else None
        types = dict.fromkeys(found.columns, "") | {column.name: column.type for column in schema or ()}
        return {
            "component": found.component,
            "port": found.port,
            "source": "preview",
            "columns": [{"name": name, "type": types[name]} for name in found.columns],
            "rows": [[as_json(row.get(name)) for name in found.columns] for row in found.rows],
            "total": found.total,
            "note": f"made by `{found.made_by}`" if is_elsewhere else None,
        }

    async def _made(self, document: Pinned, inputs: Any, wanted: str, rows: int) -> Any:
        from penstock.adapters.memory.blobs import MemoryBlobs  # Only a preview needs its machinery.
        from penstock.adapters.memory.log import MemoryLog
        from penstock.app.embedded import Embedded
        from penstock.app.preview import preview_of

        tools, components = Registry(), lazy_components()
        home = self.locations.home
        engine = Embedded(home, MemoryLog(), MemoryBlobs(), tools, settings=Settings(self.addresses))
        engine.components = components
        try:
            documents = self._documents(tools, components)
            context, group = inputs.get("payload") or {}, inputs.get("context")
            return await preview_of(engine, documents, document, wanted, rows, context, group)
        finally:
            await engine.close()

    def _documents(self, tools: Any, components: Any) -> Documents:
        home = self.locations.home
        return Documents(
            tools,
            components,
            reads_files=self.reads_files,
            projects=UnpackedProjects(home, self.blobs),
            base=self.locations.base,
            nowhere=home / "work" / "nowhere",
        )

    # ---- a run decided again

    async def replay(self, execution_id: str) -> str | None:
        from penstock.app.replay import replay  # Only a replay needs its machinery.

        header = self.log.header(execution_id)
        if header is not None and header.last_seq > MOST_REPLAYED:
            raise Refused(
                f"the run has {header.last_seq:,} events, too many to decide again beside other work",
                f"`penstock replay {execution_id}` does it in a process of its own",
            )

        def decided() -> Any:
            tools, components = Registry(), lazy_components()
            more: Any = {"documents": self._documents(tools, components)}
            return asyncio.run(
                replay(self.log, self.blobs, tools, components, Settings(self.addresses), execution_id, **more)
            )

        difference = await asyncio.to_thread(decided)
        return None if difference is None else str(difference.describe())

    # ---- columns

    def columns(self, document: Pinned, has_run: bool) -> CompiledJob | None:
        """A job compiled with what is in the files it names, if they are files of this machine that may be looked at: those of a
        job that has run here were. Must be called from a thread."""
        from penstock.components.registry import ComponentRegistry  # Loads DuckDB.
        from penstock.dialects.job.compile import compile_text

        if not (self.reads_files or has_run) or not Path(document.file).is_absolute():
            return None
        sources = dict(document.sources)
        read = (lambda joblet: sources.get(str(joblet))) if sources or not self.reads_files else None
        return compile_text(document.text, document.file, ComponentRegistry(), read=read)


def _end(name: str) -> tuple[str, str]:
    component, _, port = name.rpartition(".")
    return component, port


def as_json(value: Any) -> Any:
    """A value of a row as JSON; values that JSON cannot represent become text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        is_number = isinstance(value, float) and (value != value or value in (float("inf"), float("-inf")))
        return str(value) if is_number else value
    if isinstance(value, dict):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(inner) for inner in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    return str(value)
