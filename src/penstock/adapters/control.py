"""What every control store does alike: the statements have the same names, and only their dialects differ."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import JsonMap
from penstock.ports.control import (
    HIDDEN,
    Alert,
    Delivery,
    Filed,
    Hook,
    Loss,
    Missed,
    Overlap,
    Schedule,
    Scope,
    Slot,
    SlotState,
    Token,
)
from penstock.ports.results import decode, encode

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet


# ---- Secrets of the control store at rest: those of tokens as hashes, those of hooks under a key.
# Law: a token's secret cannot be had back from what is kept. That of a hook must be, since signatures are checked with it:
# it is encrypted when `PENSTOCK_SECRET_KEY` is set, and otherwise it is stored in clear text, and whoever can read the store can
# sign.

VARIABLE = "PENSTOCK_SECRET_KEY"
TOKEN_PREFIX = "pk_"
TOKEN_BYTES = 32
SESSION_PREFIX = "ps_"
USED_EVERY_S = 60.0
"""The minimum interval between two records of a token's use: a write for every request would cost more than the request."""

_SEALED, _CLEAR = "fernet:", "clear:"
_MAKE = "`python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'` makes one"


def new_token_id() -> str:
    return secrets.token_hex(8)


def new_token_secret() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def hash_of(secret: str) -> str:
    # Slow hashes protect passwords. These secrets are 256 random bits, which cannot be guessed, and a slow hash would delay every
    # request.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def session_of(secret: str) -> str:
    """Made from the secret, and not from its hash: whoever has only a copy of the store cannot make it."""
    key = secret.encode("utf-8", "surrogatepass")
    return SESSION_PREFIX + hmac.new(key, b"penstock session", hashlib.sha256).hexdigest()


