from __future__ import annotations

import os

import pytest

from penstock.keychain import LocalStore, Redaction, Secret, reveal
from penstock.keychain.surroundings import variable_name
from tests.keychain.support import refused, resolved

CANARY = "canary-kinds-8812"


def value(keychain, name="n"):
    found = keychain.view()[name]
    assert isinstance(found, Secret)
    return reveal(found)


class TestEnv:
    def test_it_is_the_value_of_a_variable(self, tmp_path):
        keys = resolved(tmp_path, {"name": "n", "kind": "env", "var": "TOKEN"}, environ={"TOKEN": CANARY})
        assert value(keys) == CANARY
        assert keys.credential("n") == {"value": CANARY}
        assert keys.warnings == ()

    def test_line_ends_behind_the_value_are_not_part_of_it(self, tmp_path):
        keys = resolved(tmp_path, {"name": "n", "kind": "env", "var": "TOKEN"}, environ={"TOKEN": f" {CANARY}\r\n"})
        assert value(keys) == f" {CANARY}"

    @pytest.mark.parametrize(
        ("environ", "says"),
        [
            ({}, "the environment variable `TOKEN` is not set"),
            ({"TOKEN": ""}, "`TOKEN` is empty"),
            ({"TOKEN": " \n"}, "`TOKEN` is empty"),
            ({"TOKEN": "a\udcffb"}, "not valid UTF-8"),
        ],
    )
    def test_without_a_usable_value_it_says_what_to_set(self, tmp_path, environ, says):
        error = refused(tmp_path, {"name": "n", "kind": "env", "var": "TOKEN"}, environ=environ)
        assert says in error.message
        assert "keychain entry `n`" in error.message

    def test_the_passphrase_of_the_local_store_is_not_for_entries(self, tmp_path):
        environ = {"PENSTOCK_KEY": CANARY}
        error = refused(
            tmp_path,
            {"name": "n", "kind": "env", "var": "PENSTOCK_KEY"},
            {"name": "key", "kind": "secret_manager"},
            {"name": "KEY", "kind": "bearer"},
            environ=environ,
        )
        assert len(error.problems) == 3
        assert CANARY not in error.message


