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

SHOWS = document(
    "workload: {a: 0}\nworkflow:\n- step: start\n  tool: [{name: n, kind: noop, value: '{{ workload.event }}'}]\n"
)
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
        {"cron": "@daily", "path": "shows", "overlap": "sometimes"},
        {"cron": "@daily", "path": "shows", "deadline_s": 0},
        {"cron": "@daily"},
        {"cron": "@daily", "path": "shows", "payload": {"aa": 1}},
    ],
    ids=lambda body: str(body)[:40],
)
def test_a_schedule_that_could_never_fire_is_refused(api: Api, body: Any) -> None:
    answer = api.http.put("/api/schedules/bad", json=body)
    assert answer.status_code == 422, answer.text
    assert api.get("/api/schedules/bad").status_code == 404


def over(api: Api, name: str, count: int) -> list[Any]:
    """The slots of a schedule, once so many are over."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        slots = api.get(f"/api/schedules/{name}/slots").json()["slots"]
        if sum(one["status"] not in ("queued", "due", "running") for one in slots) >= count:
            return list(slots)
        assert time.monotonic() < deadline, slots
        time.sleep(0.05)


def test_a_backfill_runs_slots_of_the_past_once_each_and_tells_how_far_it_is(api: Api) -> None:
    made = put(api, "/api/schedules/past", cron="@daily", path="shows", is_on=False, overlap="queue", deadline_s=60)
    assert (made["overlap"], made["deadline_s"], made["running"], made["waiting"]) == ("queue", 60, [], 0)
    asked = {"from": "2026-01-01", "to": "2026-01-03"}
    dry = api.post("/api/schedules/past/backfill", {**asked, "dry_run": True}).json()
    days = [f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3)]
    assert ([one["slot"] for one in dry["slots"]], dry["queued"]) == (days, 3)
    assert api.get("/api/schedules/past/slots").json()["slots"] == []
    assert api.post("/api/schedules/past/backfill", asked).json()["queued"] == 3
    slots = over(api, "past", 3)
    assert [(one["slot"], one["status"], one["is_late"]) for one in slots] == [
        (day, "completed", False) for day in days
    ]
    results = [api.get(f"/api/executions/{one['run']}").json()["result"] for one in slots]
    assert results == [{"schedule": "past", "slot": day} for day in days]
    again = api.post("/api/schedules/past/backfill", asked).json()
    assert (again["queued"], {one["why"] for one in again["slots"]}) == (0, {"this backfill has run it"})
    api.http.delete("/api/schedules/past")


def test_a_backfill_can_be_stopped_and_a_schedule_shows_what_is_going(api: Api) -> None:
    slow = document("- step: start\n  tool: [{name: n, kind: sleep, seconds: 600}]\n")
    assert api.http.put("/api/documents/slow", json={"text": slow}).status_code == 201
    put(api, "/api/schedules/slow", cron="@daily", path="slow", is_on=False)
    api.post("/api/schedules/slow/backfill", {"from": "2026-01-01", "to": "2026-01-03"})
    deadline = time.monotonic() + PATIENCE_S
    while not (shown := api.get("/api/schedules/slow").json())["running"]:
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)
    assert (len(shown["running"]), shown["waiting"]) == (1, 2)
    assert api.http.delete("/api/schedules/slow/backfill").json() == {"schedule": "slow", "stopped": 2}
    slots = api.get("/api/schedules/slow/slots").json()["slots"]
    assert [one["status"] for one in slots] == ["running", "skipped", "skipped"]
    assert api.post("/api/executions/" + shown["running"][0] + "/cancel", {}).status_code == 202
    api.ended(shown["running"][0])
    api.http.delete("/api/schedules/slow")


@pytest.mark.parametrize(
    "body",
    [
        {"from": "yesterday", "to": "2026-01-03"},
        {"from": "2026-01-03", "to": "2026-01-01"},
        {"from": "2026-01-01"},
        {"from": "2026-01-01", "to": "2026-01-03", "which": "some"},
    ],
    ids=str,
)
def test_a_backfill_that_makes_no_sense_is_refused(api: Api, body: Any) -> None:
    put(api, "/api/schedules/odd", cron="@daily", path="shows", is_on=False)
    assert api.post("/api/schedules/odd/backfill", body).status_code == 422
    assert api.post("/api/schedules/nobody/backfill", {"from": "2026-01-01", "to": "2026-01-02"}).status_code == 404


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
    changed = put(api, "/api/hooks/quiet", path="shows", payload={"a": 1})
    assert changed["is_signed"]
    for text in (json.dumps(changed), api.get("/api/hooks").text, api.get("/api/hooks/quiet").text):
        assert SECRET not in text
        assert "secret" not in text
    body = b"{}"
    assert api.http.post("/hooks/quiet", content=body, headers=signed(body)).status_code == 202
    assert not put(api, "/api/hooks/quiet", path="shows", secret=None)["is_signed"]


def test_a_hook_is_held_to_the_inputs_of_its_document_and_its_senders_are_not(api: Api) -> None:
    refused = api.http.put("/api/hooks/strict", json={"path": "shows", "payload": {"aaa": 1}})
    assert (refused.status_code, "has no `aaa`" in refused.text) == (422, True)
    put(api, "/api/hooks/strict", path="shows")
    run = api.http.post("/hooks/strict", json={"aaa": 1, "whatever": 2}).json()["execution_id"]
    assert api.ended(run) == "completed"


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


def test_what_a_document_of_the_catalog_keeps_is_shown_set_and_taken_away(api: Api) -> None:
    counts = document(
        "state: {n: 0}\nworkflow:\n- step: start\n  tool: {kind: noop, set: {state.n: '{{ state.n + 1 }}'}}\n"
    )
    name = "catalog:/counts"

    def run() -> None:
        api.http.put("/api/documents/counts", json={"text": counts})
        answer = api.post("/api/executions", {"document": {"path": "counts"}})
        assert api.ended(answer.json()["execution_id"]) == "completed"

    def values() -> list[Any]:
        return [one["value"] for one in api.get("/api/state", document=name).json()["state"]]

    run()
    counts += "# another version\n"
    run()
    assert values() == [2]
    assert api.http.put("/api/state", json={"document": name, "key": "n", "value": 10}).status_code == 200
    assert api.http.put("/api/state", json={"document": name, "key": "n", "value": None}).status_code == 422
    run()
    assert values() == [11]
    assert api.http.delete("/api/state", params={"document": name}).json() == {"document": name, "dropped": 1}
    assert api.http.delete("/api/state", params={"document": name}).status_code == 404


CONTEXTS = """
metadata: {name: contexts}
context: {where: nowhere, groups: {prod: {where: there}}}
components:
  - name: told
    type: set_global
    params: {values: {where: "{{ context.where }}"}}
