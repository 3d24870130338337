"""`http_rows`: rows from an HTTP interface, page by page."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import IO, Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta

from penstock.components.base import Action, Call, ComponentFailure, Mistake, PlanCall, Port
from penstock.components.flow.tool_calls import tool_call, tool_failures
from penstock.components.incremental import IncrementalParam
from penstock.components.io import columns, words
from penstock.components.io.http_pages import Page, Pagination, first_page, next_page
from penstock.data.untyped import NOTHING, UNKNOWN_COLUMNS
from penstock.kernel.values import JsonMap
from penstock.ports.meanings import KEYCHAIN_ENTRY, WEB
from penstock.ports.rows import Column, Relation, Schema
from penstock.tools.http_answers import value_at
from penstock.tools.http_request import Fields, Scalar

_BATCH = 5_000


class HttpRowsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, Meta(min_length=1, description="Where to: an `http` or `https` URL.", extra_json_schema=WEB)]
    method: Annotated[str, Meta(description="`GET` or `POST`.")] = "GET"
    params: Annotated[
        Fields, Meta(description="Query parameters. A list repeats the name; null leaves the parameter out.")
    ] = {}
    headers: Annotated[dict[str, Scalar], Meta(description="Request headers. Null leaves a header out.")] = {}
    json: Annotated[Any, Meta(description="A body sent as JSON.")] = UNSET
    auth: Annotated[
        str | dict[str, Any] | None,
        Meta(
            description="The name of a keychain entry, or a mapping, as for the `http` tool of playbooks.",
            extra_json_schema=KEYCHAIN_ENTRY,
        ),
    ] = None
    rows: Annotated[
        str | None,
        Meta(description="Where in the answer the rows are, such as `data.items`; the answer itself when left out."),
    ] = None
    pagination: Annotated[
        Pagination | None,
        Meta(
            description="How to get the next page: `{kind: page}`, `{kind: offset, size: 100}`, "
            "`{kind: cursor, next: meta.next}` or `{kind: link}`."
        ),
    ] = None
    columns: Annotated[
        words.Columns,
        Meta(description="The keys to keep, in this order: names, or `{name, type}`. All of them when left out."),
    ] = []
    attempts: Annotated[
        int, Meta(ge=1, description="How often to ask when the server is busy or away (408, 425, 429 and 5xx).")
    ] = 4
    retry_delay: Annotated[
        float,
        Meta(ge=0, description="Seconds between two attempts, or longer when the server says so in `Retry-After`."),
    ] = 1.0
    timeout: Annotated[float, Meta(gt=0, description="Seconds that the server may stay silent.")] = 60.0
    verify: Annotated[
        bool | str, Meta(description="Check the server's certificate; or the file of those to trust.")
    ] = True
    max_page_bytes: Annotated[int, Meta(gt=0, description="The largest answer that is accepted.")] = 104_857_600
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
    Params = HttpRowsParams
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: fetch_orders}
context: {api: "https://api.example.com"}
components:
  - name: orders
    type: http_rows
    params:
      url: "{{ context.api }}/orders"
      params: {status: open}
      rows: data.items
      pagination: {kind: page, size_param: per_page, size: 100}
      columns: [{name: id, type: integer}, {name: customer, type: string}, {name: total, type: "decimal(10,2)"}]
  - name: show
    type: log_rows
connections:
  data: orders.main -> show.input
"""

    def check(self, params: HttpRowsParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        found = columns.type_mistakes(params.columns, {})
        into_json = getattr(params.pagination, "into", "query") == "json"
        if into_json and not isinstance(params.json, dict):
            found.append(Mistake(("pagination",), "`into: json` needs a mapping in `json` to put the page into"))
        return found

    def schemas(
        self, params: HttpRowsParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
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
    from penstock.tools.http import HttpParams, HttpTool

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
    wanted = columns.named(params.columns, declared)
    if not wanted or not all(wanted.values()):
        return None
    return tuple(Column(name, type or "VARCHAR") for name, type in wanted.items())


def _loaded(spool: IO[bytes], params: HttpRowsParams, call: Call) -> Relation:
    spool.seek(0)
    wanted = columns.named(params.columns, call.declared.get("main"))
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
    from sqlglot import exp

    from penstock.data import select

    present = [column.name for column in rows.schema]
    problem = columns.missing([name for name, type in wanted.items() if type is None], present, "the answer")
    if problem is not None:
        raise ComponentFailure("columns", problem)
    cells: list[exp.Expr] = []
    for name, type in wanted.items():
        value: exp.Expr = select.column(name) if name in present else exp.null()
        cells.append(exp.alias_(select.cast(value, type) if type is not None else value, select.name(name)))
    return call.engine.select(select.sql(exp.select(*cells).from_(select.table("found"))), {"found": rows})
