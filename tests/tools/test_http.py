"""The http tool: outcomes, failures and the retry inside one run, against real servers on loopback."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from penstock.tools.base import ToolFailure
from penstock.tools.http.tool import HttpParams, HttpTool, InnerRetry, accepts
from penstock.tools.registry import example_of
from tests.cases import cases

from .fetching import TicklessClock, failed, fetch, speaks
from .support import Reply, Request, SharedResources, make_call, run_async, serve

# ---- the outcome


@pytest.mark.clause("P5.2")
def test_a_json_answer_gives_data_status_headers_url_and_time(tmp_path: Path) -> None:
    with serve(lambda request: Reply(201, {"id": 7}, {"X-Served-By": "a"})) as server:
        outcome = fetch(tmp_path, {"url": f"{server.url}/orders"}, clock=TicklessClock())
    assert outcome.result["data"] == {"id": 7}
    assert outcome.result["status"] == 201
    assert outcome.result["headers"]["x-served-by"] == "a"
    assert outcome.result["url"] == f"{server.url}/orders"
    assert outcome.result["elapsed_ms"] == 0
    assert set(outcome.result) == {"data", "status", "headers", "url", "elapsed_ms"}
    assert outcome.helpers["http"]["status"] == 201
    assert outcome.helpers["http"]["headers"] == outcome.result["headers"]


@pytest.mark.clause("P5.2")
@cases("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_status_that_may_pass_is_a_retryable_error_with_its_helpers(tmp_path: Path, status: int) -> None:
    with serve(lambda request: Reply(status, {"why": "busy"}, {"Retry-After": "3"})) as server:
        failure = failed(tmp_path, {"url": server.url})
    assert (failure.kind, failure.retryable) == ("http_status", True)
    assert failure.detail == {"status": status, "url": server.url, "data": {"why": "busy"}}
    assert failure.helpers["http"]["status"] == status
    assert failure.helpers["http"]["headers"]["retry-after"] == "3"


@pytest.mark.clause("P5.2")
@cases("status", [400, 401, 403, 404, 409, 410, 422, 501])
def test_a_status_that_stays_is_an_error_that_is_not_retryable(tmp_path: Path, status: int) -> None:
    with serve(lambda request: Reply(status, "no such order")) as server:
        failure = failed(tmp_path, {"url": f"{server.url}/orders/9"})
    assert (failure.kind, failure.retryable) == ("http_status", False)
    assert failure.detail["data"] == "no such order"
    assert failure.message.startswith(f"GET {server.url}/orders/9 answered {status}")


@cases(
    "body, ending",
    [
        ({"error": "who are you?"}, ' Unauthorized: {"error": "who are you?"}'),
        ("who  are you?", " Unauthorized: who  are you?"),
        ("who\nare you?", " Unauthorized"),
        # Cut off, it could end within a secret, which would then be in the log.
        ("x" * 1000, " Unauthorized"),
        ("<html><body>who are you?</body></html>", " Unauthorized"),
        ("", " Unauthorized"),
    ],
)
def test_what_the_body_of_an_error_says_is_in_the_message(tmp_path: Path, body: Any, ending: str) -> None:
    with serve(lambda request: Reply(401, body)) as server:
        failure = failed(tmp_path, {"url": server.url})
    assert failure.message == f"GET {server.url} answered 401{ending}"


def test_the_body_of_an_error_is_kept_up_to_64_kib(tmp_path: Path) -> None:
    with serve(lambda request: Reply(500, "x" * 1_000_000)) as server:
        failure = failed(tmp_path, {"url": server.url})
    assert failure.detail["data"] == "x" * 65_536


def test_an_error_body_that_is_json_only_by_its_label_is_kept_as_text(tmp_path: Path) -> None:
    with serve(lambda request: Reply(502, "<h1>Bad gateway", {"content-type": "application/json"})) as server:
        failure = failed(tmp_path, {"url": server.url})
    assert failure.detail["data"] == "<h1>Bad gateway"


@cases(
    "wanted, status, ok",
    [
        (None, 399, True),
        (None, 400, False),
        (404, 404, True),
        ("404", 404, True),
        ([200, 404], 404, True),
        ("200-299", 204, True),
        ("200-299", 302, False),
        ("4xx", 418, True),
        (["2xx", "400-404"], 405, False),
    ],
)
def test_ok_status_takes_numbers_ranges_and_classes(wanted: Any, status: int, ok: bool) -> None:
    assert accepts(wanted, status) is ok


def test_an_accepted_404_is_an_ok_outcome(tmp_path: Path) -> None:
    with serve(lambda request: Reply(404, {"found": False})) as server:
        outcome = fetch(tmp_path, {"url": server.url, "ok_status": [200, 404]})
    assert (outcome.result["status"], outcome.result["data"]) == (404, {"found": False})


def test_an_ok_status_that_is_no_status_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    with serve(lambda request: Reply()) as server:
        failure = failed(tmp_path, {"url": server.url, "ok_status": "fine"})
        assert server.requests == []
    assert failure.kind == "parameters"
    assert "`fine`" in failure.message


def test_set_cookie_is_not_recorded(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200, {}, {"Set-Cookie": "session=secret"})) as server:
        outcome = fetch(tmp_path, {"url": server.url})
    assert "secret" not in json.dumps([outcome.result, outcome.helpers])


# ---- what can go wrong on the way


@cases("url", ["file:///etc/passwd", "ftp://host/x", "host/path", "", "javascript:alert(1)"])
def test_only_http_urls_are_requested(tmp_path: Path, url: str) -> None:
    assert failed(tmp_path, {"url": url}).kind in ("unsupported_scheme", "parameters")


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://a:99999/", "http://a\nb/"])
def test_a_url_that_is_none_is_a_failure_of_the_parameters(tmp_path: Path, url: str) -> None:
    assert failed(tmp_path, {"url": url}).kind == "parameters"


@pytest.mark.clause("P5.2")
def test_a_closed_port_is_a_connect_failure(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    failure = failed(tmp_path, {"url": f"http://127.0.0.1:{port}/x"})
    assert (failure.kind, failure.retryable) == ("connect", True)
    assert failure.helpers["http"] == {"requests": 1}


@pytest.mark.clause("P5.2")
@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid"])
def test_a_name_nobody_knows_is_a_dns_failure(tmp_path: Path, host: str) -> None:
    failure = failed(tmp_path, {"url": f"http://{host}/"})
    assert failure.kind == "dns"
    assert f"`{host}`" in failure.message


@pytest.mark.clause("P5.2")
def test_a_server_that_says_nothing_is_a_timeout(tmp_path: Path) -> None:
    closing = threading.Event()
    with speaks(lambda connection: (connection.recv(65536), closing.wait(10))[0]) as port:
        failure = failed(tmp_path, {"url": f"http://127.0.0.1:{port}"}, spec={"timeout": {"read": 0.05}})
        closing.set()
    assert (failure.kind, failure.retryable) == ("timeout", True)
    assert failure.detail == {"phase": "read", "seconds": 0.05}
    assert "0.05 s" in failure.message


@pytest.mark.parametrize("form", ["auto", "stream"])
@pytest.mark.parametrize("limit", [0.2, {"total": 0.2}])
def test_a_server_that_drips_for_ever_is_ended_by_the_total(tmp_path: Path, limit: Any, form: str) -> None:
    closing = threading.Event()

    def drip() -> Iterator[bytes]:
        while not closing.wait(0.01):
            yield b"."

    with serve(lambda request: Reply(200, drip())) as server:
        failure = failed(tmp_path, {"url": server.url, "response": form}, spec={"timeout": limit})
        closing.set()
    assert (failure.kind, failure.retryable) == ("timeout", True)
    assert "0.2 s" in failure.message
    assert list((tmp_path / ".blobs").iterdir()) == []


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.clause("P5.2")
@cases(
    "said, words",
    [
        (b"", "closed the connection without an answer"),
        (b"not http at all\r\n\r\n", "the answer is not HTTP"),
        (OK + b"content-length: 10\r\n\r\nshort", "the body broke off before its end"),
        (OK + b"content-length: ten\r\n\r\nshort", "the answer is not HTTP"),
        (OK + b"transfer-encoding: chunked\r\n\r\nZZ\r\nno\r\n", "Invalid character in chunk size"),
        (OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhel", "the body broke off, or is not in the chunks"),
    ],
)
def test_a_server_that_does_not_keep_to_http_is_a_protocol_failure(tmp_path: Path, said: bytes, words: str) -> None:
    with speaks(lambda connection: (connection.recv(65536), connection.sendall(said))[1]) as port:
        failure = failed(tmp_path, {"url": f"http://127.0.0.1:{port}/x?key=s3cret", "auth": KEY})
    assert (failure.kind, failure.retryable) == ("protocol", True)
    assert words in failure.message
    assert "s3cret" not in failure.message


KEY = {"type": "api_key", "query": "key", "value": "s3cret"}


@cases("said", [b"", OK, OK + b"content-length: 100\r\n\r\nhalf"])
def test_a_connection_that_is_reset_is_a_connect_failure(tmp_path: Path, said: bytes) -> None:
    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(said)
        # Closing with this option sends a reset instead of an end.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with speaks(script) as port:
        failure = failed(tmp_path, {"url": f"http://127.0.0.1:{port}/", "auth": KEY})
    assert (failure.kind, failure.retryable) in (("connect", True), ("protocol", True))
    assert "s3cret" not in failure.message


def test_a_server_that_takes_nothing_of_a_large_body_is_a_timeout_of_writing(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(b"x" * 30_000_000)
    closing = threading.Event()
    params = {"method": "POST", "files": [{"name": "f", "path": "large.bin"}]}
    with speaks(lambda connection: (connection.recv(100), closing.wait(10))[0]) as port:
        limits = {"timeout": {"write": 0.1, "read": 30}}
        failure = failed(tmp_path, {"url": f"http://127.0.0.1:{port}", **params}, spec=limits)
        closing.set()
    assert (failure.kind, failure.retryable) == ("timeout", True)
    assert failure.detail == {"phase": "write", "seconds": 0.1}


def test_an_answer_to_half_a_body_is_the_answer(tmp_path: Path) -> None:
    said = b"HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\nconnection: close\r\n\r\nmuch"
    gone = threading.Event()
    with speaks(lambda connection: (connection.recv(100), connection.sendall(said), gone.wait(10))[0]) as port:
        failure = failed(tmp_path, {"url": f"http://127.0.0.1:{port}", "method": "POST", "body": "x" * 10_000_000})
        gone.set()
    assert (failure.kind, failure.detail["status"], failure.detail["data"]) == ("http_status", 413, "much")


@cases("part", ["status", "headers", "body"])
def test_a_server_that_falls_silent_in_the_middle_is_a_timeout_of_reading(tmp_path: Path, part: str) -> None:
    said = {"status": b"HTTP/1.1 2", "headers": OK + b"a: b\r\n", "body": OK + b"content-length: 9\r\n\r\nhalf"}[part]
    closing = threading.Event()
    with speaks(lambda connection: (connection.recv(65536), connection.sendall(said), closing.wait(10))[0]) as port:
        failure = failed(tmp_path, {"url": f"http://127.0.0.1:{port}"}, spec={"timeout": {"read": 0.1}})
        closing.set()
    assert (failure.kind, failure.detail) == ("timeout", {"phase": "read", "seconds": 0.1})


def test_a_header_is_text_in_whatever_charset_it_came(tmp_path: Path) -> None:
    said = (
        OK + "x-a: grün\r\n".encode() + "x-b: grün\r\nx-c: 1\r\nX-C: 2\r\ncontent-length: 0\r\n\r\n".encode("latin-1")
    )
    with speaks(lambda connection: (connection.recv(65536), connection.sendall(said))[1]) as port:
        headers = fetch(tmp_path, {"url": f"http://127.0.0.1:{port}"}).result["headers"]
    assert (headers["x-a"], headers["x-b"], headers["x-c"]) == ("grün", "grün", "1, 2")


def test_a_long_header_is_read(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200, {}, {"X-Policy": "p" * 20_000})) as server:
        assert fetch(tmp_path, {"url": server.url}).result["headers"]["x-policy"] == "p" * 20_000


@cases(
    "spec",
    [
        {"timeout": "soon"},
        {"timeout": {"reed": 1}},
        {"timeout": {"read": -1}},
        {"retry": 3},
        {"retry": {"attempts": 0}},
    ],
)
def test_a_wrong_spec_is_told(tmp_path: Path, spec: dict[str, Any]) -> None:
    failure = failed(tmp_path, {"url": "http://127.0.0.1:1"}, spec=spec)
    assert failure.kind == "parameters"
    assert "`spec." in failure.message


@pytest.mark.parametrize("form", ["auto", "stream"])
def test_a_cancelled_run_lets_go_of_its_connection(tmp_path: Path, form: str) -> None:
    begun, gone = threading.Event(), threading.Event()

    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nsome")
        begun.set()
        if connection.recv(1) == b"":
            gone.set()

    async def cancelled() -> None:
        call = make_call(tmp_path)
        task = asyncio.ensure_future(run_async(HttpTool(), {"url": f"http://127.0.0.1:{port}", "response": form}, call))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The pool is still open: it was the run itself that closed the connection.
        assert await asyncio.to_thread(gone.wait, 10)
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()

    with speaks(script) as port:
        asyncio.run(cancelled())
    assert list((tmp_path / ".blobs").iterdir()) == []


@cases(
    "replies",
    [
        [Reply(200, {})] * 5,
        [
            Reply(200, {}),
            Reply(404, "no"),
            Reply(302, b"seen", {"Location": "/"}),
            Reply(204),
            Reply(200, "x" * 500_000),
        ],
    ],
)
def test_tasks_of_one_run_share_connections(tmp_path: Path, replies: list[Reply]) -> None:
    connections: set[int] = set()
    left = list(replies)

    def answer(request: Request) -> Reply:
        connections.add(threading.get_ident())  # The server has a thread for each.
        return left.pop(0)

    async def several() -> None:
        call = make_call(tmp_path)
        while left:
            await run_async(HttpTool(), {"url": server.url, "ok_status": [200, 204, 404]}, call)
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()

    with serve(answer) as server:
        asyncio.run(several())
        assert len(server.requests) == 5
    assert len(connections) == 1


def test_no_more_connections_are_open_than_requests_run_at_a_time(tmp_path: Path) -> None:
    connections: set[int] = set()
    together = threading.Barrier(5)

    def answer(request: Request) -> Reply:
        connections.add(threading.get_ident())
        together.wait(10)  # All five are here at once, each time.
        return Reply(200, {})

    async def several() -> None:
        call = make_call(tmp_path)
        for _ in range(4):
            await asyncio.gather(*(run_async(HttpTool(), {"url": server.url}, call) for _ in range(5)))
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()

    with serve(answer) as server:
        asyncio.run(several())
        assert len(server.requests) == 20
    assert len(connections) == 5


def test_a_connection_that_the_server_has_closed_is_not_used_again(tmp_path: Path) -> None:
    said = OK + b"content-length: 2\r\n\r\nok"

    async def several() -> list[Any]:
        call = make_call(tmp_path)
        params = {"url": f"http://127.0.0.1:{port}", "method": "POST", "body": "x"}
        done = [(await run_async(HttpTool(), params, call)).result["data"] for _ in range(3)]
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()
        return done

    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(said.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))

    with speaks(script) as port:
        assert asyncio.run(several()) == ["ok"] * 3


# ---- retry inside one run


@pytest.mark.clause("P6.6")
def test_the_inner_retry_sends_again_within_one_run(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        return Reply(200, {"ok": True}) if len(server.requests) == 3 else Reply(503, "busy")

    clock = TicklessClock()
    with serve(answer) as server:
        spec = {"retry": {"attempts": 5, "delay": 2}}
        outcome = fetch(
            tmp_path, {"url": server.url, "method": "POST", "idempotency_key": True}, spec=spec, clock=clock
        )
        keys = [request.headers["idempotency-key"] for request in server.requests]
    assert outcome.result["data"] == {"ok": True}
    assert outcome.helpers["http"]["requests"] == 3
    assert keys == ["key-1"] * 3
    assert clock.slept == [2, 2]
    assert outcome.result["elapsed_ms"] == 4000


@pytest.mark.clause("P6.6")
def test_the_inner_retry_gives_the_last_failure_when_it_is_used_up(tmp_path: Path) -> None:
    with serve(lambda request: Reply(503, "busy")) as server:
        spec = {"retry": {"attempts": 3, "delay": 0}}
        failure = failed(tmp_path, {"url": server.url}, spec=spec, clock=TicklessClock())
        assert len(server.requests) == 3
    assert (failure.kind, failure.helpers["http"]["requests"]) == ("http_status", 3)


@pytest.mark.parametrize(
    ("status", "statuses", "requests"), [(404, None, 1), (404, [404], 2), (503, [404], 1)], ids=str
)
def test_the_inner_retry_is_for_the_statuses_named(
    tmp_path: Path, status: int, statuses: list[int] | None, requests: int
) -> None:
    retry = {"attempts": 2, "delay": 0} | ({"statuses": statuses} if statuses else {})
    with serve(lambda request: Reply(status)) as server:
        failed(tmp_path, {"url": server.url}, spec={"retry": retry}, clock=TicklessClock())
        assert len(server.requests) == requests


def test_without_spec_retry_there_is_one_request(tmp_path: Path) -> None:
    with serve(lambda request: Reply(503)) as server:
        failed(tmp_path, {"url": server.url})
        assert len(server.requests) == 1


@pytest.mark.parametrize(("after", "pause"), [("7", 7), ("1", 2), ("99999", 300), ("Wed, 21 Oct 2015 07:28:00 GMT", 2)])
def test_the_inner_retry_waits_as_long_as_the_server_asks_within_bounds(after: str, pause: float) -> None:
    failure = ToolFailure("http_status", "", helpers={"http": {"headers": {"retry-after": after}}})
    assert InnerRetry(attempts=2, delay=2).pause(failure) == pause


# ---- the reference page


def test_every_parameter_is_described_and_the_example_is_a_valid_task() -> None:
    schema = msgspec.json.schema(HttpParams)
    described = schema["$defs"]["HttpParams"]["properties"]
    assert all(each.get("description") for each in described.values())
    (task,) = yaml.safe_load(example_of(HttpTool))
    assert task["kind"] == HttpTool.kind
    params = {name: value for name, value in task.items() if name not in ("name", "kind", "spec")}
    assert msgspec.convert(params, HttpParams).auth == "orders_api"
