"""`penstock worker`: a worker, until it is told to stop; then it drains."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.cli.output import say
from penstock.cli.places import addresses_of, places_of, pool_of, slots_of
from penstock.cli.processes import run_until_told

if TYPE_CHECKING:
    from penstock.app.worker import Station


def main(options: Namespace) -> int:
    crew = _Crew(options)
    run_until_told(crew.run, crew.stop)
    return 0


class _Crew:
    def __init__(self, options: Namespace) -> None:
        self._options = options
        self._station: Station | None = None
        self._draining: asyncio.Task[None] | None = None

    async def run(self) -> None:
        from penstock.app.worker import open_worker

        options = self._options
        station = open_worker(
            places_of(options),
            name=options.name,
            pool=pool_of(options),
            slots=slots_of(options),
            labels=frozenset(options.label),
            beat_s=options.lease / 3,
            addresses=addresses_of(options),
        )
        self._station = station
        card = station.worker.card
        say(f"worker {card.id} in pool `{card.pool}`, {card.slots} at a time")
        await station.run()
        if self._draining is not None:
            await self._draining
        say(f"worker {card.id} has stopped")

    def stop(self) -> None:
        if self._station is not None:
            self._draining = asyncio.ensure_future(self._station.worker.drain(self._options.grace))
