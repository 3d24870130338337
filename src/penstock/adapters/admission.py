"""May these entries be appended? The one rule of the log, the same for every adapter that decides it in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.kernel.errors import Refused
from penstock.ports.log import Entry, NotOwner


@dataclass(slots=True)
class Standing:
    """Where an execution stands: the epoch of its owner, if it has one, and the number of its last entry."""

    epoch: int
    owner: str | None
    last_seq: int


def refusal(execution_id: str, standing: Standing | None, epoch: int, entries: Sequence[Entry]) -> Refused | None:
    """Why not, or None when they may."""
    if standing is None:
        return unknown(execution_id)
    if epoch != standing.epoch:
        who = "somebody who has let go of it since" if standing.owner is None else f"`{standing.owner}`"
        return NotOwner(
            f"`{execution_id}` has been taken over by {who} (epoch {standing.epoch}, this append has {epoch})",
            "another process resumed the run: leave it to that one",
        )
    if standing.owner is None:
        return NotOwner(f"`{execution_id}` has been released: its owner appends nothing more", "claim it again first")
    expected = standing.last_seq + 1
    for entry in entries:
        if entry[0] != expected:
            return Refused(
                f"`{execution_id}` expects entry {expected} next, and was given {entry[0]}",
                "the log has gone on without this owner: read it again before going on",
            )
        expected += 1
    return None


def unknown(execution_id: str) -> Refused:
    return Refused(f"there is no execution `{execution_id}`", "`penstock runs` lists them")
