"""The embedded engine: SQLite, local files and workers in one process."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.files.lines import LineLog, LineObserver
from penstock.adapters.files.projects import UnpackedProjects, base_folder
from penstock.adapters.sqlite.log import SqliteLog
from penstock.app.engines import engine_of
from penstock.app.library import callers_folder, lazy_components
from penstock.dialects.secrets import restored
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.keychain import Inputs, KeychainProblem, Redaction, missing, resolve
from penstock.ports.ambient import Clock, SystemClock
from penstock.ports.blobs import BlobStore
from penstock.ports.leases import Keys, Workforce
from penstock.ports.log import EventLog
from penstock.server.documents import Documents, Pinned
from penstock.server.runs import LocalRun, RunServices
from penstock.server.stream import Observer
from penstock.tools.base import Settings
from penstock.tools.registry import Registry
from penstock.worker.services import SharedResources, WorkerServices
from penstock.worker.threads import DaemonThreads
from penstock.worker.workforce import LocalWorkforce

if TYPE_CHECKING:
    from penstock.app.preview import Preview
    from penstock.components.registry import ComponentRegistry
    from penstock.server.replay import Difference


@dataclass(slots=True)
class Embedded:
    """One process, no services: SQLite, local files, in-process workers."""

    is_remote: ClassVar[Literal[False]] = False

    home: Path
    log: EventLog
    blobs: BlobStore
    tools: Registry
    clock: Clock = field(default_factory=SystemClock)
    settings: Settings = field(default_factory=Settings)
    threads: DaemonThreads = field(default_factory=DaemonThreads)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    strict: bool = False
    observers: list[Observer] = field(default_factory=list)
    line_observers: list[LineObserver] = field(default_factory=list)
    progress_observers: list[Callable[[str, str, int], None]] = field(default_factory=list)
    """Called with `(component, port, rows so far)` while a component of a job works, from any thread."""
    components: ComponentRegistry = field(default_factory=lazy_components)
    scratch: Path | None = None
    """Where runs keep what they print and work on, if not in the state folder."""
    caller: Path | None = None
    """The working folder of the process that was asked to run documents, where that is known."""
    _lines: dict[int, LineLog] = field(default_factory=dict)

    def run(self, execution_id: str, documents: Documents | None = None) -> LocalRun:
        """`documents`: the compiler that has already compiled what is to run."""
        return LocalRun(self._world(documents or self.documents()), execution_id)

    async def replay(self, execution_id: str) -> Difference | None:
        """Decides a recorded run again from its outcomes. Returns the first decision that differs, or None."""
        from penstock.app.replay import replay  # Only a replay needs its machinery.

        projects = self.projects()
        return await replay(self.log, self.blobs, self.tools, self.components, self.settings, execution_id, projects)

    async def preview(
        self,
        path: Path,
        wanted: str,
        rows: int = 20,
        *,
        context: Mapping[str, Any] | None = None,
        group: str | None = None,
    ) -> Preview:
        """The first rows of one port of a job, named `COMPONENT[.PORT]`. Only the components that the rows depend on run, in
        memory; nothing is written to the log."""
        from penstock.app.preview import preview  # Only a preview needs its machinery.

        return await preview(self, path, wanted, rows, context or {}, group)

    def documents(self) -> Documents:
        """Includes documents of projects, so that a run that a server without a database began can be resumed here."""
        folder = self.scratch or self.home
        base, nowhere = base_folder(self.environ), folder / "work" / "nowhere"
        return Documents(
            self.tools, self.components, strict=self.strict, projects=self.projects(), base=base, nowhere=nowhere
        )

    def projects(self) -> UnpackedProjects:
        return UnpackedProjects(self.scratch or self.home, self.blobs)

    async def close(self) -> None:
        self.threads.close()
        await self.log.close()

    def _world(self, documents: Documents) -> RunServices:
        return RunServices(
            log=self.log,
            blobs=self.blobs,
            clock=self.clock,
            documents=documents,
            worker=f"{socket.gethostname()}:{os.getpid()}",
            resolve_keychain=partial(self._resolve_keychain, Redaction()),
            open_workforce=self._open_workforce,
            close_workforce=self._close_workforce,
            sweep=self._sweep,
            observers=self.observers,
            look=self.missing_secrets,
        )

    async def _resolve_keychain(self, redaction: Redaction, net: Net, workload: Any, document: Pinned) -> Keys:
        """One redaction serves the whole run: a secret of a sub-playbook is hidden everywhere."""
        redaction.add(*document.secrets())
        return await resolve(
            restored(net.keychain, document.file),
            inputs=Inputs(workload, net.kind),
            folder=self.documents().folder(document),
            home=self.home,
            environ=self.environ,
            clock=self.clock,
            redaction=redaction,
        )

    async def missing_secrets(
        self, entries: Sequence[JsonMap], inputs: Inputs, document: Pinned
    ) -> list[KeychainProblem]:
        """Which keychain entries of a document are missing, as far as this machine can tell."""
        return await missing(
            restored(entries, document.file),
            inputs=inputs,
            folder=self.documents().folder(document),
            home=self.home,
            environ=self.environ,
            clock=self.clock,
        )

    def _open_workforce(self, execution_id: str, hide: Any) -> Workforce:
        folder = self.scratch or self.home
        lines = LineLog(folder / "logs" / f"{execution_id}.ndjson", self.clock, hide, self.line_observers)
        services = WorkerServices(
            tools=self.tools,
            clock=self.clock,
            blobs=self.blobs,
            resources=SharedResources(),
            threads=self.threads,
            settings=self.settings,
            say=lines.say,
            components=self.components,
            work=folder / "work",
            engines=engine_of,
            progress=self._progress,
            caller=self.caller,
        )
        force = LocalWorkforce(services)
        self._lines[id(force)] = lines
        return force

    def _progress(self, component: str, port: str, rows: int) -> None:
        for observer in self.progress_observers:
            observer(component, port, rows)

    def _sweep(self, execution_id: str) -> None:
        folder = (self.scratch or self.home) / "work" / execution_id
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)

    async def _close_workforce(self, force: Workforce) -> None:
        assert isinstance(force, LocalWorkforce)
        await force.close()
        self._lines.pop(id(force)).close()
        resources = force.services.resources
        assert isinstance(resources, SharedResources)
        await resources.close()


def embedded(home: Path, **more: Any) -> Embedded:
    return Embedded(home, SqliteLog(home), FileBlobs(home), Registry(), **{"caller": callers_folder(), **more})


def in_memory(home: Path) -> Embedded:
    """An engine that keeps nothing: it has the secrets of a state folder, and a log that ends with the process."""
    from penstock.adapters.memory.blobs import MemoryBlobs  # Only runs that keep nothing need it.
    from penstock.adapters.memory.log import MemoryLog

    return Embedded(home, MemoryLog(), MemoryBlobs(), Registry())
