"""How runs are named: which one is meant by an id, a beginning of one, a label or `@last`; and how a next command names it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.arguments import CommandLineError
from penstock.cli.remote import SERVER
from penstock.homes import known_home
from penstock.kernel.errors import Refused

if TYPE_CHECKING:
    from penstock.ports.log import EventLog, Header

LAST = "@last"
SEARCHED = 100_000


def find_run(log: EventLog, name: str) -> Header:
    if name == LAST:
        newest = log.headers(1)
        if not newest:
            raise CommandLineError("there are no runs yet", "`penstock run FILE` makes one")
        return newest[0]
    exact = log.header(name)
    if exact is not None:
        return exact
    known = log.headers(SEARCHED)
    for header in known:
        if header.label == name:
            return header
    begun = [header for header in known if name and header.execution_id.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        some = ", ".join(f"`{header.execution_id}`" for header in begun[:5])
        raise CommandLineError(f"`{name}` could be {len(begun)} runs: {some}", "give more of the id")
    raise CommandLineError(f"there is no run `{name}`", _others(known))


def _others(known: list[Header]) -> str:
    if not known:
        return "there are no runs yet; `penstock run FILE` makes one"
    some = ", ".join(
        f"`{header.execution_id}`" + (f" ({header.label})" if header.label else "") for header in known[:3]
    )
    return f"the latest are {some}; `penstock runs` lists them"


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
