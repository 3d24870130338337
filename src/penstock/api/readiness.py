"""Can a server do its work? Each thing that it needs is tried, and what is wrong is named.

Law: the answer is there within `MOST_S`, whatever is wrong. A try that takes longer goes on by itself, one of each kind at a
time, and is waited for again by whoever asks next; what came of the last one counts for `FRESH_S`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from penstock.kernel.errors import PenstockError, Unavailable

Checks = Mapping[str, Callable[[], None]]
"""By what messages call the thing: raises what keeps it from working."""

MOST_S = 1.5
FRESH_S = 1.0


class Readiness:
    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._threads = ThreadPoolExecutor(max(1, len(checks)), "ready")
        self._running: dict[str, asyncio.Task[None]] = {}
        self._known: dict[str, tuple[float, PenstockError | None]] = {}

    async def problems(self) -> list[PenstockError]:
        """Everything that is wrong."""
        found = await asyncio.gather(*map(self._told, self._checks))
        return [error for error in found if error is not None]

    async def _told(self, name: str) -> PenstockError | None:
        at, error = self._known.get(name, (0.0, None))
        now = asyncio.get_running_loop().time()
        if name in self._known and now - at < FRESH_S:
            return error
        trying = self._running.get(name)
        if trying is None:
            trying = self._running[name] = asyncio.ensure_future(self._try(name))
        done, _ = await asyncio.wait({trying}, timeout=MOST_S)
        if not done:
            return Unavailable(f"{name} did not answer within {MOST_S:g} s", "see that it runs and can be reached")
        trying.result()
        return self._known[name][1]

    async def _try(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        error: PenstockError | None = None
        try:
            await loop.run_in_executor(self._threads, self._checks[name])
        except PenstockError as caught:
            error = caught
        finally:
            del self._running[name]
        self._known[name] = (loop.time(), error)
