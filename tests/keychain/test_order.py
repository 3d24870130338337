"""Entries that read others: resolved in order, the rest side by side, and what a secret becomes stays secret."""

from __future__ import annotations

import asyncio
import threading

import pytest

from penstock.keychain import LocalStore, Redaction, Secret, reveal
from penstock.keychain.resolution import missing
from tests.keychain.support import Asked, HandClock, refused, resolved, serving

CANARY = "canary-order-5521"
TOKEN = "hvs.vault-token-7788"
READER = {"name": "api", "kind": "bearer", "token": "{{ keychain.login.token }}"}


def vault(asked: Asked):
    if asked.headers.get("x-vault-token") != TOKEN:
        return 403, {"errors": ["permission denied"]}
    return 200, {"data": {"data": {"token": CANARY, "user": "ann"}, "metadata": {"version": 1}}}


def environ(server) -> dict[str, str]:
    return {"VAULT_ADDR": server.url, "VAULT_TOKEN": TOKEN}


def test_an_entry_reads_one_that_a_vault_gave(tmp_path):
    login = {"name": "login", "kind": "secret_manager", "provider": "vault", "key": "secret/login"}
    with serving(vault) as server:
        keys = resolved(tmp_path, login, READER, environ=environ(server))
    assert keys.credential("api") == {"value": CANARY, "token": CANARY}
    assert isinstance(keys.view()["api"], Secret)
    assert keys.warnings == ()


@pytest.mark.parametrize("order", [1, -1])
def test_the_keychain_finds_the_order_by_itself(tmp_path, order):
    login = {"name": "login", "kind": "static", "map": {"token": CANARY}}
    keys = resolved(tmp_path, *[login, READER][::order])
    assert keys.credential("api")["token"] == CANARY


def test_what_a_template_makes_of_a_secret_is_a_secret_in_any_field(tmp_path):
    login = {"name": "login", "kind": "env", "var": "T"}
    made = {
        "name": "made",
        "kind": "static",
        "map": {"host": "{{ keychain.login }}.example", "user": "ann", "deep": ["x{{ keychain.login }}y"]},
    }
    redaction = Redaction()
    keys = resolved(tmp_path, login, made, environ={"T": CANARY}, redaction=redaction)
    view = keys.view()["made"]
    assert isinstance(view["host"], Secret)
    assert reveal(view["host"]) == f"{CANARY}.example"
    assert isinstance(view["deep"][0], Secret)
    assert view["user"] == "ann"
    assert redaction.hide(f"{CANARY}.example x{CANARY}y") == "*** ***"


def test_a_secret_in_an_open_field_of_a_login_is_no_plain_text_for_templates(tmp_path):
    login = {"name": "login", "kind": "env", "var": "T"}
    basic = {"name": "b", "kind": "basic", "username": "{{ keychain.login }}", "password": "hunter22"}
    keys = resolved(tmp_path, login, basic, environ={"T": CANARY})
    assert isinstance(keys.view()["b"]["username"], Secret)
    assert keys.credential("b") == {"username": CANARY, "password": "hunter22"}


def test_an_altered_secret_is_refused_and_not_shown(tmp_path):
    login = {"name": "login", "kind": "env", "var": "T"}
    error = refused(
        tmp_path, login, {"name": "n", "kind": "bearer", "token": "{{ keychain.login[1:] }}"}, environ={"T": CANARY}
    )
    assert CANARY[1:] not in f"{error} {error.hint}"


def test_a_message_about_a_field_that_a_secret_stands_in_does_not_show_it(tmp_path):
    login = {"name": "login", "kind": "env", "var": "T"}
    error = refused(
        tmp_path, login, {"name": "f", "kind": "file", "path": "{{ keychain.login }}.txt"}, environ={"T": CANARY}
    )
    assert "there is no file" in error.message
    assert CANARY not in f"{error} {error.hint} {error.problems}"


def test_of_entries_that_need_one_that_is_missing_only_that_one_is_reported(tmp_path):
    error = refused(tmp_path, {"name": "login", "kind": "env", "var": "GONE"}, READER)
    assert [problem.entry for problem in error.problems] == ["login"]


