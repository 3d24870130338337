"""The host that a request names, over raw sockets: what a browser is made to send by a page of another site gets nothing."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from penstock.api.hosts import Host
from tests.api.service import QUICK, Api, Running, serving
from tests.cases import cases

BODY = json.dumps({"document": {"text": QUICK}})


def raw(running: Running, *lines: str, method: str = "POST", version: str = "1.1") -> int:
    """The status of the answer to a request made of these header lines."""
    place = urlsplit(running.url)
    body = BODY if method == "POST" else ""
    head = [f"{method} /api/executions HTTP/{version}", *lines, "Content-Type: application/json", "Connection: close"]
    request = "\r\n".join([*head, f"Content-Length: {len(body)}", "", body])
    with socket.create_connection((place.hostname, place.port), 30) as connection:
        connection.sendall(request.encode("latin-1"))
        answer = b""
        while data := connection.recv(65536):
            answer += data
    return int(answer.split(b" ", 2)[1])


@pytest.fixture(scope="module", params=[False, True], ids=["open", "no-auth"])
def local(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(
        tmp_path_factory.mktemp("local"), no_auth=request.param, hosts=frozenset({"penstock.test"})
    ) as running:
        yield running


@cases(
    "host",
    [
        "evil.example",
        "evil.example:8470",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1.nip.io",
        "rebind.localhost",
        "10.0.0.1",
        "[fe80::1]",
    ],
)
def test_a_name_that_is_not_this_servers_is_refused(local: Running, host: str) -> None:
    assert [raw(local, f"Host: {host}", method=method) for method in ("POST", "GET")] == [403, 403]


@cases(
    "host",
    [
        "",
        " ",
        "[::1].evil.com",
        "[::1]evil.com",
        "[::1]:80:90",
        "[::1",
        "[localhost]",
        "localhost:80@evil.com",
        "evil.com#localhost",
        "localhost,evil.com",
        "localhost/evil",
        "localhost:x",
        "localhost:99999",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "127.0.0.1.5",
        "localhost\tevil.com",
        "-localhost",
        "local..host",
    ],
)
def test_what_is_not_one_host_is_refused(local: Running, host: str) -> None:
    assert raw(local, f"Host: {host}") == 400


def test_two_hosts_and_none_are_refused(local: Running) -> None:
    assert raw(local, "Host: localhost", "Host: evil.example") == 400
    assert raw(local) == 400
    assert raw(local, version="1.0") == 403


@cases("host", ["localhost", "LOCALHOST:8470", "localhost.", "127.0.0.1:80", "127.3.2.1", "[::1]:8470"])
def test_its_own_names_are_answered_and_those_that_the_operator_gave_it(local: Running, host: str) -> None:
    assert raw(local, f"Host: {host}") == 201
    assert raw(local, "Host: penstock.test:8470") == 201
    assert raw(local, f"Host: {socket.gethostname()}") == 201


@cases(
    "lines",
    [
        ["Origin: https://evil.example"],
        ["Origin: null"],
        ["Origin: "],
        ["Origin: http://localhost:1"],
        ["Origin: http://localhost", "Origin: https://evil.example"],
        ["Origin: http://evil@localhost"],
        ["Sec-Fetch-Site: cross-site"],
        ["Sec-Fetch-Site: same-site"],
        ["Sec-Fetch-Site: cross-site", "Origin: http://localhost"],
        ["Sec-Fetch-Site: something-new"],
    ],
)
def test_a_page_of_another_site_changes_nothing(local: Running, lines: list[str]) -> None:
    assert raw(local, "Host: localhost", *lines) == 403


def test_a_page_of_another_site_reads_nothing_and_an_address_can_be_opened(local: Running) -> None:
    assert raw(local, "Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", method="GET") == 403
    assert raw(local, "Host: localhost", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", method="GET") == 200
    assert raw(local, "Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", method="GET") == 200
    assert raw(local, "Host: localhost", "Sec-Fetch-Site: same-origin", "Origin: http://localhost") == 201


def test_with_a_token_any_host_will_do_as_a_page_has_none(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        api = Api(running.url)
        secret = api.post("/api/tokens", {"name": "boss", "scope": "admin"}).json()["secret"]
        api.close()
        token = f"Authorization: Bearer {secret}"
        assert raw(running, "Host: penstock.company.example", token) == 201
        assert raw(running, "Host: [::1].evil.com", token) == 400
        assert raw(running, "Host: penstock.company.example", token, "Origin: https://evil.example") == 403
        assert raw(running, "Host: localhost") == 401


def test_a_server_that_others_reach_without_tokens_goes_by_addresses_and_by_names_it_was_given(tmp_path: Path) -> None:
    with serving(tmp_path, listen="0.0.0.0:0", no_auth=True, hosts=frozenset({"fleet.internal"})) as running:
        assert raw(running, "Host: 10.1.2.3:8470") == 201
        assert raw(running, "Host: fleet.internal") == 201
        assert raw(running, "Host: evil.example") == 403


def test_hosts_are_read_as_everybody_reads_them() -> None:
    assert Host.read("Example.COM.:80") == Host("example.com", None)
    assert Host.read("[::FFFF:1.2.3.4]") == Host("::ffff:1.2.3.4", ipaddress.IPv6Address("::ffff:1.2.3.4"))
