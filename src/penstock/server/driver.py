"""What drives one execution scope, whichever kind of document it is of."""

from __future__ import annotations

import asyncio
from typing import Protocol

from penstock.kernel.state import ExecutionState
from penstock.ports.leases import Setting
from penstock.server.played import Played


class Driver(Protocol):
    """Whoever drives one execution scope: a playbook's or a job's."""

    setting: Setting
    finished: asyncio.Event

    @property
    def state(self) -> ExecutionState: ...

    async def begin(self) -> None: ...

    async def go_on(self) -> None:
        """Take up a scope whose state was folded from the log."""
        ...

    async def resume(self, *, failed_only: bool = False) -> None:
        """Take up the root of an execution that stopped or failed, and say so in the log. `failed_only`: also a job that
        completed, for its failed iterations."""
        ...

    async def cancel(self, reason: str) -> None: ...

    async def halt(self, grace_s: float) -> None:
        """Stop where we are, recording nothing: what is under way will be taken up by a resume."""
        ...

    def interrupt(self, reason: str) -> None: ...

    async def played(self, return_step: str | None) -> Played:
        """What the caller of a child scope gets, once that has ended."""
        ...
