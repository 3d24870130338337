"""The PostgreSQL log between processes: one owner, many writers, kill -9 and SIGSTOP at any moment."""

from __future__ import annotations

import asyncio
import os
import random
import signal

import psycopg
import pytest

from penstock.adapters.postgres.executions import PostgresPartitions
from penstock.adapters.postgres.log import PostgresLog
from penstock.ports.log import PARTITIONS
from tests.adapters import children, postgres_children
from tests.contracts.entries import entries, entry, header
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


async def claimed(log: PostgresLog, name: str) -> int:
    """As soon as it can be had."""
    for _ in range(600):
        if not log.has_owner(name):
            return await log.claim(name, "the parent")
        await asyncio.sleep(0.1)
    raise AssertionError("the lease of a dead process never ran out")


@pytest.mark.parametrize("size", [1, 40])
def test_kill_9_while_appending_loses_nothing_acknowledged_and_leaves_no_gap(postgres_url: str, size: int) -> None:
    chance = random.Random(size)

    async def look(log: PostgresLog, acknowledged: int) -> int:
        found = list(log.read("run-1"))
        assert len(found) >= acknowledged
        assert found == entries(1, len(found))
        epoch = await claimed(log, "run-1")
        # What was under way when it was killed may have been committed since.
        last = log.header("run-1").last_seq  # type: ignore[union-attr]
        await log.durable(log.append("run-1", epoch, [entry(last + 1)]))
        await log.release("run-1")
        return last + 1

    async def kill_and_look() -> None:
        log = PostgresLog(postgres_url, name="the parent")
        acknowledged = 0
        for _ in range(2):
            child = postgres_children.start("append_for_ever", postgres_url, "run-1", size)
            said = [child.stdout.readline() for _ in range(chance.randint(1, 40))]  # type: ignore[union-attr]
            said += children.kill(child).splitlines(keepends=True)
            # The last line may have been cut off in the middle.
            heard = [int(line) for line in said if line.endswith("\n")]
            assert heard[0] > acknowledged
            acknowledged = await look(log, heard[-1])
        await log.close()

    asyncio.run(kill_and_look())


def test_a_frozen_process_loses_its_run_and_is_fenced_out_when_it_wakes_up(postgres_url: str) -> None:
    async def freeze_and_take_over() -> None:
        log = PostgresLog(postgres_url, name="the parent")
        child = postgres_children.start("append_for_ever", postgres_url, "run-1", 5)
        assert child.stdout
        for _ in range(5):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGSTOP)
        epoch = await claimed(log, "run-1")
        last = log.header("run-1").last_seq  # type: ignore[union-attr]
        await log.durable(log.append("run-1", epoch, [entry(last + 1, b"new")]))
        os.kill(child.pid, signal.SIGCONT)
        said = await asyncio.to_thread(children.finish, child)
        assert "NotOwner `run-1` has been taken over by `the parent`" in said
        await log.durable(log.append("run-1", epoch, [entry(last + 2, b"new")]))
        assert list(log.read("run-1")) == [*entries(1, last), entry(last + 1, b"new"), entry(last + 2, b"new")]
        await log.close()

    asyncio.run(freeze_and_take_over())


def test_a_process_that_was_frozen_in_the_middle_of_a_write_does_not_keep_its_run_locked(postgres_url: str) -> None:
    async def take_over() -> None:
        log = PostgresLog(postgres_url, name="the parent")
        await log.create(header("run-1"), b"document")
        with psycopg.connect(postgres_url, application_name="penstock-log frozen") as frozen, frozen.cursor() as cursor:
            cursor.execute("SELECT FROM execution WHERE execution_id = 'run-1' FOR UPDATE")
            with cursor.copy("COPY request (execution_id, what, payload, token) FROM STDIN"):  # And then nothing comes.
                epoch = await log.claim("run-1", "the parent")
                await log.durable(log.append("run-1", epoch, [entry(1)]))
                assert list(log.read("run-1")) == [entry(1)]
                await log.close()

    with pytest.raises(psycopg.errors.AdminShutdown):
        asyncio.run(take_over())


def test_processes_that_open_a_new_log_at_the_same_moment_all_succeed(postgres_url: str) -> None:
    together = [postgres_children.start("create_many", postgres_url, f"p{number}", 4) for number in range(4)]
    for child in together:
        child.stdout.readline()  # type: ignore[union-attr]
    for child in together:
        child.stdin.write("\n")  # type: ignore[union-attr]
        child.stdin.flush()  # type: ignore[union-attr]
    for child in together:
        children.finish(child)

    async def look() -> None:
        log = PostgresLog(postgres_url, name="the parent")
        found = log.headers()
        assert {one.execution_id for one in found} == {f"p{n}-{m}" for n in range(4) for m in range(4)}
        assert {(one.status, one.last_seq) for one in found} == {("completed", 50)}
        for one in found:
            assert list(log.read(one.execution_id)) == entries(1, 50)
        await log.close()

    asyncio.run(look())


def test_the_shares_of_a_frozen_server_are_taken_over_and_it_finds_out_when_it_wakes_up(postgres_url: str) -> None:
    async def freeze_and_take_over() -> None:
        shares = PostgresPartitions(postgres_url, name="the parent", lease_s=postgres_children.LEASE)
        child = postgres_children.start("hold_partitions", postgres_url)
        said = iter(child.stdout.readline, "")  # type: ignore[union-attr]

        async def hold_until(count: int) -> dict[int, int]:
            for _ in range(600):
                held = await shares.hold()
                if len(held) == count:
                    return held
                await asyncio.sleep(postgres_children.LEASE / 10)
            raise AssertionError(f"never had {count}")

        async def hear(count: int, after: int) -> list[tuple[int, int]]:
            """Go on holding until the child has that many, in a term after this one. What it said until then: how many, and
            their term."""
            heard: list[tuple[int, int]] = []

            def listen() -> bool:
                for line in said:
                    heard.append((int(line.split()[0]), int(line.split()[1])))
                    if heard[-1][0] == count and heard[-1][1] > after:
                        return True
                return False

            hearing = asyncio.create_task(asyncio.to_thread(listen))
            for _ in range(600):
                await shares.hold()
                await asyncio.wait([hearing], timeout=postgres_children.LEASE / 10)
                if hearing.done():
                    break
            else:
                children.kill(child)  # With that the listening ends.
            assert await hearing, heard
            return heard

        _, first = (await hear(PARTITIONS // 2, 0))[-1]
        await hold_until(PARTITIONS // 2)
        os.kill(child.pid, signal.SIGSTOP)
        assert max((await hold_until(PARTITIONS)).values()) > first
        os.kill(child.pid, signal.SIGCONT)
        awake = await hear(PARTITIONS // 2, first)
        assert all(not count or term > first for count, term in awake), awake
        children.kill(child)
        await hold_until(PARTITIONS)
        await shares.close()

    asyncio.run(freeze_and_take_over())
