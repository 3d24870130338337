"""Where a command's fleet keeps its things, from its options and the environment."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.cli.arguments import CommandLineError
from penstock.homes import home_here

if TYPE_CHECKING:
    from penstock.fleet_stores import Places
    from penstock.tools.addresses import Addresses

SLOTS, POOL = "PENSTOCK_SLOTS", "PENSTOCK_POOL"
DEFAULT_SLOTS, DEFAULT_POOL = 4, "default"


def places_of(options: Namespace) -> Places:
    from penstock.fleet_stores import Places

    more = [getattr(options, name, None) for name in ("results", "dispatch")]
    return Places.said(home_here(options.store), options.database, *more)


def slots_of(options: Namespace) -> int:
    if options.slots is not None:
        return int(options.slots)
    text = os.environ.get(SLOTS) or str(DEFAULT_SLOTS)
    if not text.isdigit() or int(text) < 1:
        raise CommandLineError(f"`{SLOTS}` is `{text}`, and should be a whole number from 1 on")
    return int(text)


def addresses_of(options: Namespace) -> Addresses:
    """Which addresses tasks may reach: what is typed, else what the environment says."""
    from penstock.tools.addresses import VARIABLE, Addresses

    return Addresses.parsed(options.allow_address or [os.environ.get(VARIABLE, "")])


def pool_of(options: Namespace) -> str:
    return options.pool or os.environ.get(POOL) or DEFAULT_POOL
