"""The composition root of a fleet: what a server process and a worker process are put together from."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from penstock.adapters.file_lines import FileLines
from penstock.adapters.project_folders import UnpackedProjects
from penstock.app.clock import FleetClock
from penstock.app.embedded import _LazyRegistry
from penstock.dialects.inline_secrets import restored
from penstock.kernel.flow.ending import FlowJudge
from penstock.kernel.net import Net
from penstock.kernel.values import Json
from penstock.keychain import Redaction, resolve
from penstock.keychain.rendering import rendered_entries
from penstock.ports.ambient import Clock, SystemClock
from penstock.ports.blobs import BlobStore
from penstock.ports.control import ControlStore
from penstock.ports.dispatch import Dispatch, Intake, WorkerCard
from penstock.ports.leases import Keys, Setting
from penstock.ports.lines import Line as KeptLine
from penstock.ports.lines import LineStore
from penstock.ports.log import EventLog
from penstock.ports.partitions import Partitions
from penstock.ports.results import encodable
from penstock.server.documents import Documents, Pinned
from penstock.server.fleet import FleetForce
from penstock.server.hosting import Hosting
from penstock.server.job_judge import JobJudge
from penstock.server.office import Office
from penstock.server.runs import LocalForce, World
from penstock.tools.base import Settings
from penstock.tools.registry import Registry
from penstock.worker.desk import Desk
from penstock.worker.fleet import Compiled, FleetWorker
from penstock.worker.fleet_reports import Line
from penstock.worker.resources import SharedResources
from penstock.worker.threads import DaemonThreads

if TYPE_CHECKING:
    from penstock.components.registry import ComponentRegistry


def lazy_components() -> ComponentRegistry:
    """The registry of components, made when somebody asks it something."""
    return cast("ComponentRegistry", _LazyRegistry())


def new_id() -> str:
    return uuid.uuid4().hex


def run_id() -> str:
    """Short enough to be typed, and drawn from so many that two are never the same."""
    return uuid.uuid4().hex[:16]


def release() -> str:
    """Of this program, as others are told."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("penstock")
    except PackageNotFoundError:  # Run from its source.
        return "0"


def host_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def one_line(error: BaseException) -> str:
    """For the log of a server: documents write parts of errors, and none may write lines or colours of its own there."""
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
    name: str = field(default_factory=host_name)
    clock: Clock = field(default_factory=SystemClock)
    tools: Registry = field(default_factory=Registry)
    components: ComponentRegistry = field(default_factory=lambda: cast("ComponentRegistry", _LazyRegistry()))
    lease_s: float = 10.0
    renew_s: float = 3.0
    control: ControlStore | None = None
    """The catalog, tokens, schedules and hooks; closed with the server."""
    said: LineStore | None = None
    """Where what tools say is kept: in files of the state folder, if nothing else is given."""
    lines: LineStore = field(init=False)
    hosting: Hosting = field(init=False)
    office: Office = field(init=False)
    documents: Documents = field(init=False)
    problems: list[tuple[str, BaseException]] = field(default_factory=list)
    _following: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.documents = _documents(self)
        self.lines = self.said or FileLines(self.home)
        self.office = Office(self.dispatch, self.blobs, lambda: self.hosting.owned, self._hear)
        world = World(
            self.log,
            self.blobs,
            self.clock,
            self.documents,
            self.name,
            self._unlock,
            self._employ,
            self._dismiss,
        )
        self.hosting = Hosting(world, self.office, self.partitions, run_id, self._report, self.renew_s)

    async def start(self) -> None:
        if isinstance(self.clock, FleetClock):
            await self.clock.look()
            self._following = asyncio.ensure_future(self.clock.follow())
        await self.hosting.start()

    async def close(self) -> None:
        """Let go of everything, in an order in which nothing is missed; one thing that cannot be let go of stops none other."""
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

    async def _hear(self, execution_id: str, notes: list[Any]) -> None:
        await self.hosting.hear(execution_id, notes)

    async def _unlock(self, net: Net, workload: Any, document: Pinned) -> Keys:
        return NoKeys()

    def _employ(self, execution_id: str, hide: Callable[[str], str]) -> LocalForce:
        def say(said: list[Json]) -> None:
            told = (cast("tuple[float, str, str | None, str]", one) for one in said)
            self.lines.append(execution_id, [KeptLine(*one) for one in told])

        return FleetForce(
            execution_id, self.office, say, lambda after: self.log.read(execution_id, after), self.lease_s
        )

    async def _dismiss(self, force: LocalForce) -> None:
        assert isinstance(force, FleetForce)
        await force.close()

    def _report(self, execution_id: str, error: BaseException) -> None:
        self.problems.append((execution_id, error))
        del self.problems[:-100]
        print(f"penstock: {execution_id}: {type(error).__name__}: {one_line(error)}", file=sys.stderr, flush=True)


