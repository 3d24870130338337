"""Threads that are not left behind: who cancels a call waits until its thread has let go of the engine.

A query can be interrupted, Python code cannot. So a cancelled call interrupts again and again, in case the thread was between
two queries, and after a while the thread is abandoned to its own end; the run is over then in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from penstock.ports.rows import EngineSession
from penstock.tools.base import Threads

AGAIN_SECONDS = 0.02
GRACE_SECONDS = 5.0


class _Work:
    """One call. Of `has_begun` and `is_unwanted` each side sets its own before it looks at the other's, so that a call that was
    cancelled before it began never begins unseen."""

    __slots__ = ("arguments", "function", "has_begun", "has_ended", "is_unwanted")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self.has_begun = False
        self.has_ended = False
        self.is_unwanted = False

    def perform(self) -> Any:
        self.has_begun = True
        try:
            return None if self.is_unwanted else self.function(*self.arguments)
        finally:
            self.has_ended = True


class PatientThreads:
    def __init__(self, threads: Threads, engine: EngineSession) -> None:
        self._threads = threads
        self._engine = engine

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        work = _Work(function, arguments)
        try:
            return await self._threads.run(work.perform)
        except asyncio.CancelledError:
            work.is_unwanted = True
            if work.has_begun:
                await self._stop(work)
            raise

    async def _stop(self, work: _Work) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + GRACE_SECONDS
        while not work.has_ended and loop.time() < until:
            self._engine.interrupt()
            await asyncio.sleep(AGAIN_SECONDS)
