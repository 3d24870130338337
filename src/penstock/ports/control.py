"""What a server keeps besides the log: documents by path and version, tokens, schedules and hooks.

Law: nothing here is needed to go on with a run: a run is pinned to the text it started with. Calls are synchronous, may be made
from any thread, and are durable when they return; `Refused` and `Unavailable` as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from penstock.kernel.values import JsonMap


@dataclass(frozen=True, slots=True)
class Filed:
    """A document in the catalog. `sources`: the joblets it includes, by file name."""

    path: str
    version: int
    digest: str
    kind: str
    text: str
    created_at: float
    created_by: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)


class Scope(str, Enum):
    """What a token may do; each includes those before it."""

    READ = "read"
    RUN = "run"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as stored: only a hash of its secret is kept."""

    id: str
    name: str
    scope: Scope
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None


class Missed(str, Enum):
    """What happens to slots that passed while no server was there to fire them."""

    ALL = "all"
    LAST = "last"
    NONE = "none"


class Overlap(str, Enum):
    """What happens to a slot that comes while an earlier run of its schedule is still going."""

    ALLOW = "allow"
    """Both run."""
    SKIP = "skip"
    """The slot makes no run."""
    QUEUE = "queue"
    """The slot waits until no run of the schedule is going any more; the oldest goes first."""
    CANCEL = "cancel"
    """The earlier run is cancelled, and the slot's begins when that one has ended."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """`cron` is read in `zone`. `fired_to`: all slots up to this time have been fired or passed over; 0: it has not begun
    yet. `last_slot`: the last one that was fired; `last_run`: the run it started, or `last_error`: why it started none.
    `deadline_s`: a run that has not ended this long after its slot is late."""

    name: str
    cron: str
    path: str
    zone: str = "UTC"
    version: int | None = None
    payload: JsonMap = field(default_factory=dict)
    context: str | None = None
    missed: Missed = Missed.LAST
    is_on: bool = True
    fired_to: float = 0.0
    last_slot: float | None = None
    last_run: str | None = None
    last_error: str | None = None
    overlap: Overlap = Overlap.ALLOW
    deadline_s: float | None = None


class SlotState(str, Enum):
    DUE = "due"
    """It was decided that it makes a run, which is being submitted."""
    QUEUED = "queued"
    """It waits until it may run."""
    STARTED = "started"
    SKIPPED = "skipped"
    REFUSED = "refused"
    """Its run was not accepted; `note` says why."""
    MISSED = "missed"
    """It passed while no server was there, and was not fired."""


PENDING = (SlotState.DUE, SlotState.QUEUED)


@dataclass(frozen=True, slots=True)
class Slot:
    """The state of one slot of a schedule. `ended`: the status with which the run was seen to have ended, None until then.
    `attempt` counts the runs of the slot. `backfill` names the backfill that requested the last of them; at most `at_once`
    of the backfill's runs are going at a time. `revision` counts changes."""

    schedule: str
    at: float
    state: SlotState
    run: str | None = None
    note: str | None = None
    attempt: int = 1
    backfill: str | None = None
    at_once: int = 1
    ended: str | None = None
    is_late: bool = False
    revision: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it is still to be submitted, or its run is not known to have ended."""
        return self.state in PENDING or (self.state is SlotState.STARTED and self.ended is None)


HIDDEN = "***"
"""Stands for the secret of a hook in lists, and for "keep the existing one" when a hook is stored."""


@dataclass(frozen=True, slots=True)
class Hook:
    """`POST /hooks/NAME` starts a run of `path`. With a `secret`, the request must be signed with it."""

    name: str
    path: str
    version: int | None = None
    secret: str | None = field(default=None, repr=False)
    payload: JsonMap = field(default_factory=dict)
    is_on: bool = True
    context: str | None = None
    """For a job: a group of its context."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule: whom to notify when something goes wrong. `on`: `failed`, `late`, `missed`. By mail to `mail_to`, or to a
    webhook at `url`, which may be `keychain:NAME`. `auth` names an entry of the keychain: that of the mail server, or the
    secret that a webhook is signed with. The rule itself contains no secret."""

    name: str
    on: tuple[str, ...]
    schedule: str | None = None
    document: str | None = None
    label: str | None = None
    mail_to: str | None = None
    mail_from: str | None = None
    smtp_host: str | None = None
    smtp_port: int | None = None
    smtp_security: str = "starttls"
    url: str | None = None
    auth: str | None = None
    is_on: bool = True
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """One alert that is to be sent, or was. `about`: what it is about; each rule sends it once."""

    alert: str
    about: str
    event: JsonMap
    state: str = "pending"
    """Otherwise `delivered`, or `failed` if it was given up."""
    attempts: int = 0
    next_at: float = 0.0
    error: str | None = None
    at: float = 0.0
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Loss:
    """A lease that a worker was lost with. `number` is that of the message that told it: when a step is run again, the attempts
    of its lease count from 1 again."""

    execution_id: str
    key: str
    attempt: int
    number: int
    at: float
    worker: str | None
    taken_by: str | None = None
    is_done: bool = False
    """Whoever took it has ended it."""

    @property
    def scope(self) -> str:
        return self.key.removeprefix(f"{self.execution_id}/")


class ControlStore(Protocol):
    # ---- catalog

    def file(self, path: str, text: str, kind: str, digest: str, sources: Mapping[str, str], by: str = "") -> Filed:
        """Store a document. The content of the newest version again is that version; any other is the next one. A number is
        never reused, not even after `unfile`: a version that somebody noted is that text or none."""
        ...

    def document(self, path: str, version: int | None = None) -> Filed | None:
        """The newest version, or the requested one."""
        ...

    def documents(self, prefix: str = "", limit: int = 1000, *, after: str = "") -> list[Filed]:
        """The newest version of each document whose path has this prefix and comes after `after`, by path; without texts and
        sources."""
        ...

    def versions(self, path: str) -> list[Filed]:
        """All versions, oldest first; without texts and sources."""
        ...

    def unfile(self, path: str) -> bool:
        """Remove a document from the catalog, with all its versions; its runs stay as they are."""
        ...

    # ---- tokens

    def add_token(self, name: str, scope: Scope, expires_at: float | None = None) -> tuple[Token, str]:
        """A new token and its secret, which is shown once and never stored."""
        ...

    def token(self, secret: str) -> Token | None:
        """The token with this secret, unless it has expired. The time of its last use is recorded to the minute."""
        ...

    def session(self, secret: str) -> str | None:
        """A value that stands for the token with this secret, for a browser to hold: always the same one. None if there is no
        such token. The secret cannot be had from it, and it cannot be had from what is stored."""
        ...

    def token_of_session(self, session: str) -> Token | None:
        """The token that this value stands for, whichever server made it; None once the token was revoked or has expired."""
        ...

    def tokens(self) -> list[Token]:
        """Oldest first, including expired ones."""
        ...

    def revoke(self, token_id: str) -> bool: ...

    # ---- schedules

    def schedule(self, name: str) -> Schedule | None: ...

    def schedules(self) -> list[Schedule]:
        """By name."""
        ...

    def put_schedule(self, schedule: Schedule) -> None:
        """Store the schedule. For an existing one, `last_…` stay as they are, and `fired_to` only ever moves forward."""
        ...

    def drop_schedule(self, name: str) -> bool:
        """Delete the schedule with everything known about its slots."""
        ...

    def fired(
        self,
        name: str,
        before: float,
        to: float,
        *,
        slot: float | None = None,
        run: str | None = None,
        error: str | None = None,
    ) -> bool:
        """Move `fired_to` from `before` to `to`; False, changing nothing, if another server has moved it already. With a
        `run` or an `error`, that is the result of `slot`; otherwise `last_…` stay as they are."""
        ...

    def claim_slot(self, slot: Slot) -> Slot:
        """Store what is to happen to a slot, unless that is stored already; returns what is stored. The first decision
        stands."""
        ...

    def change_slot(self, slot: Slot) -> bool:
        """Replace the slot if it still has that `revision`, which is incremented; otherwise False."""
        ...

    def slots(self, schedule: str, since: float, until: float, limit: int = 1000) -> list[Slot]:
        """The known slots from `since` to `until`, both included: the newest `limit` of them, oldest first."""
        ...

    def open_slots(self) -> list[Slot]:
        """The open slots of all schedules, by schedule and time."""
        ...

    def trim_slots(self, schedule: str, keep: int) -> None:
        """Delete all slots of a schedule except the newest `keep` and those that are open."""
        ...

    # ---- hooks

    def hook(self, name: str) -> Hook | None:
        """The hook with its secret. Unavailable if that is encrypted with a key that is not at hand."""
        ...

    def hooks(self) -> list[Hook]:
        """By name; `HIDDEN` stands for their secrets."""
        ...

    def put_hook(self, hook: Hook) -> None:
        """Store a hook. The secret `HIDDEN` means the existing one; Refused if there is none."""
        ...

    def drop_hook(self, name: str) -> bool: ...

    # ---- alerts

    def alerts(self) -> list[Alert]:
        """By name."""
        ...

    def put_alert(self, alert: Alert) -> None: ...

    def drop_alert(self, name: str) -> bool:
        """Delete the alert with all its deliveries."""
        ...

    def raise_alert(self, delivery: Delivery) -> bool:
        """Store an alert to be sent, unless it is known already. Returns whether it is new; False, too, without such a rule."""
        ...

    def deliveries(self, alert: str | None = None, *, is_pending: bool = False, limit: int = 1000) -> list[Delivery]:
        """Deliveries that are pending or done, newest first."""
        ...

    def change_delivery(self, delivery: Delivery) -> bool:
        """Replace the delivery if it still has that `revision`, which is incremented; otherwise False."""
        ...

    def trim_deliveries(self, alert: str, keep: int) -> None:
        """Delete all deliveries except the newest ones."""
        ...

    # ---- leases that were lost

    def add_loss(self, loss: Loss, keep: int) -> None:
        """Store the loss, unless it is stored already; of all losses the newest `keep` stay."""
        ...

    def take_loss(self, key: str, attempt: int, worker: str, *, is_done: bool) -> bool:
        """The latest loss of this lease before this attempt was taken by `worker`. Returns whether there is one."""
        ...

    def losses(self, limit: int = 1000) -> list[Loss]:
        """Newest first."""
        ...

    def close(self) -> None: ...
