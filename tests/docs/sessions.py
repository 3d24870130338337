"""A page as a session: its files are written, its commands are run one after another, and what they print is compared.

A block whose line above ends in "`name.ext`:" is a file. A `console` block holds commands (`$ …`) and what they print, stderr and
stdout together. A line `…` stands for lines that are left out. What differs from run to run (times, ids, folders) is not compared,
nor is the order of lines: components that run side by side say their lines in any order.

    python -m tests.docs.sessions docs/how-to/first-job.md …      writes the pages anew with what the commands print now
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.cli.main import main
from tests.docs.pages import DOCS, PROJECT, Block, blocks

HOME = "/home/ada/jobs"
"""What pages show for the folder of a session."""
SKIPPED = "…"
PAGES = [
    PROJECT / "README.md",
    DOCS / "how-to" / "first-playbook.md",
    *sorted(
        path
        for path in (DOCS / "how-to").glob("*.md")
        if any(block.language == "console" and block.file is None for block in blocks(path, "console"))
        and "kind: Job" in path.read_text(encoding="utf-8")
    ),
]
_UNSTEADY = (
    (re.compile(r"(?<!\d)\d\d:\d\d:\d\d\b"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]TIME[\d.]*Z?"), "MOMENT"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "RUN"),
    (re.compile(r"\b[\d.,]+ ?(?:ms|s|min|h)\b"), "TAKEN"),
    (re.compile(r'"(duration_ms|ms)":[\d.]+'), r'"\1":0'),
    (re.compile(r"\d[\d,.]* rows/s"), "SPEED"),
    (re.compile(r"\d+ bytes"), "SIZE"),
    (re.compile(r"\bdigest [0-9a-f]{16}\b"), "digest"),
)


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """A folder whose path is as long as HOME, so that tables stand as they should and long lines are cut where the page cuts them."""
    with tempfile.TemporaryDirectory(prefix="p", dir="/tmp") as name:
        assert len(name) == len(HOME)
        yield Path(name)


@dataclass
class Session:
    """One folder, one state folder in it, one command after another."""

    folder: Path
    code: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)

    def write(self, block: Block) -> None:
        assert block.file is not None
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def run(self, command: str) -> list[str]:
        words = shlex.split(command, comments=True)
        if command.split("#")[0].strip() == "echo $?":
            said = f"{self.code}\n"
        elif words[0] == "penstock" and not {">", "|", "<"} & {*words}:
            said = self._penstock(words[1:])
        else:
            said = self._shell(command)
        return [line.rstrip() for line in said.replace(str(self.folder), HOME).splitlines()]

    def _penstock(self, arguments: list[str]) -> str:
        out = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            self.code = main(arguments)
        return out.getvalue()

    def _shell(self, command: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT / "src"), **self.environment}
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=environment, text=True, capture_output=True, check=False
        )
        self.code = done.returncode
        return done.stdout + done.stderr


def steps(block: Block) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that stand below it."""
    command, shown = "", list[str]()
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        else:
            shown.append(line)
    if command:
        yield command, shown


def steady(line: str) -> str:
    for pattern, word in _UNSTEADY:
        line = pattern.sub(word, line)
    return " ".join(line.split())


def difference(shown: list[str], printed: list[str]) -> list[str]:
    """What a page shows and the command does not print, and the other way round unless lines are left out."""
    wanted = Counter(steady(line) for line in shown if line.strip() not in ("", SKIPPED))
    given = Counter(steady(line) for line in printed if line.strip())
    missing = [f"not printed: {line}" for line in (wanted - given).elements()]
    if any(line.strip() == SKIPPED for line in shown):
        return missing
    return missing + [f"not shown: {line}" for line in (given - wanted).elements()]


def play(page: Path, folder: Path) -> list[str]:
    """Everything on a page that is not as it says."""
    session, wrong = Session(folder), []
    for block in blocks(page):
        if block.file is not None:
            session.write(block)
        elif block.language == "console":
            for command, shown in steps(block):
                found = difference(shown, session.run(command))
                wrong += [f"{block.name}: $ {command}: {line}" for line in found]
    return wrong


def rewritten(page: Path, folder: Path) -> str:
    """The page with what its commands print now, where that differs from what it shows."""
    session, text = Session(folder), page.read_text(encoding="utf-8")
    for block in blocks(page):
        if block.file is not None:
            session.write(block)
        elif block.language == "console":
            lines = []
            for command, shown in steps(block):
                printed = session.run(command)
                same = not difference(shown, printed)
                lines += [f"$ {command}", *(shown if same else printed)]
            new = "\n".join(lines).rstrip("\n")
            text = text.replace(f"```console\n{block.text}```", f"```console\n{new}\n```", 1)
    return text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with place() as folder, tempfile.TemporaryDirectory() as elsewhere:
            os.environ["XDG_STATE_HOME"] = elsewhere
            Path(name).write_text(rewritten(Path(name).resolve(), folder), encoding="utf-8")
