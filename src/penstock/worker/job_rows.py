"""What all components of one job in this process share: its rows, its links, and the services of the worker."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from penstock.components import runner
from penstock.expr.scope import Names
from penstock.expr.template import render
from penstock.kernel.decide import Decider
from penstock.kernel.net import Link
from penstock.kernel.values import JsonMap
from penstock.ports.blobs import BlobStore
from penstock.ports.components import SHARED_COMMIT
from penstock.ports.leases import ScopeContext
from penstock.ports.plugins import at_folder
from penstock.ports.results import materialised
from penstock.ports.rows import EngineChoice
from penstock.worker.arrivals import connected, counted_ports
from penstock.worker.outcomes import Normaliser
from penstock.worker.row_store import RowStore
from penstock.worker.services import ComponentBox, VeiledBlobs, WorkerServices


class JobRows:
    def __init__(self, services: WorkerServices, context: ScopeContext, decider: Decider) -> None:
        assert services.components is not None
        assert services.work is not None
        assert services.engines is not None
        self.services = services
        self.context = context
        self.decider = decider
        self.components: ComponentBox = at_folder(services.components, context.folder)
        is_offline = not services.settings.addresses.is_open
        self.row_store = RowStore(
            _folder(services.work, context), services.engines, services.blobs, is_offline=is_offline
        )
        self._choices: dict[str, EngineChoice] = {}
        self.blobs: BlobStore = VeiledBlobs.of(services.blobs, context.keychain)
        self.normaliser = Normaliser(
            services.blobs, context.keychain, context.net.limits.max_payload_bytes, services.load
        )
        self.groups: dict[tuple[str, str], Any] = {}
        """Fused groups, by the scope they lie in."""
        self._links: dict[str, dict[str, list[Link]]] = {}
        self._counted = counted_ports(decider.net)
        parts = (node.part for node in decider.net.nodes.values() if node.tasks and node.tasks[0].kind == SHARED_COMMIT)
        self.commits = {(part.container, part.region) for part in parts if part is not None}
        """The sub-jobs that end with a component that commits what their other components wrote."""

    def choice(self, name: str) -> EngineChoice:
        """The engine of the sub-job that a component lies in. Raises Refused, or ExpressionError."""
        own = self.context.net.engines.get(name)
        key = "" if own is None else name
        found = self._choices.get(key)
        if found is None:
            words = self.context.net.engine if own is None else {**_limits(self.context.net.engine), **own}
            workload, keys = self.context.workload, self.context.keychain
            names = Names({**workload, "context": workload, "keychain": keys.view()})
            rendered = keys.reveal(materialised(render(words, names)))
            found = self._choices[key] = EngineChoice.of(rendered).within(self.context.folder)
        return found

    def connected(self, name: str) -> dict[str, list[Link]]:
        found = self._links.get(name)
        if found is None:
            found = self._links[name] = connected(self.decider.plan, name)
            tasks = self.decider.net.nodes[name].tasks
            if self._counted and tasks:
                countable = runner.countable(self.components.get(tasks[0].kind))
                found.update((port, []) for port in sorted(self._counted & countable) if port not in found)
        return found


def _limits(words: JsonMap) -> JsonMap:
    """Of the words of the job's engine, those that hold for an engine of any sub-job."""
    known = ("memory_limit", "max_in_flight_rows", "max_in_flight_bytes")
    return {name: words[name] for name in known if name in words}


def _folder(work: Path, context: ScopeContext) -> Path:
    """One folder per run. Jobs nested in the run have theirs inside it, so that whatever a crash leaves is removed with the
    run's folder."""
    scope = context.scope.place.id
    folder = work / context.execution_id
    return folder / sha256(scope.encode()).hexdigest()[:16] if scope else folder
