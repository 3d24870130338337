"""Sessions of browsers: a cookie in place of a token, which ends with it, and is of no use to pages of other sites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from penstock.api.sessions import Local
from penstock.ports.control import Scope
from tests.api.service import QUICK, Api, serving
from tests.cases import cases

BODY = {"document": {"text": QUICK}}


OPENED: list[httpx2.Client] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def client(url: str, token: str | None = None) -> Api:
    api = Api(url, token)
    OPENED.append(api.http)
    return api


class Browser:
    """Keeps cookies, and names the origin of the page as browsers do."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx2.Client(base_url=url, headers={"Origin": url, "Sec-Fetch-Site": "same-origin"}, verify=False)
        OPENED.append(self.http)

    def sign_in(self, token: str) -> httpx2.Response:
        return self.http.post("/api/session", json={"token": token})


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a server, and a token of each scope."""
    with serving(tmp_path_factory.mktemp("signed-in")) as running:
        first = client(running.url).post("/api/tokens", {"name": "boss", "scope": "admin"}).json()["secret"]
        boss = client(running.url, first)
        made = {
            scope.value: boss.post("/api/tokens", {"name": scope.value, "scope": scope.value}).json()["secret"]
            for scope in Scope
        }
        yield running.url, made


def signed_in(tokens: tuple[str, dict[str, str]], scope: str = "admin") -> Browser:
    url, made = tokens
    browser = Browser(url)
    assert browser.sign_in(made[scope]).status_code == 200
    return browser


def test_a_session_may_do_what_its_token_may(tokens: tuple[str, dict[str, str]]) -> None:
    for scope, wanted in (("read", 403), ("run", 201), ("admin", 201)):
        browser = signed_in(tokens, scope)
        who = browser.http.get("/api/session").json()
        assert (who["name"], who["scope"], who["is_open"], who["is_local"]) == (scope, scope, False, False)
        assert browser.http.get("/api/executions").status_code == 200
        assert browser.http.post("/api/executions", json=BODY).status_code == wanted


def test_a_session_also_opens_streams(tokens: tuple[str, dict[str, str]]) -> None:
    browser = signed_in(tokens, "read")
    with browser.http.stream("GET", "/api/stream", params={"runs": "true"}) as stream:
        assert stream.status_code == 200
        assert b"retry:" in next(stream.iter_bytes())


def test_the_cookie_cannot_be_read_by_scripts_is_of_this_site_and_does_not_hold_the_token(
    tokens: tuple[str, dict[str, str]],
) -> None:
    url, made = tokens
    cookie = Browser(url).sign_in(made["run"]).headers["set-cookie"]
    name, _, rest = cookie.partition("=")
    assert name == f"penstock_session_{urlsplit(url).port}"
    words = {word.strip().lower() for word in rest.split(";")[1:]}
    assert words == {"httponly", "path=/", "samesite=strict"}
    assert made["run"] not in cookie


def test_behind_a_proxy_with_tls_the_cookie_is_for_tls_only(tokens: tuple[str, dict[str, str]]) -> None:
    url, made = tokens
    headers = {"Host": "penstock.example", "Origin": "https://penstock.example"}
    answer = httpx2.post(f"{url}/api/session", json={"token": made["read"]}, headers=headers)
    assert answer.headers["set-cookie"].startswith("penstock_session=")
    assert "secure" in answer.headers["set-cookie"].lower()


def test_without_a_session_one_is_told_to_sign_in(tokens: tuple[str, dict[str, str]]) -> None:
    browser = Browser(tokens[0])
    assert browser.http.get("/api/session").status_code == 401
    assert browser.sign_in("pk_wrong").status_code == 401
    assert "set-cookie" not in browser.sign_in("grün").headers
    assert browser.http.get("/api/executions").status_code == 401


def test_a_made_up_session_is_nobodys(tokens: tuple[str, dict[str, str]]) -> None:
    browser = signed_in(tokens)
    (name,) = browser.http.cookies.keys()
    value = browser.http.cookies[name]
    for wrong in (value[:-1], value + "0", "ps_" + "0" * 64, tokens[1]["admin"], "local.0"):
        answer = httpx2.get(f"{tokens[0]}/api/executions", headers={"Cookie": f"{name}={wrong}"})
        assert answer.status_code == 401
    # As a bearer token it is none, either.
    assert client(tokens[0], value).get("/api/executions").status_code == 401


def test_signing_out_takes_the_cookie_away(tokens: tuple[str, dict[str, str]]) -> None:
    browser = signed_in(tokens)
    assert browser.http.delete("/api/session").status_code == 204
    assert browser.http.get("/api/session").status_code == 401


def test_a_session_ends_with_its_token(tokens: tuple[str, dict[str, str]]) -> None:
    url, made = tokens
    boss = client(url, made["admin"])
    token = boss.post("/api/tokens", {"name": "short", "scope": "run"}).json()
    browser = Browser(url)
    browser.sign_in(token["secret"])
    assert browser.http.get("/api/executions").status_code == 200
    boss.http.delete(f"/api/tokens/{token['id']}")
    assert browser.http.get("/api/executions").status_code == 401


def test_a_session_is_good_at_the_next_server_of_the_store(tmp_path: Path) -> None:
    with serving(tmp_path) as one:
        secret = client(one.url).post("/api/tokens", {"name": "boss", "scope": "admin"}).json()["secret"]
        browser = Browser(one.url)
        browser.sign_in(secret)
        (value,) = browser.http.cookies.values()
    with serving(tmp_path) as later:
        assert _with(later.url, value).status_code == 200


def _with(url: str, value: str) -> httpx2.Response:
    return httpx2.get(f"{url}/api/executions", headers={"Cookie": f"penstock_session_{urlsplit(url).port}={value}"})


@cases(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
    ],
)
def test_a_page_of_another_site_changes_nothing_although_the_browser_sends_the_cookie(
    tokens: tuple[str, dict[str, str]], headers: dict[str, str]
) -> None:
    browser = signed_in(tokens)
    cookie = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
    before = len(browser.http.get("/api/executions").json()["runs"])
    answer = httpx2.post(f"{tokens[0]}/api/executions", json=BODY, headers={**headers, "Cookie": cookie})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "other_site")
    assert len(browser.http.get("/api/executions").json()["runs"]) == before


@cases("media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_form_changes_nothing(tokens: tuple[str, dict[str, str]], media: str) -> None:
    browser = signed_in(tokens)
    for path in ("/api/executions", "/api/schedules/x/fire"):
        answer = browser.http.post(path, content=b"{}", headers={"Content-Type": media})
        assert answer.status_code == 415


@cases(
    "headers",
    [
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
    ],
)
def test_a_page_of_another_port_reads_nothing_with_the_cookie(
    tokens: tuple[str, dict[str, str]], headers: dict[str, str]
) -> None:
    """Browsers count all ports of a host as one site, and send it the cookie."""
    browser = signed_in(tokens)
    cookie = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
    for path in ("/api/executions", "/api/session", "/api/stream?runs=true"):
        answer = httpx2.get(f"{tokens[0]}{path}", headers={**headers, "Cookie": cookie})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "other_site")


def test_an_address_that_somebody_opens_is_shown(tokens: tuple[str, dict[str, str]]) -> None:
    browser = signed_in(tokens)
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Origin": ""}
    del browser.http.headers["Origin"]
    answer = browser.http.get("/api/executions", headers={name: value for name, value in headers.items() if value})
    assert answer.status_code == 200


def test_who_tries_many_tokens_has_to_wait(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        secret = client(running.url).post("/api/tokens", {"name": "boss", "scope": "admin"}).json()["secret"]
        browser = Browser(running.url)
        found = [browser.sign_in(f"pk_{number}").status_code for number in range(25)]
        assert found == [401] * 20 + [429] * 5
        last = browser.sign_in(secret)
        assert last.status_code == 429
        assert int(last.headers["retry-after"]) > 0
        # Requests with a good token are not affected.
        assert client(running.url, secret).get("/api/executions").status_code == 200


def test_an_open_server_says_so_and_needs_no_session(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        who = Browser(running.url).http.get("/api/session").json()
        assert (who["scope"], who["is_open"], who["root"]) == ("admin", True, None)
        for host in ("evil.example", "127.0.0.1.nip.io"):
            assert httpx2.get(f"{running.url}/api/session", headers={"Host": host}).status_code == 403


# ---- the page of a folder


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Local]]:
    local = Local(tmp_path_factory.mktemp("project"))
    with serving(tmp_path_factory.mktemp("home"), local=local) as running:
        yield running.url, local


def test_the_page_of_a_folder_is_for_who_has_its_token_alone(page: tuple[str, Local]) -> None:
    url, local = page
    browser = Browser(url)
    assert browser.http.get("/api/executions").status_code == 401
    assert browser.http.post("/api/executions", json=BODY).status_code == 401
    who = browser.sign_in(local.secret).json()
    assert (who["scope"], who["is_local"], who["root"]) == ("admin", True, str(local.root))
    assert browser.http.post("/api/executions", json=BODY).status_code == 201
    assert local.secret not in str(dict(browser.http.cookies))


def test_its_token_is_good_under_names_of_this_machine_only(page: tuple[str, Local]) -> None:
    url, local = page
    for host, wanted in (("evil.example", 403), ("10.0.0.1", 403), ("localhost", 200)):
        headers = {"Host": host, "Authorization": f"Bearer {local.secret}"}
        assert httpx2.get(f"{url}/api/executions", headers=headers).status_code == wanted


def test_it_is_not_served_where_others_could_reach_it(tmp_path: Path) -> None:
    with (
        pytest.raises(Exception, match="for this machine alone"),
        serving(tmp_path, local=Local(tmp_path), listen="0.0.0.0:0"),
    ):
        pass
