"""The pinned documents of a run, compiled when an explanation asks for one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kernel.errors import PenstockError
from penstock.projections.history import ExecutionSeen
from penstock.server.documents import Documents, Pinned

if TYPE_CHECKING:
    from penstock.app import Embedded
    from penstock.dialects.job import CompiledJob
    from penstock.dialects.playbook import Compiled
    from penstock.kernel.net import Net


class PinnedBook:
    def __init__(self, engine: Embedded, execution_id: str) -> None:
        self._engine = engine
        self._execution_id = execution_id
        self._documents = Documents(engine.tools, engine.components)
        self._known: dict[str, tuple[Net, Compiled | CompiledJob] | None] = {}

    def net(self, execution: ExecutionSeen) -> Net | None:
        found = self._compiled(execution)
        return found[0] if found is not None else None

    def root_net(self) -> Net | None:
        """The graph of the run itself, whatever its log holds."""
        try:
            pinned = Pinned.from_bytes(self._engine.log.document(self._execution_id))
            return self._documents.compile(pinned)[0]
        except PenstockError:
            return None

    def where(self, execution: ExecutionSeen, step: str, arc: int | None = None, task: str | None = None) -> str:
        found = self._compiled(execution)
        if found is None:
            return ""
        places = found[1].places
        place = places.steps.get(step)
        if task is not None:
            place = places.tasks.get((step, task), place)
        elif arc is not None:
            place = places.arcs.get((step, arc), place)
        return f"{_near(place.file)}:{place.line}" if place is not None and place.line else ""

    def _compiled(self, execution: ExecutionSeen) -> tuple[Net, Compiled | CompiledJob] | None:
        if execution.scope not in self._known:
            try:
                self._known[execution.scope] = self._documents.compile(self._pinned(execution))
            except PenstockError:  # A tool that is no longer installed, a result store that was emptied: say less.
                self._known[execution.scope] = None
        return self._known[execution.scope]

    def _pinned(self, execution: ExecutionSeen) -> Pinned:
        from penstock.ports.blobs import ResultRef, is_ref
        from penstock.ports.results import decode

        document = execution.document
        if isinstance(document, dict) and is_ref(document):
            return Pinned.from_bytes(self._engine.blobs.get(ResultRef.from_json(document)))
        if document is not None:
            return Pinned.from_mapping(document)
        return Pinned.from_mapping(decode(self._engine.log.document(self._execution_id)))


def _near(file: str) -> str:
    """Relative to here when that is shorter."""
    try:
        relative = os.path.relpath(file, Path.cwd())
    except ValueError:
        return file
    return relative if len(relative) < len(file) else file
