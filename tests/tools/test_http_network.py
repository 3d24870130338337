"""Where the http tool may connect to when the private network is closed, and whom it trusts."""

from __future__ import annotations

import asyncio
import base64
import errno
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.addresses import PUBLIC_ONLY, Addresses
from penstock.tools.base import Settings, Success, ToolFailure
from penstock.tools.http.tool import HttpTool
from penstock.tools.network import addresses_of, require_allowed
from tests.cases import cases

from .certificates import issue
from .fetching import failed, fetch, speaks
from .support import Reply, Request, SharedResources, make_call, run, run_async, serve

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


class LoopbackInternet:
    """Public addresses that lead to this machine: what was dialled is noted, the bytes go to loopback."""

    def __init__(self, *, dead: str = "") -> None:
        self.dialled: list[str] = []
        self._dead = dead

    def __call__(self, family: int, kind: int, protocol: int) -> socket.socket:
        internet = self

        class Socket(socket.socket):
            def connect(self, address: Any) -> None:
                internet.dialled.append(address[0])
                if address[0] == internet._dead:
                    raise OSError(errno.EHOSTUNREACH, "no route")
                super().connect(("127.0.0.1", address[1]))

        return Socket(family, kind, protocol)


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


# ---- proxies, which the environment names


@dataclass
class Proxy:
    port: int
    asked: list[tuple[str, str]] = field(default_factory=list)
    """First line and `proxy-authorization` of each request."""


