"""What a trial does in its own process, with its own folder for working folder: run or resume a job, and die where it is told to."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from tests.chaos.engines import resumed
from tests.chaos.trials import _ended, _mortal, _signals
from tests.chaos_jobs.homes import on_disk, started


def start(home: str, file: str, **death: Any) -> Any:
    os.chdir(home)

    async def main() -> Any:
        engine = _mortal(on_disk(Path(home)), **death)
        return await _ended(engine, started(engine, Path(file), None, *_signals()))

    return asyncio.run(main())


def resume(home: str, **death: Any) -> Any:
    os.chdir(home)

    async def main() -> Any:
        engine = _mortal(on_disk(Path(home)), **death)
        return await _ended(engine, resumed(engine, *_signals()))

    return asyncio.run(main())
