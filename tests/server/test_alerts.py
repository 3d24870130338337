"""Alerts: each run and slot that went wrong is told of once, over real SMTP and HTTP; what cannot be told is tried again."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.adapters.sqlite.control import MemoryControl
from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import JsonMap
from penstock.keychain import LocalStore
from penstock.ports.control import Alert, Missed
from penstock.server.alerts import MOST_ATTEMPTS, Alerts, keep_alert
from penstock.server.hooks import sign
from penstock.tools.addresses import PUBLIC_ONLY
from tests.api.service import FAILS, PATIENCE_S, Api, asking
from tests.contracts.entries import header
from tests.server.schedule_scene import EVERY_MINUTE, MINUTE, START, Scene, play
from tests.tools.mail_server import mail_server
from tests.tools.support import Reply, serve

HOOK = Alert("all", ("failed", "late", "missed"), url="http://x", created_at=START - 600)


class Told:
    """Whoever is told, and how often they would not listen."""

    def __init__(self, scene: Scene, deaf: int = 0) -> None:
        self.events: list[str] = []
        self.keys: list[str] = []
        self.deaf = deaf
        self.alerts = [
            Alerts(MemoryControl(scene.control_store, now=scene.now), MemoryLog(scene.store), scene.now, self.send)
            for _ in range(2)
        ]

    async def send(self, alert: Alert, event: JsonMap, key: str) -> None:
        self.keys.append(key)
        await asyncio.sleep(0.1)
        if self.deaf:
            self.deaf -= 1
            raise Unavailable("nobody listens")
        self.events.append(f"{event['on']} {event.get('slot') or event.get('run')}")

    async def look(self) -> None:
        await asyncio.gather(*(one.look() for one in self.alerts))


def test_late_missed_and_failed_are_told_once_by_however_many_servers() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_alert(HOOK)
        scene.control.put_schedule(
            replace(EVERY_MINUTE, deadline_s=30.0, fired_to=START - 2 * MINUTE, missed=Missed.LAST)
        )
        told = Told(scene)
        scene.serve()
        await asyncio.sleep(40)
        run = scene.store.submissions[next(iter(scene.store.submissions))]
        execution = scene.store.executions[run]
        execution.header = replace(execution.header, status="failed", ended_at=scene.now())
        await asyncio.sleep(6)
        for _ in range(3):
            await told.look()
        kinds = sorted(event.split()[0] for event in told.events)
        assert kinds == ["failed", "late", "missed"], told.events

    play(scenario)


def test_what_cannot_be_told_is_tried_again_under_the_same_key_and_given_up_in_the_end() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_alert(replace(HOOK, on=("failed",)))
        log = MemoryLog(scene.store)
        await log.create(replace(header("r1"), status="failed", ended_at=scene.now()), b"")
        told = Told(scene, deaf=3)
        for _ in range(100):
            await told.look()
            await asyncio.sleep(60)
        assert (told.events, len(told.keys), set(told.keys)) == (["failed r1"], 4, {"alert:all:failed:r1"})
        (delivery,) = scene.control.deliveries("all")
        assert (delivery.state, delivery.attempts, delivery.error) == ("delivered", 4, None)
        await log.create(replace(header("r2"), status="failed", ended_at=scene.now()), b"")
        told.deaf = 1000
        for _ in range(200):
            await told.look()
            await asyncio.sleep(60)
        delivery = scene.control.deliveries("all")[0]
        assert (delivery.state, delivery.attempts, delivery.error) == ("failed", MOST_ATTEMPTS, "nobody listens")

    play(scenario)


def test_a_server_that_dies_while_it_tells_leaves_it_to_another() -> None:
    async def scenario(scene: Scene) -> None:
        scene.control.put_alert(replace(HOOK, on=("failed",)))
        await MemoryLog(scene.store).create(replace(header("r1"), status="failed", ended_at=scene.now()), b"")
        told = Told(scene)
        dying = asyncio.ensure_future(told.alerts[0].look())
        await asyncio.sleep(0.05)
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await told.alerts[1].look()
        assert told.events == []
        await asyncio.sleep(200)
        await told.alerts[1].look()
        assert told.events == ["failed r1"]

    play(scenario)


def test_only_what_is_asked_for_and_happened_since_is_told() -> None:
    async def scenario(scene: Scene) -> None:
        log = MemoryLog(scene.store)
        old = replace(header("old"), status="failed", ended_at=START - 1)
        await log.create(old, b"")
        for number, (path, label) in enumerate([("catalog:/a@1", "x"), ("catalog:/a@2", None), ("/b.yaml", "x")]):
            one = replace(header(f"r{number}"), status="failed", ended_at=START + 1, path=path, label=label)
            await log.create(one, b"")
        told = Told(scene)
        scene.control.put_alert(Alert("a", ("failed",), document="a", url="http://x", created_at=START))
        await told.look()
        assert sorted(told.events) == ["failed r0", "failed r1"]
        scene.control.put_alert(Alert("x", ("failed",), label="x", url="http://x", created_at=START))
        await told.look()
        assert sorted(told.events) == ["failed r0", "failed r0", "failed r1", "failed r2"]

    play(scenario)


@pytest.mark.parametrize("named", ["shop/jobs/load", "shop/jobs/load.yaml", "catalog:/shop/jobs/load.yaml"])
def test_a_document_of_a_project_is_told_of_by_its_name_with_or_without_its_ending(named: str) -> None:
    async def scenario(scene: Scene) -> None:
        log = MemoryLog(scene.store)
        for number, path in enumerate(["catalog:/shop@2/jobs/load.yaml", "catalog:/shop@3/jobs/loads.yaml"]):
            one = replace(header(f"r{number}"), status="failed", ended_at=START + 1, path=path)
            await log.create(one, b"")
        scene.control.put_alert(Alert("a", ("failed",), document=named, url="http://x", created_at=START))
        scene.control.put_schedule(replace(EVERY_MINUTE, path="shop/jobs/load", fired_to=START - 2 * MINUTE))
        scene.control.put_alert(Alert("m", ("missed",), document=named, url="http://x", created_at=START - 600))
        told = Told(scene)
        scene.serve()
        await asyncio.sleep(6)
        await told.look()
        assert sorted(event.split()[0] for event in told.events) == ["failed", "missed"], told.events
        assert "failed r0" in told.events

    play(scenario)


@pytest.mark.parametrize(
    "wrong",
    [
        Alert("a", ("failed",)),
        Alert("a", ("failed",), mail_to="x@y", url="http://x"),
        Alert("a", ("failed",), mail_to="x@y"),
        Alert("a", ("failed",), url="ftp://x"),
        Alert("a", (), url="http://x"),
    ],
)
def test_a_rule_that_could_tell_nobody_is_refused(wrong: Alert) -> None:
    with pytest.raises(Refused):
        keep_alert(MemoryControl(), wrong)


# ---- over the network


def until(is_so: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def put(api: Api, name: str, **body: Any) -> None:
    answer = api.http.put(f"/api/alerts/{name}", json=body)
    assert answer.status_code == 200, answer.text


def test_a_failed_run_is_told_by_mail_and_webhook_with_secrets_from_the_keychain(tmp_path: Path) -> None:
    keys = LocalStore(tmp_path)
    keys.set("mailer", {"username": "ann", "password": "right"})
    keys.set("signing", "s3cret of the hook")
    replies = iter([Reply(503, {}), Reply(200, {})])
    with mail_server() as mailbox, serve(lambda request: next(replies, Reply(200, {}))) as web, asking(tmp_path) as api:
        keys.set("where", f"{web.url}/in")
        mail = {"mail_to": "ops@example.com", "mail_from": "p@example.com", "smtp_host": "127.0.0.1"}
        put(api, "mail", on=["failed"], **mail, smtp_port=mailbox.port, smtp_security="none", auth="mailer")
        put(api, "web", on=["failed"], url="keychain:where", auth="signing")
        run = api.submit(FAILS)
        api.ended(run)
        until(lambda: mailbox.letters and len(web.requests) >= 2)
        (_, to, letter) = mailbox.letters[0]
        assert (to, run in letter.get_content()) == (["ops@example.com"], True)
        assert mailbox.logins == [("ann", "right")]
        request = web.requests[1]
        stamp = float(request.headers["x-penstock-signature"].split(",")[0].removeprefix("t="))
        assert request.headers["x-penstock-signature"] == sign("s3cret of the hook", request.body, stamp)
        assert json.loads(request.body)["run"] == run
        until(lambda: [one["delivered"] for one in api.get("/api/alerts").json()["alerts"]] == [1, 1])
        assert api.post("/api/alerts/web/test").json() == {"name": "web", "status": "delivered"}
        for at in ("/api/alerts", "/api/alerts/web/deliveries", "/api/alerts/mail/deliveries"):
            assert "s3cret" not in api.get(at).text
        assert not any(b"s3cret" in file.read_bytes() for file in tmp_path.glob("control.db*"))
        put(api, "web", on=["failed"], url="http://127.0.0.1:1/", auth="nothing")
        refused = api.post("/api/alerts/web/test")
        assert (refused.status_code, "no keychain entry `nothing`" in refused.text) == (409, True)


def test_an_alert_about_what_is_not_there_is_refused_and_says_what_was_meant(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        assert api.http.put("/api/documents/sales/fails", json={"text": FAILS}).status_code in (200, 201)
        webhook = {"on": ["failed"], "url": "http://127.0.0.1:9/"}
        put(api, "right", **webhook, document="sales/fails")
        put(api, "file", **webhook, document="/home/ada/orders.yaml")
        wrong = api.http.put("/api/alerts/wrong", json={**webhook, "document": "sales/fail"})
        assert wrong.status_code == 422
        assert "there is no `sales/fail` in the catalog; did you mean `sales/fails`?" in wrong.text
        late = api.http.put("/api/alerts/wrong", json={**webhook, "schedule": "nightly"})
        assert (late.status_code, "there is no schedule `nightly`" in late.text) == (422, True)
        assert [one["name"] for one in api.get("/api/alerts").json()["alerts"]] == ["file", "right"]


def test_an_alert_reaches_only_what_the_operator_opened(tmp_path: Path) -> None:
    with mail_server() as mailbox, serve(lambda request: Reply(200, {})) as web:
        with asking(tmp_path, addresses=PUBLIC_ONLY) as api:
            put(api, "web", on=["failed"], url=f"{web.url}/in")
            where = {"smtp_host": "127.0.0.1", "smtp_port": mailbox.port, "smtp_security": "none"}
            put(api, "mail", on=["failed"], mail_to="ops@example.com", mail_from="p@example.com", **where)
            for name in ("web", "mail"):
                refused = api.post(f"/api/alerts/{name}/test")
                assert refused.status_code == 409
                assert "address_refused: `127.0.0.1` is a loopback address" in refused.text
                assert "`--allow-address`" in refused.text
        assert not web.requests
        assert not mailbox.letters
