"""RunView: what a log amounts to up to one event, the same for playbooks and jobs.

Law: `apply` takes one entry after the other, needs nothing but the entry, and never fails on what a newer release wrote. A view
that is restored from a snapshot and continues equals one that never stopped. By default memory is bounded: step runs, iterations
and executions that have closed become counters, but for the latest and for the first that failed.

A run as it was at an earlier entry is folded from the snapshot before that entry. Snapshots are made while a log is folded, where
there are none yet; one that cannot be read or kept costs time and nothing else.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol, Self, TypeAlias
from zlib import error as NotCompressed

import msgspec
from msgspec import MsgspecError

from penstock.kernel.errors import PenstockError
from penstock.ports.log import Entry, Snapshots
from penstock.views.contexts import opened_with
from penstock.views.model import (
    KEPT_FAILURES,
    RUNNING,
    Context,
    Execution,
    Start,
    Stop,
    View,
)
from penstock.views.payload import NOTHING, Payload, payload_of
from penstock.views.steps import BARE, STEP_HANDLERS
from penstock.views.wording import error_line

FORMAT = 4
"""Of snapshots: one of another format is ignored."""
KEPT_CHILDREN = 200
STARTS = frozenset({"playbook.started", "job.started"})

Handler: TypeAlias = "Callable[[View, Execution, str, Payload, Entry], None]"


class RunView(View):
    """A view that takes in entries."""

    @classmethod
    def of(cls, entries: Iterable[Entry], *, whole: bool = False, listed: Iterable[str] = ()) -> RunView:
        return cls(whole=whole, listed=list(listed)).apply_all(entries)

    # ---- folding

    def apply_all(self, entries: Iterable[Entry]) -> RunView:
        apply = self.apply
        for entry in entries:
            apply(entry)
        return self

    def apply(self, entry: Entry) -> None:
        kind, scope = entry.type, entry.scope
        self.seq, self.ts = entry.seq, entry.ts
        if not self.first_ts:
            self.first_ts = entry.ts
        self.counts[kind] = self.counts.get(kind, 0) + 1
        cut = scope.rfind("/") + 1
        execution = self.executions.get(scope[:cut])
        if execution is None:
            if kind in STARTS:
                _opened(self, entry)
            return
        execution.counts[kind] = execution.counts.get(kind, 0) + 1
        handler = _HANDLERS.get(kind)
        if handler is None:
            return
        try:
            data = payload_of(entry) if kind not in BARE else NOTHING
        except msgspec.ValidationError:  # A newer release wrote it, and means something else by one of the names.
            return
        handler(self, execution, scope[cut:], data, entry)

    # ---- snapshots

    def snapshot(self) -> bytes:
        return zlib.compress(msgspec.json.encode(self), 1)

    @classmethod
    def restore(cls, data: bytes) -> Self:
        view = msgspec.json.decode(zlib.decompress(data), type=cls)
        if any(one.kind == "job" for one in view.executions.values()):
            _load_jobs()
        return view


# ---- executions


def _opened(view: View, entry: Entry) -> None:
    data = payload_of(entry)
    kind = entry.type.partition(".")[0]
    execution = Execution(
        entry.scope, kind, data.name, data.entry, entry.ts, data.document, data.parent, continues=data.continues
    )
    view.executions[entry.scope] = execution
    execution.workload, execution.counts[entry.type] = data.workload, 1
    if kind == "job":
        _load_jobs()
    before = view.executions.get(f"{data.continues}/") if data.continues is not None else None
    if kind == "playbook":
        execution.ctx = opened_with(data.state) if data.continues is None else Context()
    if before is not None:
        _carry_over(before, execution)
    execution.starts.append(Start(entry.ts, bool(execution.starts), len(data.kept), seq=entry.seq))
    if not execution.scope:
        view.mark("start", entry, f"the run of `{data.name}` began")
    if before is not None and kind == "job":
        _restarted(view, execution, data)


def _load_jobs() -> None:
    """Loads the handlers of job events when the first job comes: loading them takes longer than a short playbook runs."""
    if "component.started" not in _HANDLERS:
        from penstock.views.components import COMPONENT_HANDLERS  # As the docstring says.

        _HANDLERS.update(COMPONENT_HANDLERS)


def _carry_over(before: Execution, execution: Execution) -> None:
    """A failed child continues under its task's next run, with what it had done."""
    copy = msgspec.json.decode(msgspec.json.encode(before), type=Execution)
    execution.ctx, execution.results = copy.ctx, copy.results
    execution.result, execution.result_path = copy.result, copy.result_path
    if execution.kind != "job":
        return
    execution.starts = copy.starts
    for name, run in copy.runs.items():
        run.id = execution.scope + name
    copy.leave_leases()
    for part in ("runs", "groups", "fires", "fired", "gone", "opened", "inside", "kept_fans", "writes"):
        setattr(execution, part, getattr(copy, part))


def _restarted(view: View, execution: Execution, data: Payload) -> None:
    from penstock.views.components import restart  # Only a job that is resumed needs it.

    cut = len(execution.scope)
    restart(
        execution,
        {scope[cut:] for scope in (*data.kept, *data.kept_components)},
        {scope[cut:] for scope in data.reopened},
        is_lost=data.lost is not None,
        is_listed=view.lists(execution),
    )


