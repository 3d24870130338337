"""Leases that workers were lost with, and who took them then: read off the messages of the dispatch, kept in the control store.

Law: nothing depends on it; what a loss meant for a run is in the log of the run. A store that cannot be reached costs a line of
this list, never a message.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from penstock.kernel.errors import Unavailable
from penstock.ports.control import ControlStore, Loss
from penstock.ports.dispatch import Message, MessageKind

MOST = 1000
_FIRST_ATTEMPT = 1


def noted(messages: Iterable[Message]) -> list[Message]:
    """The messages that tell of a loss, or of who took what was lost: very few. What is handed out for the first time has not
    been lost before; and who holds a lease that goes on, the lease itself says."""
    return [
        one
        for one in messages
        if one.kind is MessageKind.LOST or (one.kind is MessageKind.DONE and one.attempt > _FIRST_ATTEMPT)
    ]


def note(control: ControlStore, messages: Iterable[Message], now: float) -> None:
    """Must be called from a thread. A message may be shown more than once."""
    with suppress(Unavailable):
        for message in messages:
            if message.attempt > _FIRST_ATTEMPT and message.worker:
                is_done = message.kind is MessageKind.DONE
                control.take_loss(message.key, message.attempt, message.worker, is_done=is_done)
            if message.kind is MessageKind.LOST:
                worker = message.worker or None
                loss = Loss(message.execution_id, message.key, message.attempt, message.number, now, worker)
                control.add_loss(loss, MOST)
