"""How many rows the components of this process have made so far: for those who watch, until the log says how many in all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

EXECUTIONS = 100
COMPONENTS = 10_000
"""In each execution: an iterator may run a component a million times."""


class RowCounts:
    """May be used from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: OrderedDict[str, OrderedDict[str, dict[str, int]]] = OrderedDict()

    def note(self, execution_id: str, component: str, port: str, rows: int) -> None:
        with self._lock:
            components = self._found.setdefault(execution_id, OrderedDict())
            components.setdefault(component, {})[port] = rows
            if len(components) > COMPONENTS:
                components.popitem(last=False)
            self._found.move_to_end(execution_id)
            if len(self._found) > EXECUTIONS:
                self._found.popitem(last=False)

    def of(self, execution_id: str) -> Mapping[str, Mapping[str, int]]:
        """Component, by its place in the execution -> port -> rows."""
        with self._lock:
            return {name: dict(ports) for name, ports in self._found.get(execution_id, {}).items()}
