"""Whoever holds a connection without asking for anything loses it; what trickles in is bounded in time as a whole."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from penstock.app.server_process import ConnectionLimits
from tests.api.service import PATIENCE_S, SLOW, Api, Running, serving

HEADERS_S = 0.4
CONNECTIONS = 8


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home: Path = tmp_path_factory.mktemp("connections")
    with serving(home, connections=ConnectionLimits(HEADERS_S, CONNECTIONS)) as running:
        yield running


def opened(running: Running) -> socket.socket:
    place = urlsplit(running.url)
    return socket.create_connection((place.hostname, place.port), PATIENCE_S)


def answered(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    found = b""
    with connection, contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            found += piece
    return found


def trickled(connection: socket.socket, begin: bytes, piece: bytes) -> bytes:
    """The answer to a request that never ends; each piece comes well within what a single one may take."""
    connection.sendall(begin)
    connection.settimeout(HEADERS_S / 10)
    found = b""
    deadline = time.monotonic() + PATIENCE_S
    with connection:
        while time.monotonic() < deadline:
            try:
                connection.sendall(piece)
                got = connection.recv(65536)
                if not got:
                    return found
                found += got
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                return found
    raise AssertionError("the connection was never closed")


def test_a_connection_on_which_nothing_is_asked_is_closed(running: Running) -> None:
    assert answered(opened(running)).startswith(b"HTTP/1.1 408 ")


def test_headers_that_trickle_in_are_not_waited_for(running: Running) -> None:
    assert trickled(opened(running), b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a").startswith(
        b"HTTP/1.1 408 "
    )


def test_nor_are_those_of_a_second_request(running: Running) -> None:
    connection = opened(running)
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in trickled(connection, b"GET /health HTTP/1.1\r\nX-A: ", b"a")


def test_a_body_that_trickles_in_is_waited_for_only_so_long(running: Running) -> None:
    assert running.service is not None
    backend = running.service.backend
    assert backend is not None
    limits, backend.limits = backend.limits, replace(backend.limits, body_s=HEADERS_S)
    try:
        begin = b"POST /api/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n"
        answer = trickled(opened(running), begin, b" ")
    finally:
        backend.limits = limits
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"did not come within" in answer


def test_an_answer_may_take_longer_than_the_headers_of_its_request(running: Running) -> None:
    api = Api(running.url)
    run = api.submit(SLOW)
    with api.http.stream("GET", f"/api/stream?execution={run}") as stream:
        pieces = stream.iter_bytes()
        seen = next(pieces)
        time.sleep(2 * HEADERS_S)
        api.post(f"/api/executions/{run}/cancel", {"reason": "enough"})
        for piece in pieces:
            seen += piece
            if b"cancelled" in seen:
                break
    assert b"cancelled" in seen
    api.close()


def test_headers_beyond_all_measure_are_refused(running: Running) -> None:
    connection = opened(running)
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 1_000_000)
    assert answered(connection)[:13] in (b"HTTP/1.1 400 ", b"")


def test_connections_beyond_the_limit_are_closed_at_once_and_those_inside_go_on(running: Running) -> None:
    inside = opened(running)
    inside.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert inside.recv(65536).startswith(b"HTTP/1.1 200 ")
    others = [opened(running) for _ in range(3 * CONNECTIONS)]
    answers = [answered(one) for one in others]
    assert b"" in answers
    inside.close()
    api = Api(running.url)
    assert api.get("/health").status_code == 200
    api.close()
