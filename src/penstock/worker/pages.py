"""Paged collections as a worker opens them: with the keychain and the folder of their document."""

from __future__ import annotations

from typing import Any

from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Page, Pages
from penstock.ports.leases import ScopeContext
from penstock.ports.results import materialised
from penstock.tools.base import Call, Source, ToolFailure
from penstock.worker.services import VeiledBlobs, WorkerServices

PAGE = 10_000
TASK = "loop.in"


class CollectionPages:
    """The pages of one collection. Secrets are filled in when a page is read, and removed from its errors."""

    def __init__(
        self, services: WorkerServices, collection: JsonMap, context: ScopeContext, *, once: bool = False
    ) -> None:
        self._services = services
        self._collection = collection
        self._context = context
        self._once = once
        self._opened: Pages | None = None

    def once(self) -> Pages:
        """The same for a caller that will not ask for a page twice: no page is kept."""
        return CollectionPages(self._services, self._collection, self._context, once=True)

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        keys = self._context.keychain
        if keys.is_stale():
            await keys.fresh()
            self._opened = None
        try:
            if self._opened is None:
                self._opened = self._open()
            return await self._opened.page(token, most, until)
        except ToolFailure as error:
            raise ToolFailure(error.kind, keys.hide(error.message), retryable=error.retryable) from error

    def _open(self) -> Pages:
        from penstock.tools.pages.base import open_pages  # Imported only if there are pages to read: start-up time.

        collection = self._context.keychain.reveal(materialised(self._collection))
        return open_pages(collection, self._call(), once=self._once)

    def _call(self) -> Call:
        """What readers share with tools is done as it is for a task."""
        context, services = self._context, self._services

        async def play(*_: Any, **__: Any) -> Any:
            raise ToolFailure("refused", "a collection runs no playbook")

        return Call(
            TASK,
            TASK,
            1,
            execution_id=context.execution_id,
            idempotency_key=f"{context.execution_id}/{TASK}",
            folder=context.folder,
            spec={},
            clock=services.clock,
            blobs=VeiledBlobs.of(services.blobs, context.keychain),
            resources=services.resources,
            threads=services.threads,
            settings=services.settings,
            source=Source(context.file),
            credential=context.keychain.credential,
            say=lambda line: services.say("", None, line),
            play=play,
            load=services.load,
            holds_secret=lambda text: context.keychain.hide(text) != text,
        )


async def all_pages(pages: Pages) -> Page:
    """Everything on one page: a loop that runs in one place counts its elements before it begins."""
    if isinstance(pages, CollectionPages):
        pages = pages.once()
    items: list[Any] = []
    keys: list[str] = []
    token = None
    while True:
        page = await pages.page(token, PAGE)
        items.extend(page.items)
        keys.extend(page.keys or ())
        if page.is_end:
            return Page(items, None, True, keys if len(keys) == len(items) else None)
        token = page.next
