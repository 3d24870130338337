"""Alerts: finds failures in the stored runs and slots, and sends each of them once.

Law: an alert is stored under its rule and the run or slot it is about, so it is sent once, however many servers look. It is
sent at least once, because it is sent before that is recorded. The sending server has a lease on the alert; another server
tries again if the lease runs out. A failed delivery is retried at growing intervals, and given up after `MOST_ATTEMPTS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.kernel.values import JsonMap
from penstock.ports.control import Alert, ControlStore, Delivery, Schedule, Slot, SlotState
from penstock.ports.folders import CATALOG
from penstock.ports.kept_state import document_key
from penstock.ports.log import Header, Status
from penstock.ports.projects import DOCUMENTS
from penstock.server.cron import iso

KINDS = ("failed", "late", "missed")
LOOK_S = 5.0
LEASE_S = 120.0
MOST_ATTEMPTS = 8
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 900.0
NEWEST = 200
"""How many of the newest slots of a schedule, and of the newest failed runs, are examined."""
KEPT = 100_000
"""How many deliveries of a rule are remembered: far more than are examined, or some would be sent again."""
LONGEST_ERROR = 2000


class FailedRuns(Protocol):
    def headers(
        self, limit: int = 100, *, after: str | None = None, status: Status | None = None, name: str | None = None
    ) -> list[Header]: ...

    def header(self, execution_id: str) -> Header | None: ...


Send = Callable[[Alert, JsonMap, str], Awaitable[None]]
"""`await send(alert, event, key)`: the same key means the same message. Raises PenstockError if sending failed."""


class Alerts:
    def __init__(
        self, control: ControlStore, runs: FailedRuns, now: Callable[[], float], send: Send, look_s: float = LOOK_S
    ) -> None:
        self._control = control
        self._runs = runs
        self._now = now
        self._send = send
        self._look_s = look_s

    async def run(self) -> None:
        """Look for alerts and send them until cancelled."""
        while True:
            with suppress(Unavailable):
                await self.look()
            await asyncio.sleep(self._look_s)

    async def look(self) -> None:
        await asyncio.to_thread(self._find)
        for delivery in await asyncio.to_thread(self._due):
            await self._deliver(delivery)

    # ---- what to alert about

    def _find(self) -> None:
        alerts = [one for one in self._control.alerts() if one.is_on]
        if not alerts:
            return
        now = self._now()
        schedules = self._control.schedules()
        for alert in alerts:
            for about, event in self._events(alert, schedules, now):
                shown: JsonMap = {"alert": alert.name, **event}
                self._control.raise_alert(Delivery(alert.name, about, shown, next_at=now, at=now))
            self._control.trim_deliveries(alert.name, KEPT)

    def _events(self, alert: Alert, schedules: list[Schedule], now: float) -> Iterator[tuple[str, JsonMap]]:
        for schedule in schedules:
            if _concerns(alert, schedule):
                for slot in self._control.slots(schedule.name, alert.created_at, now, NEWEST):
                    yield from _of_slot(alert, schedule, slot)
        if "failed" in alert.on and alert.schedule is None:
            for header in self._runs.headers(NEWEST, status="failed"):
                if (header.ended_at or 0.0) >= alert.created_at and _is_of(alert, header):
                    yield f"failed:{header.execution_id}", _of_run(header)

    # ---- delivery

    def _due(self) -> list[Delivery]:
        now = self._now()
        return [one for one in self._control.deliveries(is_pending=True) if one.next_at <= now]

    async def _deliver(self, delivery: Delivery) -> None:
        now = self._now()
        held = replace(delivery, next_at=now + LEASE_S, attempts=delivery.attempts + 1)
        if not await asyncio.to_thread(self._control.change_delivery, held):
            return  # Another server is sending it.
        held = replace(held, revision=held.revision + 1)
        alert = await asyncio.to_thread(self._alert, delivery.alert)
        if alert is None:
            return
        try:
            async with asyncio.timeout(LEASE_S / 2):
                await self._send(alert, delivery.event, f"alert:{delivery.alert}:{delivery.about}")
            tried = replace(held, state="delivered", error=None, at=self._now())
        except (PenstockError, TimeoutError) as error:
            said = error.message if isinstance(error, PenstockError) else "it took too long"
            tried = _tried(held, said, self._now())
        await asyncio.to_thread(self._control.change_delivery, tried)

    def _alert(self, name: str) -> Alert | None:
        return next((one for one in self._control.alerts() if one.name == name), None)


def _tried(delivery: Delivery, error: str, now: float) -> Delivery:
    pause = min(FIRST_PAUSE_S * 3 ** (delivery.attempts - 1), LONGEST_PAUSE_S)
    state = "failed" if delivery.attempts >= MOST_ATTEMPTS else "pending"
    said = error[:LONGEST_ERROR].encode("utf-8", "replace").decode()
    return replace(delivery, state=state, error=said, next_at=now + pause, at=now)


def _concerns(alert: Alert, schedule: Schedule) -> bool:
    return (
        alert.schedule in (None, schedule.name)
        and _is_about(alert, schedule.path)
        and alert.label in (None, schedule.name)
    )


def _is_of(alert: Alert, header: Header) -> bool:
    return _is_about(alert, header.path) and alert.label in (None, header.label)


def _is_about(alert: Alert, document: str) -> bool:
    return alert.document is None or _document_name(alert.document) == _document_name(document)


def _document_name(document: str) -> str:
    """A document is named by its path in the catalog, or by its file; version and extension may be omitted."""
    name = document_key(document).removeprefix(f"{CATALOG}/")
    return name.removesuffix(next((one for one in DOCUMENTS if name.endswith(one)), ""))


def _of_slot(alert: Alert, schedule: Schedule, slot: Slot) -> Iterator[tuple[str, JsonMap]]:
    event: JsonMap = {"schedule": schedule.name, "slot": iso(slot.at), "document": schedule.path, "run": slot.run}
    where = f"{schedule.name}:{iso(slot.at)}"
    what = f"schedule `{schedule.name}`, slot {iso(slot.at)}"
    if slot.is_late and "late" in alert.on:
        by = f"has not ended {schedule.deadline_s:g} s after its slot" if schedule.deadline_s else "is late"
        yield f"late:{where}", {**event, "on": "late", "text": f"{what}: run {slot.run or '(not started)'} {by}"}
    if slot.state is SlotState.MISSED and "missed" in alert.on:
        yield f"missed:{where}", {**event, "on": "missed", "text": f"{what}: {slot.note}"}
    if "failed" in alert.on:
        if slot.state is SlotState.REFUSED:
            yield f"failed:{where}", {**event, "on": "failed", "text": f"{what}: no run was started: {slot.note}"}
        elif slot.ended == "failed":
            yield f"failed:{slot.run}", {**event, "on": "failed", "text": f"{what}: run {slot.run} failed"}


def _of_run(header: Header) -> JsonMap:
    return {
        "on": "failed",
        "run": header.execution_id,
        "document": header.path,
        "name": header.name,
        "label": header.label,
        "text": f"run {header.execution_id} of `{header.name}` failed",
    }


def keep_alert(control: ControlStore, alert: Alert) -> Alert:
    """Check a rule and store it; an existing rule keeps the time it was created at."""
    if (alert.mail_to is None) == (alert.url is None):
        raise Refused("an alert goes by mail or to a webhook", "give exactly one of them")
    if alert.mail_to is not None and (alert.smtp_host is None or alert.mail_from is None):
        raise Refused("a mail needs a server and a sender", "give `--smtp HOST` and `--from ADDRESS`")
    if alert.url is not None and not alert.url.startswith(("http://", "https://", "keychain:")):
        raise Refused(
            "a webhook is an `http` or `https` URL", "or `keychain:NAME` for one that is kept in the keychain"
        )
    if not alert.on:
        raise Refused("an alert needs something to tell of", f"one of {', '.join(f'`{one}`' for one in KINDS)}")
    there = next((one for one in control.alerts() if one.name == alert.name), None)
    kept = alert if there is None else replace(alert, created_at=there.created_at)
    control.put_alert(kept)
    return kept
