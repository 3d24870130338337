"""Time and chance, the two things a pure kernel may not have: one clock and one seeded source, both injected (D21)."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, for timestamps and deadlines."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    now = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def chance(seed: str) -> random.Random:
    """A reproducible source of randomness: the same seed gives the same draws."""
    return random.Random(seed)
