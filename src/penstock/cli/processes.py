"""A process that goes on until it is told to stop. The first signal stops it in order, the second at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

from penstock.cli.output import say

SIGNALS = (signal.SIGINT, signal.SIGTERM)
AT_ONCE = 3


def run_until_told(main: Callable[[], Awaitable[None]], stop: Callable[[], None]) -> None:
    """Run `main` to its end. `stop` is called on the event loop by the first signal."""
    asyncio.run(_Told(stop).run(main))


class _Told:
    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._was_told = False

    async def run(self, main: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            await main()
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _on_signal(self, number: int) -> None:
        if self._was_told:
            with suppress(OSError):
                sys.stderr.flush()
            os._exit(AT_ONCE)
        self._was_told = True
        say(f"{signal.Signals(number).name}: stopping; once more ends it at once")
        self._stop()
