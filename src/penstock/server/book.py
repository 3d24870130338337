"""The pinned documents of a run, compiled when somebody asks about one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.kernel.errors import PenstockError
from penstock.ports.blobs import BlobStore, ResultRef, is_ref
from penstock.ports.log import EventLog
from penstock.ports.results import decode
from penstock.server.documents import Documents, Pinned
from penstock.views.model import Execution

if TYPE_CHECKING:
    from penstock.dialects.job import CompiledJob
    from penstock.dialects.playbook import Compiled
    from penstock.kernel.net import Net


def _as_it_is(file: str) -> str:
    return file


class RunBook:
    def __init__(
        self,
        log: EventLog,
        blobs: BlobStore,
        documents: Documents,
        execution_id: str,
        near: Callable[[str], str] = _as_it_is,
    ) -> None:
        """`near` gives the name under which people know a file."""
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
        found = self._compiled(execution)
        if found is None:
            return ""
        places = found[1].places
        place = places.steps.get(step)
        if task is not None:
            place = places.tasks.get((step, task), place)
        elif arc is not None:
            place = places.arcs.get((step, arc), place)
        return f"{self._near(place.file)}:{place.line}" if place is not None and place.line else ""

    def _compiled(self, execution: Execution) -> tuple[Net, Compiled | CompiledJob] | None:
        if execution.scope not in self._known:
            try:
                self._known[execution.scope] = self._documents.compile(self._pinned(execution))
            except PenstockError:  # A tool that is no longer installed, a result store that was emptied: say less.
                self._known[execution.scope] = None
        return self._known[execution.scope]

    def _pinned(self, execution: Execution) -> Pinned:
        document = execution.document
        if isinstance(document, dict) and is_ref(document):
            return Pinned.from_bytes(self._blobs.get(ResultRef.from_json(document)))
        if document is not None:
            return Pinned.from_mapping(document)
        return Pinned.from_mapping(decode(self._log.document(self._execution_id)))
