"""A secret with control codes in it, through everything that shows what a run says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import folder
from tests.cli.support import process, write

__all__ = ["folder"]

PLAYBOOK = """\
keychain: [{name: k, kind: file, path: k.txt}]
workflow:
  - step: start
    tool:
      - {name: a, kind: python, args: {k: "{{ keychain.k }}"}, code: "print('raw', k); print(repr(k)); result = {k: k}"}
      - {name: b, kind: shell, env: {K: "{{ keychain.k }}"}, command: 'printf "sh %s" "$K"'}
      - {name: c, kind: python, args: {k: "{{ keychain.k }}"}, code: "raise KeyError(k)"}
"""
JOB = """\
keychain: [{name: k, kind: file, path: k.txt}]
components:
  - {name: rows, type: fixed_rows, params: {rows: [{a: "{{ keychain.k }}"}]}}
  - {name: shown, type: log_rows}
connections: {data: rows -> shown}
"""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("control", ["\x07", "\n", "\r", "\x1b[31m"], ids=ascii)
def test_neither_the_terminal_nor_the_logs_show_it(control: str) -> None:
    Path("k.txt").write_text(f"hunt{control}2pass99", newline="")
    for text in (PLAYBOOK, JOB):
        file = write("document.yaml", text)
        said = [
            process(*words)
            for words in (["run", file], ["logs", "@last"], ["logs", "@last", "--json"], ["events", "@last"])
        ]
        for one in said:
            for part in ("hunt", "2pass99"):
                assert part not in one.out + one.err, json.dumps(one.out + one.err)
