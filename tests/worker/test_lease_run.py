"""A lease that is held: what arrives before its work has begun, and while that is caught up with."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from penstock.worker.lease_run import LeaseRun


class Obedient:
    """Does as it is told, and takes its time over the first command."""

    error, is_through = None, True

    def __init__(self) -> None:
        self.under_way = asyncio.Event()
        self.go_on = asyncio.Event()
        self.told: list[str] = []

    def begin(self, briefing: object) -> None: ...

    async def obey(self, command: Any, fetch: object) -> None:
        if command["news"] == "first":
            self.under_way.set()
            await self.go_on.wait()
        self.told.append(command["news"])

    async def over(self) -> None:
        while len(self.told) < 3:
            await asyncio.sleep(0)

    async def close(self) -> None: ...


def test_commands_are_obeyed_in_the_order_in_which_they_came() -> None:
    assert asyncio.run(_told_three()) == ["first", "second", "third"]


async def _told_three() -> list[str]:
    holder: Any = Obedient()
    services: Any = SimpleNamespace(blobs=SimpleNamespace(get=None))
    run = LeaseRun(cast(Any, None), cast(Any, None), services, lambda: False)
    await run.receive({"news": "first"})
    held = asyncio.ensure_future(run._hold(holder, cast(Any, None)))
    await holder.under_way.wait()
    await run.receive({"news": "second"})  # While the first is still being obeyed.
    holder.go_on.set()
    await asyncio.sleep(0)
    while len(holder.told) < 2:
        await asyncio.sleep(0)
    await run.receive({"news": "third"})
    await held
    told: list[str] = holder.told
    return told
