"""A log to play scenes on: opened, and closed whatever happens."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from penstock.ports.log import EventLog
from tests.contracts.entries import header


class LogScenes(ABC):
    """`open_log` opens the same store each time it is called within a test, as another process would."""

    @abstractmethod
    def open_log(self) -> EventLog: ...

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[EventLog]:
        log = self.open_log()
        try:
            yield log
        finally:
            await log.close()

    def play(self, scene: Callable[[EventLog], Awaitable[None]]) -> None:
        async def play() -> None:
            async with self.opened() as log:
                await scene(log)

        asyncio.run(play())

    def play_owned(self, scene: Callable[[EventLog, int], Awaitable[None]]) -> None:
        """With `run-1` created and claimed."""

        async def owned(log: EventLog) -> None:
            await log.create(header(), b"document")
            await scene(log, await log.claim("run-1", "me"))

        self.play(owned)
