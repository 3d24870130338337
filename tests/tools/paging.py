"""What the tests of paged collections share: reading all of one, page by page, and reading pages again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Page
from penstock.tools.base import Call, ToolFailure
from penstock.tools.pages.base import open_pages
from tests.tools.support import SharedResources, make_call

T = TypeVar("T")
SIZES = (1, 2, 5, 1000)


@dataclass(frozen=True)
class Read:
    """A page and the token it was opened with. Tokens have been through JSON, as in the log."""

    token: Json
    page: Page

    @property
    def items(self) -> list[Any]:
        return list(self.page.items)


class Collection:
    """One description, opened anew for every page, as workers do."""

    def __init__(self, description: JsonMap, call: Call) -> None:
        self.description = description
        self.call = call

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        page = await open_pages(self.description, self.call).page(token, most, until)
        assert until is not None or len(page.items) <= most
        assert page.next is not None or not page.items
        assert page.keys is None or len(page.keys) == len(page.items)
        return Page(page.items, json.loads(json.dumps(page.next)), page.is_end, page.keys)

    async def walk(self, most: int) -> list[Read]:
        found: list[Read] = []
        token: Json = None
        while True:
            page = await self.page(token, most)
            found.append(Read(token, page))
            if page.is_end:
                return found
            assert page.items
            token = page.next

    async def again(self, read: Read, most: int | None = None) -> Page:
        return await self.page(read.token, len(read.items) if most is None else most, read.page.next)

    async def check(self, expected: Sequence[Any], sizes: Sequence[int] = SIZES) -> None:
        """All elements in order, whatever the size of pages; and each page read again is the same, or the beginning of it."""
        for most in sizes:
            reads = await self.walk(most)
            assert [item for read in reads for item in read.items] == list(expected), most
            keys = [key for read in reads for key in read.page.keys or ()]
            assert len(set(keys)) == len(expected)
            for read in reads:
                if read.items:
                    whole, part = await self.again(read), await self.again(read, 1)
                    assert (list(whole.items), whole.keys) == (read.items, read.page.keys)
                    assert list(part.items) == read.items[:1]


def played(call: Call, scene: Callable[[], Awaitable[T]]) -> T:
    """On one loop, with what was shared closed at the end."""

    async def play() -> T:
        try:
            return await scene()
        finally:
            assert isinstance(call.resources, SharedResources)
            await call.resources.close()

    return asyncio.run(play())


def check(tmp_path: Path, description: JsonMap, expected: Sequence[Any], sizes: Sequence[int] = SIZES) -> None:
    call = make_call(tmp_path)
    played(call, lambda: Collection(description, call).check(expected, sizes))


def all_of(description: JsonMap, call: Call, most: int = 1000) -> list[Any]:
    async def scene() -> list[Any]:
        return [item for read in await Collection(description, call).walk(most) for item in read.items]

    return played(call, scene)


def failing(description: JsonMap, call: Call, token: Json = None) -> ToolFailure:
    async def scene() -> None:
        await open_pages(description, call).page(token, 10)

    with pytest.raises(ToolFailure) as caught:
        played(call, scene)
    return caught.value
