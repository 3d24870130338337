"""Calls that are made together."""

from __future__ import annotations

import asyncio

import pytest

from penstock.ports.together import Together


class Store:
    """Answers when it is let, and remembers what was asked together."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.may_answer = asyncio.Event()

    async def perform(self, wanted: list[int]) -> list[int | Exception]:
        self.calls.append(wanted)
        await self.may_answer.wait()
        if 13 in wanted:
            raise RuntimeError("unlucky")
        return [ValueError(one) if one < 0 else one * 2 for one in wanted]


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_comes_while_a_call_is_under_way_goes_out_as_the_next_one() -> None:
    async def scene() -> None:
        store = Store()
        together = Together(store.perform)
        first = asyncio.ensure_future(together.ask(1))
        await turns()
        others = [asyncio.ensure_future(together.ask(one)) for one in (2, -3, 4)]
        await turns()
        assert store.calls == [[1]]
        store.may_answer.set()
        assert await first == 2
        found = await asyncio.gather(*others, return_exceptions=True)
        assert [found[0], found[2]] == [4, 8]
        assert isinstance(found[1], ValueError)
        assert store.calls == [[1], [2, -3, 4]]
        assert await together.ask(5) == 10

    asyncio.run(scene())


def test_a_call_that_fails_fails_for_all_in_it_and_for_nobody_else() -> None:
    async def scene() -> None:
        store = Store()
        store.may_answer.set()
        together = Together(store.perform, most=2)
        found = await asyncio.gather(*map(together.ask, (1, 13, 3, 4)), return_exceptions=True)
        assert [str(one) for one in found] == ["unlucky", "unlucky", "6", "8"]
        assert store.calls == [[1, 13], [3, 4]]

    asyncio.run(scene())


def test_a_caller_who_stops_waiting_takes_nothing_from_the_others() -> None:
    async def scene() -> None:
        store = Store()
        together = Together(store.perform)
        asked = [asyncio.ensure_future(together.ask(one)) for one in (1, 2)]
        await turns()
        asked[0].cancel()
        store.may_answer.set()
        assert await asked[1] == 4
        with pytest.raises(asyncio.CancelledError):
            await asked[0]

    asyncio.run(scene())
