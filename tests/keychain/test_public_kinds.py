"""Kinds of entries as public playbooks write them, in the words that the dialect makes of them."""

from __future__ import annotations

import asyncio

import pytest

from penstock.expr.template import Names, render
from penstock.keychain import LocalStore, Secret
from tests.keychain.support import Asked, HandClock, refused, resolved, serving

CANARY = "canary-public-9034"
TOKEN = "hvs.vault-token-2210"


def rendered(keys, template: str):
    return keys.reveal(render(template, Names(keychain=keys.view())))


# ---- several secrets by name


def vault(asked: Asked):
    assert asked.headers["x-vault-token"] == TOKEN
    found = {
        "/v1/secret/data/prod/shop": {"key": CANARY, "host": "h"},
        "/v1/secret/data/prod/mail": {"value": "mail-secret-1"},
    }.get(asked.path)
    return (200, {"data": {"data": found, "metadata": {}}}) if found else (404, {"errors": []})


def by_map(**paths: str) -> dict:
    return {"name": "api", "kind": "secret_manager", "provider": "vault", "map": paths}


def test_a_map_gives_each_secret_under_its_name(tmp_path):
    with serving(vault) as server:
        keys = resolved(
            tmp_path,
            by_map(shop="secret/{{ workload.env }}/shop#key", mail="secret/prod/mail", whole="secret/prod/shop"),
            environ={"VAULT_ADDR": server.url, "VAULT_TOKEN": TOKEN},
            workload={"env": "prod"},
        )
    assert keys.credential("api") == {
        "shop": CANARY, "mail": "mail-secret-1", "whole": {"key": CANARY, "host": "h"},
    }  # fmt: skip
    assert isinstance(keys.view()["api"]["shop"], Secret)
    assert rendered(keys, "{{ keychain.api.shop }}") == CANARY
    assert keys.hide(f"{CANARY} mail-secret-1") == "*** ***"


def test_all_secrets_of_a_map_that_are_missing_are_reported_at_once(tmp_path):
    with serving(vault) as server:
        error = refused(
            tmp_path,
            by_map(shop="secret/prod/shp", mail="secret/prod/mail", other="secret/prod/shop#ky"),
            environ={"VAULT_ADDR": server.url, "VAULT_TOKEN": TOKEN},
        )
    assert sorted(problem.message for problem in error.problems) == [
        "no such secret: looked for `secret/prod/shp` in Vault",
        "the secret `secret/prod/shop` has no field `ky`; it has `host`, `key`",
    ]


def test_without_a_provider_a_map_is_looked_up_on_this_machine(tmp_path):
    LocalStore(tmp_path / ".penstock", {}).set("shop/key", CANARY)
    entry = {"name": "api", "kind": "secret_manager", "map": {"a": "shop/key", "b": "mail"}}
    keys = resolved(tmp_path, entry, environ={"PENSTOCK_MAIL": "mail-secret-1"})
    assert keys.credential("api") == {"a": CANARY, "b": "mail-secret-1"}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"map": {}}, "`map` is not a mapping"),
        ({"map": "a"}, "`map` is not a mapping"),
        ({"map": {"a": 5}}, "`a` is not a text"),
        ({"map": {"a": "x"}, "key": "y"}, "`key` is not a field"),
    ],
)
def test_a_map_that_is_none_is_told_so(tmp_path, entry, says):
    assert says in refused(tmp_path, {"name": "n", "kind": "secret_manager", **entry}).message


def test_a_static_map_gives_each_value_and_its_templates_are_filled_in(tmp_path):
    entry = {"name": "n", "kind": "static", "map": {"id": "{{ workload.id }}", "pw": CANARY, "pin": 98765}}
    keys = resolved(tmp_path, entry, workload={"id": "client-7"})
    assert keys.credential("n") == {"id": "client-7", "pw": CANARY, "pin": "98765"}
    assert keys.hide(f"{CANARY} client-7") == "*** ***"
    assert "tests only" in keys.warnings[0]


def test_a_static_map_of_other_entries_secrets_has_none_in_the_document(tmp_path):
    login = {"name": "login", "kind": "env", "var": "T"}
    entry = {"name": "n", "kind": "static", "map": {"id": "{{ keychain.login }}"}}
    assert resolved(tmp_path, login, entry, environ={"T": CANARY}).warnings == ()


@pytest.mark.parametrize("entry", [{"map": {"a": "b"}, "value": "c"}, {"map": "a"}, {}])
def test_a_static_entry_has_one_value_or_a_map(tmp_path, entry):
    assert refused(tmp_path, {"name": "n", "kind": "static", **entry}).problems


# ---- a stored entry under another name


@pytest.mark.parametrize("stored", [CANARY, {"db_host": "h", "db_password": CANARY}])
def test_a_stored_entry_is_copied_under_another_name(tmp_path, stored):
    LocalStore(tmp_path / ".penstock", {}).set("pg/main", stored)
    keys = resolved(tmp_path, {"name": "db", "kind": "secret_manager", "key": "pg/main"})
    assert keys.credential("db") == (stored if isinstance(stored, dict) else {"value": stored})


def test_a_record_as_it_is_exported_is_its_data(tmp_path):
    record = {"name": "pg", "type": "postgres", "tags": ["x"], "data": {"db_host": "h", "db_password": CANARY}}
    LocalStore(tmp_path / ".penstock", {}).set("pg", record)
    keys = resolved(
        tmp_path,
        {"name": "pg", "kind": "secret_manager"},
        {"name": "p", "kind": "secret_manager", "key": "pg#db_password"},
    )
    assert keys.credential("pg") == {"type": "postgres", "db_host": "h", "db_password": CANARY}
    assert keys.credential("p") == {"value": CANARY}
    assert resolved(tmp_path, {"name": "pg", "kind": "postgres_credential"}).credential("pg") == {
        "host": "h", "password": CANARY,
    }  # fmt: skip


