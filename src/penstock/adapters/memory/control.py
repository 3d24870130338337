"""The control store in memory, for tests and for a server that keeps nothing.

Several `MemoryControl`s on one `MemoryControlStore` stand for several processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice

from penstock.adapters.control import (
    Seal,
    alert_values,
    check_name,
    check_texts,
    delivery_values,
    filed_values,
    has_content,
    hash_of,
    hook_values,
    is_same,
    is_used_anew,
    new_token_id,
    new_token_secret,
    no_secret_kept,
    no_such_schedule,
    schedule_values,
    slot_values,
)
from penstock.kernel.errors import Refused
from penstock.ports.control import HIDDEN, Alert, Delivery, Filed, Hook, Schedule, Scope, Slot, Token

_CHECKING = Seal({})


@dataclass(slots=True)
class MemoryControlStore:
    """What outlives a control store that is closed."""

    documents: dict[str, list[Filed]] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, tuple[Token, str]] = field(default_factory=dict)
    """Id -> token, hash of its secret."""
    schedules: dict[str, Schedule] = field(default_factory=dict)
    slots: dict[tuple[str, float], Slot] = field(default_factory=dict)
    hooks: dict[str, Hook] = field(default_factory=dict)
    alerts: dict[str, Alert] = field(default_factory=dict)
    deliveries: dict[tuple[str, str], Delivery] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class MemoryControl:
    def __init__(self, store: MemoryControlStore | None = None, *, now: Callable[[], float] = time.time) -> None:
        self._kept = store or MemoryControlStore()
        self._now = now
        self._is_closed = False

    @property
    def _store(self) -> MemoryControlStore:
        if self._is_closed:
            raise Refused("the control store is closed", "open it again first")
        return self._kept

    def close(self) -> None:
        self._is_closed = True

    # ---- catalog

    def file(self, path: str, text: str, kind: str, digest: str, sources: Mapping[str, str], by: str = "") -> Filed:
        store = self._store
        filed_values(path, text, kind, digest, sources, by)
        with store.lock:
            versions = store.documents.setdefault(path, [])
            if versions and has_content(versions[-1], kind, text, sources):
                return versions[-1]
            store.newest[path] = version = store.newest.get(path, 0) + 1
            versions.append(
                Filed(
                    path, version, digest, kind, text=text, created_at=self._now(), created_by=by, sources=dict(sources)
                )
            )
            return versions[-1]

    def document(self, path: str, version: int | None = None) -> Filed | None:
        found = [one for one in self._store.documents.get(path, []) if version in (None, one.version)]
        return found[-1] if found else None

    def documents(self, prefix: str = "", limit: int = 1000, *, after: str = "") -> list[Filed]:
        store = self._store
        with store.lock:
            paths = sorted(path for path in store.documents if path.startswith(prefix) and path > after)
            return [_without_text(store.documents[path][-1]) for path in islice(paths, max(limit, 0))]

    def versions(self, path: str) -> list[Filed]:
        return [_without_text(one) for one in list(self._store.documents.get(path, []))]

    def unfile(self, path: str) -> bool:
        store = self._store
        with store.lock:
            return store.documents.pop(path, None) is not None

    # ---- tokens

    def add_token(self, name: str, scope: Scope, expires_at: float | None = None) -> tuple[Token, str]:
        store = self._store
        check_name("name", name)
        secret = new_token_secret()
        token = Token(new_token_id(), name, scope, self._now(), expires_at)
        with store.lock:
            store.tokens[token.id] = (token, hash_of(secret))
        return token, secret

    def token(self, secret: str) -> Token | None:
        store, shown, now = self._store, hash_of(secret), self._now()
        with store.lock:
            found = next((token for token, kept in store.tokens.values() if is_same(kept, shown)), None)
            if found is None or (found.expires_at is not None and found.expires_at <= now):
                return None
            if is_used_anew(found.last_used_at, now):
                found = replace(found, last_used_at=now)
                store.tokens[found.id] = (found, shown)
            return found

    def tokens(self) -> list[Token]:
        return [token for token, _ in list(self._store.tokens.values())]

    def revoke(self, token_id: str) -> bool:
        store = self._store
        with store.lock:
            return store.tokens.pop(token_id, None) is not None

    # ---- schedules

    def schedule(self, name: str) -> Schedule | None:
        return deepcopy(self._store.schedules.get(name))

    def schedules(self) -> list[Schedule]:
        store = self._store
        with store.lock:
            return [deepcopy(store.schedules[name]) for name in sorted(store.schedules)]

    def put_schedule(self, schedule: Schedule) -> None:
        store = self._store
        schedule_values(schedule)
        with store.lock:
            there = store.schedules.get(schedule.name)
            if there is not None:
                schedule = replace(
                    schedule,
                    fired_to=max(there.fired_to, schedule.fired_to),
                    last_slot=there.last_slot,
                    last_run=there.last_run,
                    last_error=there.last_error,
                )
            store.schedules[schedule.name] = deepcopy(schedule)

    def drop_schedule(self, name: str) -> bool:
        store = self._store
        with store.lock:
            for key in [key for key in store.slots if key[0] == name]:
                del store.slots[key]
            return store.schedules.pop(name, None) is not None

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
        store = self._store
        check_texts(error=error or "")
        with store.lock:
            there = store.schedules.get(name)
            if there is None or there.fired_to != before or to < before:
                return False
            moved = replace(there, fired_to=to)
            if run is not None or error is not None:
                last = there.last_slot if slot is None else slot
                moved = replace(moved, last_slot=last, last_run=run, last_error=error)
            store.schedules[name] = moved
            return True

    def claim_slot(self, slot: Slot) -> Slot:
        store = self._store
        slot_values(slot)
        with store.lock:
            if slot.schedule not in store.schedules:
                raise no_such_schedule(slot.schedule)
            return store.slots.setdefault((slot.schedule, slot.at), replace(slot, revision=0))

    def change_slot(self, slot: Slot) -> bool:
        store = self._store
        slot_values(slot)
        with store.lock:
            there = store.slots.get((slot.schedule, slot.at))
            if there is None or there.revision != slot.revision:
                return False
            store.slots[slot.schedule, slot.at] = replace(slot, revision=slot.revision + 1)
            return True

    def slots(self, schedule: str, since: float, until: float, limit: int = 1000) -> list[Slot]:
        found = [one for one in self._slots() if one.schedule == schedule and since <= one.at <= until]
        return found[max(len(found) - max(limit, 0), 0) :]

    def open_slots(self) -> list[Slot]:
        return [one for one in self._slots() if one.is_open]

    def trim_slots(self, schedule: str, keep: int) -> None:
        known = [one for one in self._slots() if one.schedule == schedule]
        with self._store.lock:
            for one in known[: -max(keep, 1)]:
                if not one.is_open:
                    self._store.slots.pop((schedule, one.at), None)

    def _slots(self) -> list[Slot]:
        store = self._store
        with store.lock:
            return [store.slots[key] for key in sorted(store.slots)]

    # ---- hooks

    def hook(self, name: str) -> Hook | None:
        return deepcopy(self._store.hooks.get(name))

    def hooks(self) -> list[Hook]:
        store = self._store
        with store.lock:
            found = [deepcopy(store.hooks[name]) for name in sorted(store.hooks)]
        return [replace(one, secret=None if one.secret is None else HIDDEN) for one in found]

    def put_hook(self, hook: Hook) -> None:
        store = self._store
        hook_values(hook, _CHECKING)
        with store.lock:
            if hook.secret == HIDDEN:
                there = store.hooks.get(hook.name)
                if there is None or there.secret is None:
                    raise no_secret_kept(hook.name)
                hook = replace(hook, secret=there.secret)
            store.hooks[hook.name] = deepcopy(hook)

    def drop_hook(self, name: str) -> bool:
        store = self._store
        with store.lock:
            return store.hooks.pop(name, None) is not None

    # ---- alerts

    def alerts(self) -> list[Alert]:
        store = self._store
        with store.lock:
            return [store.alerts[name] for name in sorted(store.alerts)]

    def put_alert(self, alert: Alert) -> None:
        store = self._store
        alert_values(alert)
        with store.lock:
            store.alerts[alert.name] = alert

    def drop_alert(self, name: str) -> bool:
        store = self._store
        with store.lock:
            for key in [key for key in store.deliveries if key[0] == name]:
                del store.deliveries[key]
            return store.alerts.pop(name, None) is not None

    def raise_alert(self, delivery: Delivery) -> bool:
        store, key = self._store, (delivery.alert, delivery.about)
        delivery_values(delivery)
        with store.lock:
            if delivery.alert not in store.alerts or key in store.deliveries:
                return False
            store.deliveries[key] = deepcopy(replace(delivery, revision=0))
            return True

    def deliveries(self, alert: str | None = None, *, is_pending: bool = False, limit: int = 1000) -> list[Delivery]:
        store = self._store
        with store.lock:
            found = [
                deepcopy(one)
                for one in store.deliveries.values()
                if alert in (None, one.alert) and (not is_pending or one.state == "pending")
            ]
        return sorted(found, key=lambda one: (-one.at, one.alert, one.about))[: max(limit, 0)]

    def change_delivery(self, delivery: Delivery) -> bool:
        store, key = self._store, (delivery.alert, delivery.about)
        delivery_values(delivery)
        with store.lock:
            there = store.deliveries.get(key)
            if there is None or there.revision != delivery.revision:
                return False
            changed = replace(delivery, event=there.event, revision=delivery.revision + 1)
            store.deliveries[key] = deepcopy(changed)
            return True

    def trim_deliveries(self, alert: str, keep: int) -> None:
        known = self.deliveries(alert, limit=10**9)
        newest = known[: max(keep, 1)]
        with self._store.lock:
            for one in known:
                if one.state != "pending" and one.at < newest[-1].at:
                    self._store.deliveries.pop((alert, one.about), None)


def _without_text(filed: Filed) -> Filed:
    return replace(filed, text="", sources={})
