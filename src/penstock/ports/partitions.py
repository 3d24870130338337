"""Which server looks after which executions: each of `PARTITIONS` parts of them has one server, for as long as its lease lasts.

Law: a partition has an epoch that rises with every change of owner, so what a late owner does under an old one can be told
from what its successor does. Who is alive is decided by the store's clock alone. Nobody keeps more than a fair share: all
partitions divided by the servers that are alive, rounded up.
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
        """Renew what is mine, give back what is more than my share, take up to my share of what is free or has run out.

        Gives partition -> epoch of all that is mine now. To be called several times within a lease; what is missing from
        the answer, or has another epoch than before, has been lost, and work on it must stop. Raises Unavailable when the
        store cannot be reached: then nothing is known, and what is held is lost when the lease has run out.
        """
        ...

    async def leave(self) -> None:
        """Give all back at once. A later `hold` begins anew."""
        ...

    async def servers(self) -> list[Server]:
        """Who is alive, the longest-lived first."""
        ...

    async def close(self) -> None:
        """Leave, and let go of connections."""
        ...


def fair_share(servers: int) -> int:
    return -(-PARTITIONS // max(servers, 1))
