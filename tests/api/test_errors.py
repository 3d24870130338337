"""Every error has one shape, wherever it comes from, and nothing that is sent makes the server stumble."""

from __future__ import annotations

import json
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.errors import Damaged
from penstock.remote.client import Client
from tests.api.routes import Route, all_routes
from tests.api.service import QUICK, Api, asking
from tests.cases import cases

ROUTES = all_routes()


def check(answer: Any, status: int | None = None) -> Any:
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) <= {"code", "message", "hint", "problems"}
    assert {"code", "message", "hint"} <= set(error)
    assert error["message"]
    assert all("message" in one for one in error.get("problems", ()))
    if status is not None:
        assert answer.status_code == status
    return error


@cases("route", ROUTES)
def test_a_method_that_a_route_does_not_take_is_told_in_the_one_shape(api: Api, route: Route) -> None:
    check(api.http.request("PATCH", route.path), 405)


BODIES = [
    (b"", (422, 404)),
    (b"{", (400,)),
    (b"[]", (422,)),
    (b"nul", (400,)),
    (b'{"a": NaN}', (400,)),
    (b'{"a": "\xff"}', (400,)),
    (b'{"a": "\\ud800"}', (400,)),
    (b"[" * 100_000, (400,)),
    (b'{"nonsense": 1}', (422,)),
]


@cases("route, content, status", [(route, *body) for route in ROUTES if route.body is not None for body in BODIES])
def test_a_body_that_cannot_be_used_is_told_in_the_one_shape(
    api: Api, route: Route, content: bytes, status: tuple[int, ...]
) -> None:
    if route.template == "/hooks/{name}":
        status = (404,)
    if route.template.endswith("/cancel") and content == b"":
        status = (404,)
    answer = api.http.request(route.method, route.path, content=content, headers={"Content-Type": "application/json"})
    check(answer)
    assert answer.status_code in status


def test_a_body_that_is_not_json_is_told_with_line_and_column(api: Api) -> None:
    headers = {"Content-Type": "application/json"}
    for content, said in (
        (
            b'{\n "document": {oops}}',
            'line 2, column 15: expecting property name enclosed in double quotes: `"document"',
        ),
        (b'{"a": NaN}', "`NaN` is not a value of JSON"),
        (b'{"a": "\xff"}', "it is not UTF-8: byte 7 is 0xff"),
    ):
        error = api.http.post("/api/plan", content=content, headers=headers).json()["error"]
        assert error["code"] == "bad_json"
        assert error["message"].startswith(f"the body is not JSON: {said}")


@cases("route", [route for route in ROUTES if route.body is not None])
def test_a_body_that_is_not_called_json_is_refused(api: Api, route: Route) -> None:
    """A page of another site could send these without being asked first."""
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = api.http.request(
            route.method, route.path, content=json.dumps(route.body).encode(), headers={"Content-Type": media}
        )
        check(answer, 404 if route.template == "/hooks/{name}" else 415)


@cases("path", ["/api", "/api/", "/api/executions/", "/api/nope", "/health/", "/hooks", "/metrics/x"])
def test_a_place_that_is_not_there_is_told_in_the_one_shape(api: Api, path: str) -> None:
    check(api.get(path), 404)


@cases(
    "query",
    ["limit=0", "limit=1001", "limit=x", "limit=", "status=gone", "after=" + "x" * 501, "name=" + "x" * 501],
)
def test_a_question_that_is_wrong_is_told_in_the_one_shape(api: Api, query: str) -> None:
    error = check(api.http.get(f"/api/executions?{query}"), 422)
    assert error["problems"][0]["where"].startswith("query.")


@cases("name", ["%00", "%ff", "..%2f..%2fetc", "a b", "ü", "%F0%9F%98%80", "x" * 5000, "@nobody"])
def test_a_name_may_hold_anything_and_then_names_nothing(api: Api, name: str) -> None:
    for rest in ("", "/header", "/events", "/logs", "/document"):
        check(api.http.get(f"/api/executions/{name}{rest}"), 404)


def test_a_request_that_is_too_large_is_refused_before_it_is_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    with asking(tmp_path_factory.mktemp("small"), max_body=10_000) as api:
        body = {"document": {"text": QUICK}, "payload": {"a": "x" * 10_000}}
        check(api.post("/api/executions", body), 413)

        def pieces() -> Any:
            yield json.dumps(body).encode()

        headers = {"Content-Type": "application/json"}
        check(api.http.post("/api/executions", content=pieces(), headers=headers), 413)
        assert api.post("/api/executions", {"document": {"text": QUICK}}).status_code == 201


