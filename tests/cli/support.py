"""Calling the command line: behind its door in this process for speed, and as a process where that is the point."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.cli.main import main
from tests import warm
from tests.documents import GREETING
from tests.engine import document

SOURCE = str(Path(penstock.__file__).parents[1])
PATIENCE_S = 60.0

HELLO = f"\nworkload: {{who: world, deep: {{a: 1, b: 2}}}}\n{GREETING}"

FAILS = """
- step: start
  tool: [{name: n, kind: noop}]
  next: {arcs: [{step: bad}]}
- step: bad
  tool: [{name: boom, kind: python, code: "raise ValueError('no luck')"}]
  next: {arcs: [{step: after}]}
- step: after
  tool: [{name: n, kind: noop}]
"""

# Waits until the test makes the file `gate`, a little at a time, so that it is under way for as long as the test likes.
WAITS = """
- step: start
  tool: [{name: first, kind: noop, value: 1}]
  next: {arcs: [{step: wait}]}
- step: wait
  tool:
    - name: mark
      kind: python
      code: |
        with open("marks", "a") as file:
            file.write("x")
    - name: poll
      kind: python
      code: |
        import time
        from pathlib import Path
        Path("waiting").touch()
        while not Path("gate").exists():
            time.sleep(0.01)
  next: {arcs: [{step: fin}]}
- step: fin
  tool: [{name: n, kind: noop, value: finished}]
"""


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> Called:
    """In this process."""
    capsys.readouterr()
    code = main(list(arguments))
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return Called(code, captured.out, captured.err)


def environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "TERM": "xterm"}


def process(*arguments: str, **more: Any) -> Called:
    """As a process of its own."""
    done = warm.called(*arguments, env=environment(), **more)
    assert "Traceback" not in done.stderr
    return Called(done.returncode, done.stdout, done.stderr)


def started(*arguments: str) -> subprocess.Popen[str]:
    return warm.starting(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def ended(running: subprocess.Popen[str]) -> Called:
    out, err = running.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in err, err
    return Called(running.returncode, out, err)


def until_there(path: Path, running: subprocess.Popen[str]) -> None:
    """Wait for a file that the process makes."""
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert running.poll() is None, ended(running)
        assert time.monotonic() < deadline, f"{path} was never made"
        time.sleep(0.01)


def write(name: str, text: str) -> str:
    Path(name).write_text(document(text), encoding="utf-8")
    return name
