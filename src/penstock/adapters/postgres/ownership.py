"""Who owns an execution: the process whose id its row names, for as long as that process keeps its lease.

Law: liveness is decided by the clock of the database alone. A claim raises the epoch that the append of every earlier owner
names, so an owner that was given up for dead and wakes again is refused by its number, whatever its clock says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple
from uuid import UUID

from penstock.adapters.admission import unknown
from penstock.adapters.postgres.database import SQL, Connection
from penstock.adapters.postgres.rows import given, kept
from penstock.ports.log import NotOwner


@dataclass(slots=True)
class Claim:
    """An execution this process owns. `last_seq` is the writer's: the number of the last entry it has committed."""

    execution_id: str
    epoch: int
    holder: UUID
    born: date
    last_seq: int
    owner: str
    lost: bool = False


class Ownership(NamedTuple):
    epoch: int
    holder: UUID | None
    owner: str | None
    last_seq: int
    live_name: str | None
    """The name of the process, when it is alive."""
    since: str | None


def ownership(connection: Connection, execution_id: str) -> Ownership:
    row = connection.execute(SQL["ownership"], {"execution_id": kept(execution_id)}).fetchone()
    if row is None:
        raise unknown(execution_id)
    return Ownership(*row)


def occupied(execution_id: str, found: Ownership) -> NotOwner:
    who = f"`{given(found.live_name or '')}` (`{given(found.owner or '')}`), since {found.since} UTC"
    return NotOwner(
        f"`{execution_id}` is already being worked on by {who}",
        "wait for it to end, or stop that process; a run can be resumed once nobody works on it",
    )


def check_free(connection: Connection, execution_id: str) -> None:
    found = ownership(connection, execution_id)
    if found.live_name is not None:
        raise occupied(execution_id, found)


def claim(connection: Connection, execution_id: str, owner: str, holder: UUID, held: Claim | None) -> Claim:
    """Become the owner, outside any transaction. `held` is what this process believes to own already.

    A row that names this process though it does not know of it was claimed by a call that lost its connection before it
    was told; that claim is nobody's, and is replaced.
    """
    while True:
        found = ownership(connection, execution_id)
        is_mine = found.holder == holder and (held is None or held.epoch != found.epoch)
        if found.live_name is not None and not is_mine:
            raise occupied(execution_id, found)
        values = {"execution_id": kept(execution_id), "owner": kept(owner), "holder": holder, "epoch": found.epoch}
        row = connection.execute(SQL["claim"], values).fetchone()
        if row is not None:
            epoch, last_seq, born = row
            return Claim(execution_id, epoch, holder, born, last_seq, owner)


def release(connection: Connection, claims: list[Claim]) -> None:
    values = {
        "names": [kept(one.execution_id) for one in claims],
        "epochs": [one.epoch for one in claims],
        "holders": [one.holder for one in claims],
    }
    connection.execute(SQL["release"], values)


def not_owned(execution_id: str) -> NotOwner:
    return NotOwner(
        f"`{execution_id}` is not owned by this process, or no longer: a lease that is not renewed in time is lost",
        "leave it to whoever takes it over, or claim it again",
    )
