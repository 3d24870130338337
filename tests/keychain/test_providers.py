from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from penstock.keychain import LocalStore, Secret, Unresolved, reveal
from tests.keychain.support import Asked, HandClock, refused, resolved, serving

CANARY = "canary-providers-1177"
TOKEN = "hvs.vault-token-4431"


def manager(**more):
    return {"name": "openai_token", "kind": "secret_manager", **more}


def value(keychain, name="openai_token"):
    return reveal(keychain.view()[name])


class TestUsual:
    def test_the_local_store_comes_first_then_the_environment(self, tmp_path):
        environ = {"PENSTOCK_OPENAI_TOKEN": "from-environment"}
        assert value(resolved(tmp_path, manager(), environ=environ)) == "from-environment"
        LocalStore(tmp_path / ".penstock", {}).set("openai_token", CANARY)
        assert value(resolved(tmp_path, manager(), environ=environ)) == CANARY

    def test_the_provider_can_be_named(self, tmp_path):
        LocalStore(tmp_path / ".penstock", {}).set("openai_token", CANARY)
        environ = {"PENSTOCK_OPENAI_TOKEN": "from-environment"}
        assert value(resolved(tmp_path, manager(provider="environment"), environ=environ)) == "from-environment"
        assert value(resolved(tmp_path, manager(provider="local"), environ=environ)) == CANARY

    def test_the_key_can_be_another_than_the_name(self, tmp_path):
        environ = {"OPENAI_API_KEY": CANARY}
        assert (
            value(resolved(tmp_path, manager(provider="environment", key="OPENAI_API_KEY"), environ=environ)) == CANARY
        )

    def test_a_stored_mapping_is_a_mapping_with_open_and_secret_fields(self, tmp_path):
        LocalStore(tmp_path / ".penstock", {}).set(
            "openai_token", {"host": "h", "key": CANARY, "empty": "", "no": None}
        )
        keys = resolved(tmp_path, manager())
        view = keys.view()["openai_token"]
        assert view["host"] == "h"
        assert isinstance(view["key"], Secret)
        assert keys.credential("openai_token") == {"host": "h", "key": CANARY, "empty": "", "no": None}

    @pytest.mark.parametrize("given", [{"field": "key"}, {"key": "openai_token#key"}])
    def test_one_field_of_a_mapping_can_be_named(self, tmp_path, given):
        LocalStore(tmp_path / ".penstock", {}).set("openai_token", {"host": "h", "key": CANARY})
        assert value(resolved(tmp_path, manager(**given))) == CANARY

    def test_a_field_that_is_not_there_is_told_with_those_that_are(self, tmp_path):
        LocalStore(tmp_path / ".penstock", {}).set("openai_token", {"host": "h", "key": CANARY})
        error = refused(tmp_path, manager(field="kye"))
        assert "`host`, `key`" in error.message
        assert CANARY not in error.message

    def test_when_nothing_has_it_all_places_are_named(self, tmp_path):
        error = refused(tmp_path, manager())
        assert "`openai_token` in the local keychain" in error.message
        assert "`PENSTOCK_OPENAI_TOKEN`" in error.message
        assert "penstock keychain set openai_token" in str(error.hint)

    def test_a_store_that_cannot_be_opened_is_a_problem_of_the_entry(self, tmp_path):
        LocalStore(tmp_path / ".penstock", {"PENSTOCK_KEY": "right"}).set("openai_token", CANARY)
        error = refused(tmp_path, manager(), {"name": "b", "kind": "bearer"}, environ={"PENSTOCK_KEY": "wrong"})
        assert len(error.problems) == 2
        assert "is not the one" in error.message

    def test_the_passphrase_itself_is_hidden_too(self, tmp_path):
        environ = {"PENSTOCK_KEY": "correct horse battery"}
        LocalStore(tmp_path / ".penstock", environ).set("openai_token", CANARY)
        assert resolved(tmp_path, manager(), environ=environ).hide("correct horse battery") == "***"

    def test_structured_kinds_can_be_taken_from_a_provider(self, tmp_path):
        LocalStore(tmp_path / ".penstock", {}).set("prod/pg", {"host": "h", "user": "u", "password": CANARY})
        entry = {"name": "pg", "kind": "postgres_credential", "provider": "local", "key": "prod/pg", "database": "d"}
        assert resolved(tmp_path, entry).credential("pg") == {
            "host": "h",
            "user": "u",
            "password": CANARY,
            "database": "d",
        }

    def test_an_unknown_provider_is_told_with_those_there_are(self, tmp_path):
        error = refused(tmp_path, manager(provider="vualt"))
        assert "there is no provider `vualt` here; use `vault`, `local` or `environment`" in error.message
        assert "did you mean `vault`?" in str(error.hint)

    def test_an_option_that_the_provider_does_not_know_is_told(self, tmp_path):
        error = refused(tmp_path, manager(provider="vault", adress="http://x"))
        assert "did you mean `address`?" in str(error.hint)


