"""What the drivers of an execution need of its owner: the stream into the log, the workforce, and background tasks."""

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
    """Whether the execution is being taken over from another server, whose leases may still be out."""

    @property
    def halted(self) -> bool:
        """Whether the run was interrupted or the engine broke. Nothing new starts; within a grace period, ends are still
        recorded."""
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
        """End a child execution that nobody drives any more."""
        ...

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Played: ...
