"""What every dispatch adapter refuses: ids that name nothing, and terms under which work would wait for ever."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol
from uuid import UUID

from penstock.kernel.errors import Refused
from penstock.ports.dispatch import Dispatch, Held, Intake, MessageKind, Offer, WorkerCard

SAYABLE = frozenset({MessageKind.REPORTED, MessageKind.ASKED, MessageKind.DONE, MessageKind.RETURNED})
ENDS = frozenset({MessageKind.DONE, MessageKind.RETURNED})

ALIVE_S = 10.0
"""How long after its last heartbeat a worker is considered alive."""
KEPT_S = 3600.0
"""How long after its last heartbeat a worker that is gone is still listed."""
PRESSED_AFTER_S = 0.2
"""Work that has waited for less is likely to be taken by a free slot somewhere."""


def check_offers(offers: Iterable[Offer]) -> list[Offer]:
    """The offers, each key once: the first one counts, since the second would find it waiting."""
    found: dict[str, Offer] = {}
    for offer in offers:
        check_id("an offer's `key`", offer.key)
        check_id("an offer's `execution_id`", offer.execution_id)
        check_id("an offer's `pool`", offer.pool)
        for need in offer.needs:
            check_id("what an offer needs", need)
        _check_limits(offer)
        _check_seconds(offer, "lease_s", offer.lease_s)
        _check_seconds(offer, "stall_s", offer.stall_s)
        _check_seconds(offer, "ttl_s", offer.ttl_s)
        found.setdefault(offer.key, offer)
    return list(found.values())


def check_card(card: WorkerCard) -> None:
    check_id("a worker's `id`", card.id)
    check_id("a worker's `name`", card.name)
    check_id("a worker's `pool`", card.pool)
    for capability in card.can:
        check_id("what a worker can do", capability)


def check_kind(kind: MessageKind) -> None:
    if kind not in SAYABLE:
        raise Refused(
            f"a holder cannot say `{kind.value}`",
            hint="`lost` and `stale` are found by `reap`; a holder says `said`, `asked`, `done` or `returned`",
        )


def check_id(what: str, text: str) -> None:
    if not text:
        raise Refused(f"{what} is empty", hint="an id names one thing; give it at least one character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(f"{what} is not text: {text!r}", hint="it has half of a surrogate pair") from None


def _check_limits(offer: Offer) -> None:
    for name, most in offer.limits:
        check_id("the name of an offer's limit", name)
        if most < 1:
            raise Refused(
                f"offer `{offer.key}`: limit `{name}` is {most}, so that nobody could ever take it",
                hint="a limit is at least 1",
            )


def _check_seconds(offer: Offer, name: str, seconds: float | None) -> None:
    if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
        raise Refused(f"offer `{offer.key}`: `{name}` is {seconds:g}", hint="it is a number of seconds greater than 0")


# ---- What a store offers to those who pass on the calls of workers that do not reach it themselves.
# Law: a call that is passed on may come late, twice, or by two ways at once. It has a token, and the tokens of one worker
# increase; so the store recognises a call that it has carried out already, and one that was overtaken by a later call of the
# same holder.


class RelayedDispatch(Dispatch, Protocol):
    async def send_to_holder(self, key: str, body: bytes) -> str | None:
        """Like `send`; returns the worker that will be shown the command."""
        ...


class RelayedIntake(Intake, Protocol):
    async def claim(self, worker: str, room: int, ranges: int, token: UUID, *, is_repeated: bool) -> list[Held]:
        """Like `take`, without waiting. A repeated call is granted what it was granted before, if anything."""
        ...

    async def give_up(self, worker: str, token: UUID, keys: Collection[str]) -> None:
        """Nobody waits for what that call was granted: it returns to its place in the queue, with its next attempt."""
        ...

    async def say_as(
        self,
        worker: str,
        key: str,
        attempt: int,
        kind: MessageKind,
        bodies: Sequence[bytes],
        token: UUID,
        *,
        is_repeated: bool,
    ) -> bool:
        """Like `say`. A call that was stored before is not stored again, and neither is one older than the last that was
        stored."""
        ...


_mutex = threading.Lock()
_last = 0


def next_token() -> UUID:
    """Greater than every token this process had before, and different from those of all other processes."""
    global _last
    with _mutex:
        _last = max(_last + 1, time.time_ns())
        return UUID(int=_last << 64 | secrets.randbits(64))
