"""Tools for bad days: `mark` leaves a trace of every run of it that a kill cannot wipe out, others misbehave on purpose.

They are known to a `Workshop` only, so that no other test meets them in the registry.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from penstock.ports.plugins import ToolDescription
from penstock.tools.base import Call, Tool, ToolFailure, tool
from penstock.tools.parameters import convert
from penstock.tools.registry import Registry, describe


@tool("mark")
async def mark(call: Call, file: str, value: Any = None, failing: int = 0, until: str | None = None) -> Any:
    """Write the id of this task run into `file`; fail in the first `failing` attempts, or until the file `until` is there."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{call.task_run_id}\n".encode())
    finally:
        os.close(descriptor)
    await asyncio.sleep(0)
    if call.attempt <= failing or (until is not None and not Path(until).exists()):
        raise ToolFailure("flaky", f"attempt {call.attempt} fails", retryable=True)
    return value


def marks(file: Path) -> Counter[str]:
    """How often each task run took effect."""
    return Counter(file.read_text(encoding="utf-8").splitlines()) if file.exists() else Counter()


class Workshop(Registry):
    """The registry, and the tools of this module and of the test."""

    def __init__(self, *more: type[Tool[Any]]) -> None:
        super().__init__()
        self._own: dict[str, Tool[Any]] = {one.kind: one() for one in (mark, *more)}

    def get(self, kind: str) -> Tool[Any]:
        return self._own.get(kind) or super().get(kind)

    def kinds(self) -> list[str]:
        return [*super().kinds(), *self._own]

    def convert(self, kind: str, values: Any) -> msgspec.Struct:
        return convert(kind, type(self.get(kind)).Params, values)

    def describe(self, kind: str) -> ToolDescription | None:
        return describe(type(self._own[kind])) if kind in self._own else super().describe(kind)


def behaving(kind: str, what: Callable[[Call], Awaitable[Any]]) -> type[Tool[Any]]:
    """A tool without parameters that does what it is told, on the event loop."""

    @tool(kind)
    async def behave(call: Call) -> Any:
        """Do as the test says."""
        return await what(call)

    return behave
