"""Who owns an execution in PostgreSQL: leases by the clock of the database, and what becomes of those who lose theirs."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from penstock.adapters.postgres.log import PostgresLog
from penstock.kernel.errors import Refused
from tests.adapters.postgres_scenes import execute, let_leases_run_out, opened, owned, until
from tests.contracts.entries import entries, entry, header
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

# Short enough to run out in a test, and for the grace after a start of PostgreSQL to be over.
SHORT = 0.6


def frozen(log: PostgresLog) -> None:
    """From here on it is as if the process had been stopped: it renews nothing."""
    log._holder.stop()
    log._holder.join()


def holders(url: str) -> list[str]:
    return [str(one) for (one,) in execute(url, "SELECT id FROM holder ORDER BY started")]


def test_who_only_reads_is_no_holder(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            await log.create(header(), b"")
            assert (log.headers(), log.has_owner("run-1")) == ([header()], False)
            assert holders(postgres_url) == []
            assert log._holder._thread is None

    asyncio.run(scene())


def test_closing_leaves_no_holder_and_no_writer_behind(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            await log.durable(log.append("run-1", epoch, [entry(1)]))
            assert len(holders(postgres_url)) == 1

    asyncio.run(scene())
    assert holders(postgres_url) == []
    assert execute(postgres_url, "SELECT count(*) FROM writer") == [(0,)]
    assert execute(postgres_url, "SELECT holder, owner, epoch FROM execution") == [(None, None, 1)]


def test_a_claim_is_refused_for_as_long_as_the_lease_is_renewed_and_told_by_whom_since_when(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url, lease_s=2.0), opened(postgres_url, "another") as other:
            seen: set[object] = set()

            def renewed_often() -> bool:
                seen.add(execute(postgres_url, "SELECT until FROM holder WHERE name = 'a server'")[0][0])
                return len(seen) > 3

            await until(renewed_often, "the lease is not renewed")
            with pytest.raises(Refused, match=r"worked on by `a server` \(`me`\), since 20\d\d-.* UTC"):
                await other.claim("run-1", "somebody else")

    asyncio.run(scene())


def test_when_a_lease_has_run_out_another_may_claim_and_the_late_owner_is_fenced_out(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url, "run-1", "run-2", lease_s=SHORT) as (late, epoch):
            for name in ("run-1", "run-2"):
                await late.durable(late.append(name, epoch, [entry(1)]))
            frozen(late)
            async with opened(postgres_url, "another") as other:
                await until(lambda: not other.has_owner("run-1"), "the lease never runs out")
                newer = await other.claim("run-1", "the new one")
                assert newer == epoch + 1
                # On one commit with what it may still do: nobody has taken the other run.
                first = late.append("run-1", epoch, [entry(2, b"late")], "failed")
                second = late.append("run-2", epoch, [entry(2)])
                with pytest.raises(Refused, match=r"has been taken over by `the new one` \(epoch 2"):
                    await late.durable(first)
                await late.durable(second)
                await other.durable(other.append("run-1", newer, [entry(2)]))
                assert list(other.read("run-1")) == list(other.read("run-2")) == entries(1, 2)
                await late.release("run-1")
                assert other.has_owner("run-1")

    asyncio.run(scene())


def test_a_log_that_was_replaced_may_claim_again_when_its_successor_is_gone(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url, lease_s=SHORT) as (log, _):
            execute(postgres_url, "UPDATE holder SET until = '-infinity'")
            async with opened(postgres_url, "another") as other:
                # The first may renew in between; then it is as if it had never been late.
                await until(lambda: try_to_claim(other), "the lease never runs out")
                with pytest.raises(Refused, match="already being worked on by `another`"):
                    await log.claim("run-1", "me again")
            epoch = await log.claim("run-1", "me again")
            assert epoch == 3
            await log.durable(log.append("run-1", epoch, [entry(1)]))

    def try_to_claim(other: PostgresLog) -> bool:
        execute(postgres_url, "UPDATE holder SET until = '-infinity' WHERE name = 'a server'")
        try:
            other._claim("run-1", "the other")
        except Refused:
            return False
        return True

    asyncio.run(scene())


def test_a_process_whose_event_loop_stands_still_loses_what_it_owns(postgres_url: str) -> None:
    looker = PostgresLog(postgres_url, name="looker")
    seen: list[bool] = []

    def look() -> None:
        deadline = time.monotonic() + 60
        while looker.has_owner("run-1") and time.monotonic() < deadline:
            time.sleep(0.02)
        seen.append(looker.has_owner("run-1"))
        over.set()

    over = threading.Event()

    async def scene() -> None:
        async with owned(postgres_url, lease_s=SHORT) as (log, epoch):
            thread = threading.Thread(target=look)
            thread.start()
            over.wait()  # on the loop, which does not turn
            thread.join()
            assert seen == [False]
            # Nobody has taken it: it is the owner again as soon as the loop turns.
            await until(lambda: looker.has_owner("run-1"), "the lease is not renewed again")
            await log.durable(log.append("run-1", epoch, [entry(1)]))
        await looker.close()

    asyncio.run(scene())


def test_a_holder_that_was_removed_loses_its_claims_before_it_comes_back_under_a_new_id(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url, lease_s=SHORT) as (log, epoch):
            await log.durable(log.append("run-1", epoch, [entry(1)]))
            (old,) = holders(postgres_url)
            execute(postgres_url, "DELETE FROM holder")
            await until(lambda: holders(postgres_url), "it does not come back")
            (new,) = holders(postgres_url)
            assert new != old
            with pytest.raises(Refused, match="is not owned by this process, or no longer"):
                await log.durable(log.append("run-1", epoch, [entry(2)]))
            assert not log.has_owner("run-1")
            again = await log.claim("run-1", "me again")
            await log.durable(log.append("run-1", again, [entry(2)]))
            assert list(log.read("run-1")) == entries(1, 2)

    asyncio.run(scene())


def test_a_claim_after_a_long_sleep_renews_the_lease_first(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url, lease_s=SHORT) as (log, _):
            log._holder._renewed_at = 0.0
            execute(postgres_url, "DELETE FROM holder")
            await log.create(header("run-2"), b"")
            epoch = await log.claim("run-2", "me")
            assert log.has_owner("run-2")
            await log.durable(log.append("run-2", epoch, [entry(1)]))
            with pytest.raises(Refused, match="is not owned by this process"):
                await log.durable(log.append("run-1", 1, [entry(1)]))

    asyncio.run(scene())


def test_a_claim_whose_answer_was_lost_is_not_held_against_who_made_it(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, _):
            await log.create(header("run-2"), b"")
            execute(
                postgres_url,
                "UPDATE execution SET epoch = 1, owner = 'me', holder = (SELECT id FROM holder) WHERE execution_id = 'run-2'",
            )
            assert log.has_owner("run-2")
            epoch = await log.claim("run-2", "me")
            assert epoch == 2
            await log.durable(log.append("run-2", epoch, [entry(1)]))

    asyncio.run(scene())


def test_of_two_claims_of_one_process_at_once_one_is_refused(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            await log.create(header(), b"")
            both = await asyncio.gather(log.claim("run-1", "a"), log.claim("run-1", "b"), return_exceptions=True)
            (refused,) = [one for one in both if isinstance(one, Refused)]
            assert 1 in both
            assert "already being worked on" in refused.message
            await log.durable(log.append("run-1", 1, [entry(1)]))

    asyncio.run(scene())


def test_a_claim_that_was_cancelled_is_given_back(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log, opened(postgres_url, "another") as other:
            await log.create(header(), b"")
            for _ in range(5):
                claim = asyncio.create_task(log.claim("run-1", "me"))
                await asyncio.sleep(0)
                claim.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await claim
                await until(lambda: not log._claiming and not log.has_owner("run-1"), "it stays claimed")
            await other.claim("run-1", "the other")

    asyncio.run(scene())


def test_after_a_start_of_the_server_a_lease_that_ran_out_while_it_was_down_counts_again(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url, lease_s=10_000_000.0), opened(postgres_url) as other:
            execute(postgres_url, "UPDATE holder SET until = until - interval '1000 days'")
            assert other.has_owner("run-1")
            execute(postgres_url, "UPDATE holder SET lease = interval '0'")
            assert not other.has_owner("run-1")

    asyncio.run(scene())


def test_holders_that_died_long_ago_are_removed_by_the_next_one(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (late, _):
            frozen(late)
            execute(postgres_url, "UPDATE holder SET until = until - interval '2 hours'")
            execute(postgres_url, "UPDATE writer SET at = at - interval '2 days'")
            async with opened(postgres_url, "another") as other:
                await other.create(header("run-2"), b"")
                await other.claim("run-2", "me")
                assert execute(postgres_url, "SELECT name FROM holder") == [("another",)]
                # What is gone says the same as what has run out.
                assert await other.claim("run-1", "the other") == 2

    asyncio.run(scene())


def test_leases_that_have_run_out_are_seen_at_once(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url, lease_s=SHORT) as (log, _), opened(postgres_url) as other:
            await log.durable(log.append("run-1", 1, [entry(1)], "completed"))
            frozen(log)
            await asyncio.sleep(SHORT)
            let_leases_run_out(postgres_url)
            assert not other.has_owner("run-1")
            assert await other.prune(9e9) == ["run-1"]

    asyncio.run(scene())


def test_what_is_created_for_an_owner_is_refused_to_others_until_that_process_is_gone(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url, "another") as other:
            async with opened(postgres_url) as log:
                await log.create(header(), b"", owner="me")
                with pytest.raises(Refused, match="already being worked on"):
                    await other.claim("run-1", "somebody else")
            assert await other.claim("run-1", "somebody else") == 2

    asyncio.run(scene())


def test_who_lost_its_lease_between_creating_and_claiming_can_append_nothing(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url, lease_s=SHORT) as log, opened(postgres_url, "another") as other:
            await log.create(header(), b"", owner="me")
            frozen(log)
            let_leases_run_out(postgres_url)
            assert await other.claim("run-1", "somebody else") == 2
            epoch = await log.claim("run-1", "me")  # It does not know yet.
            with pytest.raises(Refused, match="has been taken over by `somebody else`"):
                await log.durable(log.append("run-1", epoch, [entry(1)]))

    asyncio.run(scene())


def test_the_last_append_lets_go_of_the_execution_in_its_own_commit(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            await log.durable(log.append("run-1", epoch, [entry(1)], "completed", (), True))
            asked = "SELECT holder, owner, epoch, status FROM execution"
            assert execute(postgres_url, asked) == [(None, None, 1, "completed")]
            with pytest.raises(Refused, match="has been released"):
                await log.durable(log.append("run-1", epoch, [entry(2)]))
            await log.release("run-1")
            assert await log.claim("run-1", "me") == 2

    asyncio.run(scene())


def test_values_that_cannot_be_kept_are_no_reason_to_refuse_what_is_created_beside_them(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            wrong = replace(header("run-2"), started_at="yesterday")
            births = (log.create(header("run-1"), b"1"), log.create(wrong, b"2"), log.create(header("run-3"), b"3"))
            made = await asyncio.gather(*births, return_exceptions=True)
            assert [made[0], made[2]] == ["run-1", "run-3"]
            assert isinstance(made[1], Refused)
            assert {one.execution_id for one in log.headers()} == {"run-1", "run-3"}

    asyncio.run(scene())
