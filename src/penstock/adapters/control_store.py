"""What every control store does alike: the statements have the same names, and only their dialects differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.adapters.control_rows import (
    alert_of,
    alert_values,
    check_texts,
    delivery_of,
    delivery_values,
    filed_of,
    hook_of,
    hook_values,
    no_secret_kept,
    no_such_schedule,
    schedule_of,
    schedule_values,
    slot_of,
    slot_values,
    token_of,
)
from penstock.adapters.control_secrets import Seal
from penstock.ports.control import Alert, Delivery, Filed, Hook, Schedule, Slot, Token

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
