"""The examples as a person runs them: a copy of the folder, the command line, a local API."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = PROJECT / "examples"
LEFT_BY_RUNS = (".penstock", "out", "*.duckdb", "inbox.json", "prepared.txt")


@dataclass(frozen=True)
class Said:
    exit_code: int
    out: str
    words: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Desk:
    """A folder with a copy of one example, and the command line in it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def penstock(self, *words: str, **variables: str) -> Said:
        environment = {**os.environ, **self.environment, **variables}
        done = subprocess.run(
            [sys.executable, "-m", "penstock", *words],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def run(self, file: str, *words: str, **variables: str) -> Any:
        """The result of a run that completes, and whose replay decides the same."""
        said = self.penstock("run", file, "--json", *words, **variables)
        assert said.exit_code == 0, said.out + said.words
        assert self.penstock("replay", "@last").exit_code == 0
        return said.json["result"]

    def events(self, event_type: str) -> list[Any]:
        lines = self.penstock("events", "@last", "--json").out.splitlines()
        return [event for event in map(json.loads, lines) if event["event_type"] == event_type]


def desk(example: str, tmp_path: Path) -> Desk:
    folder = tmp_path / example
    shutil.copytree(EXAMPLES / example, folder, ignore=shutil.ignore_patterns(*LEFT_BY_RUNS))
    return Desk(folder, {"PYTHONPATH": str(PROJECT / "src"), "XDG_STATE_HOME": str(tmp_path / "xdg")})
