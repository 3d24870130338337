"""Resources that all tasks of one execution share, such as connection pools: created on first use, closed when it is over."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any


class SharedResources:
    def __init__(self) -> None:
        self._held: dict[object, Any] = {}
        self._making: defaultdict[object, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._close: list[Callable[[], Awaitable[None]]] = []

    async def get(self, key: object, make: Callable[[], Awaitable[tuple[Any, Callable[[], Awaitable[None]]]]]) -> Any:
        if key in self._held:
            return self._held[key]
        async with self._making[key]:
            if key not in self._held:
                self._held[key], close = await make()
                self._close.append(close)
        return self._held[key]

    async def close(self) -> list[BaseException]:
        """Close in reverse order. Errors on closing are returned, not raised: the run is over already."""
        closing, self._close = self._close[::-1], []
        self._held.clear()
        outcomes = [(await asyncio.gather(close(), return_exceptions=True))[0] for close in closing]
        return [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
