"""Which server owns which executions: each of the `PARTITIONS` partitions has one server, as long as its lease lasts.

Law: a partition has an epoch that rises with every change of owner, so what a late owner does under an old one can be
distinguished from what its successor does. The store's clock alone decides who is alive. No server keeps more than a fair
share: all partitions divided by the servers that are alive, rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.ports.log import PARTITIONS


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is alive, as others see it. `since` is in seconds of the store's clock."""

    id: str
    name: str
    since: float
    partitions: int


class Partitions(Protocol):
    """One server's part in it."""

    async def hold(self) -> dict[int, int]:
        """Renew my partitions, give back what exceeds my share, take up to my share of what is free or has expired. Returns
        partition -> epoch for everything that is mine now.

        Must be called several times within a lease. A partition that is missing from the answer, or has another epoch than
        before, has been lost, and work on it must stop. Raises Unavailable if the store cannot be reached: then nothing is
        known, and what is held is lost when the lease expires."""
        ...

    async def leave(self) -> None:
        """Give back all partitions at once. A later `hold` starts afresh."""
        ...

    async def servers(self) -> list[Server]:
        """The servers that are alive, the longest-lived first."""
        ...

    async def close(self) -> None:
        """Leave, and close connections."""
        ...


def fair_share(servers: int) -> int:
    return -(-PARTITIONS // max(servers, 1))
