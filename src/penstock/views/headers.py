"""One run in a list of runs, from its header: what `penstock runs` and the API list. Light to import."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from penstock.kernel.errors import PenstockError
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry, EventLog, Header, Status
from penstock.ports.results import decode
from penstock.ports.wire import iso
from penstock.views.wording import counted

ShownStatus = Literal[Status, "crashed"]
CRASHED: Literal["crashed"] = "crashed"
"""The status of a run that the log calls running and that no process owns."""
CRASHED_REASON = "the process that worked on it is gone; it can be resumed"
LONGEST = 300


class Owned(Protocol):
    """A log that knows which of its runs a live process works on, wherever it is."""

    def header(self, execution_id: str, /) -> Header | None: ...

    def has_owner(self, execution_id: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are listed; what is None matters to none of them."""

    status: ShownStatus | None = None
    name: str | None = None
    """The name of the document, or the label of the run."""
    label: str | None = None
    kind: Literal["playbook", "job"] | None = None
    text: str | None = None
    """In the name, label, id or file."""
    since: float | None = None
    until: float | None = None


def newest_runs(
    log: EventLog,
    wanted: RunFilter,
    limit: int,
    seen: Callable[[Header], tuple[Header, str]],
    after: str | None = None,
) -> tuple[list[tuple[Header, str]], str | None]:
    """Runs, the newest first, with their status as `seen` reads it, and the run to go on after. The log does not know that a run
    has crashed, so more of those that it calls running may have to be looked at than are listed."""
    found: list[tuple[Header, str]] = []
    kept: Status | None = "running" if wanted.status == CRASHED else wanted.status
    while len(found) < limit:
        page = log.headers(
            limit,
            after=after,
            status=kept,
            name=wanted.name,
            since=wanted.since,
            until=wanted.until,
            kind=wanted.kind,
            label=wanted.label,
            text=wanted.text,
        )
        for header in page:
            after = header.execution_id
            now, shown = seen(header)
            if wanted.status in (None, shown):
                found.append((with_failures(log, now), shown))
                if len(found) == limit:
                    return found, after
        if len(page) < limit:
            break
    return found, None


def status_of(header: Header, log: Owned) -> str:
    """The status as people read it: a run that the log calls running and that no process owns has crashed."""
    return as_people_read_it(header, log)[1]


def as_people_read_it(header: Header, log: Owned) -> tuple[Header, str]:
    """The header, read again if the run has ended in the meantime, and the status."""
    if header.status != "running" or log.has_owner(header.execution_id):
        return header, header.status
    # An owner lets go of a run when its end is in the log, so only a header that is read afterwards can tell a crash.
    now = log.header(header.execution_id) or header
    # And it may just have been taken up again.
    is_crashed = now.status == "running" and not log.has_owner(now.execution_id)
    return now, CRASHED if is_crashed else now.status


class Readable(Protocol):
    """A log that entries can be read from, wherever it is."""

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]: ...


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
    """The header with the number of failed iterations that the job continued after, from the last event of the job."""
    if header.kind != "job" or header.status != "completed" or header.failed_iterations is not None:
        return header
    failed = 0
    with suppress(PenstockError):  # A list of runs is shown even if one of them cannot be read.
        for entry in log.read(header.execution_id, header.last_seq - 1):
            if entry.type == "job.completed" and not entry.scope:
                data: Any = decode(entry.payload)
                failed = int(data.get("failed_iterations", 0))
    return replace(header, failed_iterations=failed)


def last_words(log: Readable, header: Header) -> str | None:
    """Why a run failed, was interrupted or cancelled, in one line, from its last event."""
    try:
        last = next(iter(log.read(header.execution_id, header.last_seq - 1)), None)
        data: Any = {} if last is None else decode(last.payload)
    except PenstockError:  # A list of runs is shown even if one of them cannot be read.
        return None
    if last is None or last.scope or not isinstance(data, dict):
        return None
    error = data.get("error")
    said = error.get("message") if isinstance(error, dict) else error or data.get("reason")
    return " ".join(str(said).split())[:LONGEST] if said else None


def with_failed(status: str, failed: int) -> str:
    """A job that completed although iterations of it failed says so (D60)."""
    return f"{status}, {counted(failed, 'iteration')} failed" if failed else status