class TestFile:
    def entry(self, path):
        return {"name": "n", "kind": "file", "path": str(path)}

    def test_it_is_the_text_of_a_file_beside_the_document_without_the_line_end(self, tmp_path):
        (tmp_path / "secrets").mkdir()
        file = tmp_path / "secrets" / "token.txt"
        file.write_text(f"{CANARY}\n")
        file.chmod(0o600)
        keys = resolved(tmp_path, self.entry("secrets/token.txt"))
        assert value(keys) == CANARY
        assert keys.warnings == ()

    def test_a_file_that_everybody_can_read_is_warned_about(self, tmp_path):
        (tmp_path / "token").write_text(CANARY)
        (tmp_path / "token").chmod(0o644)
        (warning,) = resolved(tmp_path, self.entry(tmp_path / "token")).warnings
        assert "chmod 600" in warning
        assert CANARY not in warning

    def test_a_key_of_several_lines_keeps_its_lines(self, tmp_path):
        (tmp_path / "key").write_text("-----BEGIN-----\r\nabcdefgh\n-----END-----\n\n")
        assert value(resolved(tmp_path, self.entry("key"))) == "-----BEGIN-----\r\nabcdefgh\n-----END-----"

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"", "is empty"),
            (b"\n", "is empty"),
            (b"\xff\xfe", "is not UTF-8"),
            (b"x" * (1024 * 1024 + 1), "too large"),
        ],
    )
    def test_a_file_that_is_no_secret_is_told_so(self, tmp_path, content, says):
        (tmp_path / "token").write_bytes(content)
        assert says in refused(tmp_path, self.entry("token")).message

    def test_a_missing_file_a_folder_and_a_pipe_are_told_so_and_nothing_hangs(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        assert "there is no file" in refused(tmp_path, self.entry("missing")).message
        assert "is not a file" in refused(tmp_path, self.entry(".")).message
        assert "is not a file" in refused(tmp_path, self.entry("pipe")).message
        assert "is not a file" in refused(tmp_path, self.entry("/dev/zero")).message
        assert "cannot be read" in refused(tmp_path, self.entry("a\0b")).message


class TestStatic:
    def test_it_is_the_value_with_a_warning(self, tmp_path):
        keys = resolved(tmp_path, {"name": "n", "kind": "static", "value": CANARY})
        assert value(keys) == CANARY
        assert "tests only" in keys.warnings[0]

    def test_a_mapping_is_taken_field_by_field(self, tmp_path):
        keys = resolved(
            tmp_path,
            {"name": "n", "kind": "static", "value": {"host": "h", "password": CANARY, "deep": {"pin": 98765}}},
        )
        assert keys.view()["n"]["host"] == "h"
        assert reveal(keys.view()["n"]["password"]) == CANARY
        assert keys.credential("n") == {"host": "h", "password": CANARY, "deep": {"pin": "98765"}}
        assert keys.hide(f"{CANARY} 98765 h") == "*** *** h"

    @pytest.mark.parametrize("given", [12345, True, 1.5])
    def test_a_number_has_to_be_quoted(self, tmp_path, given):
        error = refused(tmp_path, {"name": "n", "kind": "static", "value": given})
        assert "quotes" in str(error.hint)


class TestBearer:
    def test_it_is_the_token_also_for_auth(self, tmp_path):
        keys = resolved(tmp_path, {"name": "n", "kind": "bearer", "token": {"env": "T"}}, environ={"T": CANARY})
        assert value(keys) == CANARY
        assert keys.credential("n") == {"value": CANARY, "token": CANARY}
        assert keys.warnings == ()

    def test_a_token_in_the_document_is_warned_about(self, tmp_path):
        keys = resolved(tmp_path, {"name": "n", "kind": "bearer", "value": CANARY})
        assert value(keys) == CANARY
        assert "written out" in keys.warnings[0]

    def test_without_fields_it_is_looked_up_by_its_name(self, tmp_path):
        keys = resolved(tmp_path, {"name": "my-api", "kind": "bearer"}, environ={"PENSTOCK_MY_API": CANARY})
        assert value(keys, "my-api") == CANARY


class TestBasic:
    def test_the_user_is_open_and_the_password_is_not(self, tmp_path):
        entry = {"name": "n", "kind": "basic", "username": "ann", "password": {"env": "P"}}
        keys = resolved(tmp_path, entry, environ={"P": CANARY})
        assert keys.view()["n"]["username"] == "ann"
        assert reveal(keys.view()["n"]["password"]) == CANARY
        assert keys.credential("n") == {"username": "ann", "password": CANARY}

    @pytest.mark.parametrize("text", [f"ann:{CANARY}", f'{{"user": "ann", "password": "{CANARY}"}}'])
    def test_a_variable_can_hold_both(self, tmp_path, text):
        keys = resolved(tmp_path, {"name": "n", "kind": "basic"}, environ={"PENSTOCK_N": text})
        assert keys.credential("n") == {"username": "ann", "password": CANARY}

    def test_all_that_is_missing_is_told_at_once(self, tmp_path):
        error = refused(tmp_path, {"name": "n", "kind": "basic", "username": {"env": "U"}})
        assert [problem.message for problem in error.problems] == [
            "the environment variable `U` is not set",
            "`password` is missing",
        ]


def test_an_api_key_says_where_it_goes(tmp_path):
    entry = {"name": "n", "kind": "api_key", "value": {"env": "K"}, "header": "X-Key"}
    keys = resolved(tmp_path, entry, environ={"K": CANARY})
    assert keys.view()["n"]["header"] == "X-Key"
    assert keys.credential("n") == {"value": CANARY, "header": "X-Key"}


BARE = {"name": "pg_k8s", "kind": "postgres_credential"}
WHOLE = {"host": "db.example", "port": 6432, "user": "ann", "password": CANARY, "database": "shop"}
URL = f"postgresql://ann:{CANARY}@db.example:6432/shop"


class TestPostgres:
    def test_fields_are_written_in_the_document_the_password_is_pointed_to(self, tmp_path):
        entry = {
            **BARE,
            "host": "db.example",
            "port": 6432,
            "username": "ann",
            "dbname": "shop",
            "password": {"env": "P"},
        }
        keys = resolved(tmp_path, entry, environ={"P": CANARY})
        assert keys.credential("pg_k8s") == WHOLE
        shown = keys.view()["pg_k8s"]
        assert {name: shown[name] for name in ("host", "port", "user", "database")} == {
            name: WHOLE[name] for name in ("host", "port", "user", "database")
        }
        assert isinstance(shown["password"], Secret)

    def test_every_field_can_come_from_the_environment_a_file_or_a_store(self, tmp_path):
        (tmp_path / "user").write_text("ann\n")
        (tmp_path / "user").chmod(0o600)
        LocalStore(tmp_path / ".penstock", {}).set("app/db", {"pw": CANARY})
        entry = {
            **BARE,
            "host": {"env": "H"},
            "port": {"env": "PORT"},
            "user": {"file": "user"},
            "password": {"secret": "app/db", "field": "pw"},
            "database": "shop",
        }
        keys = resolved(tmp_path, entry, environ={"H": "db.example", "PORT": "6432"})
        assert keys.credential("pg_k8s") == WHOLE

    @pytest.mark.parametrize(
        "text",
        [
            URL,
            f"postgres://ann:{CANARY}@db.example:6432/shop",
            f'{{"host": "db.example", "port": "6432", "username": "ann", "password": "{CANARY}", "dbname": "shop"}}',
            f"host=db.example port=6432 user=ann password='{CANARY}' dbname=shop",
            f'{{"url": "{URL}"}}',
        ],
    )
    def test_without_fields_a_variable_named_after_it_is_a_connection(self, tmp_path, text):
        assert resolved(tmp_path, BARE, environ={"PENSTOCK_PG_K8S": text}).credential("pg_k8s") == WHOLE

    def test_without_fields_there_can_be_a_variable_per_field(self, tmp_path):
        environ = {variable_name("pg_k8s", name): str(value) for name, value in WHOLE.items()}
        assert environ.keys() >= {"PENSTOCK_PG_K8S_HOST", "PENSTOCK_PG_K8S_PASSWORD"}
        assert resolved(tmp_path, BARE, environ=environ).credential("pg_k8s") == WHOLE

    @pytest.mark.parametrize("stored", [WHOLE, URL])
    def test_the_local_store_comes_before_the_environment_and_the_url_before_the_fields(self, tmp_path, stored):
        environ = {"PENSTOCK_PG_K8S": "postgresql://other@elsewhere/db", "PENSTOCK_PG_K8S_HOST": "third"}
        assert resolved(tmp_path, BARE, environ=environ).credential("pg_k8s")["host"] == "elsewhere"
        LocalStore(tmp_path / ".penstock", {}).set("pg_k8s", stored)
        assert resolved(tmp_path, BARE, environ=environ).credential("pg_k8s") == WHOLE

    def test_when_nothing_is_found_it_says_where_it_looked_and_what_to_do(self, tmp_path):
        error = refused(tmp_path, BARE)
        for place in ("local keychain", "`PENSTOCK_PG_K8S`", "_HOST`", "_PORT`", "_USER`", "_PASSWORD`", "_DATABASE`"):
            assert place in error.message
        assert "penstock keychain set pg_k8s" in str(error.hint)
        assert "postgresql://" in str(error.hint)

    def test_a_url_is_taken_apart_and_its_parts_are_decoded(self, tmp_path):
        url = "postgresql://an%40n:p%2Fw%3A%25@[::1]:5433/my%20db?sslmode=require&application_name=x"
        assert resolved(tmp_path, BARE, environ={"PENSTOCK_PG_K8S": url}).credential("pg_k8s") == {
            "host": "::1",
            "port": 5433,
            "user": "an@n",
            "password": "p/w:%",
            "database": "my db",
            "sslmode": "require",
            "application_name": "x",
        }

    def test_fields_beside_a_url_win(self, tmp_path):
        entry = {**BARE, "url": {"env": "U"}, "host": "replica"}
        assert resolved(tmp_path, entry, environ={"U": URL}).credential("pg_k8s") == {
            **WHOLE,
            "host": "replica",
        }

    @pytest.mark.parametrize(
        "text",
        [
            CANARY,
            f"postgresql://ann:{CANARY}@db.example:99999/shop",
            f"postgresql://ann:{CANARY}@h:port/shop",
            f"postgresql://ann:{CANARY}@[h/shop",
            f'{{"password": "{CANARY}"',
            f"password={CANARY}",
            f"host=a 'password={CANARY}",
            f"host=a {CANARY}",
            f'{{"host": "h", "port": "{CANARY}"}}',
        ],
    )
    def test_a_text_that_is_no_connection_is_refused_without_quoting_it(self, tmp_path, text):
        error = refused(tmp_path, BARE, environ={"PENSTOCK_PG_K8S": text})
        assert CANARY not in f"{error} {error.hint} {error!r} {error.__cause__!r} {error.__context__!r}"

    def test_mysql_is_of_the_same_family(self, tmp_path):
        entry = {"name": "shop", "kind": "mysql_credential"}
        keys = resolved(tmp_path, entry, environ={"PENSTOCK_SHOP": f"mysql://ann:{CANARY}@h/shop"})
        assert keys.credential("shop") == {"host": "h", "user": "ann", "password": CANARY, "database": "shop"}


class TestMistakes:
    def test_all_problems_of_all_entries_are_told_at_once(self, tmp_path):
        error = refused(
            tmp_path,
            {"name": "a", "kind": "env", "var": "NOT_SET"},
            {"name": "b", "kind": "evn", "var": "X"},
            {"name": "c", "kind": "env", "variable": "X"},
            {"name": "d"},
            {"kind": "static", "value": "x"},
            {"name": "e", "kind": "file", "path": "missing"},
            {"name": "e", "kind": "static", "value": "fine"},
        )
        assert {problem.entry for problem in error.problems} == {"a", "b", "c", "d", "number 5", "e"}
        assert "did you mean `env`?" in error.message
        assert "`variable` is not a field of kind `env`" in error.message
        assert "`var` is missing" in error.message
        assert "`kind` is missing" in error.message
        assert "2 entries have this name" in error.message

    @pytest.mark.parametrize("kind", [["env"], {"a": 1}, 5, True])
    def test_a_kind_that_is_no_text_is_a_problem_and_no_crash(self, tmp_path, kind):
        assert "is not a kind" in refused(tmp_path, {"name": "a", "kind": kind}).message

    @pytest.mark.parametrize(
        "given",
        [{"environment": "X"}, {"env": 5}, {"env": "X", "file": "y"}, [], {}, {"secret": "k", "provder": "vault"}, ""],
    )
    def test_a_field_that_points_nowhere_is_told_so(self, tmp_path, given):
        assert refused(tmp_path, {"name": "a", "kind": "bearer", "token": given}).problems

    def test_a_short_secret_is_warned_about(self, tmp_path):
        keys = resolved(tmp_path, {"name": "a", "kind": "env", "var": "A"}, environ={"A": "abc"})
        assert "fewer than 4 characters" in keys.warnings[0]
        assert "abc" not in keys.warnings[0]
        assert keys.hide("password=abc in abcde") == "password=*** in abcde"


def test_no_entries_make_an_empty_keychain(tmp_path):
    keys = resolved(tmp_path)
    assert dict(keys.view()) == {}
    assert keys.names == ()
    assert keys.hide("text") == "text"


def test_a_keychain_can_share_what_it_hides_with_that_of_a_sub_playbook(tmp_path):
    shared = Redaction()
    parent = resolved(
        tmp_path, {"name": "a", "kind": "env", "var": "A"}, environ={"A": "parent-secret"}, redaction=shared
    )
    child = resolved(
        tmp_path, {"name": "b", "kind": "env", "var": "B"}, environ={"B": "child-secret"}, redaction=shared
    )
    for keys in (parent, child):
        assert keys.hide("parent-secret child-secret") == "*** ***"


def test_a_key_file_that_others_can_read_is_warned_about(tmp_path):
    store = LocalStore(tmp_path / ".penstock", {})
    store.set("n", CANARY)
    store.key_path.chmod(0o644)
    keys = resolved(tmp_path, {"name": "n", "kind": "secret_manager"})
    assert "key of the local keychain" in keys.warnings[0]
