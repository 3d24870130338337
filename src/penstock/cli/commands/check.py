"""`penstock validate FILE…` and `penstock lint FILE…`"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from penstock.cli.output import has_colour, put_json, say


def validate(options: Namespace) -> int:
    return _check(options, everything=False)


def lint(options: Namespace) -> int:
    return _check(options, everything=True)


def _check(options: Namespace, *, everything: bool) -> int:
    from penstock.cli.documents import Library, sources_of
    from penstock.dialects.problems import Problem, Severity
    from penstock.dialects.report import as_json, render, summary

    library = Library(strict=options.strict)
    shown: list[Problem] = []
    left_out: list[Problem] = []
    sources: dict[str, str] = {}
    files = []
    for file in dict.fromkeys(options.files):
        compiled = library.compiled(Path(file))
        sources.update(sources_of(compiled))
        errors = sum(problem.severity is Severity.ERROR for problem in compiled.problems)
        files.append({"file": file, "status": "invalid" if errors else "valid", "errors": errors})
        for problem in compiled.problems:
            (shown if everything or problem.severity is Severity.ERROR else left_out).append(problem)
    is_invalid = any(one["errors"] for one in files)
    code = 2 if is_invalid else 0
    if options.json:
        status = "invalid" if is_invalid else "valid"
        put_json({"status": status, "exit_code": code, "files": files, "problems": as_json(shown)})
        return code
    sys.stderr.write(render(shown, sources, color=has_colour(sys.stderr)))
    for one in files:
        if not one["errors"]:
            say(f"{one['file']}: valid")
    if left_out:
        say(f"{summary(left_out)} not shown; `penstock lint` shows them")
    return code
