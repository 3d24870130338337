"""The catalog: documents by path and version, and runs that are pinned to what they started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.service import FAILS, QUICK, Api, asking
from tests.engine import document

SECOND = QUICK.replace("hello", "goodbye")


def put(api: Api, path: str, text: str, **more: object) -> tuple[int, int]:
    answer = api.http.put(f"/api/documents/{path}", json={"text": text, **more})
    assert answer.status_code in (200, 201), answer.text
    return answer.status_code, answer.json()["version"]


def test_other_content_is_a_new_version_and_the_same_is_the_same(api: Api) -> None:
    assert put(api, "sales/orders", QUICK) == (201, 1)
    assert put(api, "sales/orders", QUICK) == (200, 1)
    assert put(api, "sales/orders", SECOND) == (201, 2)
    assert api.get("/api/documents/sales/orders").json()["text"] == SECOND
    assert api.get("/api/documents/sales/orders", version=1).json()["text"] == QUICK
    assert api.get("/api/documents/sales/orders", version=3).status_code == 404
    versions = api.get("/api/versions/sales/orders").json()["documents"]
    assert [one["version"] for one in versions] == [2, 1]
    assert versions[0]["digest"] != versions[1]["digest"]


def test_the_catalog_is_listed_by_path(api: Api) -> None:
    for path in ("list/b", "list/a", "list/c/d"):
        put(api, path, QUICK)
    listed = api.get("/api/documents", prefix="list/").json()["documents"]
    assert [one["path"] for one in listed] == ["list/a", "list/b", "list/c/d"]
    assert all("text" not in one for one in listed)


def test_a_run_stays_what_it_was_when_its_document_changes(api: Api) -> None:
    put(api, "pinned", QUICK)
    first = api.post("/api/executions", {"document": {"path": "pinned"}}).json()["execution_id"]
    api.ended(first)
    put(api, "pinned", SECOND)
    old = api.post("/api/executions", {"document": {"path": "pinned", "version": 1}}).json()["execution_id"]
    new = api.post("/api/executions", {"document": {"path": "pinned"}}).json()["execution_id"]
    results = [api.get(f"/api/executions/{run}").json()["result"] for run in (first, old, new) if api.ended(run)]
    assert results == ["hello", "hello", "goodbye"]
    assert api.get(f"/api/executions/{first}/document").json()["text"] == QUICK


def test_a_document_calls_its_neighbours_in_the_catalog_and_any_other_by_name(api: Api) -> None:
    leaf = document("- step: start\n  tool: [{name: n, kind: noop, value: leaf}]\n")
    put(api, "calls/part", leaf)
    put(api, "calls/main", document("- step: start\n  tool: [{name: c, kind: playbook, path: part}]\n"))
    put(api, "elsewhere", document("- step: start\n  tool: [{name: c, kind: playbook, path: calls/part.yaml}]\n"))
    for path in ("calls/main", "elsewhere"):
        run = api.post("/api/executions", {"document": {"path": path}}).json()["execution_id"]
        assert api.ended(run) == "completed"
        assert api.get(f"/api/executions/{run}").json()["result"] == "leaf"


def test_a_document_that_is_taken_out_leaves_its_runs(api: Api) -> None:
    put(api, "gone", QUICK)
    run = api.post("/api/executions", {"document": {"path": "gone"}}).json()["execution_id"]
    api.ended(run)
    assert api.http.delete("/api/documents/gone").status_code == 204
    assert api.http.delete("/api/documents/gone").status_code == 404
    assert api.get("/api/documents/gone").status_code == 404
    assert api.get(f"/api/executions/{run}").json()["result"] == "hello"
    assert put(api, "gone", QUICK) == (201, 2)


def test_only_what_can_run_is_kept(api: Api) -> None:
    answer = api.http.put("/api/documents/bad", json={"text": QUICK.replace("noop", "nop")})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "document_invalid")
    assert api.get("/api/documents/bad").status_code == 404


def test_a_document_with_a_secret_in_it_is_not_kept(api: Api) -> None:
    text = "keychain: [{name: k, kind: static, value: s3cret}]\n" + QUICK
    answer = api.http.put("/api/documents/leaky", json={"text": text})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "inline_secret")
    assert "s3cret" not in answer.text


@pytest.mark.parametrize("path", ["a//b", "/a", "a/", ".", "..", "a/../b", "a b", "ä", "x" * 501])
def test_a_path_that_could_be_misread_is_refused(api: Api, path: str) -> None:
    from urllib.parse import quote

    answer = api.http.put(f"/api/documents/{quote(path, safe='')}", json={"text": QUICK})
    assert answer.status_code in (404, 405, 422)


def test_a_document_is_checked_planned_and_drawn_before_it_runs(api: Api) -> None:
    good = {"document": {"text": QUICK, "file": "p.yaml"}}
    assert api.post("/api/validate", good).json() == {"status": "valid", "errors": 0, "problems": []}
    assert api.post("/api/plan", good).json()["steps"][0]["step"] == "start"
    assert api.post("/api/graph", {**good, "format": "svg"}).text.startswith("<svg")
    bad = {"document": {"text": QUICK.replace("noop", "nop"), "file": "p.yaml"}}
    checked = api.post("/api/validate", bad).json()
    assert (checked["status"], checked["errors"]) == ("invalid", 1)
    assert checked["problems"][0]["label"] == "did you mean `noop`?"
    for path in ("/api/plan", "/api/graph"):
        assert api.post(path, bad).json()["error"]["code"] == "document_invalid"
    assert api.post("/api/graph", {**good, "format": "json"}).status_code == 422
    assert api.post("/api/plan", {**good, "format": "text"}).status_code == 422


def test_the_catalog_outlives_the_server(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        put(api, "kept", FAILS)
    with asking(tmp_path) as api:
        assert api.get("/api/documents/kept").json()["text"] == FAILS
