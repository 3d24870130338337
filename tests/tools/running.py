"""One task run, seen from outside: what it gave, how it failed, what it said. For tools that run code and commands."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.tools.base import Call, Source, Tool, ToolFailure
from penstock.tools.registry import Registry
from penstock.worker.threads import DaemonThreads
from tests.tools.support import SharedResources, make_call

PATIENCE = 30.0
registry = Registry()
threads = DaemonThreads()


@dataclass
class Ended:
    result: Any = None
    failure: ToolFailure | None = None
    said: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str | None:
        return self.failure.kind if self.failure else None

    @property
    def message(self) -> str:
        return self.failure.message if self.failure else ""

    @property
    def detail(self) -> dict[str, Any]:
        return self.failure.detail if self.failure else {}

    @property
    def py(self) -> dict[str, Any]:
        return self.failure.helpers.get("py", {}) if self.failure else {}


class Runner:
    """Runs tasks of one kind in a folder. `params` of each run go over those given here."""

    def __init__(self, kind: str, folder: Path, **params: Any) -> None:
        self.kind = kind
        self.folder = folder
        self.params = params

    def tool(self) -> Tool[Any]:
        return registry.get(self.kind)

    def call(self, said: list[str], **overrides: Any) -> Call:
        fields = {"threads": threads, "say": said.append, "source": Source("flow.yaml", {"code": 25})}
        return make_call(self.folder, **(fields | overrides))

    async def start(self, said: list[str], params: dict[str, Any], **overrides: Any) -> Any:
        model = registry.convert(self.kind, {**self.params, **params})
        call = self.call(said, **overrides)
        try:
            return await self.tool().run(model, call)
        finally:
            if isinstance(call.resources, SharedResources):
                await call.resources.close()

    def cancelled(self, params: dict[str, Any], **overrides: Any) -> list[str]:
        """Start, wait for the first line that is said, cancel. Gives what was said, which may still grow."""
        said: list[str] = []

        async def whole() -> None:
            task = asyncio.ensure_future(self.start(said, params, **overrides))
            async with asyncio.timeout(PATIENCE):
                while not said:
                    await asyncio.sleep(0.005)
                task.cancel()
                await asyncio.wait([task])
            assert task.cancelled()

        asyncio.run(whole())
        return said

    def __call__(self, params: dict[str, Any], **overrides: Any) -> Ended:
        ended = Ended()

        async def whole() -> Any:
            async with asyncio.timeout(PATIENCE):
                return await self.start(ended.said, params, **overrides)

        try:
            ended.result = asyncio.run(whole())
        except ToolFailure as failure:
            ended.failure = failure
        return ended


def waits_for(holds: Callable[[], Any]) -> Any:
    """What `holds` gives once that is true; a failure when it never is."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = holds()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError("it never came true")


def is_gone(pid: int) -> bool:
    """No such process, or one that has ended and only waits for its parent, which may be the system's first process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def is_reaped(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def python_process(program: str, *arguments: str) -> subprocess.Popen[str]:
    """An interpreter beside ours that can import what ours can."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
