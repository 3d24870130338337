"""The examples as a person runs them: a copy of the folder, the command line, a local API."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import warm

PROJECT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = PROJECT / "examples"
LEFT_BY_RUNS = (".penstock", "out", "*.duckdb", "*.db", "inbox.json", "prepared.txt", "bank-is-open")


@dataclass(frozen=True)
class Said:
    exit_code: int
    out: str
    words: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Job:
    """What `run --json`, `resume --json` and `show --json` print of a job."""

    view: Any
    words: str = ""

    @property
    def states(self) -> dict[str, str]:
        return {name: one["state"] for name, one in self.view["components"].items()}

    @property
    def subjobs(self) -> dict[str, str]:
        return {one["name"]: one["state"] for one in self.view["subjobs"]}

    @property
    def globals(self) -> Any:
        return self.view["globals"]

    def rows_in(self, component: str) -> Any:
        return self.view["components"][component]["rows_in"]

    def rows_out(self, component: str) -> Any:
        return self.view["components"][component]["rows_out"]

    def fired(self, source: str, on: str, target: str) -> int:
        """How often a link fired."""
        return sum(
            one["fired"] for one in self.view["edges"] if (one["from"], one["on"], one["to"]) == (source, on, target)
        )

    def kept(self) -> set[str]:
        return {name for name, one in self.view["components"].items() if one.get("kept")}


@dataclass(frozen=True)
class Desk:
    """A folder with a copy of one example, and the command line in it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def penstock(self, *words: str, **variables: str) -> Said:
        done = warm.called(*words, cwd=self.folder, env={**os.environ, **self.environment, **variables})
        return Said(done.returncode, done.stdout, done.stderr)

    def run(self, file: str, *words: str, **variables: str) -> Any:
        """The result of a run that completes, and whose replay decides the same."""
        said = self.penstock("run", file, "--json", *words, **variables)
        assert said.exit_code == 0, said.out + said.words
        assert self.penstock("replay", "@last").exit_code == 0
        return said.json["result"]

    def job(self, file: str, *words: str, exit_code: int = 0) -> Job:
        """What a run of a job came to, and what it said."""
        said = self.penstock("run", file, *words)
        assert said.exit_code == exit_code, said.out + said.words
        return Job(self.penstock("show", "@last", "--json").json, said.words)

    def replays(self) -> bool:
        """Is every decision of the last run the same when it is made again?"""
        return self.penstock("replay", "@last").exit_code == 0

    def events(self, event_type: str) -> list[Any]:
        lines = self.penstock("events", "@last", "--json").out.splitlines()
        return [event for event in map(json.loads, lines) if event["event_type"] == event_type]


def desk(example: str, tmp_path: Path) -> Desk:
    folder = tmp_path / example
    shutil.copytree(EXAMPLES / example, folder, ignore=shutil.ignore_patterns(*LEFT_BY_RUNS))
    return Desk(folder, {"PYTHONPATH": str(PROJECT / "src"), "XDG_STATE_HOME": str(tmp_path / "xdg")})
