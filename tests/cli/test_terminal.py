"""On a terminal: a live tree while it runs, the summary when it is over. A real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.cli.support import FAILS, PATIENCE_S, WAITS, environment, process, write

pytestmark = pytest.mark.usefixtures("folder")

LOOP = """
- step: start
  tool:
    - name: say
      kind: python
      code: |
        import time
        print("working hard")
        time.sleep(0.4)
  next: {arcs: [{step: many}]}
- step: many
  loop: {in: "{{ range(0, 30) }}", iterator: x}
  tool: [{name: nap, kind: sleep, seconds: 0.01}]
  next: {arcs: [{step: fin}]}
- step: fin
  tool: [{name: n, kind: noop, value: {answer: 42}}]
"""


class Terminal:
    """A program on a terminal of its own, 24 lines of 100 columns unless told otherwise."""

    def __init__(self, *arguments: str, columns: int = 100, **environ: str) -> None:
        """With variables of its own the program is started anew, as Python reads some of them only then."""
        self.shown = b""
        self.handle, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        streams: Any = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
        if environ:
            words = [sys.executable, "-m", "penstock", *arguments]
            self.process = subprocess.Popen(words, env={**environment(), **environ}, text=True, **streams)
        else:
            self.process = warm.starting(*arguments, env=environment(), **streams)
        os.close(theirs)

    def until(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while text.encode() not in self.shown:
            assert time.monotonic() < deadline, f"{text} was never shown"
            if not self._read():
                raise AssertionError(f"{text} was never shown: {self.text}")

    def until_there(self, path: Path) -> None:
        """Wait for a file that the program makes."""
        deadline = time.monotonic() + PATIENCE_S
        while not path.exists():
            assert time.monotonic() < deadline, f"{path} was never made"
            assert self._read(), self.text

    def end(self) -> int:
        while self._read():
            pass
        return self.hang_up()

    def hang_up(self) -> int:
        os.close(self.handle)
        return self.process.wait(PATIENCE_S)

    def type(self, keys: bytes) -> None:
        os.write(self.handle, keys)

    def _read(self) -> bool:
        try:
            data = os.read(self.handle, 65536)
        except OSError:  # Linux says this way that the program has gone.
            return False
        self.shown += data
        return bool(data)

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.shown.decode("utf-8", "replace"))


def test_a_live_tree_is_drawn_and_the_summary_follows() -> None:
    terminal = Terminal("run", write("loop.yaml", LOOP))
    assert terminal.end() == 0
    assert b"\x1b[?25l" in terminal.shown  # The cursor is hidden while the tree is drawn,
    assert b"\x1b[?25h" in terminal.shown  # and comes back.
    assert "│ working hard" in terminal.text
    assert re.search(r"many +━*─+ +\d+/30", terminal.text)
    assert "✓ many" in terminal.text
    last = terminal.text[terminal.text.rindex("✓ fin") :]
    assert "completed after" in last
    assert '"answer": 42' in last


def test_a_failure_is_marked_and_explained() -> None:
    terminal = Terminal("run", write("fails.yaml", FAILS))
    assert terminal.end() == 1
    assert "✗ bad" in terminal.text
    assert "error in step `bad`, task `boom`" in terminal.text
    assert b"\x1b[31m" in terminal.shown


def test_ctrl_c_names_the_command_that_goes_on() -> None:
    terminal = Terminal("run", write("waits.yaml", WAITS), "--grace", "0")
    terminal.until("wait")
    terminal.until("poll")
    terminal.type(b"\x03")
    assert terminal.end() == 3
    assert "SIGINT: stopping" in terminal.text
    assert "penstock resume" in terminal.text
    assert terminal.shown.rstrip().endswith(b"\x1b[?25h") or b"\x1b[?25h" in terminal.shown
    Path("gate").touch()
    resumed = Terminal("resume", "@last")
    assert resumed.end() == 0
    assert "✓ wait" in resumed.text
    assert "finished" in resumed.text


def test_a_terminal_that_is_closed_interrupts_the_run() -> None:
    terminal = Terminal("run", write("waits.yaml", WAITS), "--grace", "0")
    terminal.until("poll")
    assert terminal.hang_up() == 3
    assert process("show", "@last", "--json").json["status"] == "interrupted"


def test_json_on_a_terminal_is_spread_out_and_without_a_tree() -> None:
    terminal = Terminal("run", write("fails.yaml", FAILS), "--json")
    assert terminal.end() == 1
    assert terminal.text.startswith("{\r\n")
    assert "\x1b" not in terminal.shown.decode()