def test_entries_that_read_each_other_are_refused(tmp_path):
    error = refused(
        tmp_path,
        {"name": "a", "kind": "bearer", "token": "{{ keychain.b }}"},
        {"name": "b", "kind": "bearer", "token": "{{ keychain.a }}"},
    )
    assert "it reads itself: `a` → `b` → `a`" in error.message or "it reads itself: `b` → `a` → `b`" in error.message


def test_a_name_that_no_entry_has_is_undefined(tmp_path):
    login = {"name": "login", "kind": "static", "map": {"token": CANARY}}
    error = refused(tmp_path, login, {"name": "n", "kind": "bearer", "token": "{{ keychain.logn.token }}"})
    assert "`keychain.logn.token` is undefined" in error.message


def test_entries_that_need_nothing_of_each_other_are_asked_for_at_the_same_time(tmp_path):
    """Neither is answered before both have asked."""
    both = threading.Barrier(2)

    def answer(asked: Asked):
        both.wait(timeout=30)
        return vault(asked)

    entries = [{"name": name, "kind": "secret_manager", "provider": "vault", "key": f"secret/{name}"} for name in "ab"]
    with serving(answer) as server:
        keys = resolved(tmp_path, *entries, environ=environ(server))
    assert keys.credential("a") == keys.credential("b") == {"token": CANARY, "user": "ann"}


class Issuer:
    """Gives a new token for each question."""

    def __init__(self) -> None:
        self.given = 0

    def __call__(self, asked: Asked):
        self.given += 1
        return 200, {"access_token": f"token-{self.given}-canary", "token_type": "bearer", "expires_in": 3600}


def test_what_was_made_of_a_token_is_made_anew_when_the_token_is(tmp_path):
    clock = HandClock()
    with serving(Issuer()) as server:
        oauth = {"name": "oauth", "kind": "oauth2", "endpoint": f"{server.url}/token", "data": {"a": "b"}}
        first = {"name": "first", "kind": "bearer", "token": "{{ keychain.oauth.access_token }}"}
        second = {"name": "second", "kind": "static", "map": {"header": "Token {{ keychain.first }}"}}
        keys = resolved(tmp_path, second, first, oauth, clock=clock)
        rendered = f"<{keys.view()['second']['header']}>"
        assert keys.credential("second") == {"header": "Token token-1-canary"}
        clock.time += 3600
        assert keys.is_stale()
        asyncio.run(keys.fresh())
        assert not keys.is_stale()
        assert len(server.asked) == 2
    assert keys.credential("first")["token"] == "token-2-canary"
    assert keys.credential("second") == {"header": "Token token-2-canary"}
    assert keys.reveal(rendered) == "<Token token-2-canary>"
    assert keys.hide("token-1-canary token-2-canary") == "*** ***"


def test_a_check_before_the_run_asks_nobody_and_reports_nothing_that_depends_on_an_answer(tmp_path):
    login = {"name": "login", "kind": "secret_manager", "provider": "vault", "key": "secret/login"}
    entries = [login, READER, {"name": "gone", "kind": "env", "var": "GONE"}]
    with serving(vault) as server:
        found = asyncio.run(
            missing(
                entries,
                folder=tmp_path,
                home=tmp_path / ".penstock",
                environ=environ(server),
                clock=HandClock(),
            )
        )
        assert server.asked == []
    assert [problem.entry for problem in found] == ["gone"]


def test_what_a_machine_has_says_nothing_of_a_run_elsewhere(tmp_path):
    LocalStore(tmp_path / ".penstock", {}).set("stored", CANARY)
    entries = [
        {"name": "gone", "kind": "env", "var": "GONE"},
        {"name": "nowhere", "kind": "secret_manager"},
        {"name": "f", "kind": "file", "path": "gone.txt"},
        {"name": "p", "kind": "postgres_credential"},
        {"name": "wrong", "kind": "env", "variable": "X"},
        {"name": "u", "kind": "env", "var": "{{ workload.nothing }}"},
    ]
    found = asyncio.run(
        missing(entries, folder=tmp_path, home=tmp_path / ".penstock", environ={}, clock=HandClock(), is_here=False)
    )
    assert {problem.entry for problem in found} == {"wrong", "u"}
