"""`make conformance`: every clause of the specification with its tests and their results. A clause without a green test fails it.

The marks are collected from the suite itself: `@pytest.mark.clause("P6.3")`.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import defaultdict
from pathlib import Path

import pytest

CLAUSES = Path(__file__).with_name("clauses.txt")


def clauses() -> dict[str, str]:
    """Clause id -> what it demands, in our own words."""
    found: dict[str, str] = {}
    for line in CLAUSES.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, demand = line.partition(" ")
            found[name] = demand.strip()
    return found


class Evidence:
    """A pytest plug-in that runs only marked tests and remembers how they ended."""

    def __init__(self) -> None:
        self.marks: dict[str, tuple[str, ...]] = {}
        self.results: dict[str, str] = {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        marked = [item for item in items if item.get_closest_marker("clause")]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(marked)])
        items[:] = marked
        for item in marked:
            self.marks[item.nodeid] = tuple(name for mark in item.iter_markers("clause") for name in mark.args)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            before = self.results.get(report.nodeid)
            self.results[report.nodeid] = report.outcome if before in (None, "passed") else str(before)


def main() -> int:
    evidence = Evidence()
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([str(Path(__file__).parent)], plugins=[evidence])
    by_clause: dict[str, list[str]] = defaultdict(list)
    for test, names in evidence.marks.items():
        for name in names:
            by_clause[name].append(test)
    wanted = clauses()
    lacking = []
    for name, demand in wanted.items():
        tests = by_clause.get(name, [])
        green = [test for test in tests if evidence.results.get(test) == "passed"]
        verdict = "ok  " if tests and len(green) == len(tests) else "FAIL"
        if verdict == "FAIL":
            lacking.append(name)
        print(f"{verdict} {name:<6} {len(green):>3}/{len(tests):<3} {demand}")
        for test in tests:
            if test not in green:
                print(f"            {evidence.results.get(test, 'did not run')}: {test}")
    unknown = sorted(name for name in set(by_clause) - set(wanted) if name.startswith(("P", "F")))
    if unknown:
        print(f"marks that name no clause: {', '.join(unknown)}")
    print(f"{len(wanted) - len(lacking)} of {len(wanted)} clauses have green evidence")
    return 1 if lacking or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
