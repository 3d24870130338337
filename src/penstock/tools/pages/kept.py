"""Pages that stay what they were.

The elements of a page that has been opened are put into the result store, and who reads it again finds them there: rows may have
been changed, files moved and cursors run out by then. Where that is too much (`keep: false`), a page is read again from the
collection itself, and refused when it has changed.

A token says where reading goes on. One of a kept page:

    {"page": a reference to the elements of the last page that was read, "skip": so many of them have been given,
     "of": how many it has, "then": the token of what follows it, "end": true if nothing does}
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef
from penstock.ports.ranges import Page, Pages
from penstock.ports.results import LazyResult, decode, encode
from penstock.tools.base import Call, ToolFailure


@dataclass(frozen=True, slots=True)
class _Mark:
    """A token of kept pages, read."""

    page: ResultRef | None = None
    skip: int = 0
    of: int = 0
    then: Json = None
    end: bool = False

    @staticmethod
    def read(token: Json) -> _Mark:
        if token is None:
            return _Mark()
        said = cast("dict[str, Any]", token)
        page = said["page"]
        # Whoever read the token from the log may have put a view in the place of the reference.
        ref = page.ref if isinstance(page, LazyResult) else None if page is None else ResultRef.from_json(page)
        return _Mark(ref, said["skip"], said["of"], said["then"], said["end"])

    def token(self) -> JsonMap:
        page = None if self.page is None else self.page.as_json()
        return {"page": page, "skip": self.skip, "of": self.of, "then": self.then, "end": self.end}


class KeptPages:
    def __init__(self, inner: Pages, call: Call) -> None:
        self._inner = inner
        self._call = call

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        mark = _Mark.read(token)
        if until is not None:
            return await self._again(mark, _Mark.read(until), most)
        if mark.skip < mark.of:
            return _given(mark, await self._kept(mark.page), most)
        if mark.end:
            return Page([], mark.token(), is_end=True)
        read = await self._inner.page(mark.then, most)
        page = None
        if read.items:
            content: JsonMap = {
                "items": list(read.items),
                "keys": None if read.keys is None else list(read.keys),
            }
            page = await self._call.threads.run(self._put, content)
        opened = _Mark(page, 0, len(read.items), read.next, read.is_end)
        return _given(opened, (read.items, read.keys), most)

    async def _again(self, mark: _Mark, end: _Mark, most: int) -> Page:
        items, keys = await self._kept(end.page)
        # A page that had been given to its end is not the one that was read from there, though both may have equal elements.
        first = mark.skip if mark.skip < mark.of else 0
        last = min(end.skip, first + most)
        is_end = end.end and end.skip == end.of
        return Page(items[first:last], end.token(), is_end, None if keys is None else keys[first:last])

    def _put(self, content: JsonMap) -> ResultRef:
        return self._call.blobs.put([encode(content)], schema_hint={"type": "object"})

    async def _kept(self, page: ResultRef | None) -> tuple[Sequence[Any], Sequence[str] | None]:
        if page is None:
            return [], None
        data = await self._call.threads.run(self._call.blobs.get, page)
        content = cast("dict[str, Any]", decode(data))
        return content["items"], content["keys"]


def _given(mark: _Mark, content: tuple[Sequence[Any], Sequence[str] | None], most: int) -> Page:
    items, keys = content
    last = min(mark.of, mark.skip + most)
    after = _Mark(mark.page, last, mark.of, mark.then, mark.end)
    part = slice(mark.skip, last)
    return Page(items[part], after.token(), mark.end and last == mark.of, None if keys is None else keys[part])


class CheckedPages:
    """Tokens are `{"at": the token, "of": the elements before it on its page, "sum": what their keys come to}`."""

    def __init__(self, inner: Pages) -> None:
        self._inner = inner

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        at = None if token is None else cast("dict[str, Any]", token)["at"]
        if until is None:
            read = await self._inner.page(at, most)
            mark: JsonMap = {"at": read.next, "of": len(read.items), "sum": _sum(read)}
            return Page(read.items, mark, read.is_end, read.keys)
        end = cast("dict[str, Any]", until)
        # The whole page, also when part of it is wanted: only of the whole can be told that it has not changed.
        read = await self._inner.page(at, end["of"] + 1, end["at"])
        if len(read.items) != end["of"] or _sum(read) != end["sum"]:
            raise ToolFailure(
                "collection",
                "elements have been added or removed on a page since it was first read, so it cannot be read again; "
                "hint: leave out `keep: false`, and pages are kept as they were",
            )
        return Page(read.items[:most], until, read.is_end, None if read.keys is None else read.keys[:most])


def _sum(page: Page) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for key in page.keys or ():
        digest.update(key.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
