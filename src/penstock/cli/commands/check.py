"""`penstock validate FILE…` and `penstock lint FILE…`"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.cli.output import has_colour, put_json, say
from penstock.cli.remote import server_of
from penstock.remote.client import Client, problems_of

if TYPE_CHECKING:
    from penstock.dialects.problems import Problem


ERRORS = frozenset({"error"})
WITHOUT_NOTES = ERRORS | {"warning"}
EVERYTHING = WITHOUT_NOTES | {"note"}


class _Examined(NamedTuple):
    file: str
    text: str
    texts: Mapping[str, str]
    problems: Sequence[Problem]


class _Asked:
    """Files as a server sees them, which may know other tools than this machine does."""

    def __init__(self, url: str, *, strict: bool) -> None:
        self._client = Client(url)
        self._strict = strict

    def examined(self, path: Path) -> Any:
        from penstock.library import Library
        from penstock.remote.sending import Sent, seen_here

        sent = Sent(Library(), str(path))
        body = {"document": sent.body, "strict": self._strict}
        found = self._client.ask("POST", "/api/validate", body=body, is_safe=True)
        texts = getattr(sent.compiled, "texts", {})
        return _Examined(str(path), sent.text, texts, seen_here(problems_of(found["problems"]), sent))


def validate(options: Namespace) -> int:
    return _check(options, shown=WITHOUT_NOTES if not options.quiet else ERRORS)


def lint(options: Namespace) -> int:
    return _check(options, shown=EVERYTHING)


def _check(options: Namespace, *, shown: frozenset[str]) -> int:
    from penstock.dialects.problems import Severity
    from penstock.dialects.report import as_json, render, summary
    from penstock.library import Library, sources_of

    url = server_of(options)
    examined = Library(strict=options.strict).compiled if url is None else _Asked(url, strict=options.strict).examined
    reported: list[Problem] = []
    left_out: list[Problem] = []
    sources: dict[str, str] = {}
    files = []
    for file in dict.fromkeys(options.files):
        compiled = examined(Path(file))
        sources.update(sources_of(compiled))
        errors = sum(problem.severity is Severity.ERROR for problem in compiled.problems)
        files.append({"file": file, "status": "invalid" if errors else "valid", "errors": errors})
        for problem in compiled.problems:
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
