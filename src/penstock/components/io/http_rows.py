"""`http_rows`: rows from an HTTP interface, page by page."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, Annotated, Any, ClassVar, Literal
from urllib.parse import urljoin

import msgspec
from msgspec import UNSET, Meta
from sqlglot import exp

from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall, Port, Schemas
from penstock.components.flow.tool_calls import tool_call, tool_failures
from penstock.components.incremental import IncrementalParam
from penstock.components.io import parameters
from penstock.data import select
from penstock.data.types import NOTHING, UNKNOWN_COLUMNS
from penstock.kernel.values import JsonMap
from penstock.ports.meanings import KEYCHAIN_ENTRY, WEB
from penstock.ports.rows import Column, Relation, Schema
from penstock.tools.http.response import next_link, origin_of, value_at
from penstock.tools.http.tool import Fields, HttpParams, HttpTool, Scalar
from penstock.tools.parameters import about

AtLeastOne = Annotated[int, Meta(ge=1)]
MaxPages = Annotated[int, about("More pages than this are a failure.", ge=1)]
Into = Annotated[Literal["query", "json"], about("Where the parameters go: into the URL, or the JSON body.")]


class PageNumbers(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="page"):
    """`?page=1`, `?page=2` … until a page is empty, or shorter than `size`."""

    param: Annotated[str, about("The parameter with the number of the page.")] = "page"
    start: Annotated[int, about("The number of the first page.")] = 1
    size_param: Annotated[str | None, about("The parameter with the size of a page.")] = None
    size: Annotated[AtLeastOne | None, about("Rows of a page: a shorter one is the last.")] = None
    into: Into = "query"
    max_pages: MaxPages = 10_000


class Offsets(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="offset"):
    """`?offset=0&limit=100`, `?offset=100&limit=100` … until a page is shorter than `size`."""

    param: Annotated[str, about("The parameter with the number of rows to leave out.")] = "offset"
    size_param: Annotated[str, about("The parameter with the size of a page.")] = "limit"
    size: Annotated[int, about("Rows of a page.", ge=1)] = 100
    into: Into = "query"
    max_pages: MaxPages = 10_000


class Cursors(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="cursor"):
    """The answer says how to ask for the next page: a text for `param`, or a whole URL."""

    next: Annotated[str, about("Where in the answer it is, such as `meta.next_cursor`; null or missing at the end.")]
    param: Annotated[str, about("The parameter that takes it.")] = "cursor"
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


_BATCH = 5_000


class HttpRowsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, about("Where to: an `http` or `https` URL.", min_length=1, schema=WEB)]
    method: Annotated[str, about("`GET` or `POST`.")] = "GET"
    params: Annotated[Fields, about("Query parameters. A list repeats the name; null leaves the parameter out.")] = {}
    headers: Annotated[dict[str, Scalar], about("Request headers. Null leaves a header out.")] = {}
    json: Annotated[Any, about("A body sent as JSON.")] = UNSET
    auth: Annotated[
        str | dict[str, Any] | None,
        about(
            "The name of a keychain entry, or a mapping, as for the `http` tool of playbooks.", schema=KEYCHAIN_ENTRY
        ),
    ] = None
    rows: Annotated[
        str | None, about("Where in the answer the rows are, such as `data.items`; the answer itself when left out.")
    ] = None
    pagination: Annotated[
        Pagination | None,
        about(
            "How to get the next page: `{kind: page}`, `{kind: offset, size: 100}`, "
            "`{kind: cursor, next: meta.next}` or `{kind: link}`."
        ),
    ] = None
    columns: Annotated[
        parameters.Columns,
        about("The keys to keep, in this order: names, or `{name, type}`. All of them when left out."),
    ] = []
    attempts: Annotated[
        int, about("How often to ask when the server is busy or away (408, 425, 429 and 5xx).", ge=1)
    ] = 4
    retry_delay: Annotated[
        float, about("Seconds between two attempts, or longer when the server says so in `Retry-After`.", ge=0)
    ] = 1.0
    timeout: Annotated[float, about("Seconds that the server may stay silent.", gt=0)] = 60.0
    verify: Annotated[bool | str, about("Check the server's certificate; or the file of those to trust.")] = True
    max_page_bytes: Annotated[int, about("The largest answer that is accepted.", gt=0)] = 104_857_600
    incremental: IncrementalParam = None


class HttpRows(Action[HttpRowsParams]):
    """Read rows from an HTTP interface that answers in JSON, page by page.

    `rows` says where in each answer the list of rows is; an answer that is one object is one row. `pagination` says
    how to get the next page: by number, by offset, by a cursor in the answer, or by the header `Link`. The keys of
    all rows are the columns, with types that take all values; `columns` or the component's `schema` fix them.

    A busy server (429, 5xx) is asked again `attempts` times, after the time it asks for. Credentials come from the
    keychain through `auth`, and are never sent to another server than the one in `url`, wherever a next page leads.
    The result is `{pages, rows}`.
    """

    type = "http_rows"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def check(self, params: HttpRowsParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        found = parameters.type_mistakes(params.columns, {})
        into_json = getattr(params.pagination, "into", "query") == "json"
        if into_json and not isinstance(params.json, dict):
            found.append(Mistake(("pagination",), "`into: json` needs a mapping in `json` to put the page into"))
        return found

    def schemas(self, params: HttpRowsParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": _schema(params, call.declared.get("main"))}

    async def run(self, params: HttpRowsParams, call: Call) -> Any:
        for mistake in self.check(params, {}, PlanCall(call.folder, call.connected)):
            raise ComponentFailure("parameters", mistake.message)
        with tempfile.TemporaryFile(prefix="pages-", dir=call.work) as spool:
            pages, total = await _fetch_all(params, call, spool)
            rows = await call.threads.run(_loaded, spool, params, call)
        call.put("main", rows)
        return {"pages": pages, "rows": total}


async def _fetch_all(params: HttpRowsParams, call: Call, spool: IO[bytes]) -> tuple[int, int]:
    """All pages into the spool, an object a line; how many pages and rows there were."""
    page: Page | None = first_page(params.url.strip(), params.pagination)
    pages = total = 0
    while page is not None:
        answer = await _fetch(params, page, call)
        rows = _rows(answer["data"], params, page)
        await call.threads.run(_keep, spool, rows)
        pages, total = pages + 1, total + len(rows)
        call.progress("main", total)
        page = next_page(page, params.pagination, len(rows), answer["data"], answer["headers"], params.url.strip())
    return pages, total


async def _fetch(params: HttpRowsParams, page: Page, call: Call) -> Any:
    body = {**params.json, **page.json} if page.json else params.json
    request = HttpParams(
        url=page.url,
        method=params.method,
        params={} if page.is_whole else {**params.params, **page.query},
        headers=params.headers,
        json=body,
        auth=params.auth,
        verify=params.verify,
        response="json",
        max_response_bytes=params.max_page_bytes,
    )
    spec: JsonMap = {
        "timeout": {"connect": 10, "read": params.timeout, "write": params.timeout},
        "retry": {"attempts": params.attempts, "delay": params.retry_delay},
    }
    with tool_failures():
        answer = await HttpTool().run(request, tool_call(call, spec))
    return answer.result


def _rows(answer: Any, params: HttpRowsParams, page: Page) -> list[Any]:
    found = answer if params.rows is None else value_at(answer, params.rows)
    if found is None and params.rows is not None:
        keys = ", ".join(f"`{key}`" for key in answer) if isinstance(answer, dict) else "no object"
        raise ComponentFailure(
            "columns", f"page {page.number + 1}: there is nothing at `rows: {params.rows}`; the answer has {keys}"
        )
    if isinstance(found, list):
        return [row if isinstance(row, dict) else {"value": row} for row in found]
    return [] if found is None else [found if isinstance(found, dict) else {"value": found}]


def _keep(spool: IO[bytes], rows: list[Any]) -> None:
    spool.write(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def _schema(params: HttpRowsParams, declared: Schema | None) -> Schema | None:
    wanted = parameters.named(params.columns, declared)
    if not wanted or not all(wanted.values()):
        return None
    return tuple(Column(name, type or "VARCHAR") for name, type in wanted.items())


def _loaded(spool: IO[bytes], params: HttpRowsParams, call: Call) -> Relation:
    spool.seek(0)
    wanted = parameters.named(params.columns, call.declared.get("main"))
    lines = (msgspec.json.decode(line) for line in spool)
    first = next(lines, None)
    if first is None:
        known = tuple(Column(name, type or NOTHING) for name, type in wanted.items())
        return call.engine.empty(known or UNKNOWN_COLUMNS)
    rows = call.engine.load_mappings(_batches(first, lines))
    return _chosen(rows, wanted, call) if wanted else rows


def _batches(first: Any, lines: Iterator[Any]) -> Iterator[list[Any]]:
    yield [first]
    while batch := list(islice(lines, _BATCH)):
        yield batch


def _chosen(rows: Relation, wanted: Mapping[str, str | None], call: Call) -> Relation:
    """The columns that were asked for. A key that no row has is NULL when its type is given, and a mistake
    otherwise."""
    present = [column.name for column in rows.schema]
    problem = parameters.missing([name for name, type in wanted.items() if type is None], present, "the answer")
    if problem is not None:
        raise ComponentFailure("columns", problem)
    cells: list[exp.Expr] = []
    for name, type in wanted.items():
        value: exp.Expr = select.column(name) if name in present else exp.null()
        cells.append(exp.alias_(select.cast(value, type) if type is not None else value, select.name(name)))
    return call.engine.select(select.sql(exp.select(*cells).from_(select.table("found"))), {"found": rows})
