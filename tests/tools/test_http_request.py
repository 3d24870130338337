"""What the http tool sends: the query, the body, credentials, and where redirects may take them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from penstock.tools.base import ToolFailure
from penstock.tools.http.tool import HttpTool
from tests.cases import cases

from .fetching import failed, fetch, sent
from .support import Reply, Request, SharedResources, make_call, run, run_async, serve

# ---- the request


def test_query_parameters_repeat_lists_and_leave_null_out(tmp_path: Path) -> None:
    params = {"a": 1, "b": ["x", "y z", None], "c": None, "d": True, "e": 1.5, "f": "&="}
    assert sent(tmp_path, {"params": params}).query == {
        "a": ["1"],
        "b": ["x", "y z"],
        "d": ["true"],
        "e": ["1.5"],
        "f": ["&="],
    }


def test_query_parameters_join_those_of_the_url(tmp_path: Path) -> None:
    with serve(lambda request: Reply()) as server:
        fetch(tmp_path, {"url": f"{server.url}/x?a=1&b=2", "params": {"b": 3}})
        assert server.requests[0].query == {"a": ["1"], "b": ["3"]}


def test_json_is_sent_with_its_content_type_and_null_is_a_body_too(tmp_path: Path) -> None:
    request = sent(tmp_path, {"method": "post", "json": {"é": [1, None]}})
    assert (request.method, request.json) == ("POST", {"é": [1, None]})
    assert request.headers["content-type"] == "application/json"
    assert sent(tmp_path, {"method": "PUT", "json": None}).body == b"null"
    assert sent(tmp_path, {"method": "PUT"}).body == b""


def test_a_form_is_urlencoded(tmp_path: Path) -> None:
    request = sent(tmp_path, {"method": "POST", "form": {"a": ["1", 2], "b": "x&y", "c": None, "d": False}})
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert request.body == b"a=1&a=2&b=x%26y&d=false"


def test_a_text_body_is_sent_as_it_is(tmp_path: Path) -> None:
    request = sent(tmp_path, {"method": "POST", "body": "grüße"})
    assert request.body == "grüße".encode()
    assert request.headers["content-type"] == "text/plain; charset=utf-8"
    typed = sent(tmp_path, {"method": "POST", "body": "<a/>", "headers": {"Content-Type": "text/xml"}})
    assert typed.headers["content-type"] == "text/xml"


@pytest.mark.parametrize("value", [{"q": [1, None], "é": {"x": True}}, [1, {"a": 2}], {}, []])
def test_a_mapping_or_list_as_body_is_what_json_would_be(tmp_path: Path, value: Any) -> None:
    request, same = (sent(tmp_path, {"method": "POST", name: value}) for name in ("body", "json"))
    assert (request.body, request.headers["content-type"]) == (same.body, "application/json")
    assert request.json == value


def test_a_mapping_as_body_keeps_the_content_type_that_a_header_says(tmp_path: Path) -> None:
    headers = {"Content-Type": "application/vnd.api+json"}
    request = sent(tmp_path, {"method": "PATCH", "body": {"a": 1}, "headers": headers})
    assert (request.json, request.headers["content-type"]) == ({"a": 1}, "application/vnd.api+json")


@pytest.mark.parametrize(
    "media", ["application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded; charset=utf-8"]
)
def test_a_mapping_as_body_is_what_form_would_be_if_the_header_says_so(tmp_path: Path, media: str) -> None:
    fields = {"a": ["1", 2], "b": "x&y", "c": None, "d": False}
    request = sent(tmp_path, {"method": "POST", "body": fields, "headers": {"content-type": media}})
    assert request.body == sent(tmp_path, {"method": "POST", "form": fields}).body
    assert request.headers["content-type"] == media


@pytest.mark.parametrize(
    ("media", "body", "words"),
    [
        ("application/x-www-form-urlencoded", {"a": {"b": 1}}, "`body` as form fields is a mapping of texts"),
        ("application/x-www-form-urlencoded", [1, 2], "`body` as form fields is a mapping of texts"),
        ("multipart/form-data", {"a": 1}, "use `files`, with fields in `form`"),
    ],
)
def test_a_body_that_its_content_type_cannot_carry_is_not_sent(
    tmp_path: Path, media: str, body: Any, words: str
) -> None:
    with serve(lambda request: Reply()) as server:
        failure = failed(
            tmp_path, {"url": server.url, "method": "POST", "body": body, "headers": {"Content-Type": media}}
        )
        assert server.requests == []
    assert (failure.kind, words in failure.message) == ("parameters", True)


def test_files_are_sent_as_a_multipart_form_with_fields(tmp_path: Path) -> None:
    (tmp_path / "report.csv").write_text("a,b\n1,2\n")
    upload = {"name": "file", "path": "report.csv", "filename": "r.csv", "content_type": "text/x-csv"}
    request = sent(tmp_path, {"method": "POST", "form": {"kind": "weekly"}, "files": [upload]})
    assert request.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="kind"\r\n\r\nweekly' in request.body
    assert b'name="file"; filename="r.csv"\r\nContent-Type: text/x-csv\r\n\r\na,b\n1,2\n' in request.body


def test_a_file_that_is_not_there_is_told_by_its_path(tmp_path: Path) -> None:
    with serve(lambda request: Reply()) as server:
        failure = failed(tmp_path, {"url": server.url, "method": "POST", "files": [{"name": "f", "path": "no.csv"}]})
        assert server.requests == []
    assert failure.kind == "not_found"
    assert str(tmp_path / "no.csv") in failure.message


@pytest.mark.parametrize(
    "bodies",
    [{"json": {}, "body": "x"}, {"form": {}, "json": None}, {"files": [{"name": "a", "path": "b"}], "body": "x"}],
)
def test_a_request_has_one_body(tmp_path: Path, bodies: dict[str, Any]) -> None:
    failure = failed(tmp_path, {"url": "http://127.0.0.1:1", "method": "POST", **bodies})
    assert failure.kind == "parameters"
    assert "cannot stand together" in failure.message


@cases("method", ["GET", "POST"])
@cases("key, header", [(True, "key-1"), ("mine", "mine"), (False, None)])
def test_the_idempotency_key_is_sent_when_asked_for(
    tmp_path: Path, method: str, key: bool | str, header: str | None
) -> None:
    assert sent(tmp_path, {"method": method, "idempotency_key": key}).headers.get("idempotency-key") == header


@pytest.mark.clause("F7.2")
def test_requests_that_change_something_carry_the_name_of_their_effect(tmp_path: Path) -> None:
    def key(method: str, **params: Any) -> str | None:
        return sent(tmp_path, {"method": method, **params}).headers.get("idempotency-key")

    assert {method: key(method) for method in ("GET", "HEAD", "OPTIONS")} == {
        "GET": None,
        "HEAD": None,
        "OPTIONS": None,
    }
    assert [key(method) for method in ("POST", "PUT", "PATCH", "DELETE", "post ")] == ["key-1"] * 5
    assert key("POST", headers={"Idempotency-Key": "of my own"}) == "of my own"
    assert key("POST", headers={"Idempotency-Key": None}) == "key-1"


@pytest.mark.parametrize("name", ["run-1/übertragen@0/post#1", "x" * 256, "line\nbreak", " "])
def test_a_name_that_cannot_be_a_header_is_sent_as_its_digest(tmp_path: Path, name: str) -> None:
    keys = {
        sent(tmp_path, {"method": "POST"}, idempotency_key=one).headers["idempotency-key"] for one in (name, name, "a")
    }
    assert keys == {hashlib.sha256(name.encode()).hexdigest(), "a"}


@pytest.mark.parametrize("headers", [{"X-A": "one\r\nX-B: two"}, {"bad name": "x"}, {"X-A": "ключ"}])
def test_a_header_that_cannot_be_sent_is_a_failure_and_sends_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    with serve(lambda request: Reply()) as server:
        failure = failed(tmp_path, {"url": server.url, "headers": headers})
        assert server.requests == []
    assert (failure.kind, failure.retryable) == ("parameters", False)
    assert not any(value in failure.message for value in headers.values())


def test_a_token_with_a_line_break_at_its_end_is_sent_without_it(tmp_path: Path) -> None:
    request = sent(tmp_path, {"auth": "token"}, credentials={"token": {"value": "abc\n"}})
    assert request.headers["authorization"] == "Bearer abc"


@cases(
    "written, target",
    [
        ("", "/"),
        ("?a=1", "/?a=1"),
        ("/a b/ü", "/a%20b/%C3%BC"),
        ("/a%20b/%2F%7e?sig=a%2Bb+c%3D&x=[1]", "/a%20b/%2F%7e?sig=a%2Bb+c%3D&x=[1]"),
        ("/100%/x?y=%zz", "/100%25/x?y=%25zz"),
        ("/x#part", "/x"),
    ],
)
def test_a_url_is_sent_as_it_is_written_and_escaped_where_it_must_be(tmp_path: Path, written: str, target: str) -> None:
    with serve(lambda request: Reply()) as server:
        outcome = fetch(tmp_path, {"url": f" {server.url}{written} "})
        assert server.requests[0].target == target
    assert outcome.result["url"].startswith(server.url)


@pytest.mark.parametrize("host", ["127.1", "2130706433", "LOCALHOST"])
def test_every_spelling_of_a_host_is_reached_where_all_is_open(tmp_path: Path, host: str) -> None:
    with serve(lambda request: Reply(200, "here")) as server:
        assert fetch(tmp_path, {"url": f"http://{host}:{server.port}/"}).result["data"] == "here"


@pytest.mark.parametrize("method", ["GE T", "", "GET\r\nX: y"])
def test_what_is_not_a_method_is_told(tmp_path: Path, method: str) -> None:
    with serve(lambda request: Reply()) as server:
        failure = failed(tmp_path, {"url": server.url, "method": method})
        assert server.requests == []
    assert failure.kind == "parameters"


# ---- auth


BASIC = "Basic " + base64.b64encode("ann:pä:ss".encode()).decode()


@cases(
    "auth, expected",
    [
        ("user", BASIC),
        ("token", "Bearer t-1"),
        ("oauth", "Bearer t-2"),
        ("scalar", "Bearer t-3"),
        ({"type": "basic", "username": "ann", "password": "pä:ss"}, BASIC),
        ({"type": "bearer", "token": "t-4"}, "Bearer t-4"),
        ({"type": "bearer", "credential": "scalar"}, "Bearer t-3"),
    ],
)
def test_auth_is_a_keychain_entry_or_a_mapping(tmp_path: Path, auth: Any, expected: str) -> None:
    credentials = {
        "user": {"username": "ann", "password": "pä:ss"},
        "token": {"token": "t-1"},
        "oauth": {"access_token": "t-2", "expires_in": 60},
        "scalar": {"value": "t-3"},
    }
    assert sent(tmp_path, {"auth": auth}, credentials=credentials).headers["authorization"] == expected


def test_an_api_key_goes_into_a_header(tmp_path: Path) -> None:
    by_name = sent(tmp_path, {"auth": "key"}, credentials={"key": {"header": "X-Key", "value": "k"}})
    assert by_name.headers["x-key"] == "k"
    inline = {"type": "api_key", "header": "X-Key", "credential": "plain"}
    assert sent(tmp_path, {"auth": inline}, credentials={"plain": {"value": "v"}}).headers["x-key"] == "v"


def test_an_api_key_in_the_query_is_in_no_result_and_no_message(tmp_path: Path) -> None:
    auth = {"type": "api_key", "query": "key", "value": "s3cret"}
    with serve(lambda request: Reply(200 if request.path == "/ok" else 500)) as server:
        outcome = fetch(tmp_path, {"url": f"{server.url}/ok?a=1", "auth": auth})
        failure = failed(tmp_path, {"url": f"{server.url}/no", "auth": auth})
        assert server.requests[0].query == {"a": ["1"], "key": ["s3cret"]}
    assert outcome.result["url"] == f"{server.url}/ok?a=1&key=%2A%2A%2A"
    assert "s3cret" not in f"{failure.message} {failure.detail}"


def test_user_and_password_in_the_url_are_sent_as_basic_and_not_recorded(tmp_path: Path) -> None:
    with serve(lambda request: Reply()) as server:
        outcome = fetch(tmp_path, {"url": f"http://ann:s3cret@127.0.0.1:{server.port}/"})
        assert server.requests[0].headers["authorization"].startswith("Basic ")
    assert outcome.result["url"] == f"{server.url}/"


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        ("nobody", "`nobody`"),
        ({"type": "digest", "username": "a"}, "`digest`"),
        ({"type": "bearer"}, "`token`"),
        ({}, "`username`"),
    ],
)
def test_auth_that_cannot_be_used_says_what_is_missing(tmp_path: Path, auth: Any, words: str) -> None:
    assert words in failed(tmp_path, {"url": "http://127.0.0.1:1", "auth": auth}).message


# ---- redirects


def test_redirects_are_followed_and_the_last_url_is_recorded(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        return Reply(302, b"", {"Location": "/new"}) if request.path == "/old" else Reply(200, "here")

    with serve(answer) as server:
        outcome = fetch(tmp_path, {"url": f"{server.url}/old", "method": "POST", "json": {"a": 1}})
        assert [request.method for request in server.requests] == ["POST", "GET"]
    assert (outcome.result["data"], outcome.result["url"]) == ("here", f"{server.url}/new")


def test_a_307_sends_the_same_file_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content")

    def answer(request: Request) -> Reply:
        return Reply(307, b"", {"Location": "/new"}) if request.path == "/old" else Reply(200, "ok")

    with serve(answer) as server:
        upload = [{"name": "f", "path": "a.txt"}]
        fetch(tmp_path, {"url": f"{server.url}/old", "method": "POST", "files": upload})
        first, second = server.requests
    assert b"content" in first.body
    assert first.body == second.body


@cases(
    "status, method, then",
    [
        (301, "POST", "GET"),
        (301, "PUT", "PUT"),
        (302, "PUT", "GET"),
        (302, "HEAD", "HEAD"),
        (303, "DELETE", "GET"),
        (307, "POST", "POST"),
        (308, "PUT", "PUT"),
    ],
)
def test_a_redirect_keeps_or_changes_the_method_as_clients_do(
    tmp_path: Path, status: int, method: str, then: str
) -> None:
    def answer(request: Request) -> Reply:
        return Reply(status, b"", {"Location": "b?c#d"}) if request.path == "/a/x" else Reply()

    body = {} if method == "HEAD" else {"json": {"a": 1}}
    with serve(answer) as server:
        fetch(tmp_path, {"url": f"{server.url}/a/x", "method": method, **body})
        first, second = server.requests
    assert (second.method, second.target) == (then, "/a/b?c")
    assert second.body == (first.body if then == method else b"")
    assert ("content-type" in second.headers) == (then == method and method != "HEAD")


@pytest.mark.parametrize("target", ["http://[::1", "http://a:99999/"])
def test_a_redirect_to_what_is_no_url_is_told(tmp_path: Path, target: str) -> None:
    with serve(lambda request: Reply(302, b"", {"Location": target})) as server:
        assert failed(tmp_path, {"url": server.url}).kind in ("protocol", "parameters")


def test_redirects_can_be_left_to_the_author(tmp_path: Path) -> None:
    with serve(lambda request: Reply(301, b"", {"Location": "/new"})) as server:
        outcome = fetch(tmp_path, {"url": server.url, "follow_redirects": False})
    assert (outcome.result["status"], outcome.result["headers"]["location"]) == (301, "/new")


def test_a_circle_of_redirects_ends_after_ten(tmp_path: Path) -> None:
    with serve(lambda request: Reply(302, b"", {"Location": "/again"})) as server:
        failure = failed(tmp_path, {"url": server.url})
        assert len(server.requests) == 11
    assert (failure.kind, failure.retryable) == ("redirects", False)


def test_credentials_do_not_travel_to_another_host(tmp_path: Path) -> None:
    with (
        serve(lambda request: Reply(200, "there")) as other,
        serve(lambda request: Reply(302, b"", {"Location": f"{other.url}/"})) as server,
    ):
        for auth in ({"type": "bearer", "token": "t"}, {"type": "api_key", "header": "X-Mine", "value": "t"}):
            fetch(tmp_path, {"url": server.url, "auth": auth, "headers": {"X-Api-Key": "t", "X-Plain": "p"}})
    assert len(other.requests) == 2
    for request in other.requests:
        assert request.headers["x-plain"] == "p"
        assert not {"authorization", "x-mine", "x-api-key"} & request.headers.keys()


def test_credentials_stay_on_the_same_host(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        return Reply(302, b"", {"Location": "/in"}) if request.path == "/" else Reply()

    with serve(answer) as server:
        fetch(tmp_path, {"url": f"{server.url}/", "auth": {"type": "bearer", "token": "t"}})
        assert server.requests[1].headers["authorization"] == "Bearer t"


def test_cookies_last_for_the_redirects_of_one_request_and_no_longer(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        if request.path == "/login":
            return Reply(303, b"", {"Location": "/home", "Set-Cookie": "sid=1; Path=/"})
        return Reply()

    async def both() -> None:
        call = make_call(tmp_path)
        assert isinstance(call.resources, SharedResources)
        await run_async(HttpTool(), {"url": f"{server.url}/login", "method": "POST"}, call)
        await run_async(HttpTool(), {"url": f"{server.url}/other"}, call)
        await call.resources.close()

    with serve(answer) as server:
        asyncio.run(both())
        assert [request.headers.get("cookie") for request in server.requests] == [None, "sid=1", None]


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "file:///etc/passwd", "gopher://127.0.0.1:1/"])
def test_a_redirect_leads_to_http_only(tmp_path: Path, target: str) -> None:
    with serve(lambda request: Reply(302, b"", {"Location": target})) as server:
        failure = failed(tmp_path, {"url": server.url})
    assert failure.kind == "unsupported_scheme"


SECRET = "s3cret-of-the-keychain"


def elsewhere(tmp_path: Path, status: int = 302, **params: Any) -> tuple[list[Request], ToolFailure | None]:
    """What another origin gets to see when a server leads there."""
    call = make_call(tmp_path, holds_secret=lambda text: SECRET in text or quote(SECRET) in text)
    failure = None
    with (
        serve(lambda request: Reply(200, "there")) as other,
        serve(lambda request: Reply(status, b"", {"Location": f"{other.url}/"})) as server,
    ):
        try:
            run(HttpTool(), {"url": server.url, **params}, call)
        except ToolFailure as error:
            failure = error
        assert len(server.requests) == 1
        return list(other.requests), failure


@cases(
    "header",
    [
        "X-My-Own",
        "X-Tenant",
        "Api-Key",
        "Authorization",
        "Cookie",
        "X-Plain-Looking",
        "Accept",
        "Referer",
        "User-Agent",
    ],
)
def test_a_secret_in_a_header_of_ones_own_does_not_travel_to_another_origin(tmp_path: Path, header: str) -> None:
    for value in (SECRET, f"key {SECRET};v=1"):
        requests, failure = elsewhere(tmp_path, headers={header: value, "X-Plain": "p"})
        assert failure is None
        (request,) = requests
        assert SECRET not in str(request.headers)
        assert request.headers["x-plain"] == "p"


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_with_a_secret_is_not_sent_on_to_another_origin(tmp_path: Path, status: int) -> None:
    (tmp_path / "plain.txt").write_text("nothing of it")
    files = [{"name": "f", "path": "plain.txt"}]
    for body in (
        {"json": {"key": SECRET}},
        {"form": {"key": SECRET}},
        {"body": f"key={SECRET}"},
        {"form": {"key": [1, f"in a {SECRET} multipart"]}, "files": files},
        {"files": [{**files[0], "filename": f"{SECRET}.txt"}]},
    ):
        requests, failure = elsewhere(tmp_path, status, method="POST", **body)
        assert requests == []
        assert failure is not None
        assert failure.kind == "redirects"
        assert SECRET not in failure.message
    for harmless in ({"json": {"a": 1}}, {"form": {"a": 1}, "files": files}):
        requests, failure = elsewhere(tmp_path, status, method="POST", **harmless)
        assert (len(requests), failure) == (1, None)
