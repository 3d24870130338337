"""P2.6, as people see it: no command shows a secret, neither while a run goes nor afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Called, call, process
from tests.secrets.leaky import RAISES, failing, leaky
from tests.secrets.scan import Scanner, assert_clean
from tests.secrets.test_canaries import House, furnished
from tests.secrets.vault_of import entries


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with furnished(tmp_path, 3) as house:
        for name, value in house.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("PENSTOCK_HOME", raising=False)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
        monkeypatch.chdir(tmp_path / "book")
        yield house


def said(called: Called) -> str:
    return f"{called.out}\n{called.err}"


VIEWS = [
    ["show", "@last"],
    ["show", "@last", "--json"],
    ["events", "@last"],
    ["events", "@last", "--json"],
    ["events", "@last", "--canonical"],
    ["logs", "@last"],
    ["runs"],
    ["explain", "@last", "start"],
    ["replay", "@last"],
]


@pytest.mark.clause("P2.6")
def test_no_command_shows_a_secret_of_a_run(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    file = house.write("leaky.yaml", leaky(entries(house.canaries, house.server), house.server))
    words = said(call(capsys, "validate", file.name)) + said(call(capsys, "plan", file.name))
    words += said(call(capsys, "lint", file.name)) + said(call(capsys, "graph", file.name))
    ran = call(capsys, "run", file.name, "--json", "--set", f"given={json.dumps(house.canaries['env'])}")
    assert ran.code == 0, ran.err
    for view in VIEWS:
        called = call(capsys, *view)
        assert called.code == 0, (view, called.err)
        words += said(called)
    _assert_silent(house, words + said(ran))


@pytest.mark.clause("P2.6")
def test_a_process_that_fails_with_a_secret_says_none(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    file = house.write("failing.yaml", failing(entries(house.canaries, house.server), "print(s)\n" + RAISES))
    plain = process("run", file.name)
    assert plain.code == 1
    words = said(plain)
    for view in VIEWS:
        words += said(call(capsys, *view))
    _assert_silent(house, words)


@pytest.mark.clause("P2.6")
def test_a_keychain_that_cannot_be_resolved_says_no_secret(
    house: House, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("C_BEARER")
    monkeypatch.setenv("C_POSTGRES_URL", f"nonsense {house.canaries['postgres']}")
    file = house.write("leaky.yaml", leaky(entries(house.canaries, house.server), house.server))
    called = call(capsys, "run", file.name)
    assert called.code == 2
    assert "C_BEARER" in called.err
    _assert_silent(house, said(called) + said(call(capsys, "keychain", "list")) + said(call(capsys, "doctor")))


def _assert_silent(house: House, words: str) -> None:
    scanner = Scanner(house.canaries.texts.values())
    # The author's own document may be quoted; everything else in the folder and on the terminal may not.
    assert_clean(scanner.in_text(words, "the terminal"))
    assert_clean(scanner.in_folder(house.home))
    if (house.folder / "xdg").exists():
        assert_clean(scanner.in_folder(house.folder / "xdg"))
