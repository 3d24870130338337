"""`penstock validate FILE…` and `penstock lint FILE…`"""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.app.library import Examined, Library
from penstock.app.state_folder import home_for
from penstock.cli import inputs
from penstock.cli.output import has_colour, put_json, say
from penstock.cli.places import server_of
from penstock.dialects.problems import Problem, Severity
from penstock.dialects.report import as_json, render, summary
from penstock.remote.client import Client, problems_of

ERRORS = frozenset({"error"})
WITHOUT_NOTES = ERRORS | {"warning"}
EVERYTHING = WITHOUT_NOTES | {"note"}


class _Asked:
    """Files as a server sees them, which may know other tools than this machine does."""

    def __init__(self, url: str, options: Namespace, given: Mapping[str, Any]) -> None:
        self._client = Client(url)
        self._asked = {"strict": options.strict, "payload": given, "context": options.context}

    def examined(self, path: Path) -> Examined:
        from penstock.remote.client import Sent, seen_here  # Only checks at a server need it.

        sent = Sent(Library(), str(path))
        found = self._client.ask("POST", "/api/validate", body={"document": sent.body, **self._asked}, is_safe=True)
        texts = {str(path): sent.text, **getattr(sent.compiled, "texts", {})}
        return Examined(str(path), tuple(seen_here(problems_of(found["problems"]), sent)), texts)


class _LookedAt:
    """Files as they would run on this machine."""

    def __init__(self, options: Namespace, given: Mapping[str, Any]) -> None:
        self._library = Library(strict=options.strict)
        self._options = options
        self._given = given

    def examined(self, path: Path) -> Examined:
        home = home_for(path, self._options.store)
        return asyncio.run(self._library.examined(path, self._given, self._options.context, home))


def validate(options: Namespace) -> int:
    return _check(options, shown=WITHOUT_NOTES if not options.quiet else ERRORS)


def lint(options: Namespace) -> int:
    return _check(options, shown=EVERYTHING)


def _check(options: Namespace, *, shown: frozenset[str]) -> int:
    url = server_of(options)
    given = inputs.workload(options.payload, options.set)
    examined = (_LookedAt(options, given) if url is None else _Asked(url, options, given)).examined
    reported: list[Problem] = []
    left_out: list[Problem] = []
    sources: dict[str, str] = {}
    files = []
    for file in dict.fromkeys(options.files):
        found = examined(Path(file))
        sources.update(found.texts)
        errors = sum(problem.severity is Severity.ERROR for problem in found.problems)
        files.append({"file": file, "status": "invalid" if errors else "valid", "errors": errors})
        for problem in found.problems:
            (reported if problem.severity.value in shown else left_out).append(problem)
    is_invalid = any(one["errors"] for one in files)
    code = 2 if is_invalid else 0
    if options.json:
        status = "invalid" if is_invalid else "valid"
        put_json({"status": status, "exit_code": code, "files": files, "problems": as_json(reported)})
        return code
    if reported:
        say(render(reported, sources, color=has_colour(sys.stderr)).rstrip("\n"))
    for one in files:
        if not one["errors"]:
            say(f"{one['file']}: valid")
    if left_out:
        say(f"{summary(left_out)} not shown; `penstock lint` shows them")
    return code
