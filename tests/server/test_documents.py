"""Documents are read and checked away from the event loop of a server, and what is evaluated before the run is bounded."""

from __future__ import annotations

import asyncio
import threading

import pytest

from penstock.adapters.sqlite.control import MemoryControl, MemoryControlStore
from penstock.app.library import lazy_components
from penstock.dialects.job.context import Context
from penstock.kernel.errors import Unavailable
from penstock.kernel.net import Net
from penstock.ports.components import UNKNOWN
from penstock.server.catalog import CatalogDocuments, compiling
from penstock.server.documents import Pinned
from penstock.tools.registry import Registry
from tests.engine import document


class Watched(CatalogDocuments):
    """Notes in which thread documents are compiled."""

    def __init__(self) -> None:
        super().__init__(Registry(), lazy_components(), MemoryControl(MemoryControlStore()))
        self.threads: list[str] = []

    def compile(self, document: Pinned) -> tuple[Net, object]:  # type: ignore[override]
        self.threads.append(threading.current_thread().name)
        return super().compile(document)


def test_a_server_compiles_in_a_thread_of_its_own_and_once():
    documents = Watched()
    pinned = Pinned("a.yaml", document("- step: start\n  tool: {kind: noop}\n"))

    async def scenario() -> None:
        first = await documents.prepared(pinned)
        assert await documents.prepared(pinned) is first

    asyncio.run(scenario())
    assert len(documents.threads) == 1
    assert documents.threads[0].startswith("compile")


def test_nobody_waits_for_ever_for_a_document_to_be_checked():
    going = threading.Event()

    async def scenario() -> None:
        with pytest.raises(Unavailable, match="was not checked within"):
            await compiling(going.wait, patience_s=0.01)
        going.set()
        assert await compiling(lambda: 7) == 7

    asyncio.run(scenario())


def test_all_templates_that_are_evaluated_before_a_run_share_one_budget():
    context = Context({"n": 200_000})
    costly = "{{ range(n) | list | length }}"
    assert context.text(costly) == 200_000
    outcomes = [context.text(costly) for _ in range(20)]
    assert outcomes[0] == 200_000
    assert outcomes[-1] is UNKNOWN
    # What reads a path costs nothing, and is known all the same.
    assert context.text("{{ n }}") == 200_000
