"""Which run is meant by an id, a unique beginning of one, a label or `@last`."""

from __future__ import annotations

from penstock.kernel.errors import Refused
from penstock.ports.log import EventLog, Header

LAST = "@last"
MOST = 100


class NoSuchRun(Refused):
    """No run has this name."""


class AmbiguousRun(Refused):
    """Several runs match."""


def find_run(log: EventLog, name: str) -> Header:
    """The run with this id, otherwise the newest with this label, otherwise the one whose id begins with it; or the newest
    of all."""
    if name == LAST:
        newest = log.headers(1)
        if not newest:
            raise NoSuchRun("there are no runs yet", "`penstock run FILE` makes one")
        return newest[0]
    exact = log.header(name)
    if exact is not None:
        return exact
    known = log.named(name, MOST) if name else []
    labelled = next((header for header in known if header.label == name), None)
    if labelled is not None:
        return labelled
    if len(known) == 1:
        return known[0]
    if known:
        some = ", ".join(f"`{header.execution_id}`" for header in known[:5])
        count = f"{len(known)}" if len(known) < MOST else f"{MOST} or more"
        raise AmbiguousRun(f"`{name}` could be {count} runs: {some}", "give more of the id")
    raise NoSuchRun(f"there is no run `{name}`", _others(log))


def _others(log: EventLog) -> str:
    latest = log.headers(3)
    if not latest:
        return "there are no runs yet; `penstock run FILE` makes one"
    some = ", ".join(f"`{one.execution_id}`" + (f" ({one.label})" if one.label else "") for one in latest)
    return f"the latest are {some}; `penstock runs` lists them"
