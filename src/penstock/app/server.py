"""The server of a fleet: it drives executions and hands out leases to workers."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from penstock.adapters.files.lines import FileLines
from penstock.adapters.files.projects import UnpackedProjects
from penstock.adapters.watched_log import WatchedLog
from penstock.app import stores
from penstock.app.library import lazy_components
from penstock.kernel.net import Net
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ambient import Clock, SystemClock
from penstock.ports.blobs import BlobStore
from penstock.ports.control import ControlStore
from penstock.ports.dispatch import Dispatch
from penstock.ports.leases import Keys, Workforce
from penstock.ports.lines import Line as KeptLine
from penstock.ports.lines import LineStore
from penstock.ports.log import EventLog
from penstock.ports.partitions import Partitions
from penstock.server.catalog import CatalogDocuments
from penstock.server.dispatch_loop import DispatchLoop
from penstock.server.documents import Documents, Pinned
from penstock.server.execution_owner import ExecutionOwner
from penstock.server.fleet import FleetForce
from penstock.server.losses import Losses
from penstock.server.runs import RunServices
from penstock.tools.registry import Registry

if TYPE_CHECKING:
    from penstock.adapters.memory.dispatch import MemoryDispatchStore
    from penstock.components.registry import ComponentRegistry
    from penstock.keychain import Inputs, KeychainProblem


def run_id() -> str:
    """Short enough to type, and random enough to be unique."""
    return uuid.uuid4().hex[:16]


def one_line(error: BaseException) -> str:
    """An error on one line for the log of a server, without control characters: parts of it come from documents."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in str(error))


class NoKeys:
    """A server needs no secret and has none: workers resolve keychains where they run."""

    def view(self) -> Mapping[str, Any]:
        return {}

    def reveal(self, value: Any) -> Any:
        return value

    def credential(self, name: str) -> dict[str, Any]:
        raise KeyError(name)

    def is_stale(self) -> bool:
        return False

    async def fresh(self) -> None: ...

    @property
    def hides(self) -> bool:
        return False

    def hide_tree(self, value: Any) -> Any:
        return value

    def hide(self, text: str) -> str:
        return text

    def hide_bytes(self, data: bytes) -> bytes:
        return data


@dataclass(slots=True)
class Server:
    """One server process: it drives executions and hands out leases; it runs no tool."""

    home: Path
    log: EventLog
    blobs: BlobStore
    dispatch: Dispatch
    partitions: Partitions
    name: str = field(default_factory=stores.host_name)
    clock: Clock = field(default_factory=SystemClock)
    tools: Registry = field(default_factory=Registry)
    components: ComponentRegistry = field(default_factory=lazy_components)
    lease_s: float = 10.0
    renew_s: float = 3.0
    control: ControlStore | None = None
    """The catalog, tokens, schedules and hooks; closed with the server."""
    line_store: LineStore | None = None
    """Where the output of tools is stored: in files of the state folder, unless another store is given."""
    root: Path | None = None
    """The folder of a project on this machine whose owner alone asks this server: it reads files, and continues no run of another
    process by itself."""
    lines: LineStore = field(init=False)
    hosting: ExecutionOwner = field(init=False)
    dispatch_loop: DispatchLoop = field(init=False)
    documents: Documents = field(init=False)
    losses: Losses = field(init=False)
    problems: list[tuple[str, BaseException]] = field(default_factory=list)
    _following: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.documents = _documents(self)
        self.losses = Losses(self.clock.now)
        self.lines = self.line_store or FileLines(self.home)
        self.dispatch_loop = DispatchLoop(self.dispatch, self.blobs, lambda: self.hosting.owned, self._receive)
        services = RunServices(
            log=self.log,
            blobs=self.blobs,
            clock=self.clock,
            documents=self.documents,
            worker=self.name,
            resolve_keychain=self._resolve_keychain,
            open_workforce=self._open_workforce,
            close_workforce=self._close_workforce,
            look=self._look,
        )
        self.hosting = ExecutionOwner(
            services,
            self.dispatch_loop,
            self.partitions,
            run_id,
            self._report,
            self.renew_s,
            adopts=self.root is None,
        )

    async def start(self) -> None:
        if isinstance(self.clock, stores.FleetClock):
            await self.clock.look()
            self._following = asyncio.ensure_future(self.clock.follow())
        await self.hosting.start()

    async def close(self) -> None:
        """Closes everything in an order in which nothing is lost; a failure to close one thing does not keep the others open."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        async with AsyncExitStack() as stack:
            if self.control is not None:
                stack.push_async_callback(asyncio.to_thread, self.control.close)
            stack.push_async_callback(self.log.close)
            stack.push_async_callback(self.partitions.close)
            stack.push_async_callback(self.dispatch.close)
            stack.push_async_callback(asyncio.to_thread, self.lines.close)
            stack.push_async_callback(self.hosting.close)

    async def _receive(self, execution_id: str, messages: list[Any]) -> None:
        self.losses.note(messages)
        await self.hosting.receive(execution_id, messages)

    async def _look(self, entries: Sequence[JsonMap], inputs: Inputs, document: Pinned) -> list[KeychainProblem]:
        """What no worker could resolve. What a worker has, only that worker knows."""
        from penstock.keychain import missing  # Few documents have a keychain: start-up time.

        return await missing(
            entries, inputs=inputs, folder=self.home, home=self.home, environ={}, clock=self.clock, is_here=False
        )

    async def _resolve_keychain(self, net: Net, workload: Any, document: Pinned) -> Keys:
        return NoKeys()

    def _open_workforce(self, execution_id: str, hide: Callable[[str], str]) -> Workforce:
        def say(printed: list[Json]) -> None:
            lines = (cast("tuple[float, str, str | None, str]", one) for one in printed)
            self.lines.append(execution_id, [KeptLine(*one) for one in lines])

        return FleetForce(
            execution_id, self.dispatch_loop, say, lambda after: self.log.read(execution_id, after), self.lease_s
        )

    async def _close_workforce(self, force: Workforce) -> None:
        assert isinstance(force, FleetForce)
        await force.close()

    def _report(self, execution_id: str, error: BaseException) -> None:
        self.problems.append((execution_id, error))
        del self.problems[:-100]
        print(f"penstock: {execution_id}: {type(error).__name__}: {one_line(error)}", file=sys.stderr, flush=True)


def _documents(server: Server) -> Documents:
    if server.control is None:
        return Documents(server.tools, server.components, reads_files=False, runs=False)

    projects = UnpackedProjects(server.home, server.blobs)
    return CatalogDocuments(server.tools, server.components, server.control, projects, server.root)


def open_server(
    locations: stores.StoreLocations,
    *,
    name: str | None = None,
    lease_s: float = stores.LEASE_S,
    dispatch_store: MemoryDispatchStore | None = None,
    root: Path | None = None,
) -> Server:
    """A server that has not started yet. `dispatch_store` is shared with the worker in its own process when there is no
    database. `root`: see `Server`."""
    shown = name or stores.host_name()
    is_shared = locations.database is None
    log = WatchedLog(stores.open_log(locations, shown, lease_s), is_shared=is_shared, adopts=root is None)
    dispatch = stores.open_dispatch(locations, dispatch_store)
    return Server(
        home=locations.home,
        log=log,
        blobs=stores.open_results(locations),
        dispatch=dispatch,
        partitions=stores.open_partitions(locations, shown, lease_s),
        name=shown,
        clock=stores.FleetClock(dispatch.now),
        lease_s=lease_s,
        renew_s=lease_s / 3,
        control=stores.open_control(locations),
        line_store=stores.open_lines(locations),
        root=root,
    )
