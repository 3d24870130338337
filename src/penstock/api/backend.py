"""What the API serves: one server and the stores that it shares with the others. The composition root fills it in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from starlette.requests import Request

from penstock.api.errors import ApiError
from penstock.api.sessions import Local
from penstock.kernel.errors import PenstockError, Unavailable
from penstock.kernel.values import JsonMap
from penstock.ports.ambient import Clock
from penstock.ports.blobs import KeptBlobs
from penstock.ports.control import Alert, ControlStore, Scope
from penstock.ports.dispatch import Dispatch
from penstock.ports.lines import LineStore
from penstock.ports.log import Entry, EventLog, Header
from penstock.ports.meters import Histogram, RowsSoFar
from penstock.ports.partitions import Partitions
from penstock.ports.together import Together
from penstock.server.catalog import CatalogDocuments
from penstock.server.documents import Pinned
from penstock.server.execution_owner import ExecutionOwner
from penstock.server.hooks import Recent
from penstock.server.run_names import AmbiguousRun, NoSuchRun, find_run
from penstock.server.views import Views
from penstock.views.folded import FoldedRuns
from penstock.views.headers import CRASHED, as_people_read_it

if TYPE_CHECKING:
    from penstock.dialects.job import CompiledJob

T = TypeVar("T")


# ---- Readiness: everything that a server depends on is checked, and what is wrong is named. Law: the answer comes within
# `MOST_S`, whatever is wrong. A check that takes longer goes on in the background, one of each kind at a time, and the next
# caller waits for it; the result of the last one is valid for `FRESH_S`.

"""Component -> port -> rows."""
Checks = Mapping[str, Callable[[], None]]
"""By the name that messages use; each raises what keeps the thing from working."""

UNCLAIMED_S = 5.0
"""A run that was registered just now may not have been claimed yet."""
MOST_S = 1.5
FRESH_S = 1.0


class Readiness:
    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._threads = ThreadPoolExecutor(max(1, len(checks)), "ready")
        self._running: dict[str, asyncio.Task[None]] = {}
        self._known: dict[str, tuple[float, PenstockError | None]] = {}

    async def problems(self) -> list[PenstockError]:
        """Everything that is wrong."""
        found = await asyncio.gather(*map(self._checked, self._checks))
        return [error for error in found if error is not None]

    async def _checked(self, name: str) -> PenstockError | None:
        at, error = self._known.get(name, (0.0, None))
        now = asyncio.get_running_loop().time()
        if name in self._known and now - at < FRESH_S:
            return error
        trying = self._running.get(name)
        if trying is None:
            trying = self._running[name] = asyncio.ensure_future(self._try(name))
        done, _ = await asyncio.wait({trying}, timeout=MOST_S)
        if not done:
            return Unavailable(f"{name} did not answer within {MOST_S:g} s", "see that it runs and can be reached")
        trying.result()
        return self._known[name][1]

    async def _try(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        error: PenstockError | None = None
        try:
            await loop.run_in_executor(self._threads, self._checks[name])
        except PenstockError as caught:
            error = caught
        finally:
            del self._running[name]
        self._known[name] = (loop.time(), error)


@dataclass(frozen=True, slots=True)
class Limits:
    body_bytes: int = 10 * 1024 * 1024
    body_idle_s: float = 30.0
    """The time limit for the next chunk of a request."""
    body_s: float = 300.0
    """The time limit for a whole request, however slowly it arrives."""
    stall_s: float = 30.0
    """A reader that takes nothing for this long is disconnected."""
    streams: int = 500
    """Streams at a time."""
    watched: int = 100
    """Executions in one stream."""
    page: int = 1000
    """The longest list."""
    heartbeat_s: float = 15.0


class Watched(Protocol):
    """A log that notifies when it has grown."""

    listeners: list[Callable[[str], None]]
    appended: int
    latency: Histogram

    def is_for_us(self, execution_id: str) -> bool:
        """Whether this server goes on with an unfinished execution."""
        ...


@dataclass(frozen=True, slots=True)
class Pruned:
    runs: int
    results: int
    size: int | None = None


@dataclass(slots=True)
class Backend:
    hosting: ExecutionOwner
    log: EventLog
    watched: Watched
    blobs: KeptBlobs
    documents: CatalogDocuments
    dispatch: Dispatch
    partitions: Partitions
    control: ControlStore
    lines: LineStore
    clock: Clock
    name: str
    version: str
    prune: Callable[[float, bool, bool], Awaitable[Pruned]]
    """`prune(older_than_s, keep_failed, dry_run)`."""
    wake_scheduler: Callable[[], None] = lambda: None
    send_alert: Callable[[Alert, JsonMap, str], Awaitable[None]] | None = None
    is_loopback: bool = True
    """Only this machine can reach the server: it is then open as long as there are no tokens."""
    no_auth: bool = False
    """The operator disabled authentication."""
    hosts: frozenset[str] = frozenset()
    """Names by which the server may be asked without a token, beside its own."""
    is_tls: bool = False
    is_folder: bool = False
    """The log is in a state folder of this machine, where a run is worked on by a live process or by none."""
    local: Local | None = None
    """It serves the page of a folder on this machine, for its owner alone."""
    recent: Recent = field(default_factory=Recent)
    """Signed requests of hooks that arrived recently."""
    limits: Limits = field(default_factory=Limits)
    checks: Checks = field(default_factory=dict)
    """Without these, no work can be done."""
    rows_beside: Callable[[str], RowsSoFar] = lambda execution_id: RowsSoFar()
    """`rows_beside(execution_id)`: of a run that this process runs without leases."""
    rows: Callable[[Header, Iterable[Entry], str, str, int, int], JsonMap] | None = None
    """`rows(header, entries, component, port, offset, limit)`: kept rows, as `RowsOut`; `entries` say where they are. Must be
    called from a thread."""
    preview: Callable[[Header, str, str | None, int], Awaitable[JsonMap]] | None = None
    """`preview(header, component, port, rows)`: the first rows of a port, made again, as `RowsOut`."""
    replay: Callable[[str], Awaitable[str | None]] | None = None
    """`replay(execution_id)`: decides a run again, and says what differs first."""
    columns: Callable[[Pinned, bool], CompiledJob | None] | None = None
    """`columns(document, has_run)`: a job with the columns of all its ports, as the files that it names have them; None where
    they may not be looked at. Must be called from a thread."""
    folded: FoldedRuns = field(init=False)
    """The runs that somebody looks at."""
    folding: dict[str, asyncio.Task[None]] = field(init=False, default_factory=dict)
    """Long runs of which the rest is being folded."""

    _counting: Together[None, bool] = field(init=False)

    def __post_init__(self) -> None:
        self.folded = FoldedRuns(self.log)
        self._counting = Together(self._count_tokens)

    async def has_tokens(self) -> bool:
        """Whether anybody has made a token yet: looked up for every request, in one look for those that come together."""
        return await self._counting.ask(None)

    async def _count_tokens(self, askers: list[None]) -> list[bool]:
        return [bool(await apart(self.control.tokens))] * len(askers)

    @property
    def views(self) -> Views:
        return Views(self.log, self.blobs, self.documents, self.status_of)

    def seen(self, header: Header) -> tuple[Header, str]:
        """A run as it is now: its header, and its status as people should read it, which is `crashed` when the log calls it
        running and no process works on it. Must be called from a thread.

        In a fleet no run is without an owner for good: the next server that holds its partition goes on with it."""
        if not self.is_folder:
            return header, header.status
        now, status = as_people_read_it(header, self)
        is_new = status == CRASHED and now.last_seq == 0 and self.clock.now() - now.started_at < UNCLAIMED_S
        return now, now.status if is_new else status

    def status_of(self, header: Header) -> str:
        return self.seen(header)[1]

    def header(self, execution_id: str, /) -> Header | None:
        return self.log.header(execution_id)

    def has_owner(self, execution_id: str) -> bool:
        """Whether this server works on it, now or in a moment, or another process."""
        hosting = self.hosting
        return (
            execution_id in hosting.hosted
            or self.log.has_owner(execution_id)
            or (hosting.adopts and self.watched.is_for_us(execution_id))
        )

    async def found(self, name: str) -> Header:
        """The run of this id, else the newest with this label, else the one whose id begins so; or the newest of all."""
        return await apart(lambda: self._found(name))

    def _found(self, name: str) -> Header:
        try:
            return find_run(self.log, name)
        except AmbiguousRun as error:
            raise ApiError(409, error.message, error.hint, code="ambiguous") from error
        except NoSuchRun as error:
            raise ApiError(404, error.message, "`penstock runs`, or `GET /api/executions`, lists them") from error


# The API has its own threads: however many requests there are, the threads that drive executions stay free. Reading whole logs
# has threads of its own, so that short requests do not wait for it.
_QUICK = ThreadPoolExecutor(16, "api")
_LONG = ThreadPoolExecutor(8, "api-long")


async def apart(job: Callable[[], T]) -> T:
    """Runs what may wait for a store in a thread: the event loop never waits."""
    return await asyncio.get_running_loop().run_in_executor(_QUICK, job)


async def at_length(job: Callable[[], T]) -> T:
    """The same for long work: whole logs, compiling documents."""
    return await asyncio.get_running_loop().run_in_executor(_LONG, job)


def backend_of(request: Request) -> Backend:
    found = request.app.state.backend
    assert isinstance(found, Backend)
    return found


ORDER = (Scope.READ, Scope.RUN, Scope.ADMIN)
