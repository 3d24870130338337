"""The thread that runs an author's code can be told to stop, and stops in that code only.

Python lets one thread raise an exception in another at its next instruction. Raised in the middle of the engine's own work it
would leave locks and files half done, so it is armed while the author's code runs and at no other time; the engine has its
own way to be interrupted.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock.components.base import Call, ComponentFailure
from penstock.tools.output import Lines


class Stopped(BaseException):
    """Raised in code whose time is over. Not an Exception, so that `except Exception` lets it through."""


class CodeThread:
    """One run of code in a thread, what it prints, and the way to stop it from another."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._lines = Lines(self._say, call.settings.max_output_bytes)
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._stopped = False

    async def run(self, work: Callable[[], Any], timeout: float | None) -> Any:
        """What `work` returns. When the time is over, or the run is cancelled, nothing of it goes on."""
        task = asyncio.ensure_future(self._call.threads.run(self._perform, work))
        try:
            done, _ = await asyncio.wait([task], timeout=timeout)
        except asyncio.CancelledError:
            await self._stop(task)
            raise
        if not done:
            await self._stop(task)
            raise ComponentFailure("timeout", f"the code was still running after {timeout:g} s", retryable=True)
        return task.result()

    @contextmanager
    def in_code(self) -> Iterator[None]:
        """Here, and only here, the thread may be stopped at any instruction."""
        self._arm(threading.get_ident())
        try:
            yield
        finally:
            self._arm(None)

    @contextmanager
    def out_of_code(self) -> Iterator[None]:
        """Back in the engine for a moment, called by the code."""
        self._arm(None)
        try:
            yield
        finally:
            self._arm(threading.get_ident())

    def say(self, text: object) -> None:
        """A line of its own in the run's log."""
        self._lines.write(f"{text}\n")

    def _perform(self, work: Callable[[], Any]) -> Any:
        from penstock.tools.output import captured

        try:
            with captured(self._lines):
                return work()
        finally:
            self._lines.close()

    # The lock keeps `Stopped` to the author's code: it is never raised while the thread is in the engine's `say`.

    def _arm(self, thread: int | None) -> None:
        with self._lock:
            self._thread = thread
        if thread is not None and self._stopped:
            raise Stopped

    def _say(self, line: str) -> None:
        with self._lock:
            self._call.say(line)

    async def _stop(self, task: asyncio.Future[Any]) -> None:
        self._stopped = True
        self._lines.stop()
        if self._lock.acquire(timeout=0.05):
            try:
                if self._thread is not None:
                    _raise_in(self._thread)
            finally:
                self._lock.release()
        task.add_done_callback(_look)
        task.cancel()
        await asyncio.wait([task])


def _look(task: asyncio.Future[Any]) -> None:
    """What a stopped run raises is of no interest, and asyncio would complain if nobody looked."""
    if not task.cancelled():
        task.exception()


def _raise_in(thread: int) -> None:
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Stopped))
