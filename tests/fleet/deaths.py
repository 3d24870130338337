"""A run on a fleet in virtual time while workers and servers die at random moments, and others come."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from penstock.kernel.values import JsonMap
from tests.fleet.scene import Fleet


async def with_deaths(
    scene: Fleet,
    file: Path,
    chance: random.Random,
    deaths: tuple[int, int] = (1, 3),
    *,
    apart_s: float = 6.0,
    slots: int = 4,
) -> list[JsonMap]:
    """The canonical timeline of the run, once it has completed and was replayed. `deaths`: the fewest and the most of them."""
    await scene.serve("s0")
    for number in range(2):
        scene.work(f"w{number}", slots=slots)
    run = await scene.submit(file)
    for number in range(chance.randint(*deaths)):
        await asyncio.sleep(chance.uniform(0.0, apart_s))
        if chance.random() < 0.6:
            await scene.kill_worker(chance.choice(sorted(scene.workers)))
            scene.work(f"again{number}")
        else:
            await scene.kill_server(next(iter(scene.servers)))
            await asyncio.sleep(chance.uniform(0.0, 3.0))
            await scene.serve(f"s{number + 1}")
    assert (await scene.ended(run)).status == "completed"
    await scene.check_replay(run)
    return scene.canonical(run)
