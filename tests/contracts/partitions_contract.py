"""What every store of server shares keeps to. An adapter's test class inherits this and says how a server comes in."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from penstock.ports.log import PARTITIONS
from penstock.ports.partitions import Partitions, fair_share

Fleet = Callable[[int], Awaitable[list[Partitions]]]
ALL = set(range(PARTITIONS))


class PartitionsContract(ABC):
    """`enter` lets a server into the same fleet each time it is called within a test, as another process would be."""

    @abstractmethod
    def enter(self, name: str) -> Partitions: ...

    @abstractmethod
    async def pass_time(self) -> None:
        """A third of a lease, or a little more."""

    async def run_out(self, *alive: Partitions) -> None:
        """The leases of all but these run out."""
        for _ in range(4):
            await self.pass_time()
            for one in alive:
                await one.hold()

    @asynccontextmanager
    async def fleet(self, count: int) -> AsyncIterator[list[Partitions]]:
        servers = [self.enter(f"s{number}") for number in range(count)]
        try:
            yield servers
        finally:
            for server in servers:
                await server.close()

    def play(self, count: int, scene: Callable[..., Awaitable[None]]) -> None:
        async def play() -> None:
            async with self.fleet(count) as servers:
                await scene(*servers)

        asyncio.run(play())

    @staticmethod
    async def balance(*servers: Partitions) -> list[dict[int, int]]:
        """A few rounds."""
        for _ in range(3):
            for server in servers:
                await server.hold()
        return [await server.hold() for server in servers]

    # -- shares -------------------------------------------------------------------------------------------------------

    def test_a_lone_server_has_all_partitions_at_once(self) -> None:
        async def scene(server: Partitions) -> None:
            assert await server.hold() == dict.fromkeys(ALL, 1)

        self.play(1, scene)

    def test_what_is_held_in_time_keeps_its_epoch(self) -> None:
        async def scene(server: Partitions) -> None:
            first = await server.hold()
            for _ in range(6):
                await self.pass_time()
                assert await server.hold() == first

        self.play(1, scene)

    def test_two_that_start_at_once_never_both_have_a_partition_and_soon_have_half_each(self) -> None:
        async def scene(left: Partitions, right: Partitions) -> None:
            one, two = await asyncio.gather(left.hold(), right.hold())
            assert not one.keys() & two.keys()
            one, two = await self.balance(left, right)
            assert (len(one), len(two)) == (PARTITIONS // 2, PARTITIONS // 2)
            assert one.keys() | two.keys() == ALL

        self.play(2, scene)

    def test_any_number_of_servers_share_fairly_in_a_few_rounds(self) -> None:
        async def scene(*servers: Partitions) -> None:
            for count in (1, 2, 3, 5):
                held = await self.balance(*servers[:count])
                assert set().union(*held) == ALL
                assert sum(map(len, held)) == PARTITIONS
                assert max(map(len, held)) <= fair_share(count)

        self.play(5, scene)

    def test_a_newcomer_takes_nothing_that_is_held(self) -> None:
        async def scene(old: Partitions, new: Partitions) -> None:
            before = await old.hold()
            assert await new.hold() == {}
            after = await old.hold()
            assert len(after) == PARTITIONS // 2
            assert after.items() <= before.items()
            taken = await new.hold()
            assert taken == dict.fromkeys(ALL - after.keys(), 2)

        self.play(2, scene)

    # -- leaving, dying, waking up ------------------------------------------------------------------------------------

    def test_who_leaves_gives_all_back_at_once(self) -> None:
        async def scene(left: Partitions, right: Partitions) -> None:
            await self.balance(left, right)
            await left.leave()
            assert (await right.hold()).keys() == ALL
            assert await left.hold() == {}

        self.play(2, scene)

    def test_who_left_with_all_finds_it_again_under_a_new_epoch(self) -> None:
        async def scene(server: Partitions) -> None:
            await server.hold()
            await server.leave()
            await server.leave()
            assert await server.hold() == dict.fromkeys(ALL, 2)

        self.play(1, scene)

    def test_what_a_killed_server_had_is_taken_when_its_lease_has_run_out_and_not_before(self) -> None:
        async def scene(killed: Partitions, other: Partitions) -> None:
            lost, kept = await self.balance(killed, other)
            assert await other.hold() == kept
            await self.run_out(other)
            after = await other.hold()
            assert after.keys() == ALL
            assert all(after[number] > epoch for number, epoch in lost.items())
            assert all(after[number] == epoch for number, epoch in kept.items())

        self.play(2, scene)

    def test_a_frozen_server_that_wakes_up_learns_what_it_lost(self) -> None:
        async def scene(frozen: Partitions, other: Partitions) -> None:
            before, _ = await self.balance(frozen, other)
            await self.run_out(other)
            assert (await other.hold()).keys() == ALL
            assert await frozen.hold() == {}
            again, kept = await self.balance(frozen, other)
            assert again.keys() | kept.keys() == ALL
            assert not again.keys() & kept.keys()
            assert all(again[number] > before[number] for number in again.keys() & before.keys())

        self.play(2, scene)

    def test_a_frozen_server_that_nobody_missed_goes_on(self) -> None:
        async def scene(frozen: Partitions) -> None:
            await frozen.hold()
            await self.run_out()
            assert (await frozen.hold()).keys() == ALL

        self.play(1, scene)

    def test_no_two_servers_ever_have_a_partition_under_one_epoch(self) -> None:
        async def scene(*servers: Partitions) -> None:
            chance = random.Random(7)
            owners: dict[tuple[int, int], Partitions] = {}
            for _ in range(40):
                some = chance.sample(servers, chance.randint(1, 3))
                held = await asyncio.gather(*(server.hold() for server in some))
                for server, mine in zip(some, held, strict=True):
                    for place in mine.items():
                        assert owners.setdefault(place, server) is server
                if chance.random() < 0.2:
                    await chance.choice(servers).leave()
                if chance.random() < 0.2:
                    await self.pass_time()

        self.play(4, scene)

    # -- who is alive -------------------------------------------------------------------------------------------------

    def test_servers_that_are_alive_are_listed_with_what_they_have(self) -> None:
        async def scene(first: Partitions, second: Partitions, third: Partitions) -> None:
            assert await first.servers() == []
            await self.balance(first, second)
            assert [(one.name, one.partitions) for one in await third.servers()] == [("s0", 128), ("s1", 128)]
            assert len({one.id for one in await third.servers()}) == 2
            await self.run_out(second)
            assert [(one.name, one.partitions) for one in await third.servers()] == [("s1", 256)]
            await second.leave()
            assert await third.servers() == []

        self.play(3, scene)

    def test_the_name_of_a_server_may_be_any_text(self) -> None:
        async def scene() -> None:
            server = self.enter("ä 🚰\u0000\u001a0")
            await server.hold()
            assert [one.name for one in await server.servers()] == ["ä 🚰\u0000\u001a0"]
            await server.close()
            await server.close()

        self.play(0, scene)
