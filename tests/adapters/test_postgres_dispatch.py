"""The dispatch on PostgreSQL on bad days: networks that fail at any message, servers that stop, and schemas of others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from penstock.adapters import postgres
from penstock.adapters.postgres.dispatch import Connection, PostgresDispatch, connect
from penstock.adapters.postgres.intake import WINDOW, PostgresIntake
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.dispatch import Message, MessageKind, Pulse, WorkerCard
from tests.adapters.postgres_cluster import Cluster, own_cluster
from tests.adapters.postgres_proxy import Cut, Network, network
from tests.contracts.dispatch_scenes import ALL, Hand, offer, offers
from tests.faults.wire import Wire
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

CUTS: tuple[Cut, ...] = ("before", "after", "leave")


@asynccontextmanager
async def fleet(url: str, **settings: float) -> AsyncIterator[tuple[PostgresDispatch, Hand]]:
    server, intake = PostgresDispatch(url, **settings), PostgresIntake(url, **settings)
    try:
        hand = Hand(intake, WorkerCard("w1", "host"))
        await intake.enlist(hand.card)
        yield server, hand
    finally:
        await intake.close()
        await server.close()


def play(url: str, story: Callable[[PostgresDispatch, Hand], Awaitable[None]], **settings: float) -> None:
    async def play() -> None:
        async with fleet(url, **settings) as (server, hand):
            await story(server, hand)

    asyncio.run(play())


def ask(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


async def receive(server: PostgresDispatch) -> list[tuple[str, int, MessageKind, bytes]]:
    messages: list[Message] = await server.messages(ALL, 100, 0.0)
    await server.acknowledge([message.number for message in messages])
    return [(message.key, message.attempt, message.kind, message.body) for message in messages]


async def one_life(server: PostgresDispatch, hand: Hand, key: str) -> None:
    """From offer to end: each thing happens once, whatever the network does."""
    await server.offer([offer(key), offer(key + " for nobody", pool="nobody's")])
    (held,) = await hand.take(5)
    assert (held.key, held.attempt) == (key, 1)
    assert await hand.beat(held) == frozenset()
    assert await hand.say(held, b"one", b"two")
    assert await server.withdraw([key + " for nobody"]) == {key + " for nobody"}
    assert await hand.done(held)
    said, done = MessageKind.REPORTED, MessageKind.DONE
    assert await receive(server) == [(key, 1, said, b"one"), (key, 1, said, b"two"), (key, 1, done, b"end")]
    assert await server.missing([key]) == {key}
    assert await server.waiting() == {}


@pytest.fixture
def between(postgres_url: str) -> Iterator[tuple[Network, str]]:
    with network(postgres_url) as found:
        yield found


@pytest.mark.parametrize("how", CUTS)
def test_wherever_a_connection_is_lost_each_call_is_carried_out_once(between: tuple[Network, str], how: Cut) -> None:
    """At each message, before and after the server had it, and with a server that does not notice."""
    wire, url = between

    async def story(server: PostgresDispatch, hand: Hand) -> None:
        for number in range(3):  # Until all statements are prepared.
            await one_life(server, hand, f"quiet life {number}")
        wire.fail_at(0, "before")
        await one_life(server, hand, "a counted life")
        messages = wire.passed
        assert messages > 10
        for at in range(1, messages + 4):
            wire.fail_at(at, how)
            await one_life(server, hand, f"life {at}")
        wire.heal()
        assert wire.cuts >= messages

    play(url, story)


def test_an_answer_that_never_comes_is_waited_for_so_long_and_the_call_is_made_again(
    between: tuple[Network, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, url = between
    monkeypatch.setattr(Connection, "limit_s", 0.3)

    async def story(server: PostgresDispatch, hand: Hand) -> None:
        await one_life(server, hand, "a quiet life")
        for at in (1, 4, 9):
            wire.fail_at(at, "hang")
            await one_life(server, hand, f"life {at}")
        wire.heal()

    play(url, story)


def test_many_who_speak_while_connections_are_cut_are_each_heard_once(between: tuple[Network, str]) -> None:
    wire, url = between

    async def story(server: PostgresDispatch, hand: Hand) -> None:
        await server.offer(offers(60))
        leases = await hand.take(60)

        async def speak(number: int) -> None:
            for word in (b"1", b"2", b"3"):
                assert await hand.say(leases[number], word)
            assert await hand.done(leases[number])

        speaking = asyncio.gather(*(speak(number) for number in range(60)))
        for at in range(1, 12):
            wire.fail_at(1 + at % 3, CUTS[at % 3])
            await asyncio.sleep(0.01)
        wire.heal()
        await speaking
        heard = []
        while some := await receive(server):
            heard += some
        for held in leases:
            assert [body for key, _, _, body in heard if key == held.key] == [b"1", b"2", b"3", b"end"]

    play(url, story)


# -- a server that stops ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with own_cluster() as found:
        yield found


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_leases_and_notes_outlive_the_server_and_holders_have_their_time_again(cluster: Cluster, mode: str) -> None:
    async def story(server: PostgresDispatch, hand: Hand) -> None:
        run = f"run {mode}"
        await server.offer(offers(3, run, lease_s=600.0))
        held, other, _ = await hand.take(3)
        await hand.say(held, b"word")
        cluster.execute("UPDATE dispatch_lease SET until = clock_timestamp() - interval '1 hour'")
        taking = asyncio.ensure_future(hand.take(wait_s=60.0))
        hearing = asyncio.ensure_future(server.messages([], 10, 60.0))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(cluster.stop, mode)
        ending = asyncio.ensure_future(hand.done(held))
        reaping = asyncio.ensure_future(server.reap())
        await asyncio.sleep(0.05)
        await asyncio.to_thread(cluster.start)
        assert await reaping == 0
        assert await ending
        assert await hand.beat(other) == frozenset()
        assert [body for _, _, _, body in await receive(server)] == [b"word", b"end"]
        await server.offer([offer("next", run)])
        assert [one.key for one in await taking] == ["next"]
        hearing.cancel()
        await server.forget(run)

    play(cluster.url, story)


def test_a_server_that_stays_away_is_unavailable_when_the_patience_is_at_an_end(cluster: Cluster) -> None:
    async def story(server: PostgresDispatch, hand: Hand) -> None:
        await server.now()
        await asyncio.to_thread(cluster.stop)
        try:
            say = hand.intake.say("w1", "k", 1, MessageKind.DONE, [b""])
            calls = (server.offer([offer()]), hand.take(wait_s=60.0), hand.beat(), hand.commands(60.0), say)
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(one) for one in results] == [Unavailable] * 5
        finally:
            await asyncio.to_thread(cluster.start)
        assert await server.now() > 0

    play(cluster.url, story, patience_s=0.2)


def test_who_closes_does_not_wait_for_a_server_that_is_away(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dispatch", "intake"):
        monkeypatch.setattr(f"penstock.adapters.postgres.{module}.CLOSING_SECONDS", 0.1)

    async def story(server: PostgresDispatch, hand: Hand) -> None:
        await server.offer([offer("k", "run closing", lease_s=600.0)])
        (held,) = await hand.take()
        await asyncio.to_thread(cluster.stop)
        try:
            async with asyncio.timeout(600):
                calls = [
                    asyncio.ensure_future(one) for one in (hand.done(held), hand.beat(held), hand.commands(3000.0))
                ]
                await asyncio.sleep(0.05)
                await hand.intake.close()
                results = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(one, Unavailable | Refused | asyncio.CancelledError) for one in results)
        finally:
            await asyncio.to_thread(cluster.start)
        await server.forget("run closing")

    play(cluster.url, story, patience_s=3000.0)


def test_who_is_cancelled_while_the_connection_breaks_is_cancelled(postgres_url: str) -> None:
    """The driver waits for the answer all the same, and would tell only of the connection."""

    async def scenario(wire: Wire) -> None:
        connection = await connect(wire.url)
        waiting = asyncio.ensure_future(connection.execute("SELECT pg_sleep(60)"))
        while connection.info.transaction_status != TransactionStatus.ACTIVE:
            await asyncio.sleep(0)
        wire.cut()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await connection.close()

    wire = Wire(postgres_url)
    try:
        asyncio.run(scenario(wire))
    finally:
        wire.close()


def test_a_server_that_never_answered_is_unavailable_at_once() -> None:
    async def story() -> None:
        server = PostgresDispatch("postgresql://nobody@127.0.0.1:1/none")
        with pytest.raises(Unavailable, match=r"`127\.0\.0\.1:1`"):
            await server.now()
        with pytest.raises(Unavailable, match="cannot be reached"):
            await server.messages(ALL, 1, 60.0)
        await server.close()

    asyncio.run(story())


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(Refused, match="no PostgreSQL URL"):
        PostgresDispatch("nats://localhost")


# -- the schema ---------------------------------------------------------------------------------------------------------


def test_those_who_come_at_once_to_a_new_schema_bring_it_up_once(postgres_url: str) -> None:
    async def story() -> None:
        ends = [PostgresDispatch(postgres_url) for _ in range(6)]
        await asyncio.gather(*(end.now() for end in ends))
        for end in ends:
            await end.close()

    asyncio.run(story())
    assert ask(postgres_url, "SELECT version FROM dispatch_version") == [(1,), (2,)]


def test_tables_of_an_earlier_release_are_brought_up_with_what_is_in_them(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        first = Path(postgres.__file__).parent / "sql" / "dispatch" / "0001_dispatch.sql"
        connection.execute(first.read_text(encoding="utf-8").encode())
        connection.execute("INSERT INTO dispatch_version (version) VALUES (1)")
        connection.execute(
            "INSERT INTO dispatch_lease (key, execution_id, partition, number, state, pool, needs, limit_names, limit_counts,"
            " is_range, lease_time, token, payload) VALUES ('k', 'run-1', 0, 1, 'waiting', 'default', '{}', '{}', '{}', false,"
            " '10 s', gen_random_uuid(), 'work')"
        )

    async def story(server: PostgresDispatch, hand: Hand) -> None:
        held = await hand.take_one()
        await hand.beat(held, rows=b"5")
        assert [(one.key, one.rows) for one in await server.leases()] == [("k", b"5")]

    play(postgres_url, story)


def test_tables_of_a_newer_program_are_left_alone(postgres_url: str) -> None:
    async def story() -> None:
        server = PostgresDispatch(postgres_url)
        with pytest.raises(Unavailable, match="newer Penstock") as caught:
            await server.now()
        assert caught.value.hint
        await server.close()

    play(postgres_url, _nothing)
    ask(postgres_url, "INSERT INTO dispatch_version (version) VALUES (99)")
    asyncio.run(story())


async def _nothing(server: PostgresDispatch, hand: Hand) -> None: ...


@pytest.mark.parametrize("column", ["key", "execution_id", "pool"])
def test_the_tables_themselves_refuse_an_empty_id(postgres_url: str, column: str) -> None:
    async def story(server: PostgresDispatch, hand: Hand) -> None:
        await server.offer([offer()])

    play(postgres_url, story)
    with pytest.raises(psycopg.errors.CheckViolation):
        ask(postgres_url, f"UPDATE dispatch_lease SET {column} = ''")


# -- what it costs ------------------------------------------------------------------------------------------------------


def test_a_batch_calls_those_who_wait_once(postgres_url: str) -> None:
    async def story(server: PostgresDispatch, hand: Hand) -> None:
        with psycopg.connect(postgres_url, autocommit=True) as listener:
            (names,) = listener.execute("SELECT dispatch_channel('work', 'default'), dispatch_channel('notes', '')")
            for name in names:
                listener.execute(f"LISTEN {name}")

            def calls() -> list[str]:
                return [call.channel for call in listener.notifies(timeout=0.2)]

            await server.offer(offers(100))
            assert calls() == [names[0]]
            leases = await hand.take(50)
            assert calls() == []
            await hand.say(leases[0], *[b"word"] * 20)
            assert calls() == [names[1]]
            await hand.intake.beat("w1", {held.key: Pulse(1, 1) for held in leases})
            await asyncio.gather(*(hand.done(held) for held in leases))
            assert calls() == [names[1]]

    play(postgres_url, story)


def test_signs_of_life_change_rows_in_place(cluster: Cluster) -> None:
    async def story(server: PostgresDispatch, hand: Hand) -> None:
        # Nobody else is on this server whose view of old rows would keep them from being cleared away.
        cluster.execute("SELECT pg_stat_reset()")
        await server.offer(offers(20, payload=b"x" * 300))
        leases = await hand.take(20)
        for progress in range(1, 31):
            await hand.beat(*leases, progress=progress, cursor=b"at %d" % progress, rows=b"%d rows" % progress)

    play(cluster.url, story)
    statement = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'dispatch_lease'"
    deadline = time.monotonic() + 60
    while (counts := cluster.execute(statement)[0])[0] < 620:  # A connection reports when it ends.
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert counts[1] > 0.8 * 600


def test_more_executions_than_one_look_sees_are_all_served(postgres_url: str) -> None:
    async def story(server: PostgresDispatch, hand: Hand) -> None:
        count = 2 * WINDOW + 50
        await server.offer([offer(f"k{number}", f"run-{number:04}") for number in range(count)])
        other = PostgresIntake(postgres_url)
        await other.enlist(WorkerCard("w2", "another"))
        taken: list[str] = []
        while some := [*await hand.take(7), *await other.take("w2", 9, 9, 0.0)]:
            taken += [held.key for held in some]
        await other.close()
        assert (len(taken), len(set(taken))) == (count, count)

    play(postgres_url, story)


def test_what_is_too_large_for_the_tables_is_refused(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.adapters.postgres.dispatch.LARGEST_BYTES", 10)

    async def story(server: PostgresDispatch, hand: Hand) -> None:
        with pytest.raises(Refused, match="payload of offer `k` has 11 bytes"):
            await server.offer([offer(payload=b"x" * 11)])
        await server.offer([offer(payload=b"x")])
        (held,) = await hand.take()
        with pytest.raises(Refused, match="has 11 bytes"):
            await hand.say(held, b"x" * 11)
        with pytest.raises(Refused, match="has 11 bytes"):
            await server.send("k", b"x" * 11)
        assert await hand.done(held)

    play(postgres_url, story)
