from __future__ import annotations

import asyncio
import base64
import itertools
from urllib.parse import unquote_plus

import pytest

from penstock.kernel.errors import Refused, Unavailable
from penstock.keychain import Keychain, UnknownEntry, reveal
from tests.keychain.support import Asked, HandClock, refused, resolved, serving

CLIENT_SECRET = "canary:client/secret+%7731"


def entry(url, **more):
    return {
        "name": "api",
        "kind": "oauth2",
        "token_url": f"{url}/token",
        "client_id": "me@home",
        "client_secret": {"env": "CLIENT_SECRET"},
        **more,
    }


ENVIRON = {"CLIENT_SECRET": CLIENT_SECRET}


class Issuer:
    """Gives `token-1-…`, `token-2-…` and so on, to those who know the secret in a way it accepts."""

    def __init__(self, ways=("basic", "post"), **more):
        self.numbers = itertools.count(1)
        self.ways = ways
        self.more = {"expires_in": 3600, "token_type": "bearer", **more}
        self.down: tuple[int, object] | None = None

    def __call__(self, asked: Asked):
        if self.down is not None:
            return self.down
        way, client, secret = self.credentials(asked)
        if way not in self.ways or (client, secret) != ("me@home", CLIENT_SECRET):
            return 401, {"error": "invalid_client", "error_description": f"bad secret {secret}"}
        assert asked.form["grant_type"] == "client_credentials"
        return 200, {"access_token": f"token-{next(self.numbers)}-canary", **self.more}

    @staticmethod
    def credentials(asked: Asked):
        header = asked.headers.get("authorization", "")
        if header.startswith("Basic "):
            client, _, secret = base64.b64decode(header[6:]).decode().partition(":")
            return "basic", unquote_plus(client), unquote_plus(secret)
        return "post", asked.form.get("client_id"), asked.form.get("client_secret")


def token(keys: Keychain) -> str:
    return reveal(keys.view()["api"]["access_token"])


def test_a_token_is_asked_for_before_the_run(tmp_path):
    with serving(Issuer()) as server:
        keys = resolved(tmp_path, entry(server.url, scope=["read", "write"], audience="all"), environ=ENVIRON)
    assert token(keys) == "token-1-canary"
    assert keys.view()["api"]["token_type"] == "bearer"
    assert keys.credential("api")["access_token"] == "token-1-canary"
    assert keys.credential("api")["token"] == "token-1-canary"
    assert "client_secret" not in keys.view()["api"]
    assert server.asked[0].form["scope"] == "read write"
    assert server.asked[0].form["audience"] == "all"
    assert keys.warnings == ()


@pytest.mark.parametrize(
    ("accepts", "client_auth", "requests"),
    [("basic", "auto", 1), ("post", "auto", 2), ("basic", "basic", 1), ("post", "post", 1)],
)
def test_the_secret_goes_the_way_the_issuer_takes_it(tmp_path, accepts, client_auth, requests):
    with serving(Issuer(ways=(accepts,))) as server:
        keys = resolved(tmp_path, entry(server.url, client_auth=client_auth), environ=ENVIRON)
    assert token(keys) == "token-1-canary"
    assert len(server.asked) == requests


def test_a_token_is_replaced_before_it_runs_out_and_not_earlier(tmp_path):
    clock = HandClock()
    with serving(Issuer()) as server:
        keys = resolved(tmp_path, entry(server.url), environ=ENVIRON, clock=clock)
        rendered = f"Bearer {keys.view()['api']['access_token']}"
        held = keys.view()["api"]["access_token"]
        clock.time += 3600 - 61
        assert not keys.is_stale()
        asyncio.run(keys.fresh("api"))
        assert token(keys) == "token-1-canary"
        clock.time += 1
        assert keys.is_stale()
        asyncio.run(keys.fresh())
        assert not keys.is_stale()
    assert token(keys) == "token-2-canary"
    assert keys.credential("api")["access_token"] == "token-2-canary"
    assert keys.reveal([rendered, held]) == ["Bearer token-2-canary", "token-2-canary"]
    assert keys.hide("token-1-canary token-2-canary") == "*** ***"


def test_a_marker_from_two_renewals_ago_still_stands_for_the_current_token(tmp_path):
    clock = HandClock()
    with serving(Issuer()) as server:
        keys = resolved(tmp_path, entry(server.url), environ=ENVIRON, clock=clock)
        old = str(keys.view()["api"]["token"])
        for _ in range(2):
            clock.time += 4000
            asyncio.run(keys.fresh())
    assert keys.reveal(old) == "token-3-canary"


