"""Compares, at intervals, the leases that should be out according to the log with those that the dispatch has.

The log says what is to be done, the dispatch who does it. A lease that the dispatch has lost would never be heard of again,
so it is offered again. Leases of a run that is over, whose server died before clearing them away, are removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from penstock.ports.log import EventLog
from penstock.server.dispatch_loop import DispatchLoop
from penstock.server.fleet import FleetForce

EVERY_S = 20.0
MOST_KEYS = 5_000
MOST_EXECUTIONS = 1_000
"""Maximum number of executions per look; the next look continues after them."""


class Reconciliation:
    def __init__(
        self,
        dispatch_loop: DispatchLoop,
        log: EventLog,
        owned: Callable[[], Collection[int]],
        forces: Callable[[], Mapping[str, FleetForce | None]],
    ) -> None:
        """`forces`: every execution driven here, with its leases once it is under way."""
        self._dispatch_loop = dispatch_loop
        self._log = log
        self._owned = owned
        self._forces = forces
        self._missed: frozenset[str] = frozenset()
        self._looked_to = ""

    async def look(self) -> None:
        await self._offer_again()
        await self._clear_away()

    async def _offer_again(self) -> None:
        """Offer what is missing twice in a row: a lease on its way in or out is missing only once."""
        expected = {key: force for force in self._forces().values() if force is not None for key in force.out_now()}
        keys = list(expected)
        missing: set[str] = set()
        for at in range(0, len(keys), MOST_KEYS):
            missing |= await self._dispatch_loop.dispatch.missing(keys[at : at + MOST_KEYS])
        for key in missing & self._missed:
            expected[key].offer_again(key)
        self._missed = frozenset(missing)

    async def _clear_away(self) -> None:
        driven, dispatch = self._forces(), self._dispatch_loop.dispatch
        kept = await dispatch.executions(self._owned(), self._looked_to, MOST_EXECUTIONS)
        self._looked_to = kept[-1] if len(kept) == MOST_EXECUTIONS else ""
        for execution_id in kept:
            if execution_id in driven:
                continue
            header = await asyncio.to_thread(self._log.header, execution_id)
            if (header is None or header.status != "running") and execution_id not in self._forces():
                await dispatch.forget(execution_id)
