"""Replay as a check that any test can make: what was recorded is what the server would decide again (P9.3)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from penstock.app.embedded import Embedded, embedded
from penstock.tools.registry import Registry
from tests.envelopes import checked_events


def assert_replays(home: Path, execution_id: str = "run-1", tools: Registry | None = None) -> None:
    """`home` is a state folder, or the folder in which `.penstock` is."""
    _with_engine(home, tools, lambda engine: assert_engine_replays(engine, execution_id))


def assert_all_replay(folder: Path, tools: Registry | None = None) -> int:
    """Every run in every state folder below `folder`; gives their number. Nobody may be working on them."""
    homes = [found.parent for found in sorted(folder.rglob("penstock.db"))]
    return sum(_with_engine(home, tools, _all_of) for home in homes)


async def assert_engine_replays(engine: Embedded, execution_id: str = "run-1") -> None:
    checked_events(engine.log, execution_id)
    difference = await engine.replay(execution_id)
    assert difference is None, difference.describe()


async def _all_of(engine: Embedded) -> int:
    started = [header.execution_id for header in engine.log.headers(100_000) if header.last_seq]
    for execution_id in started:
        await assert_engine_replays(engine, execution_id)
    return len(started)


def _with_engine(home: Path, tools: Registry | None, body: Any) -> Any:
    async def main() -> Any:
        engine = embedded(home / ".penstock" if (home / ".penstock").is_dir() else home)
        if tools is not None:
            engine.tools = tools
        try:
            return await body(engine)
        finally:
            await engine.close()

    return asyncio.run(main())
