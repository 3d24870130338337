"""Schedules and hooks over HTTP: made, shown, and runs that come of them."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.api.service import PATIENCE_S, Api, asking
from tests.engine import document

SHOWS = document("- step: start\n  tool: [{name: n, kind: noop, value: '{{ workload.event }}'}]\n")
SECRET = "a secret of some length"


@pytest.fixture(autouse=True, scope="module")
def _filed(api: Api) -> None:
    assert api.http.put("/api/documents/shows", json={"text": SHOWS}).status_code == 201


def put(api: Api, at: str, **body: Any) -> Any:
    answer = api.http.put(at, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_schedule_starts_runs_of_its_document_until_it_is_off(api: Api) -> None:
    made = put(api, "/api/schedules/often", cron="* * * * * *", path="shows", payload={"a": 1})
    assert made["next_at"] is not None
    deadline = time.monotonic() + PATIENCE_S
    while (seen := api.get("/api/schedules/often").json())["last_run"] is None:
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)
    put(api, "/api/schedules/often", cron="* * * * * *", path="shows", is_on=False)
    run = seen["last_run"]
    api.ended(run)
    shown = api.get(f"/api/executions/{run}").json()
    assert shown["result"] == {"schedule": "often", "slot": seen["last_slot"].replace(".000000", "")}
    assert shown["label"] == "often"
    assert api.get("/api/schedules/often").json()["next_at"] is None
    assert api.http.delete("/api/schedules/often").status_code == 204
    assert api.get("/api/schedules/often").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"cron": "not cron", "path": "shows"},
        {"cron": "0 0 31 2 *", "path": "shows"},
        {"cron": "@daily", "path": "nothing"},
        {"cron": "@daily", "path": "shows", "version": 7},
        {"cron": "@daily", "path": "shows", "zone": "Mars/Olympus"},
        {"cron": "@daily", "path": "shows", "missed": "some"},
        {"cron": "@daily"},
    ],
    ids=lambda body: str(body)[:40],
)
def test_a_schedule_that_could_never_fire_is_refused(api: Api, body: Any) -> None:
    answer = api.http.put("/api/schedules/bad", json=body)
    assert answer.status_code == 422, answer.text
    assert api.get("/api/schedules/bad").status_code == 404


def signed(body: bytes, secret: str = SECRET) -> dict[str, str]:
    mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={mac}", "Content-Type": "application/json"}


def test_a_signed_request_starts_a_run_that_sees_it(api: Api) -> None:
    put(api, "/api/hooks/push", path="shows", secret=SECRET)
    body = json.dumps({"branch": "main"}).encode()
    answer = api.http.post("/hooks/push", content=body, headers={**signed(body), "X-GitHub-Delivery": "1"})
    assert answer.status_code == 202
    run = answer.json()["execution_id"]
    api.ended(run)
    event = api.get(f"/api/executions/{run}").json()["result"]
    assert (event["hook"], event["body"]) == ("push", {"branch": "main"})
    again = api.http.post("/hooks/push", content=body, headers={**signed(body), "X-GitHub-Delivery": "1"})
    assert again.json()["execution_id"] == run


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"X-Hub-Signature-256": "sha256=" + "0" * 64}, 401),
        ({"X-Penstock-Signature": "t=1,v1=" + "0" * 64}, 401),
        ({"Authorization": "Bearer whatever"}, 401),
    ],
)
def test_a_request_that_is_not_signed_starts_nothing(api: Api, headers: dict[str, str], status: int) -> None:
    put(api, "/api/hooks/safe", path="shows", secret=SECRET)
    before = len(api.get("/api/executions", limit=1000).json()["runs"])
    answer = api.http.post("/hooks/safe", content=b"{}", headers=headers)
    assert (answer.status_code, set(answer.json())) == (status, {"error"})
    assert len(api.get("/api/executions", limit=1000).json()["runs"]) == before


def test_a_signed_request_runs_once_whatever_its_headers_say(api: Api) -> None:
    put(api, "/api/hooks/once", path="shows", secret=SECRET)
    hub = {"X-Hub-Signature-256": f"sha256={hmac.new(SECRET.encode(), b'{}', hashlib.sha256).hexdigest()}"}
    for headers in (signed(b"{}"), hub):
        runs = {
            api.http.post("/hooks/once", content=b"{}", headers={**headers, **more}).json()["execution_id"]
            for more in ({}, {"Idempotency-Key": "a"}, {"Idempotency-Key": "b"}, {"X-GitHub-Delivery": "c"})
        }
        assert len(runs) == 1


def test_a_hook_without_a_secret_needs_a_token_where_there_are_tokens(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        api.http.put("/api/documents/shows", json={"text": SHOWS})
        put(api, "/api/hooks/plain", path="shows")
        assert api.http.post("/hooks/plain", json={"a": 1}).status_code == 202
        secret = api.post("/api/tokens", {"name": "t", "scope": "admin"}).json()["secret"]
        assert api.http.post("/hooks/plain", json={"a": 1}).status_code == 401
        headers = {"Authorization": f"Bearer {secret}"}
        assert api.http.post("/hooks/plain", json={"a": 1}, headers=headers).status_code == 202


def test_the_secret_of_a_hook_is_never_shown_and_stays_until_it_is_taken_away(api: Api) -> None:
    put(api, "/api/hooks/quiet", path="shows", secret=SECRET)
    changed = put(api, "/api/hooks/quiet", path="shows", payload={"x": 1})
    assert changed["is_signed"]
    for text in (json.dumps(changed), api.get("/api/hooks").text, api.get("/api/hooks/quiet").text):
        assert SECRET not in text
        assert "secret" not in text
    body = b"{}"
    assert api.http.post("/hooks/quiet", content=body, headers=signed(body)).status_code == 202
    assert not put(api, "/api/hooks/quiet", path="shows", secret=None)["is_signed"]


def test_a_hook_that_is_off_or_too_much_for_it_says_so(api: Api) -> None:
    put(api, "/api/hooks/off", path="shows", is_on=False)
    assert api.http.post("/hooks/off", json={}).status_code == 409
    put(api, "/api/hooks/on", path="shows")
    assert api.http.post("/hooks/on", content=b"x" * 2_000_000).status_code == 413
    assert api.http.post("/hooks/on", content=b"x", headers={"Content-Type": "image/png"}).status_code == 415
    assert api.http.post("/hooks/nobody", json={}).status_code == 404
    api.http.put("/api/documents/brief", json={"text": SHOWS})
    put(api, "/api/hooks/orphan", path="brief")
    api.http.delete("/api/documents/brief")
    assert api.http.post("/hooks/orphan", json={}).status_code == 409


def test_hooks_are_listed_and_deleted(api: Api) -> None:
    put(api, "/api/hooks/one", path="shows")
    assert "one" in [hook["name"] for hook in api.get("/api/hooks").json()["hooks"]]
    assert api.http.delete("/api/hooks/one").status_code == 204
    assert api.http.delete("/api/hooks/one").status_code == 404
    assert api.http.put("/api/hooks/short", json={"path": "shows", "secret": "short"}).status_code == 422