SECRETS = {
    "/v1/secret/data/app/db": {"host": "h", "password": CANARY},
    "/v1/secret/data/openai_token": {"value": CANARY},
    "/v1/kv/data/app/db": {"password": CANARY, "port": 5432},
}


class TestVault:
    def answer(self, asked: Asked):
        if asked.headers.get("x-vault-token") != TOKEN:
            return 403, {"errors": ["permission denied"]}
        if asked.path == "/v1/secret/data/broken":
            return 200, {"data": {"value": CANARY}}
        if asked.path == "/v1/secret/data/strange":
            return 418, {"errors": [f"odd {TOKEN}"]}
        found = SECRETS.get(asked.path.split("?")[0])
        return (200, {"data": {"data": found, "metadata": {"version": 1}}}) if found else (404, {"errors": []})

    def environ(self, server, token=TOKEN):
        return {"VAULT_ADDR": server.url, "VAULT_TOKEN": token}

    @pytest.mark.parametrize("key", ["secret/app/db", "secret/data/app/db", "/secret/app/db/"])
    def test_a_path_is_written_as_for_the_vault_command(self, tmp_path, key):
        with serving(self.answer) as server:
            keys = resolved(tmp_path, manager(provider="vault", key=key), environ=self.environ(server))
        assert keys.credential("openai_token") == {"host": "h", "password": CANARY}
        assert keys.view()["openai_token"]["host"] == "h"

    def test_a_single_value_is_a_value(self, tmp_path):
        with serving(self.answer) as server:
            keys = resolved(tmp_path, manager(provider="vault"), environ=self.environ(server))
        assert value(keys) == CANARY

    def test_options_stand_above_the_environment(self, tmp_path):
        with serving(self.answer) as server:
            entry = manager(
                provider="vault",
                key="app/db",
                mount="kv",
                field="password",
                address=server.url,
                token={"env": "MY_TOKEN"},
                namespace="team",
                version=3,
            )
            environ = {"MY_TOKEN": TOKEN, "VAULT_TOKEN": "wrong", "VAULT_ADDR": "http://127.0.0.1:9"}
            keys = resolved(tmp_path, entry, environ=environ)
        assert value(keys) == CANARY
        assert server.asked[0].path == "/v1/kv/data/app/db?version=3"
        assert server.asked[0].headers["x-vault-namespace"] == "team"

    def test_a_field_of_another_kind_can_point_into_vault(self, tmp_path):
        with serving(self.answer) as server:
            entry = {
                "name": "pg",
                "kind": "postgres_credential",
                "host": "h",
                "password": {"secret": "secret/app/db#password", "provider": "vault"},
                "port": {"secret": "kv/app/db", "provider": "vault", "field": "port"},
            }
            keys = resolved(tmp_path, entry, environ=self.environ(server))
        assert keys.credential("pg") == {"host": "h", "password": CANARY, "port": 5432}

    @pytest.mark.parametrize(
        ("key", "token", "says"),
        [
            ("secret/none", TOKEN, "no such secret: looked for `secret/none` in Vault"),
            ("secret/app/db", "hvs.wrong-token-99", "Vault refuses `secret/app/db`"),
            ("secret/broken", TOKEN, "version 2"),
            ("secret/strange", TOKEN, "status 418"),
            ("secret/app/db", "hvs.bad\ntoken", "characters that are not allowed"),
            ("secret/app/db", "hvs.bädtoken", "characters that are not allowed"),
        ],
    )
    def test_what_vault_refuses_is_told_without_the_token(self, tmp_path, key, token, says):
        with serving(self.answer) as server:
            error = refused(tmp_path, manager(provider="vault", key=key), environ=self.environ(server, token))
        assert says in error.message
        assert token not in f"{error} {error.hint}"
        assert CANARY not in error.message

    def test_a_missing_address_or_token_is_named(self, tmp_path):
        assert "`VAULT_ADDR` and `VAULT_TOKEN` not set" in refused(tmp_path, manager(provider="vault")).message

    def test_an_address_that_is_none_is_told_so(self, tmp_path):
        environ = {"VAULT_ADDR": "vault.example", "VAULT_TOKEN": TOKEN}
        assert "is not a web address" in refused(tmp_path, manager(provider="vault"), environ=environ).message

    def test_a_vault_that_is_sealed_for_a_moment_is_asked_again(self, tmp_path):
        replies = iter(
            [(503, {"errors": ["Vault is sealed"]}), (503, {}), (200, {"data": {"data": {"value": CANARY}}})]
        )
        clock = HandClock()
        with serving(lambda asked: next(replies)) as server:
            keys = resolved(tmp_path, manager(provider="vault"), environ=self.environ(server), clock=clock)
        assert value(keys) == CANARY
        assert clock.slept == [0.2, 0.8]

    def test_a_vault_that_is_not_there_is_told_so(self, tmp_path):
        with serving(self.answer) as server:
            gone = self.environ(server)
        error = refused(tmp_path, manager(provider="vault"), environ=gone)
        assert "cannot be used now" in error.message

    def test_the_token_to_ask_with_is_hidden_too(self, tmp_path):
        with serving(self.answer) as server:
            keys = resolved(tmp_path, manager(provider="vault"), environ=self.environ(server))
        assert keys.hide(f"token {TOKEN}") == "token ***"

    def test_a_redirect_is_not_followed(self, tmp_path):
        with serving(lambda asked: (302, {})) as server:
            assert "status 302" in refused(tmp_path, manager(provider="vault"), environ=self.environ(server)).message
        assert len(server.asked) == 1


