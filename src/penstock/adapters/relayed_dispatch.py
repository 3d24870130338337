"""What a store offers to those who pass on the calls of workers that do not reach it themselves.

Law: a call that is passed on may come late, twice, or by two ways at once. It has a token, and the tokens of one worker rise; so
the store knows a call that it has carried out already, and one that was overtaken by a later call of the same holder.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Collection, Sequence
from typing import Protocol
from uuid import UUID

from penstock.ports.dispatch import Dispatch, Held, Intake, NoteKind


class RelayedDispatch(Dispatch, Protocol):
    async def tell_holder(self, key: str, body: bytes) -> str | None:
        """As `tell`; the worker that will be shown it."""
        ...


class RelayedIntake(Intake, Protocol):
    async def claim(self, worker: str, room: int, ranges: int, token: UUID, *, is_repeated: bool) -> list[Held]:
        """As `take`, without waiting. A call that is repeated is granted what it was granted before, if it was."""
        ...

    async def give_up(self, worker: str, token: UUID, keys: Collection[str]) -> None:
        """Nobody waits for what that call was granted: it waits again where it was in the queue, with its next attempt."""
        ...

    async def say_as(
        self,
        worker: str,
        key: str,
        attempt: int,
        kind: NoteKind,
        bodies: Sequence[bytes],
        token: UUID,
        *,
        is_repeated: bool,
    ) -> bool:
        """As `say`. A call that was kept before is not kept again, and neither is one older than the last that was kept."""
        ...


_mutex = threading.Lock()
_last = 0


def next_token() -> UUID:
    """Greater than every one that this process had before, and one that no other process has."""
    global _last
    with _mutex:
        _last = max(_last + 1, time.time_ns())
        return UUID(int=_last << 64 | secrets.randbits(64))
