"""A clock that follows the store's: machines of a fleet have clocks of their own, and events need times that can be compared.

Law: between two looks at the store's clock only the machine's monotonic clock counts, so that setting the machine's time moves
nothing. A look that took long says little, and is used only when there is no better one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from penstock.kernel.errors import PenstockError

EVERY_S = 3.0
QUICK_S = 0.5
"""A look that took longer than this does not replace one that is fresh."""
STALE_S = 60.0


class FleetClock:
    def __init__(self, ask: Callable[[], Awaitable[float]], every_s: float = EVERY_S) -> None:
        """`ask` gives the time by the store's clock."""
        self._ask = ask
        self._every_s = every_s
        self._offset = time.time() - time.monotonic()
        self._seen_at = float("-inf")

    def now(self) -> float:
        return time.monotonic() + self._offset

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def look(self) -> None:
        """Set this clock by the store's."""
        before = time.monotonic()
        there = await self._ask()
        after = time.monotonic()
        if after - before <= QUICK_S or after - self._seen_at > STALE_S:
            self._offset = there - (before + after) / 2
            self._seen_at = after

    async def follow(self) -> None:
        """Look again and again, for as long as this is not cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            with contextlib.suppress(PenstockError):
                await self.look()
