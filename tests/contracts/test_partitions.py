from __future__ import annotations

import asyncio

import psycopg
import pytest

from penstock.adapters.memory.dispatch import MemoryPartitions, MemoryPartitionStore
from penstock.adapters.postgres.executions import PostgresPartitions
from penstock.ports.partitions import Partitions, fair_share
from tests.contracts.partitions_contract import PartitionsContract
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

LEASE = 4.0
A_THIRD = 0.35 * LEASE


class TestMemoryPartitions(PartitionsContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.now = 0.0
        self.store = MemoryPartitionStore(clock=lambda: self.now)

    def enter(self, name: str) -> Partitions:
        return MemoryPartitions(self.store, name=name, lease_s=LEASE)

    async def pass_time(self) -> None:
        self.now += A_THIRD


class TestPostgresPartitions(PartitionsContract):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            # After a start of PostgreSQL all have their lease again: that must be over.
            connection.execute(
                "SELECT pg_sleep_until(pg_postmaster_start_time() + make_interval(secs => %s))", (LEASE,)
            )

    def enter(self, name: str) -> Partitions:
        return PostgresPartitions(self.url, name=name, lease_s=LEASE)

    async def pass_time(self) -> None:
        """All leases are set back, so that no test depends on how fast it is."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for table in ("server", "partition_lease"):
                connection.execute(f"UPDATE {table} SET until = until - make_interval(secs => %s)", (A_THIRD,))


def test_one_process_alone_owns_all_without_a_store() -> None:
    assert len(asyncio.run(MemoryPartitions().hold())) == 256


def test_a_fair_share_is_rounded_up() -> None:
    assert [fair_share(count) for count in (0, 1, 2, 3, 256, 1000)] == [256, 256, 128, 86, 1, 1]
