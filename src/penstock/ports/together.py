"""Calls that are made together: what comes while a call is under way waits, and goes out as one call when it has ended.

Law: a call that goes out has begun after everything that is in it was asked for; so its answer is as fresh for each of those who
ask as one of their own would be.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST = 500


class Together(Generic[T, R]):
    def __init__(self, perform: Callable[[list[T]], Awaitable[Sequence[R | Exception]]], most: int = MOST) -> None:
        """`perform` answers each of what it is given, in order; an exception among the answers is raised where it was asked for.
        One that it raises itself is raised everywhere."""
        self._perform = perform
        self._most = most
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._going: asyncio.Task[None] | None = None

    async def ask(self, wanted: T) -> R:
        """The call goes on to its end even if its caller stops waiting."""
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, answer))
        if self._going is None or self._going.done():
            self._going = asyncio.ensure_future(self._go())
        return await answer

    async def _go(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._most))]
            found: Sequence[R | Exception]
            try:
                found = await self._perform([wanted for wanted, _ in batch])
            except asyncio.CancelledError:
                for _, answer in (*batch, *self._waiting):
                    answer.cancel()
                self._waiting.clear()
                raise
            except Exception as error:  # Raised again where each of them was asked for.
                found = [error] * len(batch)
            for (_, answer), one in zip(batch, found, strict=True):
                if answer.done():
                    continue
                if isinstance(one, Exception):
                    answer.set_exception(one)
                else:
                    answer.set_result(one)
