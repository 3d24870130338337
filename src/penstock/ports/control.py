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
    """A document in the catalog. `sources`: the joblets it takes in, by file name."""

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
    """A token as it is kept: only a hash of the secret is."""

    id: str
    name: str
    scope: Scope
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None


class Missed(str, Enum):
    """What becomes of slots that passed while nobody was there to fire them."""

    ALL = "all"
    LAST = "last"
    NONE = "none"


class Overlap(str, Enum):
    """What becomes of a slot that comes while an earlier run of its schedule is still going."""

    ALLOW = "allow"
    """Both run."""
    SKIP = "skip"
    """The slot makes no run."""
    QUEUE = "queue"
    """The slot waits until nothing of the schedule runs any more; the oldest goes first."""
    CANCEL = "cancel"
    """The earlier run is cancelled, and the slot's begins when that one has ended."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """`cron` is read in `zone`. `fired_to`: all slots up to this time have been fired or let go; 0: it has not begun yet.

    `last_slot`: the last one that was fired; `last_run`: what it started, or `last_error`: why it started nothing.
    `deadline_s`: a run that has not ended so long after its slot is late.
    """

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
    """It passed while no server was there, and was let go."""


PENDING = (SlotState.DUE, SlotState.QUEUED)


@dataclass(frozen=True, slots=True)
class Slot:
    """What became of one slot of a schedule, and what is still to become of it.

    `ended`: the status with which the run was seen to have ended; None while it was not. `attempt` counts the runs of the slot.
    `backfill` names the backfill that asked for the last of them; `at_once` of its runs may be going. `revision` counts changes.
    """

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
        """Is it still to be submitted, or its run not known to have ended?"""
        return self.state in PENDING or (self.state is SlotState.STARTED and self.ended is None)


HIDDEN = "***"
"""Stands for the secret of a hook in lists, and for "the one that is there" when a hook is put."""


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
    """Of a job: a group of its context."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule: whom to tell when something goes wrong. `on`: `failed`, `late`, `missed`. By mail to `mail_to`, or to a webhook at
    `url`, which may be `keychain:NAME`. `auth` names an entry of the keychain: of the mail server, or the secret that a webhook
    is signed with. No secret is in here."""

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
    """One alert that is to be told, or was. `about`: what it is about; each is told once to each rule."""

    alert: str
    about: str
    event: JsonMap
    state: str = "pending"
    """Or `delivered`, or `failed` when it was given up."""
    attempts: int = 0
    next_at: float = 0.0
    error: str | None = None
    at: float = 0.0
    revision: int = 0


class ControlStore(Protocol):
    # ---- catalog

    def file(self, path: str, text: str, kind: str, digest: str, sources: Mapping[str, str], by: str = "") -> Filed:
        """Keep a document. The content of the newest version again is that version; any other is the next one.

        A number is never given twice, not even after `unfile`: who has written down a version means that text or none.
        """
        ...

    def document(self, path: str, version: int | None = None) -> Filed | None:
        """The newest version, or the one that is asked for."""
        ...

    def documents(self, prefix: str = "", limit: int = 1000, *, after: str = "") -> list[Filed]:
        """The newest version of each whose path begins so and comes after `after`, by path; without texts and sources."""
        ...

    def versions(self, path: str) -> list[Filed]:
        """All of them, the oldest first; without texts and sources."""
        ...

    def unfile(self, path: str) -> bool:
        """Take a document out of the catalog, all its versions; runs of it stay as they are."""
        ...

    # ---- tokens

    def add_token(self, name: str, scope: Scope, expires_at: float | None = None) -> tuple[Token, str]:
        """A new token and its secret, which is shown once and never kept."""
        ...

    def token(self, secret: str) -> Token | None:
        """Whose secret this is, unless it has expired. The time of its use is kept to the minute."""
        ...

    def tokens(self) -> list[Token]:
        """The oldest first, those that have expired too."""
        ...

    def revoke(self, token_id: str) -> bool: ...

    # ---- schedules

    def schedule(self, name: str) -> Schedule | None: ...

    def schedules(self) -> list[Schedule]:
        """By name."""
        ...

    def put_schedule(self, schedule: Schedule) -> None:
        """Keep what it says. Of one that is there `last_…` stay as they are, and `fired_to` only ever moves on."""
        ...

    def drop_schedule(self, name: str) -> bool:
        """With all that is known of its slots."""
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
        """Move `fired_to` from `before` to `to`; False when another server has moved it already, and nothing is changed then.

        With a `run` or an `error`, that is what became of `slot`; otherwise `last_…` stay as they are.
        """
        ...

    def claim_slot(self, slot: Slot) -> Slot:
        """Write down what is to become of a slot, unless somebody has: what is written there. The first decision stands."""
        ...

    def change_slot(self, slot: Slot) -> bool:
        """What is said of a slot becomes this, if it is still of that `revision`, which is counted up; else False."""
        ...

    def slots(self, schedule: str, since: float, until: float, limit: int = 1000) -> list[Slot]:
        """What is known of the slots from `since` to `until`, both included: the newest `limit` of them, the oldest first."""
        ...

    def open_slots(self) -> list[Slot]:
        """Those of all schedules that are open, by schedule and time."""
        ...

    def trim_slots(self, schedule: str, keep: int) -> None:
        """Forget all slots of a schedule but the newest so many and those that are open."""
        ...

    # ---- hooks

    def hook(self, name: str) -> Hook | None:
        """With its secret. Unavailable when that is encrypted with a key that is not at hand."""
        ...

    def hooks(self) -> list[Hook]:
        """By name; `HIDDEN` stands for their secrets."""
        ...

    def put_hook(self, hook: Hook) -> None:
        """Keep a hook. The secret `HIDDEN` means the one that is there; Refused when there is none."""
        ...

    def drop_hook(self, name: str) -> bool: ...

    # ---- alerts

    def alerts(self) -> list[Alert]:
        """By name."""
        ...

    def put_alert(self, alert: Alert) -> None: ...

    def drop_alert(self, name: str) -> bool:
        """With all that it has told."""
        ...

    def raise_alert(self, delivery: Delivery) -> bool:
        """Something is to be told, unless it is known already: whether it is new. False when there is no such alert."""
        ...

    def deliveries(self, alert: str | None = None, *, is_pending: bool = False, limit: int = 1000) -> list[Delivery]:
        """What is to be told and was, the newest first."""
        ...

    def change_delivery(self, delivery: Delivery) -> bool:
        """What is said of it becomes this, if it is still of that `revision`, which is counted up; else False."""
        ...

    def trim_deliveries(self, alert: str, keep: int) -> None:
        """Forget what was told, but for the newest so many."""
        ...

    def close(self) -> None: ...