PLUGIN = """
class Shelf:
    options = frozenset({"shelf"})
    async def get(self, key, options, where):
        match key:
            case "nothing": return None
            case "number": return 5
            case "breaks": raise ValueError("the secret is canary-providers-1177")
            case _: return f"{options.get('shelf', 'top')}/{key}/{where.environ['WHO']}"
    def looked_for(self, key):
        return f"`{key}` on the shelf"
class Needy:
    def __init__(self, argument): ...
"""


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """An installed distribution with secret providers, as pip would leave it."""
    name = f"shelf_{threading.get_ident()}_{tmp_path.name}".replace("-", "_")
    site = tmp_path / "site"
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{name}.py").write_text(PLUGIN)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[penstock.secret_providers]\nshelf = {name}:Shelf\nneedy = {name}:Needy\ngone = {name}:Gone\n"
    )
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop(name, None)


@pytest.mark.usefixtures("shelf")
class TestPlugins:
    def test_an_installed_provider_is_found_by_name_and_gets_its_options(self, tmp_path: Path):
        keys = resolved(tmp_path, manager(provider="shelf", key="k", shelf="low"), environ={"WHO": "me"})
        assert value(keys) == "low/k/me"

    @pytest.mark.parametrize(
        ("provider", "key", "says"),
        [
            ("shelf", "nothing", "looked for `nothing` on the shelf"),
            ("shelf", "number", "gave neither a text nor a mapping"),
            ("shelf", "breaks", "failed with `ValueError`"),
            ("shelf", "k", "failed with `KeyError`"),
            ("needy", "k", "cannot be loaded"),
            ("gone", "k", "cannot be loaded"),
        ],
    )
    def test_a_provider_that_fails_is_told_and_its_words_are_not_repeated(self, tmp_path, provider, key, says):
        error = refused(tmp_path, manager(provider=provider, key=key))
        assert says in error.message
        assert CANARY not in f"{error} {error.__cause__} {error.__context__}"


def test_a_reason_can_name_others():
    first, second = Unresolved("a"), Unresolved("b")
    assert Unresolved.together([first, second]).also == [second]
