"""The event log: the only way to record anything.

Law: `append` never blocks and keeps order; an entry is a fact only once `durable` has returned for its ticket. The owner of
an execution numbers its entries (`seq` from 1, no gaps) and appends under the epoch that `claim` gave it: an append with a
stale epoch or a wrong number is refused whole, so two owners can never both be right. A refusal affects its own execution
only: its later appends are refused too, until the execution is claimed again.

Errors, everywhere: `Refused` if the caller asked for something impossible (an unknown execution); `NotOwner`, a subclass, if
another process owns the execution, or none does any more; `Unavailable` if the store cannot do its work. An `Unavailable` of
`durable` closes the log: nothing after it is written. Methods that are not `async`, except `append`, may be called from any
thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol
from zlib import crc32

from penstock.kernel.errors import Refused
from penstock.kernel.values import frozen
from penstock.ports.kept_state import Change, Kept, Kind

Status = Literal["running", "completed", "failed", "cancelled", "interrupted"]

ENDED: tuple[Status, ...] = ("completed", "failed", "cancelled")
"""An execution with one of these statuses is over; an interrupted one may be resumed."""

PARTITIONS = 256
"""Number of partitions in which executions are distributed over servers."""


class NotOwner(Refused):
    """Only the owner may do this, and another process, or nobody, owns the execution by now."""


def partition_of(execution_id: str) -> int:
    """The same on every machine and in every release: it is stored with the execution."""
    return crc32(execution_id.encode("utf-8", "surrogatepass")) % PARTITIONS


_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def lowered(text: str) -> str:
    """As every store compares texts: only ASCII letters, which all of them lower alike."""
    return text.translate(_LOWER)


class Entry(NamedTuple):
    """One event as stored. `clock` is the logical clock as JSON text, `payload` the event's own fields as JSON bytes."""

    seq: int
    ts: float
    type: str
    scope: str
    task: str | None
    clock: str
    cause: str | None
    source: str
    worker: str | None
    payload: bytes


@frozen
class Header:
    """One execution as the list of runs shows it. `ended_at` is the time of the last entry when the status left `running`."""

    execution_id: str
    kind: str
    name: str
    path: str
    digest: str
    status: Status
    started_at: float
    ended_at: float | None = None
    last_seq: int = 0
    label: str | None = None
    trace_id: str | None = None
    failed_iterations: int | None = None
    """For a completed job, if somebody has examined its log for it."""


@frozen
class Request:
    """A request of another process to an execution's owner, such as a cancel."""

    number: int
    execution_id: str
    what: str
    payload: bytes


class Snapshots(Protocol):
    def snapshot(self, execution_id: str, format: int, upto: int) -> tuple[int, bytes] | None:
        """The last snapshot in that format at or before entry `upto`: the number of its entry, and its content."""
        ...

    def keep_snapshot(self, execution_id: str, format: int, seq: int, data: bytes) -> None:
        """Store a snapshot. If there is one at that entry already, either may remain. Nothing is stored for an unknown
        execution."""
        ...


class EventLog(Snapshots, Protocol):
    async def create(self, header: Header, document: bytes, key: str | None = None, owner: str | None = None) -> str:
        """Register an execution with the document it is pinned to; returns its id. Refused if the id exists. A submission
        `key` creates one execution: if it has been used before, nothing is created, and the id is that of the execution
        created then. `owner`: who is going to `claim` or `release` it here, next; a log that other processes write to as well
        may keep it for them until then."""
        ...

    async def claim(self, execution_id: str, owner: str) -> int:
        """Become the one owner; returns the new epoch. Refused while another live owner holds it."""
        ...

    async def release(self, execution_id: str) -> None:
        """Stop being the owner, once everything appended is durable. Later appends under this epoch are refused."""
        ...

    async def forget(self, execution_id: str) -> None:
        """Delete an execution with its document, entries, requests and submission keys. Refused while it has a live owner."""
        ...

    async def prune(self, before: float, limit: int = 1000) -> list[str]:
        """Forget executions that ended (`ENDED`) before that time and have no live owner, earliest first; returns their ids."""
        ...

    def append(
        self,
        execution_id: str,
        epoch: int,
        entries: Sequence[Entry],
        status: Status | None = None,
        changes: Sequence[Change] = (),
        is_last: bool = False,
    ) -> int:
        """Hand entries over for writing, in order; returns a ticket. `status` changes the header in the same commit,
        `changes` what documents keep between runs. `is_last`: nothing follows before `release`, which a log may then do in the
        same commit.

        Must be called from one thread, that of the event loop; `entries` belongs to the log from then on and must not be
        changed. Errors of an append are raised by `durable`."""
        ...

    async def durable(self, ticket: int) -> None:
        """Return when `ticket`, and everything before it of the same execution, is on disk. Raises Refused if that append
        was refused."""
        ...

    @property
    def backlog(self) -> int:
        """Entries handed over but not yet durable, for producers to check before going on. Wait with `durable`."""
        ...

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]:
        """The entries that are durable at the time of the call, in order, with constant memory."""
        ...

    def header(self, execution_id: str) -> Header | None: ...

    def headers(
        self,
        limit: int = 100,
        *,
        after: str | None = None,
        status: Status | None = None,
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        kind: str | None = None,
        label: str | None = None,
        text: str | None = None,
    ) -> list[Header]:
        """Newest first. The filters: registered before the execution `after`; this status; this name of a document, or this
        label; started at `since` or later, at `until` or earlier; this kind; this label; `text` in its name, label, id or path,
        whatever the case of its (ASCII) letters. An index serves each of them, but for the kind and the text: there runs are
        looked through, the newest first, until there are enough."""
        ...

    def named(self, name: str, limit: int = 10) -> list[Header]:
        """Executions whose label is `name`, or whose id begins with it, newest first."""
        ...

    def submitted(self, key: str) -> str | None:
        """The execution that was created under a submission key."""
        ...

    def unfinished(self, partitions: Collection[int] | None = None) -> list[str]:
        """The ids of executions with status `running`, oldest first; with `partitions`, only those in them."""
        ...

    def document(self, execution_id: str) -> bytes: ...

    def kept(self, document: str | None = None) -> list[Kept]:
        """What a document keeps between runs, or what all documents do; by document, kind and key."""
        ...

    def keep(self, kept: Kept) -> None:
        """Set a value that a document keeps."""
        ...

    def drop_kept(self, document: str, kind: Kind | None = None, key: str | None = None) -> int:
        """Delete one value that a document keeps, or all of them; returns how many were deleted."""
        ...

    def ask(self, execution_id: str, what: str, payload: bytes = b"{}") -> None:
        """Leave a request for the owner, whoever that is."""
        ...

    def asked(self, execution_id: str | None = None) -> list[Request]:
        """Requests not yet answered, oldest first: of one execution, or of all."""
        ...

    def answered(self, number: int) -> None: ...

    def has_owner(self, execution_id: str) -> bool:
        """Whether a live process is working on it now."""
        ...

    async def close(self) -> None:
        """Write what is pending, give up every claim, close the files."""
        ...
