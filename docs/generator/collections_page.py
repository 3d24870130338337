"""The page on collections that a loop reads page by page: one section per kind, from the parameters it takes."""

from __future__ import annotations

import inspect

from docs.generator.markdown import code, page
from docs.generator.tool_pages import parameters, parts
from penstock.tools.pages import KINDS, describe_pages, reader_of


def collections_page() -> str:
    return page(
        "Collections",
        "Besides a list, a template or `{range: 10}`, `loop.in` may describe a collection that is read page by page, so that "
        "nobody holds all of it. One key says of what kind it is; what stands below it may have templates. The one parameter "
        "that a kind cannot do without may stand alone: `{lines: orders.csv}`.",
        "With `loop_mode: fanout` a page is read by the worker that works on it. A shard that is tried again has the same "
        "element again: pages of collections that may change are kept in the result store until the run is removed. A local loop "
        "reads all pages before it begins.",
        *(section for kind in KINDS for section in _sections(kind)),
    )


def _sections(kind: str) -> list[str]:
    reader = reader_of(kind)
    description = describe_pages(kind)
    assert description is not None
    return [
        f"## `{kind}`",
        inspect.getdoc(reader) or "",
        code("yaml", reader.example),
        parameters(description.schema),
        *parts(description.schema),
    ]
