"""Collections that a loop reads page by page: which kinds there are, and how one is opened.

Law: a page that is read again has the elements it had the first time, in their order, or reading it fails. So a shard that is
tried again works on the element it worked on before, whatever has been added or removed in the meantime. Claimed rows are
kept, so it holds for them too.

Nothing is imported before a collection of its kind is opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

import msgspec

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef
from penstock.ports.collections import Page, Pages
from penstock.ports.plugins import ToolDescription
from penstock.ports.results import LazyResult, decode, encode
from penstock.tools.base import Call, Parametric, ToolFailure
from penstock.tools.parameters import convert, similar
from penstock.tools.plugins import built_in, shipped_example

KINDS = {
    "sql": "penstock.tools.pages.sql:SqlPages",
    "lines": "penstock.tools.pages.lines:LinesPages",
    "row_groups": "penstock.tools.pages.files:RowGroupPages",
    "files": "penstock.tools.pages.files:FilesPages",
    "objects": "penstock.tools.pages.objects:ObjectPages",
    "http": "penstock.tools.pages.http:HttpPages",
    "claim": "penstock.tools.pages.claims:ClaimPages",
}
READS = 5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 4.0

P = TypeVar("P", bound=msgspec.Struct)


class Reader(Parametric[P]):
    """Base of all kinds. The docstring is its part of the reference; `Params` fields carry their descriptions.

    `page` answers for the collection as it is now; that a page stays what it was is seen to around it. A reader whose pages
    cannot be had in the size that was asked for may give larger ones, if they are kept (`keeps`).
    """

    kind: ClassVar[str]
    is_fixed: ClassVar[bool] = False
    """Its tokens alone find the same elements again: nothing else has to be remembered of a page."""
    reads: ClassVar[int] = READS
    """How often a page is asked for when what goes wrong may pass."""

    def __init__(self, params: P, call: Call) -> None:
        self.params = params
        self.call = call

    @property
    def keeps(self) -> bool:
        """Are the elements of a page put into the result store, for those who read it again?"""
        return not self.is_fixed

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        raise NotImplementedError


def open_pages(collection: JsonMap, call: Call, *, once: bool = False) -> Pages:
    """The pages of a described collection. `once`: no page will be asked for a second time.

    Raises ToolFailure of kind `parameters` that lists all that is wrong with the description."""
    kind = str(collection["kind"])
    reader_class = reader_of(kind)
    reader = reader_class(cast(Any, convert(kind, reader_class.Params, _values(collection))), call)
    if once or reader.is_fixed:
        return PatientPages(reader, call, reader.reads)

    return PatientPages(KeptPages(reader, call) if reader.keeps else CheckedPages(reader), call, reader.reads)


def reader_of(kind: str) -> type[Reader[Any]]:
    if kind not in KINDS:
        known = ", ".join(f"`{one}`" for one in KINDS)
        raise Refused(f"a loop cannot run over `{kind}`{similar(kind, KINDS)}", f"it can over {known}")
    return cast("type[Reader[Any]]", built_in("collection", kind, KINDS[kind]))


def example_of(kind: str) -> str:
    """`loop.in` of this kind, in YAML."""
    return shipped_example(f"in_{kind}")


def describe_pages(kind: str) -> ToolDescription | None:
    """What `loop.in` of this kind takes, for those who check documents and write reference pages."""
    from penstock.tools.registry import described  # The registry loads this module.

    if kind not in KINDS:
        return None
    reader = reader_of(kind)
    return described(kind, reader.Params, reader.__doc__, {})


def _values(collection: JsonMap) -> dict[str, Any]:
    """A description has its own `kind`; the one that the author wrote beside a query is its `engine`."""
    return {"kind" if name == "engine" else name: value for name, value in collection.items() if name != "kind"}


class PatientPages:
    """A database that is just being started again, or a store that was cut off, does not fail a loop."""

    def __init__(self, inner: Pages, call: Call, reads: int) -> None:
        self._inner = inner
        self._call = call
        self._reads = reads

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        pause = FIRST_PAUSE_S
        for number in range(1, READS + 1):
            try:
                return await self._inner.page(token, most, until)
            except (ToolFailure, Unavailable) as error:
                if number >= (READS if isinstance(error, Unavailable) else self._reads if error.retryable else 1):
                    raise
                self._call.say(f"a page of the collection cannot be read, and will be tried again: {error.message}")
            await self._call.clock.sleep(pause)
            pause = min(pause * 4, LONGEST_PAUSE_S)
        raise AssertionError("the last attempt returns or raises")


# ---- Pages that stay what they were.
# The elements of a page that has been opened are put into the result store, and who reads it again finds them there: rows
# may have been changed, files moved and cursors run out by then. Where that is too much (`keep: false`), a page is read
# again from the collection itself, and refused when it has changed.
# A token says where reading goes on. One of a kept page:
# {"page": a reference to the elements of the last page that was read, "skip": so many of them have been given, "of": how
# many it has, "then": the token of what follows it, "end": true if nothing does}


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
        fields = cast("dict[str, Any]", token)
        page = fields["page"]
        # A reader of the log may have replaced the reference with a view.
        ref = page.ref if isinstance(page, LazyResult) else None if page is None else ResultRef.from_json(page)
        return _Mark(ref, fields["skip"], fields["of"], fields["then"], fields["end"])

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
