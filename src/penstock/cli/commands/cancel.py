"""`penstock cancel RUN`: stop it for good, by asking its owner, or by taking it over when it has none.

With `--database`, a run of a fleet is ended without any server, for a run that crashes every server.
"""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.app.stores import StoreLocations, open_dispatch
from penstock.cli.output import answer, say
from penstock.cli.targets import database_of, server_of, stored
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.results import encode
from penstock.server.run_names import find_run
from penstock.server.take_overs import remove_notes

if TYPE_CHECKING:
    from penstock.app.embedded import Embedded

POLL_S = 0.05
WORD_EVERY_S = 5.0


def cancel(options: Namespace) -> int:
    url = server_of(options)
    if url is not None:
        from penstock.cli.remote.commands import cancel  # Only runs at a server need it.

        return cancel(options, url)
    return asyncio.run(_cancelled(options))


async def _cancelled(options: Namespace) -> int:
    engine = stored(options)
    try:
        run = find_run(engine.log, options.run).execution_id
        status = await _stop(engine, run, options.reason, options.timeout)
        locations = database_of(options)
        if locations is not None:
            await _clear(locations, engine, run)
    finally:
        await engine.close()
    return answer(options, {"execution_id": run, "status": status, "exit_code": 0}, f"run {run} is {status}")


async def _clear(locations: StoreLocations, engine: Embedded, run: str) -> None:
    """Removes what a fleet still holds of the run: the leases of its tasks, and the records of servers that it crashed."""
    remove_notes(engine.log, run)
    dispatch = open_dispatch(locations, None)
    try:
        await dispatch.forget(run)
    finally:
        await dispatch.close()


async def _stop(engine: Embedded, run: str, reason: str, patience_s: float) -> str:
    log = engine.log
    until = time.monotonic() + patience_s
    word_at = time.monotonic() + WORD_EVERY_S
    has_asked = False
    while True:
        header = log.header(run)
        assert header is not None
        if header.status == "cancelled" or (has_asked and header.status in ("completed", "failed")):
            return header.status
        if header.status in ("completed", "failed"):
            raise Refused(f"run `{run}` is {header.status}; there is nothing to cancel")
        if not log.has_owner(run):
            try:
                await engine.run(run).cancel_idle(reason)  # Nobody works on it: it is closed here.
            except Refused:
                if not log.has_owner(run):
                    raise
                continue  # A server was faster: it is asked, or crashes.
            has_asked = True
            continue
        if not has_asked:
            log.ask(run, "cancel", encode({"reason": reason}))
            has_asked = True
        if time.monotonic() > until:
            raise Unavailable(
                f"run `{run}` was asked to stop and has not ended within {patience_s:g} s",
                "a task may be holding it up; `penstock events` shows what it does. It will stop when that ends",
            )
        if time.monotonic() > word_at:
            word_at += WORD_EVERY_S
            say("waiting for the run to end …")
        await asyncio.sleep(POLL_S)
