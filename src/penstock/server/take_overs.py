"""Runs that bring their server down: each take-over is noted in the log before the run is taken up.

Law: a note remains exactly if the server did not live to remove it, whatever the cause: a crash, a kill, a freeze that cost
it its lease. A run that is taken over again without having written anything since is a suspect. Suspects are taken up a few
at a time, the worst one alone, so that runs that were merely on the same server when it died are not counted again; a run
that was alone with its server too often is set aside, where people can see it (`interrupted`) and resume or cancel it.

Notes are requests in the log that nobody answers while the run is on trial. A run that a server has just registered itself
has none: it is noted when another server takes it over. If a run is taken over without a single entry, that alone shows that
the server that registered it died of it, or beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from penstock.kernel.errors import Refused
from penstock.ports.log import EventLog, Request
from penstock.ports.results import decode, encode

NOTE: Final = "take_over"
MOST_IDLE: Final = 3
"""After how many take-overs without an entry between them a run is set aside."""
MOST: Final = 8
"""After how many take-overs altogether that no server outlived a run is set aside."""
BEATS: Final = 3
"""A server that has renewed its leases this often since it took up a run has outlived it."""
GROUP: Final = 16
"""How many runs that were lost once are taken up together."""


class LostWithServers(Refused):
    """A run that too many servers did not outlive."""


class TakeOver(Struct):
    """A note that was left behind. `seq`: the last entry of the run when it was taken up."""

    number: int
    seq: int


class Trial(Struct):
    """A run that was taken over and has not been outlived yet. `idle`: how often it was lost before without writing an
    entry."""

    idle: int
    beats: int = 0


def notes_of(requests: Iterable[Request]) -> dict[str, list[TakeOver]]:
    """The notes, by execution."""
    found: defaultdict[str, list[TakeOver]] = defaultdict(list)
    for request in requests:
        if request.what == NOTE:
            data = decode(request.payload)
            seq = data.get("seq") if isinstance(data, dict) else None
            found[request.execution_id].append(TakeOver(request.number, seq if isinstance(seq, int) else -1))
    return dict(found)


def idle_losses(notes: list[TakeOver], last_seq: int) -> int:
    """How often it was lost since its last entry: each take-over that was not outlived, plus the registering server if that
    died before writing the first entry."""
    return sum(note.seq == last_seq for note in notes) + _unbegun(notes, last_seq)


def _unbegun(notes: list[TakeOver], last_seq: int) -> bool:
    """Whether it was taken over without a single entry: the server that registered it would have written one."""
    return bool(notes) and last_seq == 0


def refusal(notes: list[TakeOver], last_seq: int) -> LostWithServers | None:
    """Why a run is not taken up once more; None if it is."""
    idle = idle_losses(notes, last_seq)
    if idle < MOST_IDLE and len(notes) < MOST:
        return None
    how = f"{idle} without a single entry in its log between them" if idle >= MOST_IDLE else "one after the other"
    lost = len(notes) + _unbegun(notes, last_seq)
    return LostWithServers(
        f"{lost} servers took the run up and did not outlive it, {how}",
        "find out what brings them down before you `penstock resume` it; `penstock cancel` ends it",
    )


class Trials:
    """The runs of one server that are on trial."""

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}

    def has_room(self, idle: int) -> bool:
        """Whether a run that was lost this often may be taken up now. One that was never lost always may."""
        suspects = [trial for trial in self._trials.values() if trial.idle]
        if idle == 0:
            return True
        if idle == 1:
            return len(suspects) < GROUP and all(trial.idle == 1 for trial in suspects)
        return not suspects

    def begin(self, execution_id: str, idle: int) -> None:
        self._trials[execution_id] = Trial(idle)

    def end(self, execution_id: str) -> None:
        self._trials.pop(execution_id, None)

    def beat(self) -> list[str]:
        """The server's leases were renewed: returns the runs that it has outlived by now."""
        for trial in self._trials.values():
            trial.beats += 1
        outlived = [execution_id for execution_id, trial in self._trials.items() if trial.beats > BEATS]
        for execution_id in outlived:
            del self._trials[execution_id]
        return outlived


def write_note(log: EventLog, execution_id: str) -> int:
    """Note that a run is taken over, and how often it was lost since its last entry. Must be called from a thread."""
    header = log.header(execution_id)
    last_seq = header.last_seq if header is not None else 0
    before = notes_of(log.asked(execution_id)).get(execution_id, [])
    log.ask(execution_id, NOTE, encode({"seq": last_seq}))
    return idle_losses(before, last_seq)


def remove_notes(log: EventLog, execution_id: str) -> None:
    """The run was outlived, has ended, or was let go by a live server."""
    for note in notes_of(log.asked(execution_id)).get(execution_id, []):
        log.answered(note.number)
