"""The PostgreSQL log behind a network that fails at any message: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from penstock.adapters.postgres import database as postgres_database
from penstock.adapters.postgres.executions import PostgresPartitions
from penstock.adapters.postgres.log import PostgresLog
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.log import Entry
from tests.adapters.postgres_proxy import Cut, Network, network
from tests.contracts.entries import entries, entry, header
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

WRITER = b"penstock-log"
CUTS: tuple[Cut, ...] = ("before", "after", "leave")


@pytest.fixture
def between(postgres_url: str) -> Iterator[tuple[Network, str]]:
    with network(postgres_url) as found:
        yield found


def play(url: str, scene: Callable[[PostgresLog], Awaitable[None]], **settings: float) -> None:
    async def play() -> None:
        log = PostgresLog(url, name="a server", **settings)
        try:
            await scene(log)
        finally:
            await log.close()

    asyncio.run(play())


def test_wherever_the_writer_loses_its_connection_each_entry_is_there_once(between: tuple[Network, str]) -> None:
    """At each message of a batch, before and after the server had it, and with a server that does not notice."""
    wire, url = between

    async def scene(log: PostgresLog) -> None:
        names = ("run-1", "run-2")
        epochs = {}
        for name in names:
            await log.create(header(name), b"")
            epochs[name] = await log.claim(name, "me")
        seq = 0

        async def step() -> None:
            nonlocal seq
            tickets = [log.append(name, epochs[name], entries(seq + 1, seq + 2)) for name in names]
            tickets += [log.append(name, epochs[name], [entry(seq + 3)], "running") for name in names]
            seq += 3
            for ticket in tickets:
                await log.durable(ticket)
            for name in names:
                assert list(log.read(name)) == entries(1, seq)

        await step()
        wire.fail_at(0, "before", WRITER)
        await step()
        messages = wire.passed
        assert messages > 5
        # Beyond the last message: the connection for the next try fails too.
        for how in CUTS:
            for at in range(1, messages + 8):
                wire.fail_at(at, how, WRITER)
                await step()
        assert wire.cuts >= 3 * messages
        wire.heal()

    play(url, scene)


@pytest.mark.parametrize("how", CUTS)
def test_wherever_a_job_loses_its_connection_its_work_is_done_once(between: tuple[Network, str], how: Cut) -> None:
    wire, url = between

    async def scene(log: PostgresLog) -> None:
        turn = 0

        async def step() -> None:
            nonlocal turn
            turn += 1
            name = f"run-{turn}"
            assert await log.create(header(name), b"document", f"key-{turn}") == name
            epoch = await log.claim(name, "me")
            assert log.has_owner(name)
            log.ask(name, "cancel")
            (request,) = log.asked(name)
            log.answered(request.number)
            assert log.asked() == []
            await log.durable(log.append(name, epoch, [entry(1)], "completed"))
            await log.release(name)
            assert not log.has_owner(name)
            await log.create(header(f"{name}-b"), b"")
            await log.forget(f"{name}-b")
            assert await log.prune(9e9) == [name]
            assert log.headers() == []

        await step()
        wire.fail_at(0, how)
        await step()
        messages = wire.passed
        # Every third, each way beginning with another.
        for at in range(1 + CUTS.index(how), messages + 1, 3):
            wire.fail_at(at, how)
            await step()
        assert wire.cuts > messages // 4
        wire.heal()

    play(url, scene)


def test_a_network_that_swallows_everything_is_given_up_and_gone_around(
    between: tuple[Network, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "STATEMENT_SECONDS", 0.3)
    wire, url = between

    async def scene(log: PostgresLog) -> None:
        await log.create(header(), b"")
        epoch = await log.claim("run-1", "me")
        for seq, at in enumerate((1, 4, 7, 9, 10), 1):
            wire.fail_at(at, "hang", WRITER)
            await log.durable(log.append("run-1", epoch, [entry(seq)]))
        assert list(log.read("run-1")) == entries(1, 5)
        assert wire.cuts >= 3
        wire.heal()

    play(url, scene)


def test_when_the_patience_is_at_an_end_the_log_is_closed_and_nothing_acknowledged_is_lost(
    between: tuple[Network, str], postgres_url: str
) -> None:
    wire, url = between
    acknowledged: list[Entry] = []

    async def scene(log: PostgresLog) -> None:
        await log.create(header(), b"")
        epoch = await log.claim("run-1", "me")
        await log.durable(log.append("run-1", epoch, [entry(1)]))
        acknowledged.append(entry(1))
        wire.close()
        with pytest.raises(Unavailable, match=r"database `.*` on `/tmp/pn-.*` cannot be reached") as first:
            await log.durable(log.append("run-1", epoch, [entry(2)]))
        assert "nothing that was acknowledged is lost" in str(first.value.hint)
        with pytest.raises(Unavailable) as later:
            await log.durable(log.append("run-1", epoch, [entry(2)]))
        assert later.value.message == first.value.message
        for call in (log.create(header("run-2"), b""), log.claim("run-1", "me"), log.forget("run-1"), log.prune(1.0)):
            with pytest.raises(Unavailable):
                await call
        with pytest.raises(Unavailable):
            log.headers()
        await log.release("run-1")

    play(url, scene, patience_s=0.3, lease_s=0.5)

    async def later(log: PostgresLog) -> None:
        assert list(log.read("run-1")) == acknowledged
        while True:  # until the lease has run out
            try:
                epoch = await log.claim("run-1", "the next one")
                break
            except Refused:
                await asyncio.sleep(0.05)
        await log.durable(log.append("run-1", epoch, [entry(2)], "completed"))

    play(postgres_url, later)


def test_a_server_that_cannot_renew_its_shares_is_told_and_finds_them_when_nobody_missed_it(
    between: tuple[Network, str],
) -> None:
    wire, url = between

    async def scene() -> None:
        shares = PostgresPartitions(url, name="a server", lease_s=3.0)
        first = await shares.hold()
        for at in range(1, 9):
            for how in CUTS:
                wire.fail_at(at, how)
                assert await shares.hold() == first
        wire.heal()
        wire.close()
        with pytest.raises(Unavailable, match="cannot be reached"):
            await shares.hold()
        with pytest.raises(Unavailable):
            await shares.close()

    asyncio.run(scene())
