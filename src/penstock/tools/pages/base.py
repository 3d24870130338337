"""Collections that a loop reads page by page: which kinds there are, and how one is opened.

Law: a page that is read again has the elements it had the first time, in their order, or reading it fails. So a shard that is
tried again works on the element it worked on before, whatever has been added or removed in the meantime.

Nothing is imported before a collection of its kind is opened.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar, cast

import msgspec

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import Json, JsonMap
from penstock.ports.plugins import ToolDescription
from penstock.ports.ranges import Page, Pages
from penstock.tools.base import Call, ToolFailure
from penstock.tools.loading import built_in
from penstock.tools.parameters import convert, similar

KINDS = {
    "sql": "penstock.tools.pages.sql:SqlPages",
    "lines": "penstock.tools.pages.lines:LinesPages",
    "row_groups": "penstock.tools.pages.row_groups:RowGroupPages",
    "files": "penstock.tools.pages.files:FilesPages",
    "objects": "penstock.tools.pages.objects:ObjectPages",
    "http": "penstock.tools.pages.http:HttpPages",
}
READS = 5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 4.0

P = TypeVar("P", bound=msgspec.Struct)


class Reader(Generic[P]):
    """Base of all kinds. The docstring is its part of the reference; `Params` fields carry their descriptions.

    `page` answers for the collection as it is now; that a page stays what it was is seen to around it. A reader whose pages
    cannot be had in the size that was asked for may give larger ones, if they are kept (`keeps`).
    """

    kind: ClassVar[str]
    Params: ClassVar[type[msgspec.Struct]]
    example: ClassVar[str]
    """`loop.in` of this kind, in YAML."""
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
    from penstock.tools.pages.kept import CheckedPages, KeptPages

    return PatientPages(KeptPages(reader, call) if reader.keeps else CheckedPages(reader), call, reader.reads)


def reader_of(kind: str) -> type[Reader[Any]]:
    if kind not in KINDS:
        known = ", ".join(f"`{one}`" for one in KINDS)
        raise Refused(f"a loop cannot run over `{kind}`{similar(kind, KINDS)}", f"it can over {known}")
    return cast("type[Reader[Any]]", built_in("collection", kind, KINDS[kind]))


def describe_pages(kind: str) -> ToolDescription | None:
    """What `loop.in` of this kind takes, for those who check documents and write reference pages."""
    from penstock.tools.registry import described

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
