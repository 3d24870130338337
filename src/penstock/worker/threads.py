"""Blocking code runs in daemon threads, and none of it can hold the engine up.

A call belongs to the task that awaits it. When that task is cancelled or timed out, the thread is abandoned: it no longer
counts against the limit, its late result is dropped, and it ends when its function does. A thread that hangs for ever
therefore costs a thread but never a place in the pool; being a daemon, it does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

from penstock.kernel.errors import Bug, Unavailable

IDLE_SECONDS = 60.0


class Escaped(Exception):
    """A function raised something other than a plain `Exception` (`SystemExit`, a cancellation); that is `__cause__`. Raised
    unchanged in a coroutine, it would end the event loop or look like a cancellation of ours."""


class _Stage(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    LEFT = "left"
    """State of a call that nobody awaits any more."""


class _Call:
    __slots__ = ("arguments", "context", "error", "function", "future", "loop", "result", "stage")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.stage = _Stage.WAITING
        self.result: Any = None
        self.error: BaseException | None = None

    def perform(self) -> None:
        try:
            self.result = self.context.run(self.function, *self.arguments)
        except BaseException as error:  # whatever it was belongs to the caller, never to the thread
            self.error = error

    def report(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            pass  # the loop was closed under the call: nobody is left to tell

    def _wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def outcome(self) -> Any:
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            # StopIteration cannot leave a coroutine as itself either.
            if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
                raise error
            raise Escaped(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        finally:
            del error  # its traceback holds this frame: without this the two keep each other alive


_Inbox = queue.SimpleQueue["_Call | None"]


class DaemonThreads:
    """Up to `limit` calls at once; more wait their turn, in order. Usable from any event loop."""

    def __init__(self, limit: int = 64, idle_seconds: float = IDLE_SECONDS) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._idle: list[_Inbox] = []
        self._waiting: deque[_Call] = deque()
        self._alive = 0
        self._busy = 0
        self._closed = False

    @property
    def busy(self) -> int:
        """Calls that somebody still awaits; while there are any, a test must not advance its clock by hand."""
        return self._busy

    @property
    def alive(self) -> int:
        """Threads that belong to the pool, idle or working; abandoned ones do not."""
        return self._alive

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """`function(*arguments)` in a thread, in a copy of the caller's context; its exception is raised here."""
        call = _Call(function, arguments)
        with self._lock:
            self._hand_over(call)
            self._busy += 1
        try:
            await call.future
        finally:
            with self._lock:
                self._busy -= 1
                self._let_go(call)
        return call.outcome()

    def close(self) -> None:
        """End the idle threads now, and each other one when its call ends. Does not wait."""
        with self._lock:
            self._closed = True
            self._alive -= len(self._idle)
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    # Everything below up to `_work` is called with the lock held.

    def _hand_over(self, call: _Call) -> None:
        if self._closed:
            raise Bug("the thread pool is closed")
        if self._idle:
            # Last in, first out: prefers the thread whose memory is warm, and lets the others retire.
            self._give(self._idle.pop(), call)
        elif self._alive >= self._limit or not self._start_with(call):
            self._waiting.append(call)

    def _give(self, inbox: _Inbox, call: _Call) -> None:
        call.stage = _Stage.RUNNING
        inbox.put(call)

    def _start_with(self, call: _Call) -> bool:
        """Give the call a new thread. False if the system has none to give and another of ours will become free."""
        inbox: _Inbox = queue.SimpleQueue()
        try:
            threading.Thread(target=self._work, args=(inbox,), name="penstock-tool", daemon=True).start()
        except RuntimeError as error:
            if not self._alive:
                raise Unavailable(f"no thread can be started: {error}") from error
            return False
        self._alive += 1
        self._give(inbox, call)
        return True

    def _let_go(self, call: _Call) -> None:
        if call.stage is _Stage.WAITING:
            self._waiting.remove(call)
        elif call.stage is _Stage.RUNNING:
            self._alive -= 1
            if self._waiting and self._start_with(self._waiting[0]):
                self._waiting.popleft()
        call.stage = _Stage.LEFT

    def _take_back(self, inbox: _Inbox, call: _Call) -> bool:
        """Take back a thread whose function has ended. False if the thread must end too."""
        if call.stage is _Stage.LEFT:
            return False
        call.stage = _Stage.ENDED
        if self._waiting:
            self._give(inbox, self._waiting.popleft())
        elif self._closed:
            self._alive -= 1
            return False
        else:
            self._idle.append(inbox)
        return True

    def _work(self, inbox: _Inbox) -> None:
        while (call := self._next(inbox)) is not None:
            call.perform()
            with self._lock:
                stays = self._take_back(inbox, call)
            call.report()
            if not stays:
                return
            del call  # an idle thread keeps no result alive

    def _next(self, inbox: _Inbox) -> _Call | None:
        try:
            return inbox.get(timeout=self._idle_seconds)
        except queue.Empty:
            with self._lock:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    self._alive -= 1
                    return None
            return inbox.get()  # a call was handed over just as the thread was giving up
