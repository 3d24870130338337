"""What a trial does in its own process, with its own folder for working folder: run or resume, and die where it is told to."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from pathlib import Path
from typing import Any

from penstock.app.embedded import Embedded
from penstock.kernel.errors import PenstockError
from penstock.ports.log import Entry
from penstock.server.runs import RunSummary
from tests.chaos.engines import RUN, on_disk, resumed, started
from tests.chaos.logs import EndingLog


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def summarised(summary: RunSummary) -> dict[str, Any]:
    return {
        "status": summary.status,
        "ctx": summary.ctx,
        "result": summary.result,
        "error": summary.error,
        "exit_code": summary.exit_code,
    }


def start(home: str, file: str, execution_id: str = RUN, **death: Any) -> Any:
    os.chdir(home)

    async def main() -> Any:
        engine = _mortal(on_disk(Path(home)), **death)
        return await _ended(engine, started(engine, Path(file), None, *_signals(), execution_id=execution_id))

    return asyncio.run(main())


def resume(home: str, **death: Any) -> Any:
    os.chdir(home)

    async def main() -> Any:
        engine = _mortal(on_disk(Path(home)), **death)
        return await _ended(engine, resumed(engine, *_signals()))

    return asyncio.run(main())


async def _ended(engine: Embedded, running: Any) -> Any:
    try:
        told = await running
        return summarised(told.summary)
    except PenstockError as error:
        return {"refused": type(error).__name__, "message": error.message, "hint": error.hint}
    finally:
        await engine.close()


def _mortal(
    engine: Embedded, recorded: int | None = None, durable: int | None = None, file_limit: int | None = None
) -> Embedded:
    """Die when entry `recorded` is made and nothing of it is on disk, or when entry `durable` has just got there.

    `file_limit`: no file may grow beyond so many bytes, as on a disk that is nearly full.
    """
    if file_limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    if recorded is not None:

        def observe(entry: Entry) -> None:
            if entry.seq >= recorded:
                die()

        engine.observers.append(observe)
    if durable is not None:
        engine.log = EndingLog(engine.log, durable, die)
    return engine


def _signals() -> list[Any]:
    """SIGTERM interrupts, as on the command line."""

    async def listen(run: Any) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: run.interrupt("SIGTERM", 0.2))
        await asyncio.Event().wait()

    return [listen]


__all__ = ["RUN", "resume", "start"]
