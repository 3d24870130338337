"""P2.6: a secret that was written into the document is used for the run and stored nowhere."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from penstock.dialects.secrets import masked
from penstock.kernel.errors import Refused
from tests.engine import play, resume

CANARY = "kanarie-7f3a9c2e51"

TEXT = f"""
keychain:
  - {{name: one, kind: static, value: {CANARY}}}
  - name: two
    kind: basic
    username: ann
    password: "{CANARY}"
  - name: three
    kind: static
    value: |
      {CANARY}
workload: {{flag: ""}}
workflow:
  - step: start
    tool:
      - {{name: use, kind: python, args: {{s: "{{{{ keychain.one }}}}"}}, code: "result = len(s)"}}
      - name: gate
        kind: python
        args: {{flag: "{{{{ workload.flag }}}}", s: "{{{{ keychain.two.password }}}}", t: "{{{{ keychain.three }}}}"}}
        code: |
          import pathlib
          if not pathlib.Path(flag).exists():
              raise RuntimeError("not yet")
          result = [len(s), len(t.strip())]
"""


def stored(home: Path) -> bytes:
    with sqlite3.connect(home / ".penstock" / "penstock.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return b"".join(path.read_bytes() for path in sorted((home / ".penstock").rglob("*")) if path.is_file())


@pytest.mark.clause("P2.6")
def test_a_secret_in_the_document_is_in_nothing_that_is_stored_and_a_resume_finds_it_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    failed = play(TEXT, tmp_path, {"flag": str(flag)})
    assert failed.status == "failed"
    assert failed.payloads("task.done")[0]["outcome"]["result"] == len(CANARY)
    assert CANARY.encode() not in stored(tmp_path)
    flag.touch()
    run = resume(tmp_path)
    assert run.result == [len(CANARY), len(CANARY)]
    assert CANARY.encode() not in stored(tmp_path)


@pytest.mark.clause("P2.6")
def test_a_resume_whose_secret_is_gone_from_the_file_says_so(tmp_path: Path) -> None:
    assert play(TEXT, tmp_path, {"flag": str(tmp_path / "flag")}).status == "failed"
    (tmp_path / "playbook.yaml").unlink()
    with pytest.raises(Refused, match="`one` was written into the document"):
        resume(tmp_path)


def test_masking_moves_no_line_and_touches_nothing_else() -> None:
    kept = masked(TEXT)
    assert CANARY not in kept
    assert len(kept.splitlines()) == len(TEXT.splitlines())
    assert kept.partition("workload:")[2] == TEXT.partition("workload:")[2]
    assert masked("workflow: []\n") == "workflow: []\n"


def test_an_auth_name_that_is_not_declared_is_looked_up_before_anything_runs(tmp_path: Path) -> None:
    text = """
    - step: start
      tool: {kind: noop}
      next: {arcs: [{step: load}]}
    - step: load
      tool: {kind: http, url: "http://127.0.0.1:9/", auth: nowhere}
    """
    with pytest.raises(Refused, match="keychain entry `nowhere`"):
        play(text, tmp_path, environ={})
