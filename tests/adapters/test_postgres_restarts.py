"""The PostgreSQL log while its server is stopped, crashed and started, and its connections are cut."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

import pytest

from penstock.adapters.postgres.executions import PostgresPartitions
from penstock.adapters.postgres.log import PostgresLog
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.log import PARTITIONS
from tests.adapters.postgres_cluster import Cluster, own_cluster
from tests.contracts.entries import entries, entry, header

pytestmark = pytest.mark.xdist_group("own-postgres")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with own_cluster() as found:
        yield found


@pytest.fixture(autouse=True)
def _empty(cluster: Cluster) -> None:
    cluster.execute("SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public")


class Work:
    """Tasks that append to executions of their own, and know what has been acknowledged."""

    def __init__(self, log: PostgresLog, names: list[str]) -> None:
        self.log = log
        self.acknowledged = dict.fromkeys(names, 0)
        self.is_over = False

    async def append(self, name: str, seed: int) -> None:
        chance = random.Random(seed)
        epoch = await self.log.claim(name, "me")
        seq = 0
        while not self.is_over:
            tickets = []
            for _ in range(chance.randint(1, 4)):
                count = chance.randint(1, 30)
                tickets.append(self.log.append(name, epoch, entries(seq + 1, seq + count)))
                seq += count
            for ticket in tickets:
                await self.log.durable(ticket)
            self.acknowledged[name] = seq
        await self.log.durable(self.log.append(name, epoch, [], "completed"))

    async def during(self, trouble: object) -> None:
        """All tasks work while `trouble`, which runs on a thread, goes on."""
        for name in self.acknowledged:
            await self.log.create(header(name), b"document")
        tasks = [asyncio.create_task(self.append(name, seed)) for seed, name in enumerate(self.acknowledged)]
        try:
            await asyncio.to_thread(trouble)  # type: ignore[arg-type]
            before = dict(self.acknowledged)
            for _ in range(3_000):  # it must go on afterwards
                if all(self.acknowledged[name] > before[name] for name in before) or any(task.done() for task in tasks):
                    break
                await asyncio.sleep(0.01)
        finally:
            self.is_over = True
            await asyncio.gather(*tasks)

    def check(self) -> None:
        for name, count in self.acknowledged.items():
            assert count > 0
            assert list(self.log.read(name)) == entries(1, count)
            assert self.log.header(name).status == "completed"  # type: ignore[union-attr]


def test_connections_cut_again_and_again_lose_nothing_and_double_nothing(cluster: Cluster) -> None:
    def cut_all() -> None:
        chance = random.Random(3)
        cut = 0
        for _ in range(400):
            cut += cluster.end_backends()
            if cut > 60:
                return
            time.sleep(chance.uniform(0.0, 0.1))
        raise AssertionError(f"only {cut} connections were cut")

    async def scene() -> None:
        log = PostgresLog(cluster.url, name="a server")
        work = Work(log, ["run-1", "run-2", "run-3"])
        await work.during(cut_all)
        work.check()
        await log.close()

    asyncio.run(scene())


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_in_the_middle_of_appends_is_only_a_delay(cluster: Cluster, mode: str) -> None:
    def restart() -> None:
        cluster.stop(mode)
        cluster.start()

    async def scene() -> None:
        log = PostgresLog(cluster.url, name="a server")
        work = Work(log, ["run-1", "run-2"])
        await work.during(restart)
        work.check()
        assert await log.create(header("later"), b"") == "later"
        await log.close()

    asyncio.run(scene())


def test_after_a_restart_that_took_longer_than_the_lease_everybody_still_owns_what_it_owned(cluster: Cluster) -> None:
    async def scene() -> None:
        log = PostgresLog(cluster.url, name="a server", lease_s=5.0)
        await log.create(header(), b"")
        epoch = await log.claim("run-1", "me")
        first, second = (PostgresPartitions(cluster.url, name=name, lease_s=5.0) for name in ("a", "b"))
        for _ in range(3):
            held = (await first.hold(), await second.hold())
        cluster.stop()
        cluster.start()
        # As if it had been down for an hour.
        for table in ("holder", "server", "partition_lease"):
            cluster.execute(f"UPDATE {table} SET until = until - interval '1 hour'")
        other = PostgresLog(cluster.url, name="another server")
        with pytest.raises(Refused, match="already being worked on by `a server`"):
            await other.claim("run-1", "somebody else")
        assert (await first.hold(), await second.hold()) == held
        assert [len(one) for one in held] == [PARTITIONS // 2, PARTITIONS // 2]
        await log.durable(log.append("run-1", epoch, [entry(1)]))
        for one in (first, second, other, log):
            await one.close()

    asyncio.run(scene())


def test_a_server_that_stays_down_is_told_by_everybody_and_when_it_is_back_nothing_is_lost(cluster: Cluster) -> None:
    async def scene() -> None:
        log = PostgresLog(cluster.url, name="a server", lease_s=0.5, patience_s=0.5)
        await log.create(header(), b"")
        epoch = await log.claim("run-1", "me")
        await log.durable(log.append("run-1", epoch, [entry(1)]))
        cluster.stop()
        waits = [asyncio.ensure_future(log.durable(log.append("run-1", epoch, [entry(seq)]))) for seq in (2, 3)]
        for one in await asyncio.gather(*waits, return_exceptions=True):
            assert isinstance(one, Unavailable)
        with pytest.raises(Unavailable, match="cannot be reached"):
            PostgresLog(cluster.url, name="a server")
        await log.close()
        cluster.start()
        again = PostgresLog(cluster.url, name="a server")
        for _ in range(600):  # until the lease that nobody gave back has run out
            if not again.has_owner("run-1"):
                break
            await asyncio.sleep(0.05)
        epoch = await again.claim("run-1", "me")
        await again.durable(again.append("run-1", epoch, [entry(2)], "completed"))
        assert list(again.read("run-1")) == entries(1, 2)
        await again.close()

    try:
        asyncio.run(scene())
    finally:
        if not cluster_answers(cluster):
            cluster.start()


def cluster_answers(cluster: Cluster) -> bool:
    import psycopg

    try:
        cluster.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def test_a_database_that_cannot_hold_every_text_is_refused(cluster: Cluster) -> None:
    cluster.execute("DROP DATABASE IF EXISTS latin")
    cluster.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(Unavailable, match=r"database `latin` on .* has the encoding `LATIN1`") as told:
        PostgresLog(cluster.url.replace("/postgres?", "/latin?"), name="a server")
    assert "ENCODING 'UTF8'" in str(told.value.hint)


def test_a_user_who_may_not_make_tables_is_told_what_to_grant(cluster: Cluster) -> None:
    cluster.execute("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA public TO guest")
    url = cluster.url.replace("postgresql://postgres:@", "postgresql://guest@")
    with pytest.raises(Unavailable, match="does not allow what is needed: permission denied for schema public") as told:
        PostgresLog(url, name="a server")
    assert "GRANT CREATE" in str(told.value.hint)
    cluster.execute("GRANT CREATE ON SCHEMA public TO guest")
    asyncio.run(PostgresLog(url, name="a server").close())
