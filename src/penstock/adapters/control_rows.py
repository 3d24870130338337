"""What the control store keeps, between values and rows: the columns are the same in every database.

Law: what cannot be kept as it is, is refused before anything is sent. Names and paths have no control characters; other texts
may have any character that is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import isfinite
from typing import Any, cast

from penstock.adapters.control_secrets import Seal
from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.control import (
    HIDDEN,
    Alert,
    Delivery,
    Filed,
    Hook,
    Missed,
    Overlap,
    Schedule,
    Scope,
    Slot,
    SlotState,
    Token,
)
from penstock.ports.results import decode, encode

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
    said = {one.name: getattr(alert, one.name) for one in fields(alert) if one.name != "created_at"}
    return {"name": alert.name, "said": _json("alert", said), "created_at": float(alert.created_at)}


def delivery_values(delivery: Delivery) -> dict[str, object]:
    check_texts(about=delivery.about, error=delivery.error or "", alert=delivery.alert)
    values = {one.name: getattr(delivery, one.name) for one in fields(delivery)}
    return {**values, "event": _json("event", delivery.event)}


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
    return Filed(path, version, digest, kind, text, created_at, created_by, cast("dict[str, str]", _mapping(sources)))


def has_content(filed: Filed, kind: str, text: str, sources: Mapping[str, str]) -> bool:
    return (filed.kind, filed.text, dict(filed.sources)) == (kind, text, dict(sources))


def token_of(row: Sequence[Any]) -> Token:
    token_id, name, scope, *times = row
    return Token(token_id, name, Scope(scope), *times)


def schedule_of(row: Sequence[Any]) -> Schedule:
    name, cron, path, zone, version, payload, context, missed, is_on, *firing, overlap, deadline_s = row
    said = Schedule(name, cron, path, zone, version, _mapping(payload), context, Missed(missed), bool(is_on), *firing)
    return replace(said, overlap=Overlap(overlap), deadline_s=deadline_s)


def slot_of(row: Sequence[Any]) -> Slot:
    schedule, at, state, run, note, attempt, backfill, at_once, ended, is_late, revision = row
    return Slot(schedule, at, SlotState(state), run, note, attempt, backfill, at_once, ended, bool(is_late), revision)


def hook_of(row: Sequence[Any], seal: Seal | None) -> Hook:
    """Without a seal, `HIDDEN` stands for the secret."""
    name, path, version, secret, payload, is_on, context = row
    if secret is not None:
        secret = HIDDEN if seal is None else seal.opened(secret, f"hook `{name}`")
    return Hook(name, path, version, secret, _mapping(payload), bool(is_on), context)


def alert_of(row: Sequence[Any]) -> Alert:
    said: Any = _mapping(row[0])
    return Alert(**{**said, "on": tuple(said["on"])}, created_at=row[1])


def delivery_of(row: Sequence[Any]) -> Delivery:
    alert, about, event, *rest = row
    return Delivery(alert, about, _mapping(event), *rest)


def _mapping(text: str) -> JsonMap:
    value = decode(text.encode())
    assert isinstance(value, dict)
    return value