def test_a_length_that_is_none_is_refused(api: Api) -> None:
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as one:
        head = "POST /api/executions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\nConnection: close\r\n\r\n"
        one.sendall(head.encode())
        answer = one.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 4")


def test_a_payload_that_is_nested_too_deeply_is_refused(api: Api) -> None:
    deep: Any = {}
    for _ in range(80):
        deep = {"a": deep}
    error = check(api.post("/api/executions", {"document": {"text": QUICK}, "payload": deep}), 422)
    assert "deeper" in error["message"]


def test_a_reference_is_not_taken_from_outside(api: Api) -> None:
    forged = {"$ref": "result", "store": "file", "key": "sha256/00/" + "0" * 62, "size": 1, "checksum": "0" * 64}
    error = check(api.post("/api/executions", {"document": {"text": QUICK}, "payload": {"a": [forged]}}), 422)
    assert "reference" in error["message"]


@cases(
    "document",
    [
        {"text": ""},
        {"text": "x: [" * 1000},
        {"text": "a: &a [*a]"},
        {"text": "\x00"},
        {"text": "- " * 50_000},
        {"text": "components: []\nkind: Joblet\n"},
        {"text": QUICK, "path": "both"},
        {"path": "not/there"},
        {"path": "../up"},
        {"path": ""},
        {"path": "a", "version": 0},
        {},
    ],
)
def test_a_document_that_is_none_is_refused(api: Api, document: Any) -> None:
    answer = api.post("/api/executions", {"document": document})
    check(answer)
    assert answer.status_code in (404, 422)


@cases("label", ["", " ", "@last", "x" * 201, 5, ["a"]])
def test_a_label_that_could_not_be_asked_for_is_refused(api: Api, label: Any) -> None:
    check(api.post("/api/executions", {"document": {"text": QUICK}, "label": label}), 422)


def test_a_context_that_the_document_does_not_have_is_refused(api: Api) -> None:
    error = check(api.post("/api/executions", {"document": {"text": QUICK}, "context": "prod"}), 422)
    assert "context" in error["message"]


def test_every_answer_wears_what_keeps_browsers_careful(api: Api) -> None:
    for path in ("/health", "/api/nope", "/api/executions", "/metrics"):
        headers = api.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers


def test_a_damaged_log_is_told_as_such_and_not_as_a_mistake_of_the_server(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        run = api.done()
        with closing(sqlite3.connect(tmp_path / "penstock.db")) as database, database:
            find = "SELECT place, payload FROM event WHERE type = 'step.scheduled'"
            place, payload = database.execute(find).fetchone()
            database.execute("UPDATE event SET payload = ? WHERE place = ?", (payload.swapcase(), place))
        error = check(api.get(f"/api/executions/{run}"), 500)
        assert error["code"] == "damaged"
        assert f"the log is damaged: event 3 of run `{run}`" in error["message"]
        *_, last = api.get(f"/api/executions/{run}/events").text.splitlines()
        assert json.loads(last)["error"] == error
        client = Client(str(api.http.base_url), None)
        with pytest.raises(Damaged, match="event 3"):
            list(client.lines(f"/api/executions/{run}/events"))


@cases("odd", ["a\nb", "a\x1b[2Jb", "a\u202eb", "a\x00b", "a\x85b"])
def test_a_name_that_a_terminal_or_a_log_could_be_written_with_is_refused(api: Api, odd: str) -> None:
    text = {"text": QUICK}
    for body in (
        {"document": text, "label": odd},
        {"document": {**text, "file": odd}},
        {"document": {**text, "sources": {odd: QUICK}}},
        {"document": text, "context": odd},
        {"document": text, "idempotency_key": odd},
    ):
        answer = api.post("/api/executions", body)
        assert answer.status_code == 422, (body, answer.text)
    assert api.post("/api/tokens", {"name": odd, "scope": "admin"}).status_code == 422


def test_an_error_is_one_line_in_the_log_of_a_server() -> None:
    from penstock.app.server import one_line

    assert one_line(ValueError("grün\npenstock: forged\x1b[2J\u202e")) == r"grün\npenstock: forged\x1b[2J\u202e"
