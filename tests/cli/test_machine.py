"""doctor and keychain: this machine and its secrets."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.support import call, process, write

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]


def test_doctor_finds_a_fit_machine_fit(capsys: Capture) -> None:
    well = call(capsys, "doctor")
    assert well.code == 0
    for what in ("python", "sqlite", "state folder", "fsync", "disk", "tools", "keychain", "terminal"):
        assert what in well.out
    assert not Path(".penstock").exists()
    assert call(capsys, "doctor", "--json").json["status"] == "fit"


def test_doctor_exits_4_when_the_state_folder_is_no_folder(capsys: Capture) -> None:
    Path("file").write_text("")
    sick = call(capsys, "doctor", "--store", "file", "--json")
    assert (sick.code, sick.json["status"]) == (4, "unfit")
    assert any(check["what"] == "state folder" and check["state"] == "error" for check in sick.json["checks"])


def test_a_secret_is_set_from_stdin_listed_by_name_used_and_removed(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = process("keychain", "set", "token", input="s3cret-value\n")
    assert stored.code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("{user: me, password: hidden-one}"))
    assert call(capsys, "keychain", "set", "db", "--mapping").code == 0
    listed = call(capsys, "keychain", "list", "--json")
    assert [(one["name"], one["shape"]) for one in listed.json["names"]] == [("db", "mapping"), ("token", "text")]
    for everything in (stored.out + stored.err, listed.out, call(capsys, "keychain", "list").out):
        assert "s3cret-value" not in everything
        assert "hidden-one" not in everything
    assert call(capsys, "keychain", "remove", "token").code == 0
    again = call(capsys, "keychain", "remove", "token")
    assert (again.code, "it has `db`" in again.err) == (2, True)


@pytest.mark.clause("P2.6")
def test_a_stored_secret_reaches_a_task_and_never_the_log(capsys: Capture) -> None:
    process("keychain", "set", "token", input="s3cret-value")
    text = """
    keychain: [{name: token, kind: secret_manager, provider: local, key: token}]
    workflow:
      - step: start
        tool:
          - name: use
            kind: python
            args: {token: "{{ keychain.token }}"}
            code: |
              print("the token is", token)
              result = len(token)
    """
    done = call(capsys, "run", write("k.yaml", text))
    assert (done.code, done.out) == (0, "12\n")
    printed = done.err + call(capsys, "events", "@last", "--json").out + call(capsys, "logs", "@last").out
    assert "the token is" in printed
    assert "s3cret-value" not in printed


@pytest.mark.parametrize(("given", "more"), [("", []), ("\n", []), ("no mapping", ["--mapping"])])
def test_what_is_no_secret_is_not_stored(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, given: str, more: list[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    assert call(capsys, "keychain", "set", "x", *more).code == 2
    assert call(capsys, "keychain", "list", "--json").json["names"] == []
