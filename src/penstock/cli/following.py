"""Following a run that somebody else works on: another process with the same state folder, or a server.

Law: whoever watches changes nothing, and may leave at any time. What is followed comes from a feed, which ends with the run.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.cli.output import say
from penstock.cli.watching import TICK_S, Nobody
from penstock.kernel.errors import PenstockError
from penstock.kernel.evolve import Execution, evolve
from penstock.ports.log import Entry
from penstock.ports.wire import to_fact

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Line:
    """What a tool or component printed."""

    scope: str
    task_run_id: str | None
    text: str


class Feed(Protocol):
    """The events and lines of one run."""

    note: Callable[[str], None]
    """How it says that nobody answers, and that somebody does again."""

    def earlier(self) -> Iterator[Entry]:
        """What is known already and not to be told again; from any thread."""
        ...

    def news(self) -> AsyncIterator[Entry | Line]:
        """What comes, until the run is over."""
        ...


class Following:
    def __init__(self, feed: Feed, progress: Any, watcher: Any) -> None:
        self._feed = feed
        self._progress = progress
        self._watcher = watcher
        self._see = progress.observer()
        self._hear = progress.line_observer()
        self._tree = None if isinstance(watcher, Nobody) else Execution()

    async def to_the_end(self) -> bool:
        """Whether the run was followed to its end: False when somebody would rather leave."""
        if self._tree is not None:
            await asyncio.to_thread(self._catch_up)
        self._feed.note = self._watcher.note
        loop, leave = asyncio.get_running_loop(), asyncio.Event()
        for number in SIGNALS:
            loop.add_signal_handler(number, leave.set)
        tasks = {
            asyncio.ensure_future(self._follow()),
            asyncio.ensure_future(leave.wait()),
            asyncio.ensure_future(self._tick()),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            return not leave.is_set()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._look()
            self._feed.note = say
            self._watcher.close(self._progress)
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _catch_up(self) -> None:
        for entry in self._feed.earlier():
            self._fold(entry)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._look()
            self._watcher.show(self._progress)

    def _look(self) -> None:
        if isinstance(self._watcher, Nobody):
            return
        self._progress.fold(time.time())
        if self._tree is not None and self._tree.executions:
            self._progress.look_at(self._tree)

    async def _follow(self) -> None:
        async for item in self._feed.news():
            if isinstance(item, Line):
                self._hear(item.scope, item.task_run_id, item.text)
            else:
                self._see(item)
                self._fold(item)

    def _fold(self, entry: Entry) -> None:
        if self._tree is None:
            return
        try:
            evolve(self._tree, to_fact(entry, None), entry.ts)
        except (PenstockError, LookupError, AssertionError):
            self._tree = None  # A newer Penstock wrote it and knows more than we do: then loops are not counted here.