@pytest.mark.parametrize("text", [f'{{"username": "ann", "password": "{CANARY}"}}', f"https://ann:{CANARY}@h/x"])
def test_a_secret_inside_a_text_is_hidden_on_its_own(tmp_path, text):
    keys = resolved(tmp_path, {"name": "n", "kind": "env", "var": "T"}, environ={"T": text})
    assert rendered(keys, "{{ keychain.n }}") == text
    assert keys.hide(f"password {CANARY} is wrong") == "password *** is wrong"


# ---- tokens


def test_a_bearer_is_its_token_and_reads_as_a_mapping_too(tmp_path):
    keys = resolved(tmp_path, {"name": "n", "kind": "bearer", "token": {"env": "T"}}, environ={"T": CANARY})
    for template in (
        "{{ keychain.n }}",
        "{{ keychain.n.access_token }}",
        "{{ keychain.n.token }}",
        "{{ keychain.n.value }}",
    ):
        assert rendered(keys, template) == CANARY
    assert rendered(keys, "{{ keychain.n.token_type }}") == "Bearer"
    assert rendered(keys, "Bearer {{ keychain['n']['access_token'] }}") == f"Bearer {CANARY}"
    assert rendered(keys, "{{ keychain.n.nothing is defined }}") is False


class Issuer:
    def __init__(self) -> None:
        self.bodies: list[str] = []

    def __call__(self, asked: Asked):
        if asked.form.get("secret") not in (None, CANARY):
            return 401, {"error": "invalid_client", "error_description": f"no {asked.form['secret']}"}
        return 200, {
            "access_token": "token-of-request", "token_type": "bearer", "expires_in": 3600, "refresh_token": "refresh-1",
            "account": {"id": "acct-778899"},
        }  # fmt: skip


def request(url: str, **more):
    return {"name": "api", "kind": "oauth2", "endpoint": f"{url}/token", **more}


def test_a_token_by_a_request_is_the_whole_answer(tmp_path):
    with serving(Issuer()) as server:
        keys = resolved(
            tmp_path,
            request(
                server.url,
                method="post",
                headers={"X-Tenant": "{{ workload.tenant }}"},
                data={"grant_type": "client_credentials", "secret": {"env": "SECRET"}, "level": 5},
            ),
            environ={"SECRET": CANARY},
            workload={"tenant": "t1"},
        )
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.headers["x-tenant"]) == ("POST", "/token", "t1")
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.form == {"grant_type": "client_credentials", "secret": CANARY, "level": "5"}
    assert rendered(keys, "{{ keychain.api.access_token }}") == "token-of-request"
    assert rendered(keys, "{{ keychain.api.account.id }}") == "acct-778899"
    assert keys.view()["api"]["token_type"] == "bearer"
    assert keys.view()["api"]["expires_in"] == 3600
    assert keys.credential("api")["access_token"] == "token-of-request"
    assert keys.hide("token-of-request refresh-1 acct-778899") == "*** *** ***"


def test_with_get_the_data_is_in_the_query(tmp_path):
    with serving(Issuer()) as server:
        resolved(tmp_path, request(f"{server.url}", method="GET", data={"a": "b c"}))
    assert (server.asked[0].method, server.asked[0].path) == ("GET", "/token?a=b+c")


def test_headers_may_ask_for_json(tmp_path):
    with serving(Issuer()) as server:
        resolved(tmp_path, request(server.url, headers={"Content-Type": "application/json"}, data={"a": "b"}))
    assert server.asked[0].headers["content-type"] == "application/json"
    assert server.asked[0].form == {}
    assert server.asked[0].headers["content-length"] == str(len('{"a": "b"}'))


def test_a_token_by_a_request_is_renewed_before_it_ends(tmp_path):
    clock = HandClock()
    with serving(Issuer()) as server:
        keys = resolved(tmp_path, request(server.url), clock=clock)
        assert not keys.is_stale()
        clock.time += 3600 - 60
        assert keys.is_stale()
        asyncio.run(keys.fresh())
        assert len(server.asked) == 2
        assert not keys.is_stale()


def test_a_request_that_is_refused_is_told_without_the_secret(tmp_path):
    with serving(Issuer()) as server:
        error = refused(
            tmp_path,
            {"name": "s", "kind": "env", "var": "S"},
            request(server.url, data={"secret": "{{ keychain.s }}"}),
            environ={"S": "wrong-secret-55"},
        )
    assert "gives no token: status 401, invalid_client" in error.message
    assert "wrong-secret-55" not in f"{error}{error.hint}"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"method": "DELETE"}, "`method` is `DELETE`"),
        ({"data": "x"}, "`data` is not a mapping"),
        ({"headers": ["x"]}, "`headers` is not a mapping"),
        ({"data": {"x": ["y"]}}, "`data.x` is not a text"),
        ({"token_url": "https://h/"}, "`token_url` is not a field"),
    ],
)
def test_a_mistake_in_a_request_is_told(tmp_path, more, says):
    assert says in refused(tmp_path, request("http://127.0.0.1:9", **more)).message


def test_an_answer_that_is_no_mapping_is_told(tmp_path):
    with serving(lambda asked: (200, "a plain text")) as server:
        assert "is no JSON mapping" in refused(tmp_path, request(server.url)).message
