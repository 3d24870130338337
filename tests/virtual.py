"""A virtual clock: an event loop whose time jumps to the next timer whenever nothing else is going on.

Delays, time-outs and deadlines of hours take milliseconds and come out exact. While threads are at work it creeps.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
EPOCH = 1_700_000_000.0


class _JumpingSelector(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout is None or timeout <= 0:
            return ready if ready or timeout is not None else super().select(None)
        if self.loop.is_busy():
            self.loop.jump(min(timeout, 0.001))
            return super().select(0.001)
        self.loop.jump(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        selector = _JumpingSelector()
        super().__init__(selector)
        selector.loop = self
        self.elapsed = 0.0
        self.is_busy: Callable[[], bool] = lambda: False

    def time(self) -> float:
        return getattr(self, "elapsed", 0.0)

    def jump(self, seconds: float) -> None:
        self.elapsed += seconds


class VirtualClock:
    def now(self) -> float:
        return EPOCH + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_virtually(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    loop = VirtualLoop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main(loop))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
