"""Names that no entry declares: looked up where a tool asks for them, as declared ones are before the run."""

from __future__ import annotations

import asyncio
import threading

import pytest

from penstock.kernel.errors import Refused
from penstock.keychain import KeychainProblem, LocalStore, Secret, UnknownEntry
from penstock.keychain.resolution import Inputs, missing
from tests.keychain.support import HandClock, refused, resolved

CANARY = "canary-undeclared-4410"


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (CANARY, {"value": CANARY}),
        ({"username": "ann", "password": CANARY}, {"username": "ann", "password": CANARY}),
        (f'{{"username": "ann", "password": "{CANARY}"}}', {"username": "ann", "password": CANARY}),
        ({"name": "x", "type": "bearer", "data": {"token": CANARY}}, {"type": "bearer", "token": CANARY}),
    ],
)
def test_the_store_is_asked_when_a_tool_asks(tmp_path, stored, given):
    keys = resolved(tmp_path)
    LocalStore(tmp_path / ".penstock", {}).set("late", stored)
    assert keys.credential("late") == given
    assert keys.hide(f"{CANARY}!") == "***!"
    assert "late" not in keys.view()


@pytest.mark.parametrize(
    ("environ", "given"),
    [
        ({"PENSTOCK_LATE": CANARY}, {"value": CANARY}),
        ({"PENSTOCK_LATE": f'{{"header": "X-Key", "value": "{CANARY}"}}'}, {"header": "X-Key", "value": CANARY}),
        ({"PENSTOCK_LATE_USERNAME": "ann", "PENSTOCK_LATE_PASSWORD": CANARY}, {"username": "ann", "password": CANARY}),
        (
            {"PENSTOCK_LATE_HOST": "h", "PENSTOCK_LATE_USER": "u", "PENSTOCK_LATE_PASSWORD": CANARY},
            {"host": "h", "user": "u", "password": CANARY},
        ),
    ],
)
def test_then_the_environment_as_a_whole_or_field_by_field(tmp_path, environ, given):
    assert resolved(tmp_path, environ=environ).credential("late") == given
    declared = resolved(tmp_path, {"name": "late", "kind": "secret_manager"}, environ=environ)
    assert declared.credential("late") == given


def test_the_store_comes_before_the_environment(tmp_path):
    LocalStore(tmp_path / ".penstock", {}).set("late", CANARY)
    assert resolved(tmp_path, environ={"PENSTOCK_LATE": "other"}).credential("late") == {"value": CANARY}


def test_a_store_with_a_passphrase_opens(tmp_path):
    environ = {"PENSTOCK_KEY": "correct horse"}
    LocalStore(tmp_path / ".penstock", environ).set("late", CANARY)
    assert resolved(tmp_path, environ=environ).credential("late") == {"value": CANARY}
    with pytest.raises(Refused, match="locked with a passphrase"):
        resolved(tmp_path).credential("late")


def test_a_name_that_came_with_data_reaches_no_variable_that_is_not_for_entries(tmp_path):
    environ = {"AWS_SECRET": CANARY, "PENSTOCK_TOKEN": CANARY, "PENSTOCK_SECRET_KEY": CANARY, "PENSTOCK_KEY": CANARY}
    keys = resolved(tmp_path, environ=environ)
    for name in ("AWS_SECRET", "token", "secret_key", "key", "PENSTOCK_TOKEN"):
        with pytest.raises(UnknownEntry):
            keys.credential(name)


def test_what_is_nowhere_is_told_as_before_a_run(tmp_path):
    keys = resolved(tmp_path)
    with pytest.raises(UnknownEntry) as caught:
        keys.credential("pg_main")
    (problem,) = refused(tmp_path, {"name": "pg_main", "kind": "secret_manager"}).problems
    assert caught.value.message == f"the keychain has no entry `pg_main`: {problem.message}"
    assert caught.value.hint == problem.hint
    assert problem.hint == "store it with `penstock keychain set pg_main`, or set `PENSTOCK_PG_MAIN`"
    assert "`pg_main` in the local keychain" in problem.message
    assert "`PENSTOCK_PG_MAIN_PASSWORD`" in problem.message


def test_a_secret_that_a_template_gave_is_no_name(tmp_path):
    keys = resolved(tmp_path, {"name": "n", "kind": "env", "var": "T"}, environ={"T": CANARY})
    assert keys.credential(CANARY) == {"value": CANARY, "token": CANARY}


def test_tools_in_several_threads_may_ask_at_once(tmp_path):
    LocalStore(tmp_path / ".penstock", {}).set("late", CANARY)
    keys, found = resolved(tmp_path), []
    threads = [threading.Thread(target=lambda: found.append(keys.credential("late"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"value": CANARY}] * 8


# ---- names that follow from the inputs


AUTH = {"name": "{{ workload.pg }}", "kind": "secret_manager"}


def test_a_name_that_follows_from_the_inputs_is_looked_up_with_the_declared_ones(tmp_path):
    LocalStore(tmp_path / ".penstock", {}).set("pg_main", {"host": "h", "password": CANARY})
    keys = resolved(tmp_path, AUTH, workload={"pg": "pg_main"})
    assert keys.names == ("pg_main",)
    assert isinstance(keys.view()["pg_main"]["password"], Secret)


def test_what_it_names_is_missed_under_that_name(tmp_path):
    (problem,) = refused(tmp_path, AUTH, workload={"pg": "pg_main"}).problems
    assert (problem.entry, problem.declared) == ("pg_main", "{{ workload.pg }}")


@pytest.mark.parametrize(
    "pg", [None, "", " ", 5, "postgresql://u@h/db", {"host": "h"}, "declared"], ids=lambda pg: repr(pg)[:12]
)
def test_what_is_no_name_or_a_declared_one_is_left_to_the_task(tmp_path, pg):
    declared = {"name": "declared", "kind": "static", "value": CANARY}
    assert resolved(tmp_path, declared, AUTH, workload={"pg": pg}).names == ("declared",)


def test_an_undefined_name_is_the_tasks_own_problem(tmp_path):
    assert resolved(tmp_path, AUTH, workload={}).names == ()


def test_a_check_before_the_run_says_the_same(tmp_path):
    found = asyncio.run(
        missing(
            [AUTH],
            inputs=Inputs({"pg": "pg_main"}),
            folder=tmp_path,
            home=tmp_path / ".penstock",
            environ={},
            clock=HandClock(),
        )
    )
    assert [type(problem) for problem in found] == [KeychainProblem]
    assert found[0].entry == "pg_main"
