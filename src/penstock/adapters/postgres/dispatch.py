"""Dispatch on PostgreSQL: the server's side. (The worker's side is `postgres_dispatch_intake`.)

Law: every change is one statement that says what it changed, or one transaction; the clock is the database's. A call that broke
off is made again, and knows its own work by a token.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from penstock.adapters.dispatch import ALIVE_S, KEPT_S, check_offers
from penstock.adapters.postgres.dispatch_connection import PATIENCE_SECONDS, SQL, Bells, Connection, Line
from penstock.adapters.postgres.rows import given, kept
from penstock.kernel.errors import Refused
from penstock.ports.dispatch import LeaseSeen, Note, NoteKind, Offer, WorkerCard, WorkerSeen
from penstock.ports.log import partition_of

# Of so many leases at a time is a statement made up.
MOST_LEASES = 2000
# Notes are shown up to about so many bytes at a time.
MOST_BYTES = 16_000_000
LARGEST_BYTES = 256_000_000
TIDY_SECONDS = 30.0


class PostgresDispatch:
    def __init__(self, url: str, *, patience_s: float = PATIENCE_SECONDS, alive_s: float = ALIVE_S) -> None:
        self._line = Line(url, patience_s)
        self._bells = Bells(self._line)
        self._alive_s = alive_s
        self._tidied = 0.0
        self._is_closed = False

    async def offer(self, offers: Sequence[Offer]) -> None:
        checked = check_offers(offers)
        for offer in checked:
            check_size(f"the payload of offer `{offer.key}`", offer.payload)
        for start in range(0, len(checked), MOST_LEASES):
            values = _offered(checked[start : start + MOST_LEASES])
            await self._rows("offer", **values, token=uuid4())

    async def withdraw(self, keys: Collection[str]) -> frozenset[str]:
        rows = await self._rows("withdraw", keys=[kept(key) for key in keys], token=uuid4())
        return frozenset(given(key) for (key,) in rows)

    async def tell(self, key: str, body: bytes) -> bool:
        return await self.tell_holder(key, body) is not None

    async def tell_holder(self, key: str, body: bytes) -> str | None:
        check_size(f"what the holder of `{key}` is told", body)
        rows = await self._rows("tell", key=kept(key), body=body)
        return given(rows[0][0]) if rows else None

    async def notes(self, partitions: Collection[int], limit: int, wait_s: float) -> list[Note]:
        values = {"partitions": sorted(partitions), "limit": max(limit, 0), "most_bytes": MOST_BYTES}

        async def look() -> list[Note]:
            return [
                Note(number, given(execution_id), given(key), attempt, given(worker), NoteKind(kind), body)
                for number, execution_id, key, attempt, worker, kind, body in await self._rows("notes", **values)
            ]

        self._line.check_open()
        bell = self._bells.bell("notes")
        return await bell.first(look, wait_s, lambda: self._is_closed, [str(one) for one in partitions])

    async def heard(self, numbers: Collection[int]) -> None:
        await self._change("heard", numbers=list(numbers))

    async def reap(self) -> int:
        total, count = 0, MOST_LEASES
        while count >= MOST_LEASES:
            ((count, *_),) = await self._rows("reap", limit=MOST_LEASES)
            total += count
        if time.monotonic() - self._tidied > TIDY_SECONDS:
            await self._change("tidy", kept_s=KEPT_S)
            self._tidied = time.monotonic()
        return total

    async def missing(self, keys: Collection[str]) -> frozenset[str]:
        rows = await self._rows("missing", keys=[kept(key) for key in keys])
        return frozenset(given(key) for (key,) in rows)

    async def forget(self, execution_id: str) -> None:
        values = {"execution_id": kept(execution_id), "partition": partition_of(execution_id)}

        async def forget(connection: Connection) -> None:
            async with connection.transaction():
                await connection.execute(SQL["forget_leases"], values)
                await connection.execute(SQL["forget_notes"], values)

        await self._line.run(forget)

    async def executions(self, partitions: Collection[int], after: str = "", limit: int = 1000) -> list[str]:
        values = {"partitions": sorted(partitions), "after": kept(after), "limit": max(limit, 0)}
        return [given(one) for (one,) in await self._rows("executions", **values)]

    async def workers(self) -> list[WorkerSeen]:
        return [self._seen(*row) for row in await self._rows("workers")]

    async def leases(self, execution_id: str | None = None, limit: int = 1000) -> list[LeaseSeen]:
        if execution_id is None:
            rows = await self._rows("leases", limit=max(limit, 0))
        else:
            values = {"execution_id": kept(execution_id), "partition": partition_of(execution_id)}
            rows = await self._rows("leases_of", limit=max(limit, 0), **values)
        return [_lease_seen(*row) for row in rows]

    async def waiting(self) -> Mapping[str, int]:
        return {given(pool): count for pool, count in await self._rows("waiting")}

    async def now(self) -> float:
        ((now,),) = await self._rows("now")
        return float(now)

    async def close(self) -> None:
        self._is_closed = True
        await self._bells.close()
        await self._line.close()

    async def _rows(self, name: str, **values: Any) -> list[Any]:
        return await rows_of(self._line, name, values)

    async def _change(self, name: str, **values: Any) -> None:
        async def change(connection: Connection) -> None:
            await connection.execute(SQL[name], values)

        await self._line.run(change)

    def _seen(
        self,
        worker: str,
        name: str,
        pool: str,
        slots: int,
        can: list[str],
        version: str,
        held: int,
        age_s: float,
        is_draining: bool,
    ) -> WorkerSeen:
        abilities = frozenset(given(one) for one in can)
        card = WorkerCard(given(worker), given(name), given(pool), slots, abilities, given(version))
        return WorkerSeen(card, held, age_s, age_s < self._alive_s, is_draining)


async def rows_of(line: Line, name: str, values: Mapping[str, Any]) -> list[Any]:
    """What one statement gives."""

    async def ask(connection: Connection) -> list[Any]:
        return await (await connection.execute(SQL[name], values)).fetchall()

    return await line.run(ask)


def check_size(what: str, body: bytes) -> None:
    if len(body) > LARGEST_BYTES:
        raise Refused(
            f"{what} has {len(body)} bytes, and PostgreSQL can pass on {LARGEST_BYTES}",
            "put what is large into the result store",
        )


def _lease_seen(
    key: str,
    execution_id: str,
    pool: str,
    attempt: int,
    holder: str | None,
    age_s: float,
    left_s: float | None,
    needs: list[str],
    limit_names: list[str],
    limit_counts: list[int],
) -> LeaseSeen:
    terms = frozenset(map(given, needs)), tuple(zip(map(given, limit_names), limit_counts, strict=True))
    seen = LeaseSeen(given(key), given(execution_id), given(pool), attempt, None, age_s, None, *terms)
    return seen if holder is None else replace(seen, worker=given(holder), left_s=left_s)


def _offered(offers: Sequence[Offer]) -> dict[str, Any]:
    """Offers as columns. What is itself a list goes as JSON, since arrays of arrays must be even."""
    return {
        "keys": [kept(one.key) for one in offers],
        "execution_ids": [kept(one.execution_id) for one in offers],
        "partitions": [partition_of(one.execution_id) for one in offers],
        "pools": [kept(one.pool) for one in offers],
        "needs": [json.dumps(sorted(kept(need) for need in one.needs)) for one in offers],
        "limits": [json.dumps(_limits(one)) for one in offers],
        "ranges": [one.is_range for one in offers],
        "leases": [one.lease_s for one in offers],
        "stalls": [one.stall_s for one in offers],
        "ttls": [one.ttl_s for one in offers],
        "payloads": [one.payload for one in offers],
    }


def _limits(offer: Offer) -> list[tuple[str, int]]:
    """Each name once; of two numbers the smaller one counts."""
    least: dict[str, int] = {}
    for name, most in offer.limits:
        least[name] = min(most, least.get(name, most))
    return [(kept(name), most) for name, most in least.items()]
