"""The shares of servers as lease rows in PostgreSQL.

Law: every change is one statement that says what it changed, and only what it said counts. The clock is the database's.
A share is known to be held only for one lease after the start of the `hold` that gave it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

from penstock.adapters.postgres.database import SQL, Connection, Database
from penstock.adapters.postgres.rows import given, kept
from penstock.ports.partitions import Server, fair_share

T = TypeVar("T")

LEASE_SECONDS = 10.0


class PostgresPartitions:
    """`server_id` is this life of the server: a new one each time it starts."""

    def __init__(self, url: str, *, name: str, lease_s: float = LEASE_SECONDS, server_id: UUID | None = None) -> None:
        # Whoever holds must know before the lease has run out that it cannot be renewed.
        self._database = Database(url, patience_s=lease_s / 2)
        self._me = {"id": server_id or uuid4(), "name": kept(name), "lease": timedelta(seconds=lease_s)}
        self._is_closed = False

    async def hold(self) -> dict[int, int]:
        return await self._run(self._hold)

    async def leave(self) -> None:
        await self._run(lambda connection: connection.execute(SQL["leave"], self._me))

    async def servers(self) -> list[Server]:
        rows = await self._run(lambda connection: connection.execute(SQL["servers"], self._me).fetchall())
        return [Server(str(server), given(name), since, count) for server, name, since, count in rows]

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                await self.leave()
            finally:
                self._database.close()

    async def _run(self, job: Callable[[Connection], T]) -> T:
        return await self._database.apart(lambda: self._database.run(job))

    def _hold(self, connection: Connection) -> dict[int, int]:
        (alive,) = connection.execute(SQL["hold_server"], self._me).fetchone() or (1,)
        share = fair_share(alive)
        held = dict(self._changed(connection, SQL["renew_partitions"]))
        if len(held) > share:
            surplus = sorted(held)[share:]
            self._changed(connection, SQL["give_back_partitions"], partitions=surplus)
            # Those not given back now were not ours any more.
            held = {partition: epoch for partition, epoch in held.items() if partition not in surplus}
        elif len(held) < share:
            held |= dict(self._changed(connection, SQL["take_partitions"], count=share - len(held)))
            connection.execute(SQL["remove_old_servers"])
        return held

    def _changed(self, connection: Connection, statement: str, **values: Any) -> list[Any]:
        return connection.execute(statement, {**self._me, **values}).fetchall()
