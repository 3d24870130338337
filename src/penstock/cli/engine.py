"""The engine as commands use it: opened for a state folder, and closed whatever happens; or a server's, over the network."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.cli.naming import find_run
from penstock.cli.remote import Client, server_of
from penstock.homes import known_home

if TYPE_CHECKING:
    from penstock.app import Embedded
    from penstock.cli.remote_engine import RemoteEngine
    from penstock.ports.log import Header
    from penstock.server.views import Views

    Engine: TypeAlias = Embedded | RemoteEngine


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
def looking(options: Namespace) -> Iterator[tuple[Engine, str]]:
    """The engine that a command is to look at, and where that is."""
    url = server_of(options)
    if url is not None:
        from penstock.cli.remote_engine import RemoteEngine

        yield RemoteEngine(Client(url)), url
        return
    home = known_home(options.store)
    with opened(home) as engine:
        yield engine, str(home)


@contextmanager
def looking_at(options: Namespace) -> Iterator[tuple[Engine, Header]]:
    """The engine in which `options.run` is, and that run."""
    with looking(options) as (engine, _):
        yield engine, run_named(engine, options.run)


def run_named(engine: Engine, name: str) -> Header:
    from penstock.app import Embedded

    return find_run(engine.log, name) if isinstance(engine, Embedded) else engine.log.header(name)


def status_of(header: Header, engine: Engine) -> str:
    """As people should read it: what the log calls running, and nobody works on, has crashed."""
    if header.status == "running" and not engine.log.has_owner(header.execution_id):
        return "crashed"
    return header.status


def views_of(engine: Engine) -> Views:
    from penstock.app import Embedded

    if not isinstance(engine, Embedded):
        return engine.views
    from penstock.cli.book import near
    from penstock.server.views import Views

    return Views(engine.log, engine.blobs, engine.documents(), lambda header: status_of(header, engine), near)
