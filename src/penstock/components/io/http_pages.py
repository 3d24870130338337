"""Going from page to page of an HTTP interface: what the next request is, given the last answer.

Law: no page is asked for twice, and a credential goes only to the place that was named. A server that leads in
circles, or away, ends the reading with a failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from urllib.parse import urljoin

import msgspec
from msgspec import Meta

from penstock.components.base import ComponentFailure
from penstock.tools.http.response import next_link, origin_of, value_at

AtLeastOne = Annotated[int, Meta(ge=1)]
MaxPages = Annotated[int, Meta(ge=1, description="More pages than this are a failure.")]
Into = Annotated[Literal["query", "json"], Meta(description="Where the parameters go: into the URL, or the JSON body.")]


class PageNumbers(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="page"):
    """`?page=1`, `?page=2` … until a page is empty, or shorter than `size`."""

    param: Annotated[str, Meta(description="The parameter with the number of the page.")] = "page"
    start: Annotated[int, Meta(description="The number of the first page.")] = 1
    size_param: Annotated[str | None, Meta(description="The parameter with the size of a page.")] = None
    size: Annotated[AtLeastOne | None, Meta(description="Rows of a page: a shorter one is the last.")] = None
    into: Into = "query"
    max_pages: MaxPages = 10_000


class Offsets(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="offset"):
    """`?offset=0&limit=100`, `?offset=100&limit=100` … until a page is shorter than `size`."""

    param: Annotated[str, Meta(description="The parameter with the number of rows to leave out.")] = "offset"
    size_param: Annotated[str, Meta(description="The parameter with the size of a page.")] = "limit"
    size: Annotated[int, Meta(ge=1, description="Rows of a page.")] = 100
    into: Into = "query"
    max_pages: MaxPages = 10_000


class Cursors(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="cursor"):
    """The answer says how to ask for the next page: a text for `param`, or a whole URL."""

    next: Annotated[
        str, Meta(description="Where in the answer it is, such as `meta.next_cursor`; null or missing at the end.")
    ]
    param: Annotated[str, Meta(description="The parameter that takes it.")] = "cursor"
    into: Into = "query"
    max_pages: MaxPages = 10_000


class Links(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="link"):
    """The header `Link: <…>; rel="next"` has the URL of the next page."""

    max_pages: MaxPages = 10_000


Pagination = PageNumbers | Offsets | Cursors | Links


@dataclass(frozen=True, slots=True)
class Page:
    """One request: where it goes, and the parameters that make it this page."""

    url: str
    query: Mapping[str, Any]
    json: Mapping[str, Any]
    number: int = 0
    is_whole: bool = False
    """The URL is one that the server gave: the parameters of the first are in it already."""


def first_page(url: str, pagination: Pagination | None) -> Page:
    page = Page(url, {}, {})
    match pagination:
        case PageNumbers():
            sized = {pagination.size_param: pagination.size} if pagination.size_param and pagination.size else {}
            return _with(page, pagination.into, {pagination.param: pagination.start, **sized})
        case Offsets():
            return _with(page, pagination.into, {pagination.param: 0, pagination.size_param: pagination.size})
        case _:
            return page


def next_page(
    page: Page, pagination: Pagination | None, rows: int, answer: Any, headers: Mapping[str, Any], first: str
) -> Page | None:
    """The request after this one, or None when this was the last. `first` is the URL that the author gave."""
    after = _following(page, pagination, rows, answer, headers)
    if after is None:
        return None
    if after.is_whole and origin_of(after.url) != origin_of(first):
        raise ComponentFailure(
            "refused",
            f"page {page.number + 1} leads to `{origin_of(after.url)}`, another server than `{origin_of(first)}`",
        )
    if after.url == page.url and after.query == page.query and after.json == page.json:
        raise ComponentFailure("pagination", f"page {page.number + 1} leads to itself")
    after = replace(after, number=page.number + 1)
    if pagination is not None and after.number >= pagination.max_pages:
        raise ComponentFailure("pagination", f"there are more than `max_pages` ({pagination.max_pages}) pages")
    return after


def _following(
    page: Page, pagination: Pagination | None, rows: int, answer: Any, headers: Mapping[str, Any]
) -> Page | None:
    match pagination:
        case None:
            return None
        case PageNumbers():
            if rows == 0 or (pagination.size is not None and rows < pagination.size):
                return None
            return _with(page, pagination.into, {pagination.param: pagination.start + page.number + 1})
        case Offsets():
            if rows < pagination.size:
                return None
            return _with(page, pagination.into, {pagination.param: (page.number + 1) * pagination.size})
        case Cursors():
            cursor = value_at(answer, pagination.next)
            if cursor is None or cursor == "" or cursor is False:
                return None
            text = str(cursor)
            if text.startswith(("http://", "https://", "/")):
                return Page(urljoin(page.url, text), {}, {}, is_whole=True)
            return _with(page, pagination.into, {pagination.param: cursor})
        case Links():
            link = next_link(str(headers.get("link", "")))
            return None if link is None else Page(urljoin(page.url, link), {}, {}, is_whole=True)


def _with(page: Page, into: str, params: Mapping[str, Any]) -> Page:
    if into == "query":
        return replace(page, query={**page.query, **params})
    return replace(page, json={**page.json, **params})