def test_a_short_lived_token_is_replaced_after_nine_tenths_of_its_life(tmp_path):
    clock = HandClock()
    with serving(Issuer(expires_in="100")) as server:
        keys = resolved(tmp_path, entry(server.url), environ=ENVIRON, clock=clock)
        clock.time += 89
        assert not keys.is_stale()
        clock.time += 1
        assert keys.is_stale()


@pytest.mark.parametrize("expires_in", [None, 0, -5, "soon", [], float("inf")])
def test_a_token_without_a_known_end_is_kept(tmp_path, expires_in):
    clock = HandClock()
    with serving(Issuer(expires_in=expires_in)) as server:
        keys = resolved(tmp_path, entry(server.url), environ=ENVIRON, clock=clock)
        clock.time += 10**9
        assert not keys.is_stale()


def test_many_tasks_that_find_it_stale_ask_once(tmp_path):
    clock = HandClock()

    async def all_at_once(keys):
        await asyncio.gather(*(keys.fresh("api") for _ in range(10)))

    with serving(Issuer()) as server:
        keys = resolved(tmp_path, entry(server.url), environ=ENVIRON, clock=clock)
        clock.time += 4000
        asyncio.run(all_at_once(keys))
    assert len(server.asked) == 2


def test_an_issuer_that_is_down_leaves_the_old_token_and_says_so(tmp_path):
    clock = HandClock()
    issuer = Issuer()
    with serving(issuer) as server:
        keys = resolved(tmp_path, entry(server.url), environ=ENVIRON, clock=clock)
        clock.time += 4000
        issuer.down = (503, {})
        with pytest.raises(Unavailable, match="status 503"):
            asyncio.run(keys.fresh("api"))
        assert token(keys) == "token-1-canary"
        issuer.down = (401, {"error": "invalid_client", "error_description": CLIENT_SECRET})
        with pytest.raises(Refused, match="keychain entry `api`") as caught:
            asyncio.run(keys.fresh("api"))
        assert CLIENT_SECRET not in str(caught.value)
        issuer.down = None
        asyncio.run(keys.fresh("api"))
        assert token(keys) == "token-2-canary"


@pytest.mark.clause("P2.6")
@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ((401, {"error": "invalid_client", "error_description": f"no {CLIENT_SECRET}"}), "invalid_client: no ***"),
        ((400, "<html>"), "status 400"),
        ((200, {"token": "x"}), "has no `access_token`"),
        ((200, "not json"), "has no `access_token`"),
        ((200, "x" * (1024 * 1024 + 1)), "too large"),
        ((302, {}), "status 302"),
        ((500, {"error": CLIENT_SECRET}), "status 500"),
    ],
)
def test_what_the_issuer_refuses_is_told_without_the_secret(tmp_path, reply, says):
    with serving(lambda asked: reply) as server:
        error = refused(tmp_path, entry(server.url), environ=ENVIRON)
    assert says in error.message
    assert CLIENT_SECRET not in f"{error} {error.hint}"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"token_url": "not a url"}, "is not a web address"),
        ({"token_url": "ftp://h/token"}, "is not a web address"),
        ({"token_url": "http://[x/token"}, "is not a web address"),
        ({"token_url": "http://127.0.0.1:1/token"}, "cannot be used now"),
        ({"client_auth": "header"}, "`auto`, `basic`, `post`"),
        ({"token_url": None}, "`token_url` is missing"),
        ({"scopes": "x"}, "`scopes` is not a field"),
    ],
)
def test_a_mistake_in_the_entry_is_told(tmp_path, more, says):
    assert says in refused(tmp_path, entry("http://127.0.0.1:1", **more), environ=ENVIRON).message


def test_everything_can_come_from_one_variable(tmp_path):
    with serving(Issuer()) as server:
        text = f'{{"token_url": "{server.url}/token", "client_id": "me@home", "client_secret": "{CLIENT_SECRET}"}}'
        keys = resolved(tmp_path, {"name": "api", "kind": "oauth2"}, environ={"PENSTOCK_API": text})
    assert token(keys) == "token-1-canary"


def test_freshness_of_what_is_no_entry_or_never_ends_is_no_question(tmp_path):
    keys = resolved(tmp_path, {"name": "n", "kind": "env", "var": "N"}, environ={"N": "value"})
    asyncio.run(keys.fresh("n"))
    asyncio.run(keys.fresh("postgresql://h/db"))
    assert not keys.is_stale()


def test_a_credential_that_is_not_there_is_told_with_those_that_are(tmp_path):
    keys = resolved(tmp_path, {"name": "orders_db", "kind": "env", "var": "N"}, environ={"N": "value"})
    with pytest.raises(UnknownEntry, match="no entry `order_db`") as caught:
        keys.credential("order_db")
    assert caught.value.hint == "did you mean `orders_db`?"
    with pytest.raises(UnknownEntry) as caught:
        Keychain().credential("x")
    assert caught.value.hint == "it has no entries"
