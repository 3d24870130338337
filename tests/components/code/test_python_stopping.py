"""Code that does not end by itself is stopped, and what it held is let go."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.components import runner
from penstock.components.base import Call, ComponentFailure
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.worker.threads import DaemonThreads
from tests.components.harness import REGISTRY, make_call, run

FOREVER = "while True:\n    pass"


@pytest.mark.parametrize("mode", ["once", "row", "batch", "frame"])
def test_code_is_stopped_when_its_time_is_over(mode: str):
    with pytest.raises(ComponentFailure) as caught:
        run("python", {"code": FOREVER, "mode": mode, "timeout": 0.05}, {"input": [{"a": 1}]}, connected=["main"])
    assert (caught.value.kind, caught.value.message) == ("timeout", "the code was still running after 0.05 s")
    assert caught.value.retryable


def test_code_that_catches_every_exception_is_stopped_as_well():
    code = "while True:\n    try:\n        pass\n    except Exception:\n        pass"
    with pytest.raises(ComponentFailure) as caught:
        run("python", {"code": code, "timeout": 0.05}, connected=[])
    assert caught.value.kind == "timeout"


def test_a_cancelled_run_leaves_no_thread_behind(tmp_path: Path):
    threads = DaemonThreads()
    engine = DuckDbEngine(tmp_path / "rows")
    started = threading.Event()

    async def cancelled() -> None:
        session = engine.session()
        call = make_call(
            session,
            tmp_path,
            threads=threads,
            globals={"started": started},
            inputs={"input": [session.load_mappings([[{"a": 1}]])]},
            connected=frozenset({"main"}),
        )
        params = REGISTRY.convert("python", {"code": f"globals['started'].set()\n{FOREVER}", "mode": "row"})
        task = asyncio.create_task(_run(call, params))
        while not started.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert threads.busy == 0
        session.close()

    try:
        asyncio.run(cancelled())
    finally:
        engine.close()


async def _run(call: Call, params: Any) -> Any:
    return await runner.run(REGISTRY.get("python"), params, call)
