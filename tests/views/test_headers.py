"""The status of a run in a list, from its header and from whether a process works on it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from penstock.adapters.sqlite.log import SqliteLog
from penstock.views.headers import CRASHED, as_people_read_it, status_of
from tests.contracts.entries import header


def test_a_run_without_an_owner_has_crashed_unless_it_has_ended_since_its_header_was_read(tmp_path: Path) -> None:
    async def main() -> None:
        log = SqliteLog(tmp_path)
        try:
            await log.create(header(), b"{}")
            seen = log.header("run-1")
            assert seen is not None
            assert status_of(seen, log) == CRASHED
            epoch = await log.claim("run-1", "me")
            assert status_of(seen, log) == "running"
            await log.durable(log.append("run-1", epoch, [], "completed"))
            assert status_of(seen, log) == "running"  # Its owner has not let go yet.
            await log.release("run-1")
            assert as_people_read_it(seen, log) == (log.header("run-1"), "completed")
        finally:
            await log.close()

    asyncio.run(main())
