"""How runs are named: a new id, and how a next command names a run."""

from __future__ import annotations

from pathlib import Path

from penstock.app.state_folder import known_home
from penstock.kernel.errors import Refused
from penstock.remote.client import SERVER


def new_id() -> str:
    """Random, so that a few characters of it are enough to name a run."""
    import os

    return os.urandom(6).hex()


def next_command(words: str, home: Path | str) -> str:
    """A command line to try next, with `--store` only where the state folder would not be found without. `home` may be the URL
    of a server."""
    import os
    import shlex

    if isinstance(home, str):
        return (
            f"penstock {words}" if os.environ.get(SERVER) == home else f"penstock {words} --server {shlex.quote(home)}"
        )
    try:
        found: Path | None = known_home()
    except Refused:
        found = None
    return f"penstock {words}" if found == home else f"penstock {words} --store {shlex.quote(str(home))}"
