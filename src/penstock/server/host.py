"""What drives parts of an execution needs of its owner: the stream into the log, the workforce, and a place for its tasks."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from penstock.kernel.facts import Fact
from penstock.kernel.state import Execution
from penstock.kernel.values import JsonMap
from penstock.ports.blobs import BlobStore
from penstock.ports.leases import Caller, Workforce
from penstock.server.child_execution import Played
from penstock.server.stream import Stream


class Host(Protocol):
    execution_id: str
    stream: Stream
    workforce: Workforce
    blobs: BlobStore
    adopts: bool
    """Is the execution being taken over from another server, whose leases may be out?"""

    @property
    def halted(self) -> bool:
        """Nothing is recorded any more: the run was interrupted, or the engine broke."""
        ...

    def background(self, work: Coroutine[Any, Any, None]) -> None: ...

    def flush(self) -> None: ...

    def flush_soon(self) -> None: ...

    def gathered_enough(self) -> bool: ...

    async def durable(self) -> None: ...

    @property
    def backlog(self) -> int: ...

    def now(self) -> float: ...

    def broke(self, error: BaseException) -> None: ...

    def end_child(self, child: Execution) -> list[Fact]:
        """End an execution within this one that nobody drives any more."""
        ...

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Played: ...