@contextmanager
def proxy(refusal: bytes = b"") -> Iterator[Proxy]:
    """A proxy for http (whole URLs) and https (CONNECT)."""

    def script(connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        line, *fields = head.decode().split("\r\n")
        given = next((each.partition(": ")[2] for each in fields if each.lower().startswith("proxy-auth")), "")
        known.asked.append((line, given))
        if refusal:
            connection.sendall(refusal)
            return
        method, target, _ = line.split()
        place = target if method == "CONNECT" else target.split("/")[2]
        with socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2]))) as onwards:
            if method == "CONNECT":
                connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                onwards.sendall(head)
            back = threading.Thread(target=relay, args=(onwards, connection))
            back.start()
            relay(connection, onwards)
            back.join()

    def relay(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    with speaks(script) as port:
        known = Proxy(port)
        yield known


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.mark.parametrize("variable", ["scheme", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_is_told_who_asks_and_the_server_is_not(
    tmp_path: Path, no_proxies: pytest.MonkeyPatch, scheme: str, variable: str
) -> None:
    trusted, context = issue(tmp_path, "localhost")
    with (
        proxy() as between,
        serve(lambda request: Reply(200, "ok"), tls=context if scheme == "https" else None) as server,
    ):
        name = f"{scheme.upper()}_PROXY" if variable == "scheme" else variable
        no_proxies.setenv(name, f"http://ann:p%40ss@127.0.0.1:{between.port}")
        url = f"{scheme}://localhost:{server.port}/x"
        assert fetch(tmp_path, {"url": url, "verify": trusted.name}).result["data"] == "ok"
        (request,) = server.requests
        if scheme == "https":
            assert "proxy-authorization" not in request.headers
    first = f"CONNECT localhost:{server.port} HTTP/1.1" if scheme == "https" else f"GET {url} HTTP/1.1"
    assert between.asked == [(first, "Basic " + base64.b64encode(b"ann:p@ss").decode())]


def test_hosts_that_no_proxy_names_are_asked_directly(tmp_path: Path, no_proxies: pytest.MonkeyPatch) -> None:
    with proxy() as between, serve(lambda request: Reply(200, "ok")) as server:
        no_proxies.setenv("HTTP_PROXY", f"127.0.0.1:{between.port}")
        no_proxies.setenv("NO_PROXY", "127.0.0.1")
        fetch(tmp_path, {"url": server.url})
        assert between.asked == []
        fetch(tmp_path, {"url": f"http://localhost:{server.port}/"})
        assert len(between.asked) == 1


def test_a_proxy_that_refuses_is_a_connect_failure_and_keeps_the_password(
    tmp_path: Path, no_proxies: pytest.MonkeyPatch
) -> None:
    with proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n") as between:
        no_proxies.setenv("HTTPS_PROXY", f"http://ann:s3cret@127.0.0.1:{between.port}")
        failure = failed(tmp_path, {"url": "https://localhost:1/"})
    assert (failure.kind, failure.retryable) == ("connect", True)
    assert "the proxy answered 407 Proxy Authentication Required" in failure.message
    assert "s3cret" not in failure.message


def test_a_proxy_that_is_not_there_is_told_by_its_own_address(tmp_path: Path, no_proxies: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    no_proxies.setenv("HTTP_PROXY", f"http://ann:s3cret@127.0.0.1:{port}")
    failure = failed(tmp_path, {"url": "http://shop.example/"})
    assert (failure.kind, failure.retryable) == ("connect", True)
    assert f"connection refused by `127.0.0.1:{port}`" in failure.message
    assert "s3cret" not in failure.message


def test_a_proxy_of_a_kind_that_cannot_be_used_is_told(tmp_path: Path, no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("ALL_PROXY", "socks5://ann:s3cret@127.0.0.1:1080")
    failure = failed(tmp_path, {"url": "http://shop.example/"})
    assert failure.kind == "parameters"
    assert "`socks5://`" in failure.message
    assert "s3cret" not in failure.message


# ---- many servers, and addresses of the other family


def test_many_origins_are_asked_side_by_side(tmp_path: Path) -> None:
    async def all_of_them() -> list[Any]:
        call = make_call(tmp_path)
        urls = [f"http://127.0.0.{number}:{server.port}/{number}" for number in range(1, 41)]
        done = await asyncio.gather(*(run_async(HttpTool(), {"url": url}, call) for url in urls))
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()
        return [one.result["data"] for one in done]

    with serve(lambda request: Reply(200, request.path), host="0.0.0.0") as server:
        assert asyncio.run(all_of_them()) == [f"/{number}" for number in range(1, 41)]


def test_an_address_of_ipv6_is_asked(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200, request.headers["host"]), host="::1") as server:
        outcome = fetch(tmp_path, {"url": f"http://[::1]:{server.port}/x"})
        assert outcome.result["data"] == f"[::1]:{server.port}"
        # A name that has both, of which one answers.
        tool = HttpTool(Names(both_example=[["127.0.0.1", "::1"]]))
        result = run(tool, {"url": f"http://both.example:{server.port}/"}, make_call(tmp_path))
        assert result.result["data"] == f"both.example:{server.port}"


def test_a_host_that_was_opened_by_its_name_is_trusted_and_its_address_is_not(tmp_path: Path) -> None:
    allowed = Settings(Addresses.parsed(["inner.example"]))
    tool = HttpTool(Names(inner_example=[["127.0.0.1"]]))

    async def both() -> tuple[Any, ToolFailure]:
        call = make_call(tmp_path, settings=allowed)
        got = await run_async(tool, {"url": f"http://inner.example:{server.port}/"}, call)
        with pytest.raises(ToolFailure) as caught:
            await run_async(tool, {"url": f"http://127.0.0.1:{server.port}/"}, call)
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()
        return got.result["data"], caught.value

    with serve(lambda request: Reply(200, "hello")) as server:
        data, failure = asyncio.run(both())
        assert len(server.requests) == 1
    assert (data, failure.kind) == ("hello", "address_refused")


# ---- TLS


def test_a_redirect_from_https_to_http_leaves_credentials_behind(tmp_path: Path) -> None:
    trusted, context = issue(tmp_path, "127.0.0.1")
    with (
        serve(lambda request: Reply(200, "in the open")) as plain,
        serve(lambda request: Reply(302, b"", {"Location": f"{plain.url}/"}), tls=context) as safe,
    ):
        auth = {"type": "bearer", "token": "t"}
        fetch(tmp_path, {"url": safe.url, "verify": trusted.name, "auth": auth})
        assert safe.requests[0].headers["authorization"] == "Bearer t"
        assert "authorization" not in plain.requests[0].headers


def test_connections_over_tls_are_shared_too(tmp_path: Path) -> None:
    trusted, context = issue(tmp_path, "127.0.0.1")
    connections: set[int] = set()

    def answer(request: Request) -> Reply:
        connections.add(threading.get_ident())
        return Reply(200, {})

    async def several() -> None:
        call = make_call(tmp_path)
        for _ in range(4):
            await run_async(HttpTool(), {"url": server.url, "verify": trusted.name}, call)
        assert isinstance(call.resources, SharedResources)
        await call.resources.close()

    with serve(answer, tls=context) as server:
        asyncio.run(several())
    assert len(connections) == 1


@pytest.mark.parametrize("settings", [Settings(), CLOSED], ids=["open", "closed"])
def test_tls_is_verified_for_the_name_and_not_the_address(tmp_path: Path, settings: Settings) -> None:
    trusted, context = issue(tmp_path, "shop.example", "localhost")
    host = "localhost" if settings.addresses.is_open else "shop.example"
    tool = HttpTool(Names(shop_example=[[PUBLIC]], localhost=[[PUBLIC]]), LoopbackInternet())
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