def _job_started(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    """A resume is a new start, which keeps some sub-jobs as they are (D30)."""
    execution.starts.append(Start(entry.ts, True, len(data.kept), seq=entry.seq))
    execution.workload = data.workload
    if data.lost is not None:
        _lose(view, execution, data.lost, entry)
        view.mark("lost", entry, f"the worker of sub-job `{data.lost}` was lost, and the sub-job starts over")
    else:
        view.end_leases(execution, entry.seq)
        view.mark("resume", entry, f"{_whole_or(execution)} was resumed")
    _taken_up(execution)
    _restarted(view, execution, data)


def _lose(view: View, execution: Execution, scope: str, entry: Entry) -> None:
    from penstock.views.components import lose  # Only a job needs it.

    lose(view, execution, scope[len(execution.scope) :], entry)


def _resumed(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    execution.starts.append(Start(entry.ts, True, seq=entry.seq))
    view.mark("resume", entry, f"{_whole_or(execution)} was resumed")
    _taken_up(execution)


def _whole_or(execution: Execution) -> str:
    return f"`{execution.scope.removesuffix('/')}`" if execution.scope else "the run"


def _taken_up(execution: Execution) -> None:
    execution.status, execution.error, execution.exit_code = RUNNING, None, None
    execution.ended_at, execution.stopped_seq, execution.failed_iterations = None, None, 0
    execution.end_seq = None


def _interrupted(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    execution.status = "interrupted"
    view.end_leases(execution, entry.seq)
    execution.stops.append(Stop(entry.ts, data.reason, entry.seq))
    view.mark("interrupted", entry, f"{_whole_or(execution)} was interrupted: {data.reason}")


def _cancelling(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    execution.cancel_reason, execution.cancel_seq = data.reason, entry.seq
    view.mark("cancel", entry, f"{_whole_or(execution)} was cancelled: {data.reason}")
    execution.stopped_seq = execution.stopped_seq or entry.seq


def _ended(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    execution.status, execution.error, execution.ended_at = data.status, data.error, entry.ts
    execution.exit_code, execution.failed_iterations = data.exit_code, data.failed_iterations
    execution.end_seq = entry.seq
    if not execution.scope:
        error = f": {error_line(data.error)}" if data.error is not None else ""
        was = {"completed": "is", "cancelled": "was"}.get(data.status, "has")
        view.mark("end", entry, f"the run {was} {data.status}{error}")
        if data.status == "failed" and view.first_error is None:
            view.first_error = entry.seq
    else:
        view.closed.append(execution.scope)
        if len(view.closed) > 2 * KEPT_CHILDREN:
            _let_go(view)


def _let_go(view: View) -> None:
    """The executions that ended first inside the run become counters; in a whole view only the insides of jobs go."""
    failed = sum(one.status == "failed" for one in view.executions.values())
    for scope in view.closed[:KEPT_CHILDREN]:
        execution = view.executions.get(scope)
        if execution is None or not execution.is_over:
            continue
        if view.whole:
            if execution.kind == "job" and not view.lists(execution):
                execution.runs, execution.groups, execution.fires, execution.inside = {}, {}, {}, {}
        elif execution.status != "failed" or failed > KEPT_FAILURES:
            failed -= execution.status == "failed"
            view.gone[execution.status] = view.gone.get(execution.status, 0) + 1
            del view.executions[scope]
    del view.closed[:KEPT_CHILDREN]


_HANDLERS: dict[str, Handler] = {
    "playbook.started": _resumed,
    "playbook.resumed": _resumed,
    "job.started": _job_started,
    **{
        f"{kind}.{event}": handler
        for kind in ("playbook", "job")
        for event, handler in (
            ("interrupted", _interrupted),
            ("cancelling", _cancelling),
            ("completed", _ended),
            ("failed", _ended),
            ("cancelled", _ended),
        )
    },
    **STEP_HANDLERS,
}


EVERY = 20_000
"""Entries from one snapshot to the next."""
LATEST = 1 << 62


class Readable(Snapshots, Protocol):
    """A log that entries can be read from, wherever it is."""

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]: ...


def view_at(log: Readable, execution_id: str, seq: int = LATEST, *, every: int = EVERY) -> RunView:
    """The view right after entry `seq`, or after the last one there is."""
    view = nearest(log, execution_id, seq) or RunView()
    if view.seq >= seq:
        return view
    for entry in log.read(execution_id, view.seq):
        view.apply(entry)
        if entry.seq % every == 0:
            with suppress(PenstockError):
                log.keep_snapshot(execution_id, FORMAT, entry.seq, view.snapshot())
        if entry.seq >= seq:
            break
    return view


def nearest(log: Readable, execution_id: str, seq: int, after: int = 0) -> RunView | None:
    """From the last snapshot at or before entry `seq`, if that is of an entry behind `after`."""
    with suppress(PenstockError, MsgspecError, NotCompressed):
        found = log.snapshot(execution_id, FORMAT, seq)
        if found is not None and found[0] > after:
            return RunView.restore(found[1])
    return None
