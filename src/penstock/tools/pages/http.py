"""What an HTTP interface lists page by page: by a cursor, by a link to the next page, or by numbers.

Law: a credential goes only to the server that was named, and a server that leads in circles, or away, ends the reading with a
failure. A page of the server is asked for once: it is kept, and handed out in parts if it is larger than what is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, cast
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import msgspec
from msgspec import UNSET

from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Page
from penstock.tools.base import Call, ToolFailure
from penstock.tools.http.response import next_link, origin_of, value_at
from penstock.tools.http.tool import DEFAULT_MAX_BYTES, Fields, HttpParams, HttpTool, Scalar, identity
from penstock.tools.pages.base import Reader
from penstock.tools.parameters import about

_NOTHING = (None, "", False)
SPEC: JsonMap = {
    "timeout": {"connect": 10, "read": 60, "write": 60, "total": 300},
    "retry": {"attempts": 5, "delay": 1},
}


class HttpPagesParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, about("Where the first page is.")]
    method: Annotated[Literal["GET", "POST"], about("How pages are asked for.")] = "GET"
    params: Annotated[Fields, about("Query parameters of every request.")] = {}
    json: Annotated[
        dict[str, Any] | None,
        about("The body of every request, for `POST`; what leads to the next page is put into it."),
    ] = None
    headers: Annotated[dict[str, Scalar], about("Headers of every request.")] = {}
    items: Annotated[
        str | None, about("Where in the answer the elements are, such as `data.items`; otherwise the answer is a list.")
    ] = None
    key: Annotated[
        str | None, about("Where in an element its name is, such as `id`; otherwise it is called by page and place.")
    ] = None
    next: Annotated[
        str | None,
        about(
            "Where in the answer it says how to go on, such as `meta.next_cursor`: a text for `next_param`, or a "
            "URL. Null, empty or missing on the last page."
        ),
    ] = None
    next_param: Annotated[str, about("The parameter that takes it.")] = "cursor"
    page_param: Annotated[
        str | None, about("The parameter that takes the number of the page. The first empty page is the end.")
    ] = None
    start: Annotated[int, about("The number of the first page.")] = 1
    step: Annotated[int, about("How far numbers are apart: for an offset, the size of a page.", ge=1)] = 1
    max_pages: Annotated[int, about("More pages than this are a failure.", ge=1)] = 10_000
    auth: Annotated[
        str | dict[str, Any] | None, about("The name of a keychain entry, or a mapping, as for the `http` tool.")
    ] = None
    verify: Annotated[
        bool | str, about("Check the server's certificate; a path names the file of certificates to trust.")
    ] = True
    max_response_bytes: Annotated[int, about("The largest answer accepted (100 MiB).", gt=0)] = DEFAULT_MAX_BYTES


class HttpPages(Reader[HttpPagesParams]):
    """What an HTTP interface lists page by page.

    - with `next`, the answer says where it goes on: a cursor, which is sent as `next_param`, or a URL;
    - with `page_param`, pages are counted: `?page=1`, `?page=2` … until one is empty. For offsets, `{page_param: offset,
      start: 0, step: 100}`;
    - with neither, the header `Link: <…>; rel="next"` leads on, if there is one.

    A request may take 10 s to connect and 300 s in all. It is sent up to 5 times when the server says 429 or 503 and the like,
    or cannot be reached; `Retry-After` is minded. A URL that leads to another server is a failure. `iter.iter_key` is what `key`
    leads to.
    """

    kind: ClassVar[str] = "http"
    reads: ClassVar[int] = 1

    def __init__(self, params: HttpPagesParams, call: Call) -> None:
        super().__init__(params, replace(call, spec={**SPEC, **call.spec}))
        if params.next is not None and params.page_param is not None:
            raise ToolFailure("parameters", "`next` and `page_param` are two ways to go on: give one of them")
        if params.json is not None and params.method == "GET":
            raise ToolFailure("parameters", "`json` is the body of a request: it needs `method: POST`")

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        """A token is `[number of the page, counted from 0, cursor or URL]`. Pages without elements are passed over."""
        number, cursor = cast("list[Any]", token) if token is not None else (0, None)
        while True:
            answer = await self._answer(number, cursor)
            items = self._items(answer["data"])
            following = self._following(number, cursor, items, answer)
            if items or following is None:
                return Page(items, following, following is None, self._keys(number, items))
            number, cursor = following

    async def _answer(self, number: int, cursor: Json) -> dict[str, Any]:
        params = self.params
        url, query, body = params.url, dict(params.params), params.json
        leads: dict[str, Any] = {}
        if params.page_param is not None:
            leads = {params.page_param: params.start + number * params.step}
        elif _is_url(cursor):
            url, query = str(cursor), {}
        elif cursor is not None:
            leads = {params.next_param: cursor}
        if params.method == "POST":
            body = {**(body or {}), **leads}
        else:
            query.update(leads)
        request = HttpParams(
            url=url,
            method=params.method,
            params=query,
            json=UNSET if params.method == "GET" else body,
            headers=params.headers,
            auth=params.auth,
            verify=params.verify,
            response="json",
            max_response_bytes=params.max_response_bytes,
            idempotency_key=False,
        )
        sent = await HttpTool().run(request, self.call)
        return cast("dict[str, Any]", sent.result)

    def _items(self, answer: Any) -> list[Any]:
        path = self.params.items
        found = answer if path is None else value_at(answer, path)
        if isinstance(found, list):
            return found
        if found is None and path is not None and isinstance(answer, Mapping):
            known = ", ".join(f"`{name}`" for name in list(answer)[:10]) or "nothing"
            raise ToolFailure("collection", f"the answer has no `{path}`; it has {known}")
        where = f"`{path}` of the answer" if path is not None else "the answer"
        hint = "" if path is not None else "; hint: say in `items` where the list is"
        raise ToolFailure("collection", f"{where} is not a list{hint}")

    def _keys(self, number: int, items: list[Any]) -> list[str]:
        path = self.params.key
        if path is None:
            return [f"{number}.{place}" for place in range(len(items))]
        keys = []
        for place, item in enumerate(items):
            key = value_at(item, path)
            if isinstance(key, bool) or not isinstance(key, (str, int, float)):
                raise ToolFailure("collection", f"element {place} of page {number + 1} has no `{path}` to be called by")
            keys.append(str(key))
        return keys

    def _following(self, number: int, cursor: Json, items: list[Any], answer: Mapping[str, Any]) -> list[Json] | None:
        """The token of the next page; None when there is none."""
        params = self.params
        after: Json = None
        if params.page_param is not None:
            if not items:
                return None
        else:
            after = self._lead(answer)
            if after is None:
                return None
            if after == cursor:
                raise ToolFailure("pagination", f"page {number + 1} leads to itself")
        if number + 1 >= params.max_pages:
            raise ToolFailure("pagination", f"there are more than `max_pages` ({params.max_pages}) pages")
        return [number + 1, after]

    def _lead(self, answer: Mapping[str, Any]) -> Json:
        """The cursor or URL of the next page, as the server says it."""
        if self.params.next is not None:
            found = value_at(answer["data"], self.params.next)
        else:
            found = next_link(str(cast("Mapping[str, Any]", answer["headers"]).get("link", "")))
            found = None if found is None else urljoin(str(answer["url"]), found)
        if found in _NOTHING:
            return None
        if not isinstance(found, (str, int)):
            raise ToolFailure("pagination", f"`{self.params.next}` of the answer is neither a text nor a whole number")
        if isinstance(found, str) and found.startswith(("http://", "https://", "/")):
            found = urljoin(str(answer["url"]), found)
            if origin_of(found) != origin_of(self.params.url):
                raise ToolFailure(
                    "pagination",
                    f"the next page is at `{origin_of(found)}`, another server than `{origin_of(self.params.url)}`",
                )
            found = self._without_key(found)
        lead: Json = found
        return lead

    def _without_key(self, url: str) -> str:
        """A token goes into the log, and an API key in a URL must not; it is put there again when the page is asked for."""
        secret = identity(self.params.auth, self.call).query
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        kept = [(name, value) for name, value in pairs if name not in secret]
        return url if len(kept) == len(pairs) else urlunsplit(parts._replace(query=urlencode(kept)))


def _is_url(cursor: Json) -> bool:
    return isinstance(cursor, str) and cursor.startswith(("http://", "https://"))
