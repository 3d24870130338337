"""The shares of servers in memory: for one process, which owns all, and for tests, where several share one store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from penstock.ports.log import PARTITIONS
from penstock.ports.partitions import Server, fair_share

LEASE_SECONDS = 10.0


@dataclass(slots=True)
class Lease:
    owner: str | None = None
    epoch: int = 0
    until: float = float("-inf")


@dataclass(slots=True)
class MemoryPartitionStore:
    """What the servers of one fleet share. Its clock is the only one that counts."""

    clock: Callable[[], float] = time.monotonic
    leases: list[Lease] = field(default_factory=lambda: [Lease() for _ in range(PARTITIONS)])
    servers: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    """Id -> name, since, until."""

    def live(self) -> list[str]:
        now = self.clock()
        return [server for server, (_, _, until) in self.servers.items() if until > now]


class MemoryPartitions:
    def __init__(
        self, store: MemoryPartitionStore | None = None, *, name: str = "server", lease_s: float = LEASE_SECONDS
    ) -> None:
        self._store = store or MemoryPartitionStore()
        self._name = name
        self._lease_s = lease_s
        self._id = str(uuid4())

    async def hold(self) -> dict[int, int]:
        store = self._store
        now = store.clock()
        _, since, _ = store.servers.get(self._id, ("", now, 0.0))
        store.servers[self._id] = (self._name, since, now + self._lease_s)
        share = fair_share(len(store.live()))
        mine = [number for number, lease in enumerate(store.leases) if lease.owner == self._id]
        for number in mine[share:]:
            self._free(store.leases[number])
        free = [number for number, lease in enumerate(store.leases) if lease.owner is None or lease.until <= now]
        free = [number for number in free if number not in mine]
        for number in free[: max(share - len(mine), 0)]:
            store.leases[number].owner = self._id
            store.leases[number].epoch += 1
        held = {number: lease for number, lease in enumerate(store.leases) if lease.owner == self._id}
        for lease in held.values():
            lease.until = now + self._lease_s
        return {number: lease.epoch for number, lease in held.items()}

    async def leave(self) -> None:
        self._store.servers.pop(self._id, None)
        for lease in self._store.leases:
            if lease.owner == self._id:
                self._free(lease)

    async def servers(self) -> list[Server]:
        store = self._store
        now = store.clock()
        owners = [lease.owner for lease in store.leases if lease.until > now]
        found = [Server(one, *store.servers[one][:2], owners.count(one)) for one in store.live()]
        return sorted(found, key=lambda server: server.since)

    async def close(self) -> None:
        await self.leave()

    @staticmethod
    def _free(lease: Lease) -> None:
        lease.owner, lease.until = None, float("-inf")
