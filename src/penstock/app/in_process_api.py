"""The API without a server: the same requests, answered in this process over the same stores.

Serves what a server keeps (tokens, the catalog, schedules, hooks) and maintenance, so that both can be administered before a
server exists or while none runs. A process that can open the stores may do everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from penstock.adapters.files.projects import UnpackedProjects
from penstock.adapters.watched_log import WatchedLog
from penstock.api.app import build, guarded
from penstock.api.backend import Backend, Pruned
from penstock.app.library import Lazy, lazy_components
from penstock.app.maintenance import prune
from penstock.app.stores import StoreLocations, open_control, open_dispatch, open_lines, open_log, open_results, release
from penstock.kernel.errors import Refused
from penstock.ports.ambient import Clock, SystemClock
from penstock.ports.control import ControlStore
from penstock.server.catalog import CatalogDocuments
from penstock.tools.registry import Registry

NAME = "this command"


async def answered(locations: StoreLocations, method: str, path: str, sent: Mapping[str, Any]) -> tuple[int, bytes]:
    """One request and its answer."""
    import httpx2  # Slow to import: only a request needs it.

    async with _backend(locations) as backend:
        app = build(backend)
        transport = httpx2.ASGITransport(guarded(app))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            response = await client.request(method, path, **sent)
            return response.status_code, bytes(response.content)


def pruner(log: Any, blobs: Any, lines: Any, clock: Clock, control: ControlStore) -> Callable[..., Awaitable[Pruned]]:
    """Pruning of these stores, as the API asks for it."""

    async def pruned(older_than_s: float, keep_failed: bool, dry_run: bool) -> Pruned:
        before = clock.now() - older_than_s
        done = await prune(log, blobs, lines.drop, before, keep_failed=keep_failed, dry_run=dry_run, catalog=control)
        return Pruned(done.runs, done.results, done.size)

    return pruned


@asynccontextmanager
async def _backend(locations: StoreLocations) -> AsyncIterator[Backend]:
    log = Lazy(lambda: WatchedLog(open_log(locations, NAME)))
    blobs, lines = Lazy(lambda: open_results(locations)), Lazy(lambda: open_lines(locations))
    dispatch = Lazy(lambda: _fleet(locations))
    control = open_control(locations)
    clock = SystemClock()

    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, control.close)
        for one in (blobs, lines):
            stack.push_async_callback(asyncio.to_thread, _close, one)
        for one in (log, dispatch):
            stack.push_async_callback(_close_async, one)
        yield Backend(
            hosting=cast(Any, None),
            log=cast(Any, log),
            watched=cast(Any, WatchedLog(cast(Any, log))),
            blobs=cast(Any, blobs),
            documents=CatalogDocuments(
                Registry(), lazy_components(), control, UnpackedProjects(locations.home, cast(Any, blobs))
            ),
            dispatch=cast(Any, dispatch),
            partitions=cast(Any, None),
            control=control,
            lines=cast(Any, lines),
            clock=clock,
            name=NAME,
            version=release(),
            prune=pruner(log, blobs, lines, clock, control),
            no_auth=True,
        )


def _fleet(locations: StoreLocations) -> Any:
    if locations.database is None:
        raise Refused(
            "the workers of a server without a database are known to that server alone",
            "ask it with `--server URL`; or name the database with `--database URL`",
        )
    return open_dispatch(locations, None)


def _close(one: Lazy) -> None:
    if one.made is not None:
        one.made.close()


async def _close_async(one: Lazy) -> None:
    if one.made is not None:
        await one.made.close()
