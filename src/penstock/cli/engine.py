"""The engine as commands use it: opened for a state folder, and closed whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.naming import find_run
from penstock.homes import known_home

if TYPE_CHECKING:
    from penstock.app import Embedded
    from penstock.ports.log import Header


@contextmanager
def opened(home: Path, **more: Any) -> Iterator[Embedded]:
    import asyncio

    from penstock.app import embedded

    engine = embedded(home, **more)
    try:
        yield engine
    finally:
        asyncio.run(engine.close())


@contextmanager
def looking_at(store: str | None, run: str) -> Iterator[tuple[Embedded, Header]]:
    """The engine of the state folder in which `run` is, and that run."""
    with opened(known_home(store)) as engine:
        yield engine, find_run(engine.log, run)


def status_of(header: Header, engine: Embedded) -> str:
    """As people should read it: what the log calls running, and nobody works on, has crashed."""
    if header.status == "running" and not engine.log.has_owner(header.execution_id):
        return "crashed"
    return header.status
