"""Who may do what: every route for every kind of token, and what a server without tokens lets through."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from penstock.kernel.errors import Refused
from penstock.ports.control import Scope
from tests.api.routes import BY_SIGNATURE, OPEN, SIGN_IN, Route, all_routes
from tests.api.service import QUICK, Api, asking, serving
from tests.cases import cases

ROUTES = all_routes()
ORDER = [None, Scope.READ, Scope.RUN, Scope.ADMIN]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Scope | None, Api]]:
    """A client without a token, and one for each scope."""
    with serving(tmp_path_factory.mktemp("guarded")) as running:
        first = Api(running.url)
        made = {"admin": first.post("/api/tokens", {"name": "admin", "scope": "admin"}).json()["secret"]}
        boss = Api(running.url, made["admin"])
        for scope in ("read", "run"):
            made[scope] = boss.post("/api/tokens", {"name": scope, "scope": scope}).json()["secret"]
        boss.close()
        clients: dict[Scope | None, Api] = {scope: Api(running.url, made[scope.value]) for scope in Scope}
        yield {None: first, **clients}
        for client in (first, *clients.values()):
            client.close()


def asked(api: Api, route: Route) -> httpx2.Response:
    if route.body is None:
        return api.http.request(route.method, route.path)
    return api.http.request(route.method, route.path, json=route.body)


def test_every_route_but_the_open_ones_says_what_it_needs() -> None:
    assert {route.template for route in ROUTES if route.needs is None} == OPEN | BY_SIGNATURE | SIGN_IN


def test_what_changes_something_needs_more_than_reading() -> None:
    looking = {"/api/validate", "/api/plan", "/api/graph", "/api/examine", "/api/lineage", "/api/times"}
    weak = [route for route in ROUTES if route.method != "GET" and route.needs is Scope.READ]
    assert {route.template for route in weak} == looking


@cases("route, scope", [(route, scope) for route in ROUTES for scope in ORDER])
def test_a_route_lets_through_who_may_and_nobody_else(
    guarded: dict[Scope | None, Api], route: Route, scope: Scope | None
) -> None:
    answer = asked(guarded[scope], route)
    if route.template in OPEN:
        assert answer.status_code == 200
    elif route.template in BY_SIGNATURE:
        assert answer.status_code == 404
    elif route.template in SIGN_IN:
        wanted = {"GET": 401 if scope is None else 200, "POST": 401, "DELETE": 204}
        assert answer.status_code == wanted[route.method]
    elif ORDER.index(scope) >= ORDER.index(route.needs):
        assert answer.status_code not in (401, 403)
        assert answer.status_code < 500
    elif scope is None:
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    else:
        assert answer.status_code == 403


@cases("secret", ["x", "pk_" + "A" * 43, "grün", "a" * 10_000])
def test_a_token_that_is_not_known_is_refused(guarded: dict[Scope | None, Api], secret: str) -> None:
    headers = [(b"authorization", b"Bearer " + secret.encode())]
    answer = httpx2.get(f"{guarded[None].url}/api/executions", headers=headers)
    assert answer.status_code == 401


def test_other_ways_to_say_who_one_is_are_refused(guarded: dict[Scope | None, Api]) -> None:
    for value in ("Basic YTpi", "pk_x", "Bearer"):
        answer = httpx2.get(f"{guarded[None].url}/api/executions", headers={"Authorization": value})
        assert answer.status_code == 401


def test_a_token_is_useless_once_it_is_revoked(guarded: dict[Scope | None, Api]) -> None:
    made = guarded[Scope.ADMIN].post("/api/tokens", {"name": "short", "scope": "read"}).json()
    one = Api(guarded[None].url, made["secret"])
    assert one.get("/api/executions").status_code == 200
    assert guarded[Scope.ADMIN].http.delete(f"/api/tokens/{made['id']}").status_code == 204
    assert one.get("/api/executions").status_code == 401
    one.close()


def test_secrets_of_tokens_are_shown_once(guarded: dict[Scope | None, Api]) -> None:
    made = guarded[Scope.ADMIN].post("/api/tokens", {"name": "seen", "scope": "read", "expires_in_s": 60}).json()
    listed = guarded[Scope.ADMIN].get("/api/tokens")
    assert made["secret"] not in listed.text
    (one,) = [token for token in listed.json()["tokens"] if token["name"] == "seen"]
    assert {name: made[name] for name in one} == one
    assert one["expires_at"] > one["created_at"]


def test_what_was_submitted_with_a_token_is_filed_under_its_name(guarded: dict[Scope | None, Api]) -> None:
    answer = guarded[Scope.RUN].http.put("/api/documents/mine", json={"text": QUICK})
    assert (answer.status_code, answer.json()["created_by"]) == (201, "run")


# ---- without tokens


def test_a_server_that_others_can_reach_does_not_start_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no token"), serving(tmp_path, listen="0.0.0.0:0"):
        pass


def test_unless_somebody_writes_down_that_it_shall(tmp_path: Path) -> None:
    with serving(tmp_path, listen="0.0.0.0:0", no_auth=True) as running:
        assert httpx2.get(f"{running.url}/api/executions", headers={"Host": "10.1.2.3:80"}).status_code == 200


def test_a_server_with_a_token_may_be_reached_by_others(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        secret = api.post("/api/tokens", {"name": "a", "scope": "admin"}).json()["secret"]
    with serving(tmp_path, listen="0.0.0.0:0") as running:
        assert httpx2.get(f"{running.url}/api/executions").status_code == 401
        headers = {"Authorization": f"Bearer {secret}"}
        assert httpx2.get(f"{running.url}/api/executions", headers=headers).status_code == 200


def test_a_name_that_somebody_pointed_at_this_machine_opens_nothing(api: Api) -> None:
    answer = api.http.get("/api/executions", headers={"Host": "evil.example:80"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "other_name")
    for host in ("localhost", "127.0.0.1:8470", "[::1]:8470"):
        assert api.http.get("/api/executions", headers={"Host": host}).status_code == 200


ORIGINS = ["https://evil.example", "null", "http://localhost:1"]
CHANGING = [route for route in ROUTES if route.method != "GET"]


@cases("route, origin", [(route, ORIGINS[at % 3]) for at, route in enumerate(CHANGING)])
def test_a_page_of_another_site_may_ask_for_nothing(api: Api, route: Route, origin: str) -> None:
    answer = api.http.request(route.method, route.path, json=route.body, headers={"Origin": origin})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "other_site")


def test_a_page_of_this_server_may(api: Api) -> None:
    answer = api.post("/api/executions", {"document": {"text": QUICK}}, headers={"Origin": api.url})
    assert answer.status_code == 201


def test_no_other_site_is_allowed_in(api: Api) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = api.http.options("/api/executions", headers=headers)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_place_that_is_taken_is_told_of(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Refused, match="cannot listen"), serving(tmp_path, listen=listen):
            pass


@pytest.mark.parametrize("listen", ["8470", "localhost:", "localhost:x", "nowhere.invalid:1", "127.0.0.1:99999"])
def test_a_place_that_is_none_is_told_of(tmp_path: Path, listen: str) -> None:
    with pytest.raises(Refused, match="listen"), serving(tmp_path, listen=listen):
        pass


# ---- the first token, and the last


@pytest.mark.parametrize("scope", ["read", "run"])
def test_the_first_token_is_for_an_admin_and_so_is_the_last(tmp_path: Path, scope: str) -> None:
    with asking(tmp_path) as api:
        refused = api.post("/api/tokens", {"name": "only", "scope": scope})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "first_token")
        assert api.get("/api/tokens").json() == {"tokens": []}
        boss = api.post("/api/tokens", {"name": "boss", "scope": "admin"}).json()
        api.http.headers["Authorization"] = f"Bearer {boss['secret']}"
        other = api.post("/api/tokens", {"name": "other", "scope": scope}).json()
        last = api.http.delete(f"/api/tokens/{boss['id']}")
        assert (last.status_code, last.json()["error"]["code"]) == (409, "last_admin")
        assert api.http.delete(f"/api/tokens/{other['id']}").status_code == 204
        assert api.http.delete(f"/api/tokens/{boss['id']}").status_code == 204
        del api.http.headers["Authorization"]
        assert api.get("/api/executions").status_code == 200
