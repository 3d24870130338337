"""A run in the foreground: shown while it goes, stopped by signals so that it can be resumed, and told of when it is over."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.cli.output import is_terminal
from penstock.cli.progress import Progress
from penstock.cli.watching import TICK_S, F, Nobody, Watcher
from penstock.server.runs import RunUnderWay

if TYPE_CHECKING:
    from penstock.app.embedded import Embedded
    from penstock.cli.job_progress import JobProgress

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 3


def watcher_for(title: str, *, is_silent: bool) -> Watcher[Progress]:
    if is_silent:
        return Nobody()
    if is_terminal(sys.stderr):
        from penstock.cli.live import LiveTree

        return LiveTree(title)
    from penstock.cli.lines import StepLines

    return StepLines(title)


def job_watcher_for(title: str, *, is_silent: bool) -> Watcher[JobProgress]:
    if is_silent:
        return Nobody()
    if is_terminal(sys.stderr):
        from penstock.cli.job_live import JobTree

        return JobTree(title)
    from penstock.cli.job_watching import JobLines

    return JobLines(title)


def in_foreground(
    engine: Embedded,
    run: RunUnderWay,
    begin: Callable[[], Awaitable[T]],
    progress: F,
    watcher: Watcher[F],
    grace_s: float,
) -> T:
    """Run to the end, or to the first signal. The engine is closed when this returns."""
    if not isinstance(watcher, Nobody):
        engine.observers.append(progress.observer())
        engine.line_observers.append(progress.line_observer())
    return asyncio.run(_Foreground(engine, run, progress, watcher, grace_s).run(begin))


class _Foreground(Generic[F]):
    def __init__(self, engine: Embedded, run: RunUnderWay, progress: F, watcher: Watcher[F], grace_s: float) -> None:
        self.engine = engine
        self.under_way = run
        self.progress = progress
        self.watcher = watcher
        self.grace_s = grace_s
        self._was_interrupted = False

    async def run(self, begin: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        ticker = asyncio.ensure_future(self._tick())
        try:
            try:
                return await begin()
            finally:
                ticker.cancel()
                with suppress(asyncio.CancelledError):
                    await ticker
                self._look()
                self.watcher.close(self.progress)
        finally:
            try:
                await self.engine.close()
            finally:
                for number in SIGNALS:
                    loop.remove_signal_handler(number)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._look()
            self.watcher.show(self.progress)

    def _look(self) -> None:
        if isinstance(self.watcher, Nobody):
            return
        self.progress.fold(time.time())
        host = self.under_way.host
        if host is not None:
            self.progress.look_at(host.stream.tree)

    def _on_signal(self, number: int) -> None:
        if self._was_interrupted:
            self._end_at_once()
        self._was_interrupted = True
        name = signal.Signals(number).name
        self.under_way.interrupt(name, self.grace_s)
        self.watcher.note(f"{name}: stopping, so that the run can be resumed; once more ends it at once")

    def _end_at_once(self) -> None:
        """What is durable is safe; the rest is what a crash would have cost."""
        self.watcher.close(self.progress)
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(INTERRUPTED)