"""


def test_a_hook_runs_a_job_with_a_group_of_its_context(api: Api) -> None:
    assert api.http.put("/api/documents/contexts", json={"text": CONTEXTS}).status_code == 201
    assert put(api, "/api/hooks/grouped", path="contexts", context="prod")["context"] == "prod"
    run = api.http.post("/hooks/grouped", json={}).json()["execution_id"]
    assert api.ended(run) == "completed"
    assert api.get(f"/api/executions/{run}").json()["globals"]["where"] == "there"
    for at, more in (("/api/hooks/grouped", {}), ("/api/schedules/grouped", {"cron": "@daily"})):
        wrong = api.http.put(at, json={"path": "contexts", "context": "prd", **more})
        assert (wrong.status_code, "no context group `prd`" in wrong.text) == (422, True)


@pytest.mark.parametrize(
    ("at", "body", "words"),
    [
        ("/api/hooks/x", {"path": "A b!"}, "a path in the catalog is names of letters"),
        (
            "/api/hooks/x",
            {"path": "shows", "secret": "x"},
            "`secret`: it is too short: at least 16 characters are needed",
        ),
        ("/api/hooks/x", {"path": "shows", "payload": []}, "a mapping is wanted"),
        ("/api/hooks/x", {"path": "shows", "nope": 1}, "there is no such field"),
        ("/api/hooks/a b", {"path": "shows"}, "a name has up to 100 letters"),
        ("/api/hooks/x", {}, "it is needed"),
        ("/api/schedules/x", {"cron": "", "path": "shows"}, "it is empty"),
        ("/api/schedules/x", {"cron": "@daily", "path": "shows", "overlap": "skipp"}, "did you mean `skip`?"),
        ("/api/schedules/x", {"cron": "@daily", "path": "shows", "version": 0}, "it must be 1 or more"),
        ("/api/schedules/x", {"cron": "@daily", "path": "shows", "is_on": "yes"}, "`true` or `false` is wanted"),
        ("/api/documents/x", {"text": ""}, "it is empty"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_request_is_said_in_sentences(api: Api, at: str, body: Any, words: str) -> None:
    answer = api.http.put(at, json=body)
    assert answer.status_code == 422
    message = answer.json()["error"]["message"]
    assert words in message
    assert not any(raw in message for raw in ("Input should", "String should", "Extra inputs", "^["))
