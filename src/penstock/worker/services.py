"""What a worker works with: the tools it knows and the services it lends them. One set serves all leases of an execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.kernel.values import Json
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore, ResultRef
from penstock.ports.plugins import at_folder
from penstock.ports.results import loader
from penstock.tools.base import Resources, Settings, Threads, Tool

if TYPE_CHECKING:
    from penstock.components.base import Component


class Toolbox(Protocol):
    def get(self, kind: str) -> Tool[Any]: ...

    def convert(self, kind: str, values: dict[str, Any]) -> Any: ...


class ComponentBox(Protocol):
    def get(self, type: str) -> Component[Any]: ...

    def convert(self, type: str, values: Mapping[str, Any]) -> Any: ...


def _ignored(place: str, port: str, rows: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class WorkerServices:
    tools: Toolbox
    clock: Clock
    blobs: BlobStore
    resources: Resources
    threads: Threads
    settings: Settings
    say: Callable[[str, str | None, str], None]
    """`say(scope, task_run_id, line)`: a line for the run's log."""
    components: ComponentBox | None = None
    work: Path | None = None
    """Where jobs keep their rows while they run."""
    progress: Callable[[str, str, int], None] = _ignored
    """`progress(component, port, rows)`: the number of rows so far."""
    _tools_at: dict[str, Toolbox] = field(default_factory=dict)

    def tools_at(self, folder: Path) -> Toolbox:
        """The tools, including the plug-ins of documents in that folder, which are searched for once."""
        found = self._tools_at.get(str(folder))
        if found is None:
            found = self._tools_at[str(folder)] = at_folder(self.tools, folder)
        return found

    def load(self, ref: ResultRef) -> Json:
        return loader(self.blobs)(ref)
