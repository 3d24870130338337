"""What the web page asks about a run: the run right after any of its events, its graph, timeline, events, lines, values and rows.

Everything is made from the one `RunView` of the run at that event. A browser never loads all events: each answer is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from fastapi import Query, Request
from starlette.responses import Response

from penstock.api import page_answers
from penstock.api.backend import Backend, apart, at_length, backend_of
from penstock.api.catalog import compiled, pinned
from penstock.api.errors import ApiError, refusals
from penstock.api.models import DocumentAsked, In, Short
from penstock.api.routing import READ, RUN, Routes, answer
from penstock.dialects.kind import kind_of
from penstock.dialects.problems import Findings, Severity
from penstock.dialects.report import as_json
from penstock.kernel.errors import PenstockError
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.dispatch import LeaseSeen, name_of
from penstock.ports.log import Header
from penstock.ports.meters import RowsSoFar
from penstock.ports.results import loader
from penstock.ports.rows import Column, Schema
from penstock.server.calls import calls_of
from penstock.server.catalog import compiling
from penstock.server.documents import Pinned
from penstock.server.graphs import form_of, graph_of
from penstock.server.lineage import lineage_of
from penstock.server.preview import PreviewFailed
from penstock.server.views import LONG
from penstock.server.wait_reasons import waits
from penstock.views.compare import edge_differences, first_difference, node_differences, value_differences
from penstock.views.folded import entries_between
from penstock.views.headers import CRASHED, CRASHED_REASON
from penstock.views.history import Filter, Place, cause_page_of, event_page_of, line_page_of
from penstock.views.model import RUNNING, Execution
from penstock.views.moment import Live, marks_of, moment_of, status_reason
from penstock.views.ports import ends_of, ports_of, recorded_outputs
from penstock.views.run_view import RunView
from penstock.views.timeline import Holder, timeline_of, window_of, workers_of
from penstock.views.values import Part, Source, shown_values, values_of
from penstock.views.wording import error_line

if TYPE_CHECKING:
    from penstock.dialects.job import CompiledJob

T = TypeVar("T")

MOST_ROWS = 1_000
"""Of a preview."""
MOST_HEADERS = 2_000
"""The newest runs, from which figures are made."""

routes = Routes("pages", "/api/executions/{run}")
document_routes = Routes("pages", "/api")

At = Annotated[int | None, Query(ge=0, le=2**62, description="right after this event; the latest if left out")]
Scope = Annotated[
    str, Query(max_length=4000, description="an execution inside the run, by its scope; empty for the run itself")
]
Node = Annotated[str | None, Query(max_length=4000, description="such as `fetch`, `fetch@2`, `fetch[5]`, `load`")]


# ---- looking


@dataclass(frozen=True, slots=True)
class Seen:
    """Which event an answer is about."""

    seq: int
    wanted: int
    last: int

    @property
    def folded_to(self) -> int:
        return self.seq if self.seq < self.wanted else self.last


async def seen(backend: Backend, header: Header, at: int | None, make: Callable[[RunView, Seen], T]) -> T:
    """What `make` makes of the run right after event `at`. Of a long run that nobody has looked at, it is the farthest event
    that is known; the rest is folded afterwards, so that the next answer knows more."""
    run, last = header.execution_id, header.last_seq
    wanted = last if at is None else min(at, last)

    def look(view: RunView) -> tuple[T, bool]:
        return make(view, Seen(view.seq, wanted, last)), view.seq < wanted

    found, is_behind = await at_length(lambda: backend.folded.look(run, wanted, look))
    if is_behind and run not in backend.folding:
        task = asyncio.ensure_future(_fold_on(backend, run, last))
        backend.folding[run] = task
        task.add_done_callback(lambda _: backend.folding.pop(run, None))
    return found


async def _fold_on(backend: Backend, run: str, last: int) -> None:
    with suppress(PenstockError):  # Whoever asks next is told what is wrong.
        while await at_length(lambda: backend.folded.go_on(run, last)):
            pass


def _execution(view: RunView, scope: str, header: Header) -> Execution:
    """The execution with that scope; of the run itself also before it began."""
    found = view.executions.get(scope)
    if found is None and scope:
        raise ApiError(
            404,
            f"`{header.execution_id}` has no execution `{scope}` at this moment",
            "it has not begun, or it ended long ago and is no longer kept",
        )
    return found or Execution("", header.kind, header.name, "", header.started_at)


@routes.operation("GET /net", READ, "The graph of what a run runs", page_answers.GraphOut, 404, 409)
async def net(request: Request, run: str, scope: Scope = "") -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    book = backend.views.book(header)
    if scope:
        execution = await seen(backend, header, None, lambda view, _: _execution(view, scope, header))
    else:
        execution = _execution(RunView(), scope, header)
    graph = await at_length(lambda: book.graph(execution))
    if graph is None:
        raise ApiError(
            409, "the document can no longer be read", "a tool or component that it needs is not installed here"
        )
    return answer(graph)


@routes.operation("GET /moment", READ, "A run right after one of its events", page_answers.MomentOut, 404, 409)
async def moment(request: Request, run: str, at: At = None, scope: Scope = "") -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    leases = await _leases(backend, header)
    waiting = await _waiting(backend, leases)

    def make(view: RunView, at: Seen) -> JsonMap:
        return _moment(backend, header, view, at, scope, leases, waiting)

    return answer(await seen(backend, header, at, make))


async def _leases(backend: Backend, header: Header) -> list[LeaseSeen]:
    """What waits or is held of a run that goes on; the same at every server of a fleet."""
    if header.status == RUNNING:
        with suppress(PenstockError):  # The log is there without it.
            return await backend.dispatch.leases(header.execution_id)
    return []


async def _waiting(backend: Backend, leases: list[LeaseSeen]) -> str | None:
    """What a run waits for, when nothing of it is being worked on."""
    if leases and all(lease.worker is None for lease in leases):
        with suppress(PenstockError):
            reasons: list[Any] = waits(leases, await backend.dispatch.workers())
            return f"`{reasons[0]['scope']}` waits for a worker: {'; '.join(reasons[0]['why'])}"
    return None


def _live(now: float, counted: Iterable[RowsSoFar]) -> Live:
    rows, counted_at = dict[str, Mapping[str, int]](), dict[str, float]()
    for so_far in counted:
        rows.update(so_far.made)
        counted_at.update(dict.fromkeys(so_far.made, so_far.at))
    return Live(now, rows, counted_at)


_CODES = {"completed": 0, "failed": 1, "cancelled": 1, "interrupted": 3, CRASHED: 3}


def _moment(
    backend: Backend,
    header: Header,
    view: RunView,
    at: Seen,
    scope: str,
    leases: list[LeaseSeen],
    waiting: str | None,
) -> JsonMap:
    root, now = _execution(view, "", header), backend.clock.now()
    execution = _execution(view, scope, header)
    net = backend.views.book(header).net(execution)
    is_latest = view.seq >= header.last_seq
    status = backend.status_of(header) if is_latest else root.status
    is_live = is_latest and status == RUNNING
    reason = status_reason(root)
    if status == CRASHED:
        reason = CRASHED_REASON
    elif is_live and waiting is not None:
        reason = waiting
    code = _CODES.get(status)
    counted = [backend.rows_beside(header.execution_id), *(RowsSoFar.unpacked(one.rows) for one in leases)]
    live = _live(now, counted) if is_live else None
    return {
        "execution_id": header.execution_id,
        "seq": view.seq,
        "ts": view.ts or header.started_at,
        "now": now,
        "last_seq": header.last_seq,
        "folded_to": at.folded_to,
        "is_live": is_live,
        "kind": header.kind,
        "name": header.name,
        "label": header.label,
        "file": header.path,
        "digest": net.digest if net is not None else header.digest,
        "status": status,
        "status_reason": reason,
        "error": error_line(root.error) if root.error is not None else None,
        "exit_code": root.exit_code if code == 1 and root.exit_code is not None else code,
        "started_at": root.started_at,
        "ended_at": root.ended_at,
        "scope": scope,
        **moment_of(view, scope, net, live),
    }


@routes.operation("GET /marks", READ, "What is worth stopping at on a time slider", page_answers.MarksOut, 404, 409)
async def marks(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)

    def make(view: RunView, at: Seen) -> JsonMap:
        return {
            "last_seq": header.last_seq,
            "folded_to": at.folded_to,
            "first_ts": view.first_ts or header.started_at,
            "last_ts": view.ts or header.started_at,
            **marks_of(view),
        }

    return answer(await seen(backend, header, None, make))


@routes.operation(
    "GET /timeline", READ, "When things ran, waited and were tried again", page_answers.TimelineOut, 404, 409
)
async def timeline(
    request: Request,
    run: str,
    at: At = None,
    scope: Scope = "",
    since: Annotated[float | None, Query(description="seconds since the epoch")] = None,
    until: Annotated[float | None, Query(description="seconds since the epoch")] = None,
    pixels: Annotated[int, Query(ge=100, le=5000, description="what is narrower than a pixel is merged")] = 1000,
    workers: Annotated[bool, Query(description="a lane for each worker, not for each node")] = False,
) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    leases = await _leases(backend, header)
    asked_at = backend.clock.now()
    holders = {
        one.key.removeprefix(f"{one.execution_id}/"): Holder(name_of(one.worker), asked_at - one.age_s)
        for one in leases
        if one.worker is not None
    }

    def make(view: RunView, at: Seen) -> JsonMap:
        execution = _execution(view, scope, header)
        is_live = view.seq >= header.last_seq and backend.status_of(header) == RUNNING
        now, held = (backend.clock.now(), holders) if is_live else (None, {})
        window = window_of(view, execution, since, until, pixels, now, held)
        shown: JsonMap = {"seq": view.seq, "folded_to": at.folded_to}
        if workers:
            return {**shown, **workers_of(view, window)}
        net = backend.views.book(header).net(execution)
        return {**shown, **timeline_of(backend.log, header.execution_id, view, execution, net, window)}

    return answer(await seen(backend, header, at, make))


@routes.operation("GET /event-page", READ, "Some events of a run", page_answers.EventPageOut, 404, 409)
async def event_page(
    request: Request,
    run: str,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    type: Annotated[list[str] | None, Query(description="only events of these types; may be repeated")] = None,
    place: Annotated[str | None, Query(max_length=4000, description="only events of this node or scope")] = None,
    text: Annotated[str | None, Query(max_length=500, description="only events with this text in them")] = None,
    cause_of: Annotated[
        int | None, Query(ge=1, le=2**62, description="only the event that caused this one; nothing else is looked at")
    ] = None,
) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    if cause_of is not None:
        return answer(await at_length(lambda: cause_page_of(backend.log, header, cause_of)))
    wanted = Filter(frozenset(type or ()), Place.read(place), text)
    return answer(await at_length(lambda: event_page_of(backend.log, header, after, limit, wanted)))


@routes.operation("GET /lines", READ, "Some of what the tools of a run have said", page_answers.LinePageOut, 404, 409)
async def lines(
    request: Request,
    run: str,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
    node: Node = None,
    until: Annotated[float | None, Query(description="said by then; seconds since the epoch")] = None,
) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)

    def read(after: int, limit: int) -> list[JsonMap]:
        return backend.lines.read(header.execution_id, after, limit)

    return answer(await apart(lambda: line_page_of(read, after, limit, Place.read(node), until)))


@routes.operation(
    "GET /why",
    READ,
    "Why a step or component ran, waits or was skipped, with the events and lines that say so",
    page_answers.WhyOut,
    404,
    409,
)
async def why(
    request: Request,
    run: str,
    node: Annotated[str, Query(min_length=1, max_length=4000)],
    at: At = None,
    scope: Scope = "",
) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)

    def make(view: RunView, at: Seen) -> JsonMap:
        return backend.views.why(header, node, scope, view, at.seq)

    with refusals(404):
        return answer(await seen(backend, header, at, make))


def _listed(backend: Backend, header: Header, execution: Execution, node: str | None, seq: int) -> Execution:
    """A job with what its iterations did, if that is asked for, was let go, and is not too long ago."""
    if execution.kind != "job" or node is None or seq > LONG or not (execution.gone or execution.opened):
        return execution
    name = node.removeprefix(execution.scope)
    if any(name in (run.node, run.name) for run in execution.runs.values()) or name in execution.groups:
        return execution
    entries = entries_between(backend.log, header.execution_id, 0, seq)
    return RunView.of(entries, listed=[execution.scope]).executions.get(execution.scope, execution)


@routes.operation("GET /values", READ, "Variables, inputs, results and outcomes", page_answers.ValuesOut, 404, 409)
async def values(
    request: Request,
    run: str,
    node: Node = None,
    at: At = None,
    scope: Scope = "",
    value: Annotated[str | None, Query(max_length=200, description="only this one, by its id")] = None,
    path: Annotated[str | None, Query(max_length=4000, description="within it: a JSON pointer")] = None,
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)

    def make(view: RunView, at: Seen) -> JsonMap:
        execution = _listed(backend, header, _execution(view, scope, header), node, at.seq)
        load = loader(backend.blobs)
        source = Source(backend.log, header.execution_id, at.seq, load)
        net = backend.views.book(header).net(execution) if node is not None else None
        return shown_values(values_of(execution, net, node, source), load, value, Part(path or "", offset, limit))

    with refusals(404):
        return answer(await seen(backend, header, at, make))


@routes.operation("GET /ports", READ, "The ports of a job that gave rows out", page_answers.PortsOut, 404, 409)
async def ports(request: Request, run: str, scope: Scope = "") -> Response:
    backend = backend_of(request)
    header = await backend.found(run)

    def make(view: RunView, at: Seen) -> JsonMap:
        execution = _execution(view, scope, header)
        net = backend.views.book(header).net(execution)
        return {"ports": ports_of(backend.log, header.execution_id, execution, net) if execution.kind == "job" else []}

    return answer(await seen(backend, header, None, make))


class PreviewIn(In):
    component: Short
    port: Short | None = None
    rows: int = 50


@routes.operation("GET /rows", READ, "Rows of a port that were kept", page_answers.RowsOut, 404, 409)
async def rows(
    request: Request,
    run: str,
    component: Annotated[str, Query(min_length=1, max_length=4000)],
    port: Annotated[str, Query(min_length=1, max_length=200)] = "main",
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    if backend.rows is None:
        raise ApiError(409, "this process does not read kept rows", "ask a server")
    get = backend.rows

    def make(view: RunView, at: Seen) -> JsonMap:
        execution = _execution(view, "", header)
        entries = ends_of(backend.log, header.execution_id, execution, component, at.seq)
        return get(header, entries, component, port, offset, limit)

    with refusals(404):
        return answer(await seen(backend, header, None, make))


@routes.operation(
    "POST /preview",
    RUN,
    "Make the first rows of a port again",
    page_answers.RowsOut,
    404,
    409,
    415,
    description="Runs what these rows depend on, with the document and the inputs of the run; nothing is written.",
)
async def preview(request: Request, run: str, asked: PreviewIn) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    if backend.preview is None:
        raise ApiError(
            409,
            "this server runs nothing itself, so it cannot make rows again",
            "`penstock preview` makes them on a machine that has the files of the job",
        )
    try:
        with refusals(409):
            return answer(
                await backend.preview(header, asked.component, asked.port, max(1, min(asked.rows, MOST_ROWS)))
            )
    except PreviewFailed as error:
        where = f"component `{error.component}`: " if error.component else ""
        raise ApiError(409, f"{where}{error.kind}: {error.message}", code="preview_failed") from error


@routes.operation("GET /lineage", READ, "Which columns a column is made of", page_answers.LineageOut, 404, 409)
async def lineage(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    if header.kind != "job":
        raise ApiError(409, "a playbook has no columns", "ask for the job that a step of it runs")

    def recorded(view: RunView, at: Seen) -> dict[tuple[str, str], Schema]:
        execution = _execution(view, "", header)
        return {
            (name, port): tuple(Column(one["name"], one["type"]) for one in output["schema"])
            for name, outputs in recorded_outputs(backend.log, header.execution_id, execution).items()
            for port, output in outputs.items()
            if output.get("schema")
        }

    known = await seen(backend, header, None, recorded)

    def made() -> JsonMap:
        document = Pinned.from_bytes(backend.log.document(header.execution_id))
        return _lineage(backend, document, known)

    return answer(await compiling(made))


def _lineage(backend: Backend, document: Pinned, recorded: dict[tuple[str, str], Schema] | None) -> JsonMap:
    """`recorded`: the columns of a run; None of a document that has not run."""
    if kind_of(document.text) == "playbook":
        raise ApiError(422, "a playbook has no columns", "ask for the job that a step of it runs")
    found = backend.columns(document, recorded is not None) if backend.columns is not None else None
    net = found.net if found is not None else None
    if found is None or net is None:
        net, compiled_ = compiled(backend, document)
        found = cast("CompiledJob", compiled_)
    return lineage_of(net, found, recorded)


@routes.operation("POST /replay", RUN, "Decide a run again and compare", page_answers.ReplayOut, 404, 409)
async def replay(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    if backend.replay is None:
        raise ApiError(
            409,
            "this server cannot decide a run again",
            f"`penstock replay {header.execution_id}` does it on a machine with the engine",
        )
    with refusals(409):
        difference = await backend.replay(header.execution_id)
    return answer(
        {
            "execution_id": header.execution_id,
            "status": "same" if difference is None else "different",
            "events": header.last_seq,
            "difference": difference,
        }
    )


@document_routes.operation("GET /compare", READ, "Two runs side by side", page_answers.CompareOut, 404, 409)
async def compare(
    request: Request,
    left: Annotated[str, Query(min_length=1, max_length=500)],
    right: Annotated[str, Query(min_length=1, max_length=500)],
) -> Response:
    backend = backend_of(request)
    headers = await backend.found(left), await backend.found(right)
    sides = [await seen(backend, header, None, _side_of(backend, header)) for header in headers]
    one, other = sides

    def made() -> JsonMap:
        documents = [Pinned.from_bytes(backend.log.document(header.execution_id)) for header in headers]
        ends = [(backend.log, header.execution_id, header.last_seq) for header in headers]
        first, is_complete = first_difference(ends[0], ends[1])
        return {
            "left": one.shown,
            "right": other.shown,
            "same_document": documents[0].text == documents[1].text and documents[0].sources == documents[1].sources,
            "left_text": documents[0].text,
            "right_text": documents[1].text,
            "inputs": value_differences(one.workload, other.workload),
            "nodes": node_differences(one.moment["nodes"], other.moment["nodes"]),
            "edges": edge_differences(one.moment["edges"], other.moment["edges"], (one.net, other.net)),
            "first": first,
            "is_complete": is_complete and not one.is_behind and not other.is_behind,
        }

    return answer(await at_length(made))


@dataclass(frozen=True, slots=True)
class Side:
    """One of two runs that are compared."""

    shown: JsonMap
    workload: Any
    moment: Any
    net: Net | None
    is_behind: bool


def _side_of(backend: Backend, header: Header) -> Callable[[RunView, Seen], Side]:
    def make(view: RunView, at: Seen) -> Side:
        root = _execution(view, "", header)
        net = backend.views.book(header).net(root)
        ended = header.ended_at
        shown: JsonMap = {
            "execution_id": header.execution_id,
            "name": header.name,
            "label": header.label,
            "status": backend.status_of(header),
            "started_at": header.started_at,
            "ended_at": ended,
            "duration_ms": None if ended is None else round(max(0.0, ended - header.started_at) * 1000, 3),
            "events": header.last_seq,
            "digest": header.digest,
            "file": header.path,
        }
        return Side(shown, root.workload, moment_of(view, "", net), net, at.seq < at.wanted)

    return make


@document_routes.operation("GET /stats", READ, "The latest durations of each document", page_answers.StatList)
async def stats(request: Request, limit: Annotated[int, Query(ge=1, le=100)] = 20) -> Response:
    backend = backend_of(request)

    def made() -> list[Any]:
        documents: dict[tuple[str, str], list[Header]] = {}
        for header in backend.log.headers(MOST_HEADERS):
            runs = documents.setdefault((header.kind, header.name), [])
            if len(runs) < limit:
                runs.append(header)
        return [_stat(kind, name, runs[::-1], backend) for (kind, name), runs in documents.items()]

    return answer({"documents": await apart(made)})


def _stat(kind: str, name: str, runs: list[Header], backend: Backend) -> JsonMap:
    def took(header: Header) -> float | None:
        return None if header.ended_at is None else round(max(0.0, header.ended_at - header.started_at) * 1000, 3)

    return {
        "name": name,
        "kind": kind,
        "durations_ms": [took(header) for header in runs],
        "statuses": [backend.status_of(header) for header in runs],
        "runs": [header.execution_id for header in runs],
    }


@document_routes.operation(
    "POST /examine",
    READ,
    "A document as it is being written: problems, graph, form",
    page_answers.ExaminedOut,
    404,
    415,
)
async def examine(request: Request, asked: DocumentAsked) -> Response:
    backend = backend_of(request)

    def made() -> JsonMap:
        document = pinned(backend, asked.document)
        found = backend.documents.examined(document)
        problems = Findings([*found.problems, *calls_of(backend.documents, document, found).problems])
        has_errors = any(problem.severity is Severity.ERROR for problem in problems)
        net = found.net
        return {
            "status": "invalid" if has_errors else "valid",
            "problems": [*as_json(problems)],
            "graph": graph_of(net, found) if net is not None else None,
            "form": form_of(net) if net is not None else None,
        }

    return answer(await compiling(made))


@document_routes.operation(
    "POST /lineage", READ, "Which columns of a job its columns are made of", page_answers.LineageOut, 404, 415
)
async def document_lineage(request: Request, asked: DocumentAsked) -> Response:
    backend = backend_of(request)

    def made() -> JsonMap:
        return _lineage(backend, pinned(backend, asked.document), None)

    return answer(await compiling(made))
