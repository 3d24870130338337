"""Runs as people and programs read them, wherever they ask: what `--json` prints and what the API answers is made here, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore
from penstock.ports.log import Entry, EventLog, Header
from penstock.ports.results import decode, loader
from penstock.ports.wire import iso
from penstock.server.book import RunBook
from penstock.server.documents import Documents
from penstock.views.explain import Explanation, Log, explain
from penstock.views.history import earlier_of, history, job_around

if TYPE_CHECKING:
    from penstock.views.jobs import JobStanding

CRASHED = "crashed"


class Readable(Protocol):
    """A log that entries can be read from, wherever it is."""

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """A job's end as its log has it, or how far it is."""

    status: str
    exit_code: int | None
    error: Json
    duration_ms: float
    result: Json = None


@dataclass(frozen=True, slots=True)
class Views:
    """`status_of` gives the status as people should read it: `crashed` for what nobody works on any more."""

    log: EventLog
    blobs: BlobStore
    documents: Documents
    status_of: Callable[[Header], str] = lambda header: header.status
    near: Callable[[str], str] = lambda file: file

    def book(self, header: Header) -> RunBook:
        return RunBook(self.log, self.blobs, self.documents, header.execution_id, self.near)

    def shown(self, header: Header) -> JsonMap:
        """What `penstock show --json` prints."""
        if header.kind == "job":
            return self._job(header)
        return self._playbook(header)

    def _playbook(self, header: Header) -> JsonMap:
        from penstock.server.runs import summary_of
        from penstock.views.children import children_of
        from penstock.views.standing import standing_of
        from penstock.views.steps import fanins, step_runs

        run, status = header.execution_id, self.status_of(header)
        is_live = status == "running"
        standing = standing_of(self.log.read(run), loader(self.blobs))
        now = time.time() if is_live else standing.history.last_ts or header.started_at
        view = summary_of(run, standing.state, standing.history.counts, standing.events, now).as_json()
        steps = step_runs(standing.history, is_live=is_live)
        fanin = fanins(standing.history, is_live=is_live)
        book = self.book(header)
        children = children_of(self.log.read(run), standing.history, run, book.net, is_live=is_live)
        # Whoever set a run aside could write no event that says so: then only its header does.
        if status in (CRASHED, "interrupted") or standing.state.status == "interrupted":
            view.update(status="interrupted", exit_code=3)
        elif is_live:
            view.update(status="running", exit_code=None)
        if not standing.events:  # Registered, and nothing has happened yet.
            view.update(name=header.name, duration_ms=0.0)
        more = _more(header, status)
        return {**view, **more, "steps": _json(steps), "fanin": fanin, "children": _json(children)}

    def _job(self, header: Header) -> JsonMap:
        from penstock.views.jobs import job_json

        standing = self.job(header, with_iterations=True)
        status = self.status_of(header)
        return {**job_json(header, standing, job_shown(status, header, standing)), **_more(header, status)}

    def job(self, header: Header, *, with_iterations: bool) -> JobStanding:
        from penstock.views.jobs import job_standing

        entries, net = self.log.read(header.execution_id), self.book(header).root_net()
        return job_standing(entries, net, load=loader(self.blobs), with_iterations=with_iterations)

    def explained(self, header: Header, node: str) -> JsonMap:
        """Why a step of a playbook or a component of a job ran, waits or was skipped: what `penstock explain --json` prints."""
        run = header.execution_id
        is_live = self.status_of(header) == "running"
        log = Log(lambda: self.log.read(run), loader(self.blobs), is_live)
        return {"execution_id": run, **answered(node, header.kind, log, self.book(header)).as_json()}


def answered(node: str, kind: str, log: Log, book: RunBook) -> Explanation:
    """About a step of a playbook or a component of a job; of whatever runs inside them, by its full scope."""
    if kind == "job" and "/" not in node:
        return _of_job(node, "", log, book)
    seen = history(log.entries())
    inside = job_around(node, seen)
    if inside is not None:
        return _of_job(node.strip().removeprefix(inside), inside, log, book)
    return explain(node, seen, book, log)


def _of_job(node: str, execution: str, log: Log, book: RunBook) -> Explanation:
    from penstock.views.jobs_explain import explain_job
    from penstock.views.jobs_fold import JobFold
    from penstock.views.jobs_view import JobView

    told = history(log.entries())
    first, *then = [*earlier_of(execution, told), execution]
    seen = JobFold(first, log.load, then=then).add_all(log.entries())
    around = told.executions.get(execution)
    net = book.net(around) if around is not None else None

    def where(component: str) -> str:
        return book.where(around, component) if around is not None else ""

    return explain_job(node, JobView(seen, net, where, log.is_live), log)


def job_shown(status: str, header: Header, standing: JobStanding) -> Shown:
    seen = standing.seen
    started = seen.starts[0].at if seen.starts else header.started_at
    until = seen.ended_at if seen.ended_at is not None else time.time() if status == "running" else seen.last_ts
    took = round(max(0.0, (until or started) - started) * 1000, 3)
    if status == "running":
        return Shown("running", None, None, took)
    if status in (CRASHED, "interrupted") or seen.status in ("interrupted", "running"):
        return Shown("interrupted", 3, None, took)
    codes = {"completed": 0, "failed": seen.exit_code or 1, "cancelled": 1}
    return Shown(seen.status, codes.get(seen.status, 4), seen.error, took)


def listed(header: Header, status: str) -> JsonMap:
    """One line of `penstock runs --json`."""
    ended = header.ended_at
    return {
        "execution_id": header.execution_id,
        "kind": header.kind,
        "name": header.name,
        "label": header.label,
        "status": "interrupted" if status == CRASHED else status,
        "crashed": status == CRASHED,
        "failed_iterations": header.failed_iterations or 0,
        "file": header.path,
        "started_at": iso(header.started_at),
        "ended_at": None if ended is None else iso(ended),
        "duration_ms": None if ended is None else round(max(0.0, ended - header.started_at) * 1000, 3),
        "events": header.last_seq,
        "trace_id": header.trace_id,
    }


def with_failures(log: Readable, header: Header) -> Header:
    """The header with the number of iterations that failed and were gone on from, which the last event of a job says."""
    if header.kind != "job" or header.status != "completed" or header.failed_iterations is not None:
        return header
    failed = 0
    with suppress(PenstockError):  # A list of runs is shown even if one of them cannot be read.
        for entry in log.read(header.execution_id, header.last_seq - 1):
            if entry.type == "job.completed" and not entry.scope:
                data: Any = decode(entry.payload)
                failed = int(data.get("failed_iterations", 0))
    return replace(header, failed_iterations=failed)


def _more(header: Header, status: str) -> JsonMap:
    return {"label": header.label, "crashed": status == CRASHED, "file": header.path}


def _json(value: Any) -> Json:
    found: Json = value
    return found