def is_same(one: str, other: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def is_used_anew(last_used_at: float | None, now: float) -> bool:
    return last_used_at is None or now - last_used_at >= USED_EVERY_S


class Seal:
    """Encrypts with the first key of `PENSTOCK_SECRET_KEY` and decrypts with any of them, so that keys can be changed."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        setting = (os.environ if environ is None else environ).get(VARIABLE, "")
        self._keys = _keys(setting.replace(",", " ").split())

    def closed(self, secret: str) -> str:
        """`secret` as it is kept."""
        if self._keys is None:
            return _CLEAR + secret
        return _SEALED + self._keys.encrypt(secret.encode()).decode()

    def opened(self, kept: str, whose: str) -> str:
        if kept.startswith(_CLEAR):
            return kept.removeprefix(_CLEAR)
        if self._keys is None:
            raise Unavailable(
                f"the secret of {whose} is encrypted, and `{VARIABLE}` is not set here",
                f"set `{VARIABLE}` to the key it was kept with, or give {whose} a new secret",
            )
        from cryptography.fernet import InvalidToken  # Only sealed secrets need it.

        try:
            return self._keys.decrypt(kept.removeprefix(_SEALED)).decode()
        except InvalidToken:
            raise Unavailable(
                f"the secret of {whose} cannot be decrypted with the key in `{VARIABLE}`",
                f"add the key it was kept with to `{VARIABLE}`, behind a comma, or give {whose} a new secret",
            ) from None


def _keys(texts: list[str]) -> MultiFernet | None:
    if not texts:
        return None
    from cryptography.fernet import Fernet, MultiFernet  # Only sealed secrets need it: it takes long to import.

    try:
        return MultiFernet([Fernet(text) for text in texts])
    except ValueError:
        # The cause quotes nothing, and neither does this: it may be a key with one letter too few.
        raise Refused(f"`{VARIABLE}` is not a key: 32 bytes in url-safe base64 are wanted", _MAKE) from None


# ---- What the control store keeps, between values and rows: the columns are the same in every database.
# Law: what cannot be kept as it is, is refused before anything is sent. Names and paths have no control characters; other
# texts may have any character that is one.

LONGEST_NAME = 1000
LARGEST_VERSION = 2**31 - 1
LONGEST_DEADLINE_S = 366 * 86_400.0

# ---- from values


def filed_values(
    path: str, text: str, kind: str, digest: str, sources: Mapping[str, str], by: str
) -> dict[str, object]:
    check_name("path", path)
    check_texts(text=text, kind=kind, digest=digest, by=by)
    return {
        "path": path,
        "text": text,
        "kind": kind,
        "digest": digest,
        "sources": _json("sources", dict(sources)),
        "by": by,
    }


def schedule_values(schedule: Schedule) -> dict[str, object]:
    check_name("name", schedule.name)
    check_name("path", schedule.path)
    check_version(schedule.version)
    check_texts(cron=schedule.cron, zone=schedule.zone, context=schedule.context or "")
    if not isfinite(schedule.fired_to):
        raise Refused(f"schedule `{schedule.name}` cannot have fired up to {schedule.fired_to}", "give it a time")
    if schedule.deadline_s is not None and not 0 < schedule.deadline_s <= LONGEST_DEADLINE_S:
        raise Refused(
            f"the deadline of schedule `{schedule.name}` is {schedule.deadline_s:g} s",
            "give it a time after the slot, of a year at the most",
        )
    return {
        "name": schedule.name,
        "cron": schedule.cron,
        "path": schedule.path,
        "zone": schedule.zone,
        "version": schedule.version,
        "payload": _json("payload", schedule.payload),
        "context": schedule.context,
        "missed": schedule.missed.value,
        "is_on": schedule.is_on,
        "fired_to": float(schedule.fired_to),
        "last_slot": schedule.last_slot,
        "last_run": schedule.last_run,
        "last_error": schedule.last_error,
        "overlap": schedule.overlap.value,
        "deadline_s": schedule.deadline_s,
    }


def slot_values(slot: Slot) -> dict[str, object]:
    check_name("name", slot.schedule)
    check_texts(note=slot.note or "", run=slot.run or "", backfill=slot.backfill or "")
    if not isfinite(slot.at):
        raise Refused(f"a slot of schedule `{slot.schedule}` cannot be at {slot.at}", "give it a time")
    return {
        "name": slot.schedule,
        "at": float(slot.at),
        "state": slot.state.value,
        "run": slot.run,
        "note": slot.note,
        "attempt": slot.attempt,
        "backfill": slot.backfill,
        "at_once": slot.at_once,
        "ended": slot.ended,
        "is_late": slot.is_late,
        "is_open": slot.is_open,
        "revision": slot.revision,
    }


def hook_values(hook: Hook, seal: Seal) -> dict[str, object]:
    """Without a secret when that is `HIDDEN`."""
    check_name("name", hook.name)
    check_name("path", hook.path)
    check_version(hook.version)
    check_texts(secret=hook.secret or "", context=hook.context or "")
    if hook.secret == "":
        raise Refused(
            f"the secret of hook `{hook.name}` is empty: everybody could sign with it", "give it one, or none"
        )
    values: dict[str, object] = {
        "name": hook.name,
        "path": hook.path,
        "version": hook.version,
        "payload": _json("payload", hook.payload),
        "is_on": hook.is_on,
        "context": hook.context,
    }
    if hook.secret != HIDDEN:
        values["secret"] = None if hook.secret is None else seal.closed(hook.secret)
    return values


def alert_values(alert: Alert) -> dict[str, object]:
    check_name("name", alert.name)
    values = {one.name: getattr(alert, one.name) for one in fields(alert) if one.name != "created_at"}
    return {"name": alert.name, "said": _json("alert", values), "created_at": float(alert.created_at)}


def delivery_values(delivery: Delivery) -> dict[str, object]:
    check_texts(about=delivery.about, error=delivery.error or "", alert=delivery.alert)
    values = {one.name: getattr(delivery, one.name) for one in fields(delivery)}
    return {**values, "event": _json("event", delivery.event)}


def loss_values(loss: Loss) -> dict[str, object]:
    check_texts(key=loss.key, execution_id=loss.execution_id, worker=loss.worker or "", taken_by=loss.taken_by or "")
    return {one.name: getattr(loss, one.name) for one in fields(loss)}


def no_secret_kept(name: str) -> Refused:
    return Refused(f"hook `{name}` has no secret yet that could stay", "give it one, or none")


def no_such_schedule(name: str) -> Refused:
    return Refused(f"there is no schedule `{name}`", "`penstock schedule list` shows those there are")


def check_name(what: str, name: str) -> None:
    check_texts(**{what: name})
    if not name:
        raise Refused(f"the {what} is empty", "give it one")
    if len(name) > LONGEST_NAME:
        raise Refused(f"the {what} has {len(name)} characters", f"{LONGEST_NAME} are the most")
    if any(ord(one) < 0x20 or 0x7F <= ord(one) < 0xA0 for one in name):
        raise Refused(f"the {what} {name!r} has a control character", "choose another")


def check_version(version: int | None) -> None:
    if version is not None and not 1 <= version <= LARGEST_VERSION:
        raise Refused(f"there is no version {version}", "versions are counted from 1")


def check_texts(**texts: str) -> None:
    for name, text in texts.items():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refused(f"the {name} has a piece that is no character, at {error.start}", "correct it") from None


def _json(what: str, value: object) -> str:
    try:
        return encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Refused(f"the {what} cannot be written as JSON: {error}", "correct it") from error


# ---- from rows


def filed_of(row: Sequence[Any]) -> Filed:
    """path, version, digest, kind, created_at, created_by; then text and sources, if they were asked for."""
    path, version, digest, kind, created_at, created_by, *content = row
    text, sources = content or ("", "{}")
    return Filed(
        path,
        version,
        digest,
        kind,
        text=text,
        created_at=created_at,
        created_by=created_by,
        sources=cast("dict[str, str]", _mapping(sources)),
    )


def has_content(filed: Filed, kind: str, text: str, sources: Mapping[str, str]) -> bool:
    return (filed.kind, filed.text, dict(filed.sources)) == (kind, text, dict(sources))


def token_of(row: Sequence[Any]) -> Token:
    token_id, name, scope, *times = row
    return Token(token_id, name, Scope(scope), *times)


def schedule_of(row: Sequence[Any]) -> Schedule:
    """The columns are the fields, in their order."""
    values = dict(zip((one.name for one in fields(Schedule)), row, strict=True))
    values["payload"] = _mapping(values["payload"])
    values["missed"], values["overlap"] = Missed(values["missed"]), Overlap(values["overlap"])
    values["is_on"] = bool(values["is_on"])
    return Schedule(**values)


def slot_of(row: Sequence[Any]) -> Slot:
    schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, revision = row
    return Slot(
        schedule,
        at,
        SlotState(state),
        run,
        note=note,
        attempt=attempt,
        backfill=backfill,
        at_once=at_once,
        ended=ended,
        is_late=bool(is_late),
        revision=revision,
    )


def hook_of(row: Sequence[Any], seal: Seal | None) -> Hook:
    """Without a seal, `HIDDEN` stands for the secret."""
    name, path, version, secret, payload, is_on, context = row
    if secret is not None:
        secret = HIDDEN if seal is None else seal.opened(secret, f"hook `{name}`")
    return Hook(name, path, version, secret, _mapping(payload), bool(is_on), context)


def alert_of(row: Sequence[Any]) -> Alert:
    values: Any = _mapping(row[0])
    return Alert(**{**values, "on": tuple(values["on"])}, created_at=row[1])


def delivery_of(row: Sequence[Any]) -> Delivery:
    alert, about, event, *rest = row
    return Delivery(alert, about, _mapping(event), *rest)


def loss_of(row: Sequence[Any]) -> Loss:
    columns: Any = (*row[:-1], bool(row[-1]))
    return Loss(*columns)


def _mapping(text: str) -> JsonMap:
    value = decode(text.encode())
    assert isinstance(value, dict)
    return value


Values = Mapping[str, object]


class ControlStore(ABC):
    _seal: Seal

    @abstractmethod
    def _rows(self, statement: str, values: Values) -> Sequence[Sequence[Any]]: ...

    @abstractmethod
    def _changes(self, statement: str, values: Values) -> bool:
        """Whether it changed anything."""

    # ---- catalog

    def document(self, path: str, version: int | None = None) -> Filed | None:
        which = "newest_document" if version is None else "document"
        found = self._rows(which, {"path": path, "version": version})
        return filed_of(found[0]) if found else None

    def documents(self, prefix: str = "", limit: int = 1000, *, after: str = "") -> list[Filed]:
        values = {"prefix": prefix, "after": after, "limit": max(limit, 0)}
        return [filed_of(row) for row in self._rows("documents", values)]

    def versions(self, path: str) -> list[Filed]:
        return [filed_of(row) for row in self._rows("versions", {"path": path})]

    def unfile(self, path: str) -> bool:
        return self._changes("unfile", {"path": path})

    # ---- tokens

    def session(self, secret: str) -> str | None:
        if self.token(secret) is None:
            return None
        session = session_of(secret)
        self._changes("open_session", {"hash": hash_of(secret), "session": hash_of(session)})
        return session

    @abstractmethod
    def token(self, secret: str) -> Token | None: ...

    def tokens(self) -> list[Token]:
        return [token_of(row) for row in self._rows("tokens", {})]

    def revoke(self, token_id: str) -> bool:
        return self._changes("revoke", {"id": token_id})

    # ---- schedules

    def schedule(self, name: str) -> Schedule | None:
        found = self._rows("schedule", {"name": name})
        return schedule_of(found[0]) if found else None

    def schedules(self) -> list[Schedule]:
        return [schedule_of(row) for row in self._rows("schedules", {})]

    def put_schedule(self, schedule: Schedule) -> None:
        self._changes("put_schedule", schedule_values(schedule))

    def drop_schedule(self, name: str) -> bool:
        return self._changes("drop_schedule", {"name": name})

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
        check_texts(error=error or "")
        which = "fired" if run is None and error is None else "fired_slot"
        values = {"name": name, "before": before, "to": to, "slot": slot, "run": run, "error": error}
        return self._changes(which, values)

    def claim_slot(self, slot: Slot) -> Slot:
        values = slot_values(slot)
        self._changes("claim_slot", values)
        found = self._rows("slot", values)
        if not found:
            raise no_such_schedule(slot.schedule)
        return slot_of(found[0])

    def change_slot(self, slot: Slot) -> bool:
        return self._changes("change_slot", slot_values(slot))

    def slots(self, schedule: str, since: float, until: float, limit: int = 1000) -> list[Slot]:
        values = {"name": schedule, "since": since, "until": until, "limit": max(limit, 0)}
        return [slot_of(row) for row in self._rows("slots", values)][::-1]

    def open_slots(self) -> list[Slot]:
        return [slot_of(row) for row in self._rows("open_slots", {})]

    def trim_slots(self, schedule: str, keep: int) -> None:
        self._changes("trim_slots", {"name": schedule, "keep": max(keep - 1, 0)})

    # ---- hooks

    def hook(self, name: str) -> Hook | None:
        found = self._rows("hook", {"name": name})
        return hook_of(found[0], self._seal) if found else None

    def hooks(self) -> list[Hook]:
        return [hook_of(row, None) for row in self._rows("hooks", {})]

    def put_hook(self, hook: Hook) -> None:
        values = hook_values(hook, self._seal)
        if "secret" in values:
            self._changes("put_hook", values)
        elif not self._changes("put_hook_with_its_secret", values):
            raise no_secret_kept(hook.name)

    def drop_hook(self, name: str) -> bool:
        return self._changes("drop_hook", {"name": name})

    # ---- alerts

    def alerts(self) -> list[Alert]:
        return [alert_of(row) for row in self._rows("alerts", {})]

    def put_alert(self, alert: Alert) -> None:
        self._changes("put_alert", alert_values(alert))

    def drop_alert(self, name: str) -> bool:
        return self._changes("drop_alert", {"name": name})

    def raise_alert(self, delivery: Delivery) -> bool:
        return self._changes("raise_alert", delivery_values(delivery))

    def deliveries(self, alert: str | None = None, *, is_pending: bool = False, limit: int = 1000) -> list[Delivery]:
        values = {"alert": alert, "state": "pending" if is_pending else None, "limit": max(limit, 0)}
        return [delivery_of(row) for row in self._rows("deliveries", values)]

    def change_delivery(self, delivery: Delivery) -> bool:
        return self._changes("change_delivery", delivery_values(delivery))

    def trim_deliveries(self, alert: str, keep: int) -> None:
        self._changes("trim_deliveries", {"alert": alert, "keep": max(keep - 1, 0)})

    # ---- leases that were lost

    def add_loss(self, loss: Loss, keep: int) -> None:
        if self._changes("add_loss", loss_values(loss)):
            self._changes("trim_losses", {"keep": max(keep - 1, 0)})

    def take_loss(self, key: str, attempt: int, worker: str, *, is_done: bool) -> bool:
        return self._changes("take_loss", {"key": key, "attempt": attempt, "worker": worker, "is_done": is_done})

    def losses(self, limit: int = 1000) -> list[Loss]:
        return [loss_of(row) for row in self._rows("losses", {"limit": max(limit, 0)})]
