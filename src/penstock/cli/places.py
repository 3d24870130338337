"""Where a command finds what it works on, from its options and the environment: a server, a database, a state folder."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.app.state_folder import home_here
from penstock.cli.arguments import CommandLineError
from penstock.remote.client import SERVER

if TYPE_CHECKING:
    from penstock.app.stores import Places
    from penstock.tools.addresses import Addresses


SLOTS, POOL, HOSTS = "PENSTOCK_SLOTS", "PENSTOCK_POOL", "PENSTOCK_ALLOW_HOST"
DEFAULT_SLOTS, DEFAULT_POOL = 4, "default"


def places_of(options: Namespace) -> Places:
    from penstock.app.stores import Places  # Only fleets need it.

    results, dispatch, base = (getattr(options, name, None) for name in ("results", "dispatch", "base"))
    return Places.from_options(home_here(options.store), options.database, results, dispatch, base=base)


def database_of(options: Namespace) -> Places | None:
    """The places of a fleet, where a command names its database; else what it asks about is in a state folder."""
    return places_of(options) if getattr(options, "database", None) else None


def slots_of(options: Namespace) -> int:
    if options.slots is not None:
        return int(options.slots)
    text = os.environ.get(SLOTS) or str(DEFAULT_SLOTS)
    if not text.isdigit() or int(text) < 1:
        raise CommandLineError(f"`{SLOTS}` is `{text}`, and should be a whole number from 1 on")
    return int(text)


def addresses_of(options: Namespace) -> Addresses:
    """Which addresses tasks may reach: what is typed, else what the environment says."""
    from penstock.tools.addresses import VARIABLE, Addresses  # Only fleets need it.

    return Addresses.parsed(options.allow_address or [os.environ.get(VARIABLE, "")])


def hosts_of(options: Namespace) -> frozenset[str]:
    """By which names the server may be asked without a token, beside its own."""
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
    """The server that a command is to ask; None when it works by itself. A state folder that is named is meant."""
    given = getattr(options, "server", None)
    if given and getattr(options, "store", None):
        raise CommandLineError("`--store` and `--server` are two places to look", "give one of them")
    is_local = bool(getattr(options, "store", None) or getattr(options, "database", None))
    return given or (None if is_local else os.environ.get(SERVER) or None)
