"""Where the http tool may connect to when the private network is closed, and whom it trusts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from penstock.tools.addresses import PUBLIC_ONLY
from penstock.tools.base import Settings, Success, ToolFailure
from penstock.tools.http.tool import HttpTool
from penstock.tools.network import addresses_of, require_allowed
from tests.cases import cases

from .certificates import issue
from .fetching import failed, fetch
from .support import Reply, Request, make_call, run, serve

CLOSED = Settings(PUBLIC_ONLY)
PUBLIC = "93.184.215.14"


class Names:
    """A resolver that gives each name its answers in turn, the last one for ever; and counts the questions."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(lists) for name, lists in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class LoopbackInternet(httpcore2.AnyIOBackend):
    """Public addresses that lead to this machine: what was dialled is noted, the bytes go to loopback."""

    def __init__(self, *, dead: str = "") -> None:
        self.dialled: list[str] = []
        self._dead = dead

    async def connect_tcp(self, host: str, *arguments: Any, **named: Any) -> httpcore2.AsyncNetworkStream:
        self.dialled.append(host)
        if host == self._dead:
            raise httpcore2.ConnectError("no route")
        return await super().connect_tcp("127.0.0.1", *arguments, **named)


def reach(tmp_path: Path, tool: HttpTool, **params: Any) -> Success:
    result = run(tool, params, make_call(tmp_path, settings=CLOSED))
    assert isinstance(result, Success)
    return result


# ---- which addresses


