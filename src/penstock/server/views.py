"""Runs as people and programs read them: the output of `--json` and the answers of the API are made here."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore, ResultRef, is_ref
from penstock.ports.log import Entry, EventLog, Header
from penstock.ports.results import decode, loader, thawed
from penstock.server.documents import Documents, Pinned
from penstock.views.headers import CRASHED
from penstock.views.model import Execution
from penstock.views.run_view import EVERY, LATEST, RunView, view_at

if TYPE_CHECKING:
    from penstock.dialects.job import CompiledJob
    from penstock.dialects.playbook import Compiled
    from penstock.kernel.net import Net
    from penstock.server.runs import RunSummary
    from penstock.views.answers import JobStanding


class RunDocuments:
    """The pinned documents of a run, compiled on demand."""

    def __init__(
        self,
        log: EventLog,
        blobs: BlobStore,
        documents: Documents,
        execution_id: str,
        near: Callable[[str], str] = lambda file: file,
    ) -> None:
        """`near` returns the name under which people know a file."""
        self._log = log
        self._blobs = blobs
        self._documents = documents
        self._execution_id = execution_id
        self._near = near
        self._known: dict[str, tuple[Net, Compiled | CompiledJob] | None] = {}

    def net(self, execution: Execution) -> Net | None:
        found = self._compiled(execution)
        return found[0] if found is not None else None

    def root(self) -> tuple[Net, Compiled | CompiledJob]:
        """What the run itself runs, whatever its log holds."""
        return self._documents.compile(Pinned.from_bytes(self._log.document(self._execution_id)))

    def root_net(self) -> Net | None:
        try:
            return self.root()[0]
        except PenstockError:
            return None

    def where(self, execution: Execution, step: str, arc: int | None = None, task: str | None = None) -> str:
        found = self.place(execution, step, arc, task)
        return f"{found[0]}:{found[1]}" if found is not None else ""

    def place(
        self, execution: Execution, step: str, arc: int | None = None, task: str | None = None
    ) -> tuple[str, int] | None:
        """File and line of a step, of one of its arcs or of one of its tasks."""
        found = self._compiled(execution)
        if found is None:
            return None
        positions = found[1].positions
        position = positions.steps.get(step)
        if task is not None:
            position = positions.tasks.get((step, task), position)
        elif arc is not None:
            position = positions.arcs.get((step, arc), position)
        return (self._near(position.file), position.line) if position is not None and position.line else None

    def graph(self, execution: Execution) -> JsonMap | None:
        """For a page; None when the document can no longer be read."""
        from penstock.server.graphs import graph_of  # Only a page asks for it.

        found = self._compiled(execution)
        return graph_of(*found, self._near) if found is not None else None

    def _compiled(self, execution: Execution) -> tuple[Net, Compiled | CompiledJob] | None:
        if execution.scope not in self._known:
            try:
                self._known[execution.scope] = self._documents.compile(self._pinned(execution))
            except PenstockError:  # A tool that is no longer installed, or a result store that was emptied: show less.
                self._known[execution.scope] = None
        return self._known[execution.scope]

    def _pinned(self, execution: Execution) -> Pinned:
        document = execution.document
        if isinstance(document, dict) and is_ref(document):
            return Pinned.from_bytes(self._blobs.get(ResultRef.from_json(document)))
        if document is not None:
            return Pinned.from_mapping(document)
        return Pinned.from_mapping(decode(self._log.document(self._execution_id)))


@dataclass(frozen=True, slots=True)
class Shown:
    """The end of a job as its log has it, or its progress so far."""

    status: str
    exit_code: int | None
    error: Json
    duration_ms: float
    result: Json = None


@dataclass(frozen=True, slots=True)
class Views:
    """`status_of` returns the status as people should read it: `crashed` for a run that nobody works on any more."""

    log: EventLog
    blobs: BlobStore
    documents: Documents
    status_of: Callable[[Header], str] = lambda header: header.status
    near: Callable[[str], str] = lambda file: file

    def book(self, header: Header) -> RunDocuments:
        return RunDocuments(self.log, self.blobs, self.documents, header.execution_id, self.near)

    def shown(self, header: Header) -> JsonMap:
        """What `penstock show --json` prints."""
        if header.kind == "job":
            return self._job(header)
        return self._playbook(header)

    def _playbook(self, header: Header) -> JsonMap:
        from penstock.views.answers import children_of, fanins, step_runs  # Imported on demand: start-up time.

        run, status = header.execution_id, self.status_of(header)
        is_live = status == "running"
        seen = self._whole(header)
        found = self._summary(seen, header, is_live=is_live).as_json()
        # A server that sets a run aside may be unable to write an event: then only the header says so.
        if status in (CRASHED, "interrupted") or (seen.root is not None and seen.root.status == "interrupted"):
            found.update(status="interrupted", exit_code=3)
        elif is_live:
            found.update(status="running", exit_code=None)
        steps, fanin = step_runs(seen, is_live=is_live), fanins(seen, is_live=is_live)
        children = children_of(seen, run, self.book(header).net, is_live=is_live)
        return {**found, **_more(header, status), "steps": _json(steps), "fanin": fanin, "children": _json(children)}

    def _whole(self, header: Header) -> RunView:
        """The view with every step run. For a long run it starts from a snapshot, unless the run has more step runs than a
        view keeps."""
        if header.last_seq > EVERY:
            seen = self.at(header)
            if seen.is_complete:
                return seen
        return RunView.of(self.log.read(header.execution_id), whole=True)

    def _summary(self, seen: RunView, header: Header, *, is_live: bool) -> RunSummary:
        from penstock.server.runs import RunSummary  # Reading a run needs nothing of what runs one: start-up time.
        from penstock.views.answers import counts_of  # Imported on demand: start-up time.

        # If nothing has happened yet in a registered run, only its header has information.
        root = seen.root or Execution("", header.kind, header.name, "", header.started_at, status="new")
        ended = root.ended_at
        if ended is None:
            ended = time.time() if is_live and seen.root is not None else seen.ts or header.started_at
        load = loader(self.blobs)
        return RunSummary(
            header.execution_id,
            root.kind,
            root.name,
            root.status,
            root.error,
            held_ctx=thawed(root.ctx.values, load),
            held_result=thawed(root.result, load),
            counts=counts_of(seen),
            duration_ms=round(max(0.0, ended - root.started_at) * 1000, 3),
            own_exit_code=root.exit_code,
        )

    def _job(self, header: Header) -> JsonMap:
        from penstock.views.answers import job_json  # Imported on demand: start-up time.

        standing = self.job(header, with_iterations=True)
        status = self.status_of(header)
        return {**job_json(header, standing, job_shown(status, header, standing)), **_more(header, status)}

    def job(self, header: Header, *, with_iterations: bool) -> JobStanding:
        """Without iterations, what is inside them is counted but not listed, except for those that failed."""
        from penstock.views.answers import job_standing  # Imported on demand: start-up time.

        net = self.book(header).root_net()
        if not with_iterations:
            return job_standing(self.at(header), net)
        return job_standing(RunView.of(self.log.read(header.execution_id), listed=[""]), net)

    def at(self, header: Header, seq: int = LATEST) -> RunView:
        """The run right after one of its entries."""
        return view_at(self.log, header.execution_id, seq)

    def explained(self, header: Header, node: str) -> JsonMap:
        """Why a step of a playbook or a component of a job ran, waits or was skipped: what `penstock explain --json` prints."""
        from penstock.views.explain import Log, explain  # Imported on demand: start-up time.

        run = header.execution_id
        is_live = self.status_of(header) == "running"
        log = Log(lambda: self.log.read(run), loader(self.blobs), is_live, lambda: self._whole(header))
        return {"execution_id": run, **explain(node, log, self.book(header)).as_json()}

    def why(self, header: Header, node: str, scope: str, view: RunView, seq: int) -> JsonMap:
        """The same as it was right after entry `seq`, with the event and the line of the document behind each sentence.

        `view` is the run at that entry, of which a long run is explained as far as it is kept there."""
        from penstock.views.explain import Log, explain  # Imported on demand: start-up time.
        from penstock.views.folded import entries_between

        run, root = header.execution_id, view.root
        is_latest = seq >= header.last_seq
        is_live = root is not None and root.status == "running"
        if is_latest:
            is_live = is_live and self.status_of(header) == "running"

        def part(after: int, upto: int | None) -> Iterator[Entry]:
            return entries_between(self.log, run, after, min(seq, LATEST if upto is None else upto))

        def whole() -> RunView:
            return view if is_long or (seq > EVERY and view.is_complete) else RunView.of(part(0, None), whole=True)

        is_long = seq > LONG
        before = (lambda at: view_at(self.log, run, at)) if is_long else None
        log = Log(lambda: part(0, None), loader(self.blobs), is_live, whole, part, before)
        book = self.book(header)
        answer = explain(node if node.startswith(scope) else f"{scope}{node}", log, book)

        def said(line: str) -> JsonMap:
            return _sentence(line, view, book)

        return {
            "execution_id": run,
            "node": answer.node,
            "status": answer.status,
            "headline": said(answer.headline),
            "because": [{"title": one.title, "lines": [said(line) for line in one.lines]} for one in answer.sections],
        }


LONG = 100_000
"""Entries that are folded anew for one explanation; a longer run is explained from what its view has kept."""


def _sentence(line: str, view: RunView, book: RunDocuments) -> JsonMap:
    from penstock.views.explain import Sentence  # Imported on demand: start-up time.

    text, seq, node, scope = str(line), None, None, None
    place: tuple[str, int] | None = None
    if isinstance(line, Sentence):
        seq, node, scope = line.seq, line.node, line.execution
        execution = view.executions.get(line.execution)
        if node is not None and execution is not None:
            place = book.place(execution, node, line.arc, line.task)
    own = _PLACE.search(text)
    if own is not None:
        text = text[: own.start()]
        place = (own[1], int(own[2]))
    file, number = place or (None, None)
    return {"text": text, "seq": seq, "file": file, "line": number, "node": node, "scope": scope}


_PLACE = re.compile(r"  \((.+):(\d+)\)$")


def job_shown(status: str, header: Header, standing: JobStanding) -> Shown:
    job = standing.execution
    started = job.starts[0].at if job.starts else header.started_at
    until = job.ended_at if job.ended_at is not None else time.time() if status == "running" else standing.last_ts
    took = round(max(0.0, (until or started) - started) * 1000, 3)
    if status == "running":
        return Shown("running", None, None, took)
    if status in (CRASHED, "interrupted") or job.status in ("interrupted", "running"):
        return Shown("interrupted", 3, None, took)
    codes = {"completed": 0, "failed": job.exit_code or 1, "cancelled": 1}
    return Shown(job.status, codes.get(job.status, 4), job.error, took)


def _more(header: Header, status: str) -> JsonMap:
    return {"label": header.label, "crashed": status == CRASHED, "file": header.path}


def _json(value: Any) -> Json:
    found: Json = value
    return found
