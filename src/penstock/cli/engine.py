"""The engine as commands use it: that of a state folder, closed whatever happens, or that of a server; and how runs are named."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.app.state_folder import known_home
from penstock.cli.output import near
from penstock.cli.places import database_of, server_of
from penstock.kernel.errors import Refused
from penstock.remote.client import SERVER, Client
from penstock.server.run_names import find_run

if TYPE_CHECKING:
    from penstock.app.embedded import Embedded
    from penstock.ports.log import Header
    from penstock.remote.engine import RemoteEngine
    from penstock.server.views import Views

Engine: TypeAlias = "Embedded | RemoteEngine"


@contextmanager
def opened(home: Path, **more: Any) -> Iterator[Embedded]:
    import asyncio  # Commands for a server do not need the engine.

    from penstock.app.embedded import embedded  # Commands for a server do not need it.

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
        from penstock.remote.engine import RemoteEngine  # Only runs at a server need it.

        yield RemoteEngine(Client(url)), url
        return
    engine = stored(options)
    try:
        places = database_of(options)
        # Without the name and the password that may stand in a URL.
        yield engine, (places.database or "").rpartition("@")[2] if places is not None else str(engine.home)
    finally:
        import asyncio  # Commands for a server do not need it.

        asyncio.run(engine.close())


def stored(options: Namespace) -> Embedded:
    """The runs of a state folder; or those of a fleet, without any of its servers, where its database is named."""
    from penstock.app.embedded import Embedded, embedded  # Commands for a server do not need the engine.

    places = database_of(options)
    if places is None:
        return embedded(known_home(options.store))
    from penstock.app.stores import open_log, open_results  # Only fleets need it.
    from penstock.tools.registry import Registry

    return Embedded(places.home, open_log(places, "command line"), open_results(places), Registry())


@contextmanager
def looking_at(options: Namespace) -> Iterator[tuple[Engine, Header]]:
    """The engine in which `options.run` is, and that run."""
    with looking(options) as (engine, _):
        yield engine, run_named(engine, options.run)


def run_named(engine: Engine, name: str) -> Header:
    from penstock.app.embedded import Embedded  # Commands for a server do not need the engine.

    return find_run(engine.log, name) if isinstance(engine, Embedded) else engine.log.header(name)


def status_of(header: Header, engine: Engine) -> str:
    """The status as people read it: a run that the log calls running and that no process owns has crashed."""
    if header.status == "running" and not engine.log.has_owner(header.execution_id):
        return "crashed"
    return header.status


def views_of(engine: Engine) -> Views:
    from penstock.app.embedded import Embedded  # Commands for a server do not need the engine.

    if not isinstance(engine, Embedded):
        return engine.views
    from penstock.server.views import Views  # Commands for a server do not need it.

    return Views(engine.log, engine.blobs, engine.documents(), lambda header: status_of(header, engine), near)


def new_id() -> str:
    """Random, so that a few characters of it are enough to name a run."""
    return os.urandom(6).hex()


def next_command(words: str, home: Path | str) -> str:
    """A command line to try next, with `--store` only where the state folder would not be found without. `home` may be the URL
    of a server."""
    import shlex  # Rarely needed, and not worth the start-up time.

    if isinstance(home, str):
        return (
            f"penstock {words}" if os.environ.get(SERVER) == home else f"penstock {words} --server {shlex.quote(home)}"
        )
    try:
        found: Path | None = known_home()
    except Refused:
        found = None
    return f"penstock {words}" if found == home else f"penstock {words} --store {shlex.quote(str(home))}"
