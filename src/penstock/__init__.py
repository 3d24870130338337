"""Penstock: one event-sourced engine that runs playbooks and jobs, with a log that can always say why.

    import penstock

    run = penstock.run("orders.yaml", {"day": "2024-05-01"})
    run.status, run.result, run.ctx

Names are imported when they are first used, so that `import penstock` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app.rows import Rows
    from penstock.components.base import Action, Component, ComponentFailure, Iterator, Relational, Sink
    from penstock.kernel.errors import PenstockError, Refused, Unavailable
    from penstock.python_api import (
        Replay,
        Report,
        Run,
        aresume,
        arun,
        component,
        replay,
        resume,
        rows,
        run,
        tool,
        validate,
    )
    from penstock.python_client import Server, connect
    from penstock.server.documents import DocumentInvalid
    from penstock.tools.base import Call, Success, Tool, ToolFailure

    __version__: str

_WHERE = {
    name: module
    for module, names in {
        "penstock.app.rows": "Rows",
        "penstock.components.base": "Action Component ComponentFailure Iterator Relational Sink",
        "penstock.kernel.errors": "PenstockError Refused Unavailable",
        "penstock.python_api": "Replay Report Run aresume arun component replay resume rows run tool validate",
        "penstock.python_client": "Server connect",
        "penstock.server.documents": "DocumentInvalid",
        "penstock.tools.base": "Call Success Tool ToolFailure",
    }.items()
    for name in names.split()
}

__all__ = [
    "Action",
    "Call",
    "Component",
    "ComponentFailure",
    "DocumentInvalid",
    "Iterator",
    "PenstockError",
    "Refused",
    "Relational",
    "Replay",
    "Report",
    "Rows",
    "Run",
    "Server",
    "Sink",
    "Success",
    "Tool",
    "ToolFailure",
    "Unavailable",
    "__version__",
    "aresume",
    "arun",
    "component",
    "connect",
    "replay",
    "resume",
    "rows",
    "run",
    "tool",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _WHERE:
        from importlib import import_module  # `import penstock` stays quick.

        value = getattr(import_module(_WHERE[name]), name)
    else:
        raise AttributeError(f"module `penstock` has no attribute `{name}`")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # `import penstock` stays quick.

    try:
        return version("penstock")
    except PackageNotFoundError:  # Run from a checkout that was not installed.
        return "0+unknown"
