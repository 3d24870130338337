"""A virtual clock: an event loop whose time jumps to the next timer whenever nothing else is going on.

Delays, time-outs and deadlines of hours take milliseconds and come out exact. While threads are at work it creeps.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
EPOCH = 1_700_000_000.0


class _JumpingSelector(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        # The system is asked only if it could have something to say: asking is much of what a turn of the loop costs.
        ready = super().select(0) if self.loop.may_be_woken or len(self.get_map()) > 1 else []
        self.loop.may_be_woken &= bool(ready)
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
        self.may_be_woken = False

    def time(self) -> float:
        return getattr(self, "elapsed", 0.0)

    def jump(self, seconds: float) -> None:
        self.elapsed += seconds

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.Handle:
        """A thread wakes the loop; what is called within the loop need not."""
        if threading.get_ident() == getattr(self, "_thread_id", None):
            return self.call_soon(callback, *args, context=context)
        self.may_be_woken = True
        handle = super().call_soon_threadsafe(callback, *args, context=context)
        self.may_be_woken = True  # Again: the loop may have looked in between.
        return handle


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
