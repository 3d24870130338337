"""`make conformance`: every clause of the specification with its tests and their results. A clause without a green test fails it.

The marks are collected from the suite itself: `@pytest.mark.clause("P6.3")`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from typing import Any

from tests.evidence import MARK, ROOT, clauses, kept


def evidence() -> dict[str, Any]:
    """Of the last `make test`, if nothing has changed since; else the tests that name a clause are run."""
    found = kept()
    if found is None:
        deal = ("-n", os.environ.get("JOBS", "2"), "--dist", "loadgroup")
        command = [sys.executable, "-m", "pytest", *deal, "-m", MARK]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        found = kept()
    if found is None:
        raise SystemExit("the tests did not come to their end: `make test` says why")
    return found


def main() -> int:
    found = evidence()
    by_clause: dict[str, list[str]] = defaultdict(list)
    for test, told in found.items():
        for name in told["clauses"]:
            by_clause[name].append(test)
    wanted = clauses()
    lacking = []
    for name, demand in wanted.items():
        tests = by_clause.get(name, [])
        green = [test for test in tests if found[test]["outcome"] == "passed"]
        verdict = "ok  " if tests and len(green) == len(tests) else "FAIL"
        if verdict == "FAIL":
            lacking.append(name)
        print(f"{verdict} {name:<6} {len(green):>3}/{len(tests):<3} {demand}")
        for test in tests:
            if test not in green:
                print(f"            {found[test]['outcome']}: {test}")
    print(f"{len(wanted) - len(lacking)} of {len(wanted)} clauses have green evidence")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
