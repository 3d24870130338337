"""A server that is not there: what is said names the address and what to look at, whatever the library's own words are."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.tools.network import connect_words
from tests.engine import play


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.parametrize(
    "tool",
    [
        "{kind: http, url: 'http://127.0.0.1:PORT/x'}",
        "{kind: postgres, url: 'postgres://127.0.0.1:PORT/x', command: SELECT 1}",
        "{kind: mysql, host: 127.0.0.1, port: PORT, user: u, database: x, command: SELECT 1}",
        "{kind: notify, via: smtp, host: 127.0.0.1, port: PORT, security: none, to: a@b.example, from: a@b.example, subject: x, text: y}",
    ],
)
def test_a_closed_port_is_said_to_refuse(tool: str, tmp_path: Path) -> None:
    port = closed_port()
    run = play(f"- step: start\n  tool: {tool.replace('PORT', str(port))}", tmp_path)
    assert f"connection refused by `127.0.0.1:{port}`; is a server listening there?" in run.error["message"]


def test_what_led_to_an_error_is_looked_at_however_deep_it_is() -> None:
    group = ExceptionGroup("several", [OSError("x"), ConnectionRefusedError(111, "Connection refused")])
    outer = RuntimeError("all failed")
    outer.__cause__ = group
    assert connect_words(outer, "h", 1) == "connection refused by `h:1`; is a server listening there?"
    assert connect_words(TimeoutError(), "h", None).startswith("no answer from `h` in time")
    assert (
        connect_words(OSError(113, "No route to host"), "h", 1)
        == "there is no way to `h:1` from here: No route to host"
    )
    assert connect_words(ValueError("odd"), "h", 1) == "odd"
