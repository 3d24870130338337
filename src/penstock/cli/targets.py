"""What a command works on, from its options and the environment: the log or the engine of a state folder, a database or a server,
closed whatever happens; and how runs are named."""

from __future__ import annotations

import asyncio
import os
import shlex
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from penstock.app.state_folder import home_here, known_home
from penstock.cli.arguments import CommandLineError
from penstock.cli.output import near
from penstock.kernel.errors import Refused
from penstock.ports.log import EventLog, Header
from penstock.remote.client import SERVER, Client
from penstock.remote.log import RemoteLog
from penstock.server.run_names import find_run
from penstock.views.headers import status_of

if TYPE_CHECKING:
    from penstock.app.embedded import Embedded
    from penstock.app.stores import StoreLocations
    from penstock.remote.engine import RemoteEngine
    from penstock.server.views import Views
    from penstock.tools.addresses import Addresses


Engine: TypeAlias = "Embedded | RemoteEngine"
Log: TypeAlias = EventLog | RemoteLog


@contextmanager
def log_of(options: Namespace) -> Iterator[tuple[Log, str]]:
    """The log that a command reads, and its location. Loads no engine."""
    url = server_of(options)
    if url is not None:
        yield RemoteLog(Client(url)), url
        return
    log, where = _opened(options)
    try:
        yield log, where
    finally:
        asyncio.run(log.close())


def _opened(options: Namespace) -> tuple[EventLog, str]:
    locations = database_of(options)
    if locations is None:
        from penstock.adapters.sqlite.log import SqliteLog  # Commands for a server do not need it.

        home = known_home(options.store)
        return SqliteLog(home), str(home)
    from penstock.app.stores import open_log  # Only fleets need it.

    # Without the name and the password that the URL may hold.
    return open_log(locations, "command line"), (locations.database or "").rpartition("@")[2]


@contextmanager
def looking(options: Namespace) -> Iterator[tuple[Engine, str]]:
    """The engine that a command looks at, and its location."""
    url = server_of(options)
    if url is not None:
        from penstock.remote.engine import RemoteEngine  # Only runs at a server need it.

        yield RemoteEngine(Client(url)), url
        return
    engine = stored(options)
    try:
        yield engine, str(engine.home)
    finally:
        asyncio.run(engine.close())


def stored(options: Namespace) -> Embedded:
    """The engine of a state folder, or of a fleet's database without any of its servers."""
    from penstock.app.embedded import Embedded, embedded  # Commands for a server do not need the engine.

    locations = database_of(options)
    if locations is None:
        return embedded(known_home(options.store))
    from penstock.app.stores import open_log, open_results  # Only fleets need it.
    from penstock.tools.registry import Registry

    return Embedded(locations.home, open_log(locations, "command line"), open_results(locations), Registry())


@contextmanager
def looking_at(options: Namespace) -> Iterator[tuple[Engine, Header]]:
    """The engine in which `options.run` is, and that run."""
    with looking(options) as (engine, _):
        yield engine, run_named(engine.log, options.run)


def run_named(log: Log, name: str) -> Header:
    return log.header(name) if isinstance(log, RemoteLog) else find_run(log, name)


def views_of(engine: Engine) -> Views:
    if engine.is_remote:
        return engine.views
    from penstock.server.views import Views  # Loads the compilers: only some commands need it.

    return Views(engine.log, engine.blobs, engine.documents(), lambda header: status_of(header, engine.log), near)


def new_id() -> str:
    """Random, so that a few characters are enough to name a run."""
    return os.urandom(6).hex()


def next_command(words: str, home: Path | str) -> str:
    """A command line to try next, with `--store` only where the state folder would not be found without. `home` may be the URL
    of a server."""
    if isinstance(home, str):
        return (
            f"penstock {words}" if os.environ.get(SERVER) == home else f"penstock {words} --server {shlex.quote(home)}"
        )
    try:
        found: Path | None = known_home()
    except Refused:
        found = None
    return f"penstock {words}" if found == home else f"penstock {words} --store {shlex.quote(str(home))}"


SLOTS, POOL, HOSTS = "PENSTOCK_SLOTS", "PENSTOCK_POOL", "PENSTOCK_ALLOW_HOST"
DEFAULT_SLOTS, DEFAULT_POOL = 4, "default"


def locations_of(options: Namespace) -> StoreLocations:
    from penstock.app.stores import StoreLocations  # Only fleets need it.

    results, dispatch, base = (getattr(options, name, None) for name in ("results", "dispatch", "base"))
    return StoreLocations.from_options(home_here(options.store), options.database, results, dispatch, base=base)


def database_of(options: Namespace) -> StoreLocations | None:
    """The stores of a fleet, if a command names its database; otherwise what it asks about is in a state folder."""
    return locations_of(options) if getattr(options, "database", None) else None


def slots_of(options: Namespace) -> int:
    if options.slots is not None:
        return int(options.slots)
    text = os.environ.get(SLOTS) or str(DEFAULT_SLOTS)
    if not text.isdigit() or int(text) < 1:
        raise CommandLineError(f"`{SLOTS}` is `{text}`, and should be a whole number from 1 on")
    return int(text)


def addresses_of(options: Namespace) -> Addresses:
    """Which addresses tasks may reach: from the options, else from the environment."""
    from penstock.tools.addresses import VARIABLE, Addresses  # Only fleets need it.

    return Addresses.parsed(options.allow_address or [os.environ.get(VARIABLE, "")])


def hosts_of(options: Namespace) -> frozenset[str]:
    """The names by which the server answers without a token, beside its own."""
    from penstock.api.hosts import Host  # Only this needs FastAPI.

    given = options.allow_host or [word.strip() for word in os.environ.get(HOSTS, "").split(",") if word.strip()]
    hosts = {word: Host.read(word) for word in given}
    for word, host in hosts.items():
        if host is None or host.name != word.lower().removesuffix("."):
            raise CommandLineError(f"`--allow-host {word[:100]}` is not the name of a host", "write it without a port")
    return frozenset(host.name for host in hosts.values() if host is not None)


def pool_of(options: Namespace) -> str:
    return options.pool or os.environ.get(POOL) or DEFAULT_POOL


def server_of(options: Namespace) -> str | None:
    """The server that a command talks to; None if it works locally. An explicit state folder wins over the environment."""
    given = getattr(options, "server", None)
    if given and getattr(options, "store", None):
        raise CommandLineError("`--store` and `--server` are two places to look", "give one of them")
    is_local = bool(getattr(options, "store", None) or getattr(options, "database", None))
    return given or (None if is_local else os.environ.get(SERVER) or None)