def _documents(server: Server) -> Documents:
    if server.control is None:
        return Documents(server.tools, server.components, reads_files=False, runs=False)
    from penstock.server.catalog import CatalogDocuments

    projects = UnpackedProjects(server.home, server.blobs)
    return CatalogDocuments(server.tools, server.components, server.control, projects)


class WorkBench:
    """What a worker process has at hand."""

    def __init__(
        self,
        home: Path,
        blobs: BlobStore,
        clock: Clock,
        environ: Mapping[str, str] | None = None,
        tools: Registry | None = None,
        settings: Settings | None = None,
        base: Path | None = None,
    ) -> None:
        """`base`: where relative paths of documents of the catalog lead that are no files of a project."""
        self.home = home
        self.blobs = blobs
        self.clock = clock
        self.tools = tools or Registry()
        self.threads = DaemonThreads()
        self._settings = settings or Settings()
        self._environ = os.environ if environ is None else environ
        self._components = cast("ComponentRegistry", _LazyRegistry())
        self._documents = Documents(
            self.tools,
            self._components,
            reads_files=False,
            projects=UnpackedProjects(home, blobs),
            base=base,
            nowhere=home / "work" / "nowhere",
        )

    def compile(self, document: Json) -> Compiled:
        pinned = Pinned.from_mapping(document)
        net, compiled = self._documents.compile(pinned)
        files = {name: place.file for name, place in compiled.places.steps.items() if place.file != compiled.file}
        bases = self._documents.bases(pinned, compiled)
        return Compiled(net, pinned.file, self._documents.folder(pinned), compiled.places.lines, files, bases)

    def judge(self, setting: Setting, now: Callable[[], float]) -> FlowJudge:
        return JobJudge(setting, now)

    async def unlock(self, document: Json, net: Net, workload: Any) -> Keys:
        pinned = Pinned.from_mapping(document)
        redaction = Redaction()
        redaction.add(*pinned.secrets())
        entries = rendered_entries(restored(net.keychain, pinned.file), net.kind, workload)
        return await resolve(
            entries,
            folder=self._documents.folder(pinned),
            home=self.home,
            environ=self._environ,
            clock=self.clock,
            redaction=redaction,
            allowed=self._settings.addresses,
        )

    def desk(self, execution_id: str, keys: Keys, say: Callable[[Line], None]) -> Desk:
        loop, clock, hide = asyncio.get_running_loop(), self.clock, keys.hide

        def line(scope: str, task_run_id: str | None, text: str) -> None:
            loop.call_soon_threadsafe(say, Line(clock.now(), scope, task_run_id, encodable(hide(text))))

        return Desk(
            self.tools,
            clock,
            self.blobs,
            SharedResources(),
            self.threads,
            self._settings,
            line,
            components=self._components,
            work=self.home / "work" / new_id(),  # Sub-jobs of one job may be held side by side.
        )

    async def clear(self, desk: Desk) -> None:
        assert isinstance(desk.resources, SharedResources)
        await desk.resources.close()
        if desk.work is not None:
            with suppress(OSError):
                desk.work.rmdir()

    def close(self) -> None:
        self.threads.close()


def worker(
    intake: Intake,
    bench: WorkBench,
    *,
    name: str | None = None,
    pool: str = "default",
    slots: int = 4,
    labels: frozenset[str] = frozenset(),
    beat_s: float = 3.0,
) -> FleetWorker:
    can = frozenset(bench.tools.kinds()) | labels | {"jobs"}
    shown = name or host_name()
    card = WorkerCard(f"{shown}#{new_id()[:8]}", shown, pool, slots, can, release())
    return FleetWorker(intake, card, bench, beat_s=beat_s)


__all__ = ["Server", "WorkBench", "host_name", "new_id", "worker"]
