"""Those who wait on an event loop for a ticket that a thread settles.

Law: a waiter joins before it looks whether its ticket is settled, and the thread looks at the waiters after it has settled:
one of the two sees the other, so nobody waits for what has happened.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import NamedTuple


class Waiter(NamedTuple):
    ticket: int
    future: asyncio.Future[None]


class Waiters:
    def __init__(self) -> None:
        self._waiting: list[Waiter] = []
        self._lock = threading.Lock()

    def join(self, ticket: int) -> asyncio.Future[None]:
        """To be called on the loop that will wait."""
        waiter = Waiter(ticket, asyncio.get_running_loop().create_future())
        with self._lock:
            self._waiting.append(waiter)
        return waiter.future

    def wake(self, settled: int | None) -> None:
        """Those whose ticket is settled, or all of them, with one call into each loop. From any thread."""
        if not self._waiting:
            return
        ready: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        still: list[Waiter] = []
        with self._lock:
            for waiter in self._waiting:
                if settled is None or waiter.ticket <= settled:
                    ready.setdefault(waiter.future.get_loop(), []).append(waiter.future)
                else:
                    still.append(waiter)
            self._waiting = still
        for loop, futures in ready.items():
            # A loop that was closed under its waiters has nobody left to tell.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, futures)


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
