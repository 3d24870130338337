"""The watch over a whole session: what it finds fails the test that leaked, and it costs next to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine import play
from tests.secrets.scan import Scanner
from tests.secrets.watch import VARIABLE

LEAKS = f"""
keychain: [{{name: canary, kind: env, var: {VARIABLE}}}]
workflow:
  - step: start
    tool: {{kind: python, args: {{s: "{{{{ keychain.canary }}}}"}}, code: "print(s); result = [s, s.encode().hex()]"}}
    next: {{arcs: [{{step: bad, args: {{r: "{{{{ event.result }}}}"}}}}]}}
  - step: bad
    tool: {{kind: python, args: {{s: "{{{{ keychain.canary }}}}"}}, code: "raise ValueError(s)"}}
"""


@pytest.mark.clause("P2.6")
def test_the_canary_of_the_session_can_be_used_in_any_playbook_and_is_not_found_afterwards(
    tmp_path: Path, canary: str
) -> None:
    run = play(LEAKS, tmp_path)
    assert run.status == "failed"
    assert run.of("step.done")[0]["payload"]["result"] == ["***", "***"]
    assert Scanner([canary]).in_folder(tmp_path / ".penstock") == []


def test_a_leak_is_found_where_it_would_lie(tmp_path: Path, canary: str) -> None:
    elsewhere = tmp_path / "not a state folder"
    elsewhere.mkdir()
    (elsewhere / "penstock.log").write_text(f"oops {canary}", encoding="utf-8")
    assert Scanner([canary]).in_folder(elsewhere)
