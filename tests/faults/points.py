"""Points at which a process comes to harm: right before or right after one of its own calls, and always at the same place.

A point is `MODULE:CLASS.METHOD`, and happens once. `words`: only a call in whose arguments these stand. The harm is done by the process
to itself: `kill` and `stop` are the signals, `raise` is a bug, `refuse` the answer of a store, and what
`hang`s never returns.
"""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import asdict, dataclass
from functools import wraps
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

from penstock.kernel.errors import Refused


@dataclass(frozen=True)
class Point:
    where: str
    does: str
    is_after: bool = False
    words: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class _Armed:
    def __init__(self, point: Point) -> None:
        self.point = point
        self.is_over = False

    async def hangs(self, arguments: Any) -> None:
        if self.point.does == "hang" and self.point.words in str(arguments):
            await asyncio.Event().wait()

    def comes(self, is_after: bool, arguments: Any) -> None:
        point = self.point
        if self.is_over or point.is_after is not is_after or point.words not in str(arguments) or point.does == "hang":
            return
        if point.does == "raise":  # Again and again, as a bug does.
            raise RuntimeError(f"a bug at {point.where}")
        if point.does == "refuse":
            raise Refused(f"refused at {point.where}")
        self.is_over = True
        os.kill(os.getpid(), signal.SIGKILL if point.does == "kill" else signal.SIGSTOP)


def arm(point: Point) -> None:
    """From now on the process comes to harm at this point."""
    module, _, path = point.where.partition(":")
    name, _, method = path.partition(".")
    owner = getattr(import_module(module), name)
    usual, armed = getattr(owner, method), _Armed(point)

    @wraps(usual)
    async def waits(*arguments: Any, **more: Any) -> Any:
        await armed.hangs((arguments, more))
        armed.comes(False, (arguments, more))
        result = await usual(*arguments, **more)
        armed.comes(True, (arguments, more))
        return result

    @wraps(usual)
    def returns(*arguments: Any, **more: Any) -> Any:
        armed.comes(False, (arguments, more))
        result = usual(*arguments, **more)
        armed.comes(True, (arguments, more))
        return result

    setattr(owner, method, waits if iscoroutinefunction(usual) else returns)
