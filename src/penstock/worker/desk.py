"""What a worker works with: the tools it knows and the services it lends them. One desk serves all leases of an execution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.kernel.values import Json
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore, ResultRef
from penstock.ports.leases import Memory
from penstock.ports.results import loader
from penstock.tools.base import Resources, Settings, Threads, Tool


class Toolbox(Protocol):
    def get(self, kind: str) -> Tool[Any]: ...

    def convert(self, kind: str, values: dict[str, Any]) -> Any: ...


@dataclass(frozen=True, slots=True)
class Desk:
    tools: Toolbox
    clock: Clock
    blobs: BlobStore
    resources: Resources
    threads: Threads
    settings: Settings
    say: Callable[[str, str | None, str], None]
    """`say(scope, task_run_id, line)`: a line for the run's log."""
    memory: Memory | None = None
    """Set in a replay: outcomes come from here and no tool is called."""

    def load(self, ref: ResultRef) -> Json:
        return loader(self.blobs)(ref)
