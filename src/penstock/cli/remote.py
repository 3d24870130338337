"""Which server a command is to ask."""

from __future__ import annotations

import os
from argparse import Namespace

from penstock.cli.parsing import CommandLineError
from penstock.remote.client import SERVER


def server_of(options: Namespace) -> str | None:
    """The server that a command is to ask; None when it works by itself. A state folder that is named is meant."""
    given = getattr(options, "server", None)
    if given and getattr(options, "store", None):
        raise CommandLineError("`--store` and `--server` are two places to look", "give one of them")
    is_local = bool(getattr(options, "store", None) or getattr(options, "database", None))
    return given or (None if is_local else os.environ.get(SERVER) or None)
