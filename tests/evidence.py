"""How the tests of each clause ended, kept for `make conformance`: it need not run again what has just been run.

What is kept belongs to one state of the sources and counts for no other.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".evidence.json"
CLAUSES = Path(__file__).with_name("clauses.txt")
SOURCES = ("src", "tests", "examples", "docs", "pyproject.toml")
MARK = "clause"


def clauses() -> dict[str, str]:
    """Clause id -> what it demands, in our own words."""
    found: dict[str, str] = {}
    for line in CLAUSES.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, demand = line.partition(" ")
            found[name] = demand.strip()
    return found


def state_of_sources() -> str:
    digest = hashlib.sha256()
    for place in SOURCES:
        path = ROOT / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(ROOT)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def kept() -> dict[str, Any] | None:
    """Test -> its clauses and how it ended, if that is known of the sources as they are."""
    try:
        found = json.loads(KEPT.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return dict(found["tests"]) if found.get("state") == state_of_sources() else None


class Evidence:
    """A pytest plug-in. Under pytest-xdist tests run elsewhere, and their reports, which come here, carry the clauses."""

    def __init__(self) -> None:
        self.state = state_of_sources()
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        names = [name for key, value in report.user_properties if key == MARK for name in value]
        if names and (report.when == "call" or not report.passed):
            test = self.tests.setdefault(report.nodeid, {"clauses": names, "outcome": report.outcome})
            if test["outcome"] == "passed":
                test["outcome"] = report.outcome

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            KEPT.write_text(json.dumps({"state": self.state, "tests": self.tests}), encoding="utf-8")


def wants_all(config: pytest.Config) -> bool:
    """Does this run hold every test that has a clause?"""
    chosen = config.option
    is_cut = chosen.keyword or chosen.deselect or chosen.ignore or chosen.ignore_glob or chosen.maxfail
    is_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return is_all and not is_cut and not chosen.quick and not chosen.collectonly and chosen.markexpr in ("", MARK)


def attach_clauses(items: list[pytest.Item]) -> None:
    known = clauses()
    for item in items:
        names = [name for mark in item.iter_markers(MARK) for name in mark.args]
        if unknown := [name for name in names if name not in known]:
            raise pytest.UsageError(
                f"{item.nodeid} is marked with {', '.join(unknown)}, which {CLAUSES.name} does not list"
            )
        if names:
            item.user_properties.append((MARK, names))
