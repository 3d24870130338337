"""What is new in the log, for those who watch executions over the network.

Law: watching costs those who work nothing. Who watches reads for itself what it has not seen yet, at its own pace, and keeps
nothing but its place; here it is only told when there is something to read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock.api.backend import apart
from penstock.api.errors import ApiError
from penstock.kernel.errors import PenstockError
from penstock.ports.log import EventLog, Header

LOOK_S = 0.5
"""So often is looked for what other servers have written."""
LEAST_S = 0.02
LISTED = 200


@dataclass(slots=True, eq=False)
class Watcher:
    """One who watches. `is_new` is set when one of its executions has moved on."""

    executions: frozenset[str]
    sees_all: bool
    is_new: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, most_s: float) -> bool:
        """Whether there was something new within so long."""
        try:
            async with asyncio.timeout(most_s):
                await self.is_new.wait()
        except TimeoutError:
            return False
        self.is_new.clear()
        return True


class Tail:
    def __init__(self, log: EventLog, most: int) -> None:
        self.log = log
        self.is_closed = False
        self.heads: dict[str, Header] = {}
        """The executions that are watched, as last seen."""
        self.newest: dict[str, Header] = {}
        """The newest runs, while somebody watches them all."""
        self.most = most
        self._watchers: set[Watcher] = set()
        self._moved: set[str] = set()
        self._has_moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def check_room(self) -> None:
        """To be asked before an answer begins: after that no error can be told any more."""
        if self.is_closed:
            raise ApiError(503, "the server is about to stop", headers={"Retry-After": "1"})
        if len(self._watchers) >= self.most:
            raise ApiError(429, f"{self.most:,} streams are open, which is all there is room for", "close some of them")

    @contextmanager
    def watching(self, executions: Iterable[str], *, sees_all: bool = False) -> Iterator[Watcher]:
        self.check_room()
        watcher = Watcher(frozenset(executions), sees_all)
        watcher.is_new.set()
        self._watchers.add(watcher)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._look_again())
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def moved(self, execution_id: str) -> None:
        """Called on the event loop when more of an execution is durable."""
        if self._watchers:
            self._moved.add(execution_id)
            self._has_moved.set()

    async def close(self) -> None:
        """All streams come to their end."""
        self.is_closed = True
        for watcher in self._watchers:
            watcher.is_new.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # ---- looking

    async def _look_again(self) -> None:
        while self._watchers:
            with contextlib.suppress(PenstockError):
                await self._look(None)
            await self._wait()
        self.heads, self.newest, self._task = {}, {}, None

    async def _wait(self) -> None:
        """Until it is time to look at everything again; what this process writes is looked at meanwhile."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LOOK_S
        while (left := end - loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._has_moved.wait()
            self._has_moved.clear()
            moved, self._moved = self._moved, set()
            if moved:
                with contextlib.suppress(PenstockError):
                    await self._look(moved)
                await asyncio.sleep(LEAST_S)

    async def _look(self, only: set[str] | None) -> None:
        watched = {one for watcher in self._watchers for one in watcher.executions}
        wanted = watched if only is None else watched & only
        with_all = any(watcher.sees_all for watcher in self._watchers)
        found, newest = await apart(lambda: self._read(wanted, with_all))
        changed = {name for name in wanted if self.heads.get(name) != found.get(name)}
        kept = {name: head for name, head in self.heads.items() if name in watched - wanted}
        self.heads = {**kept, **found}
        changed_list = {name for name, header in newest.items() if self.newest.get(name) != header}
        self.newest = newest
        for watcher in self._watchers:
            if (watcher.executions & changed) or (watcher.sees_all and changed_list):
                watcher.is_new.set()

    def _read(self, names: Iterable[str], with_all: bool) -> tuple[dict[str, Header], dict[str, Header]]:
        found = {name: header for name in names if (header := self.log.header(name)) is not None}
        newest = {header.execution_id: header for header in self.log.headers(LISTED)} if with_all else {}
        return found, newest