@cases(
    "address, word",
    [
        ("127.0.0.1", "loopback"),
        ("127.8.8.8", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("fd00:ec2::254", "private"),
        ("fc00::1", "private"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("100.64.0.1", "not a public"),
        ("192.0.0.192", "metadata"),
        ("192.0.0.8", "p"),
        ("192.88.99.1", "not a public"),
        ("198.18.0.1", "private"),
        ("240.0.0.1", "private"),
        ("255.255.255.255", "private"),
        ("168.63.129.16", "metadata"),
        ("fec0::1", "not a public"),
        ("2001:db8::1", "private"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:169.254.169.254", "link-local"),
        ("::ffff:a00:1", "private"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("64:ff9b:1::1", "p"),
        ("2002:7f00:1::", "loopback"),
        ("2002:c0a8:101::1", "private"),
        ("2001:0:7f00:1::", "private"),
        ("::7f00:1", "not a public"),
    ],
)
def test_an_address_that_is_not_public_is_refused_with_a_word_for_it(address: str, word: str) -> None:
    assert word in str(PUBLIC_ONLY.refusal(address))


@cases(
    "address",
    [PUBLIC, "8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::1"],
)
def test_a_public_address_is_not_refused(address: str) -> None:
    assert PUBLIC_ONLY.refusal(address) is None


def test_one_address_out_of_bounds_refuses_the_name() -> None:
    with pytest.raises(ToolFailure) as caught:
        require_allowed("mixed.example", [PUBLIC, "10.0.0.1"], PUBLIC_ONLY)
    assert caught.value.kind == "address_refused"
    assert caught.value.detail == {"host": "mixed.example", "address": "10.0.0.1"}


def test_a_name_without_addresses_is_a_dns_failure() -> None:
    with pytest.raises(ToolFailure) as caught:
        asyncio.run(addresses_of("empty.example", 443, Names(empty_example=[[]]), 5))
    assert caught.value.kind == "dns"


def test_a_name_server_that_says_nothing_does_not_hold_the_task(tmp_path: Path) -> None:
    async def silent(host: str, port: int) -> Sequence[str]:
        return await asyncio.get_running_loop().create_future()

    call = make_call(tmp_path, settings=CLOSED, spec={"timeout": {"connect": 0.05}})
    with pytest.raises(ToolFailure) as caught:
        run(HttpTool(silent), {"url": "http://shop.example/"}, call)
    assert (caught.value.kind, caught.value.retryable) == ("dns", True)


# ---- through the tool


@cases(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "127.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "LOCALHOST",
        "example.com@127.0.0.1",
        "8.8.8.8:80@127.0.0.1",
        "example.com%2f@127.0.0.1",
        "169.254.169.254",
    ],
)
def test_no_spelling_of_a_private_address_is_reached(tmp_path: Path, host: str) -> None:
    with serve(lambda request: Reply(200, "secret")) as server:
        failure = failed(tmp_path, {"url": f"http://{host}:{server.port}/"}, settings=CLOSED)
        assert server.requests == []
    assert (failure.kind, failure.retryable) == ("address_refused", False)


@cases(
    "url",
    [
        "http://127.0.0.1\\@example.com:{port}/",
        "http://127.0.0.1:{port}#@example.com/",
        "http://0177.0.0.1:{port}/",
        "http://①②⑦.0.0.1:{port}/",
        "http://127.0.0.1.:{port}/",
    ],
)
def test_a_url_that_two_parsers_read_differently_reaches_nothing_private(tmp_path: Path, url: str) -> None:
    with serve(lambda request: Reply(200, "secret")) as server:
        failure = failed(tmp_path, {"url": url.format(port=server.port)}, settings=CLOSED)
        assert server.requests == []
    assert failure.kind in ("address_refused", "parameters", "dns")


def test_the_private_network_is_open_unless_the_operator_closes_it(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200, "hello")) as server:
        assert fetch(tmp_path, {"url": server.url}).result["data"] == "hello"


def test_a_name_is_resolved_once_and_the_connection_goes_to_the_address_that_was_judged(tmp_path: Path) -> None:
    names, internet = Names(shop_example=[[PUBLIC], ["127.0.0.1"]]), LoopbackInternet()
    with serve(lambda request: Reply(200, "hello")) as server:
        outcome = reach(tmp_path, HttpTool(names, internet), url=f"http://shop.example:{server.port}/")
        assert server.requests[0].headers["host"] == f"shop.example:{server.port}"
    assert outcome.result["data"] == "hello"
    assert (names.asked, internet.dialled) == (["shop.example"], [PUBLIC])


def test_a_name_that_turns_private_later_is_refused_at_the_next_connection(tmp_path: Path) -> None:
    names = Names(shop_example=[[PUBLIC], ["127.0.0.1"]])
    tool = HttpTool(names, LoopbackInternet())
    with serve(lambda request: Reply(200, "hello", {"Connection": "close"})) as server:
        url = f"http://shop.example:{server.port}/"
        reach(tmp_path, tool, url=url)
        with pytest.raises(ToolFailure) as caught:
            reach(tmp_path, tool, url=url)
        assert len(server.requests) == 1
    assert caught.value.kind == "address_refused"


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:{port}/in", "http://inner.example:{port}/in", "//localhost:{port}/in"]
)
def test_a_redirect_to_a_private_address_is_refused(tmp_path: Path, target: str) -> None:
    def answer(request: Request) -> Reply:
        return Reply(302, b"", {"Location": target.format(port=server.port)})

    names = Names(shop_example=[[PUBLIC]], inner_example=[["10.0.0.7"]], localhost=[["::1"]])
    names._answers["127.0.0.1"] = [["127.0.0.1"]]
    with serve(answer) as server:
        with pytest.raises(ToolFailure) as caught:
            reach(tmp_path, HttpTool(names, LoopbackInternet()), url=f"http://shop.example:{server.port}/")
        assert [request.path for request in server.requests] == ["/"]
    assert caught.value.kind == "address_refused"


def test_the_next_address_is_tried_when_one_does_not_answer(tmp_path: Path) -> None:
    names, internet = Names(shop_example=[["8.8.8.8", PUBLIC]]), LoopbackInternet(dead="8.8.8.8")
    with serve(lambda request: Reply(200, "hello")) as server:
        reach(tmp_path, HttpTool(names, internet), url=f"http://shop.example:{server.port}/")
    assert internet.dialled == ["8.8.8.8", PUBLIC]


def test_a_closed_port_behind_the_guard_is_a_connect_failure(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ToolFailure) as caught:
        reach(tmp_path, HttpTool(Names(a_example=[[PUBLIC]]), LoopbackInternet()), url=f"http://a.example:{port}/")
    assert (caught.value.kind, caught.value.retryable) == ("connect", True)


def test_a_proxy_from_the_environment_is_no_way_round_the_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(lambda request: Reply(200, "through the proxy")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        failure = failed(tmp_path, {"url": "http://10.0.0.1/"}, settings=CLOSED)
        assert proxy.requests == []
        assert fetch(tmp_path, {"url": "http://10.0.0.1/"}).result["data"] == "through the proxy"
    assert failure.kind == "address_refused"


# ---- TLS


@pytest.mark.parametrize("settings", [Settings(), CLOSED], ids=["open", "closed"])
def test_tls_is_verified_for_the_name_and_not_the_address(tmp_path: Path, settings: Settings) -> None:
    trusted, context = issue(tmp_path, "shop.example", "localhost")
    host = "localhost" if settings.addresses.is_open else "shop.example"
    tool = HttpTool(Names(shop_example=[[PUBLIC]]), LoopbackInternet())
    with serve(lambda request: Reply(200, "safe"), tls=context) as server:
        params = {"url": f"https://{host}:{server.port}/", "verify": trusted.name}
        outcome = run(tool, params, make_call(tmp_path, settings=settings))
    assert outcome.result["data"] == "safe"


@pytest.mark.clause("P5.2")
@pytest.mark.parametrize(
    ("hosts", "trust"),
    [(["127.0.0.1"], True), (["other.example"], "trusted.pem")],
    ids=["unknown issuer", "other name"],
)
def test_a_certificate_that_cannot_be_verified_is_a_tls_failure(tmp_path: Path, hosts: list[str], trust: Any) -> None:
    _, context = issue(tmp_path, *hosts)
    with serve(lambda request: Reply(), tls=context) as server:
        failure = failed(tmp_path, {"url": server.url, "verify": trust})
        assert server.requests == []
    assert (failure.kind, failure.retryable) == ("tls", False)


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    _, context = issue(tmp_path, "other.example")
    with serve(lambda request: Reply(200, "ok"), tls=context) as server:
        assert fetch(tmp_path, {"url": server.url, "verify": False}).result["data"] == "ok"


def test_a_server_without_tls_is_a_tls_failure(tmp_path: Path) -> None:
    with serve(lambda request: Reply()) as server:
        assert failed(tmp_path, {"url": f"https://127.0.0.1:{server.port}/"}).kind == "tls"


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_a_file_of_certificates_that_is_none_is_told_by_its_path(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    failure = failed(tmp_path, {"url": "https://127.0.0.1:1/", "verify": "ca.pem"})
    assert failure.kind == "tls"
    assert str(tmp_path / "ca.pem") in failure.message
