"""Large answers in JSON come compressed to those who take that; nothing else does, and streams least of all."""

from __future__ import annotations

import asyncio
import gzip
import json

import httpx2
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message

from penstock.api.compression import Compressed
from tests.api.service import QUICK, Api
from tests.cases import cases

LARGE = "/api/reference"


def raw(api: Api, path: str, accepted: str = "gzip") -> tuple[httpx2.Headers, bytes]:
    """The bytes as they come over the wire."""
    with api.http.stream("GET", path, headers={"Accept-Encoding": accepted}) as response:
        assert response.status_code == 200
        return response.headers, b"".join(response.iter_raw())


def test_a_large_answer_is_compressed_and_says_so(api: Api) -> None:
    plain_headers, plain = raw(api, LARGE, "identity")
    headers, packed = raw(api, LARGE)
    assert "content-encoding" not in plain_headers
    assert (headers["content-encoding"], headers["vary"]) == ("gzip", "accept-encoding")
    assert int(headers["content-length"]) == len(packed) < len(plain) / 4
    assert gzip.decompress(packed) == plain


@cases("accepted", ["identity", "br, deflate", "gzip;q=0", ""])
def test_who_does_not_take_it_does_not_get_it(api: Api, accepted: str) -> None:
    headers, body = raw(api, LARGE, accepted)
    assert "content-encoding" not in headers
    assert json.loads(body)


def test_a_small_answer_is_left_as_it_is(api: Api) -> None:
    headers, body = raw(api, "/api/session")
    assert "content-encoding" not in headers
    assert len(body) < 1000


def test_a_stream_is_never_compressed_and_its_first_message_comes_while_it_is_open(api: Api) -> None:
    run = api.done(QUICK)
    with api.http.stream(
        "GET", "/api/stream", params={"run": run, "runs": "1"}, headers={"Accept-Encoding": "gzip"}
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in response.headers
        assert next(response.iter_raw()).decode()  # plain text, at once: the stream itself goes on for ever
    headers, lines = raw(api, f"/api/executions/{run}/events")
    assert "content-encoding" not in headers
    assert json.loads(lines.splitlines()[0])


@cases("cookie, encoding", [(False, "gzip"), (True, None)])
def test_an_answer_that_sets_a_cookie_is_left_as_it_is(cookie: bool, encoding: str | None) -> None:
    response = Response(b'"x"' * 1000, media_type="application/json")
    if cookie:
        response.set_cookie("session", "secret")
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    asked = {"type": "http", "method": "POST", "headers": [(b"accept-encoding", b"gzip")]}
    asyncio.run(Compressed(response)(asked, receive, send))
    assert Headers(raw=sent[0]["headers"]).get("content-encoding") == encoding
    body = sent[1]["body"]
    assert (gzip.decompress(body) if encoding else body) == response.body
