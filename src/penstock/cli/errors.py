"""Messages and exit codes of errors: whose fault it is decides the code."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import BOLD, GREEN, RED, YELLOW, has_colour, near, painted, put_json, safe, say
from penstock.dialects.problems import Problem, Severity
from penstock.kernel.errors import Bug, Damaged, PenstockError, Refused, Unavailable
from penstock.ports.folders import CATALOG, is_address
from penstock.ports.kept_state import document_key

if TYPE_CHECKING:
    from penstock.server.changes import Change


REPORT = "this is a mistake in penstock itself; `PENSTOCK_DEBUG=1` shows where, please report it"


def report(error: Exception, *, as_json: bool) -> int:
    """Prints what went wrong and returns the exit code."""
    problems = getattr(error, "problems", None)
    text = getattr(error, "text", None)
    if isinstance(error, Refused) and isinstance(text, str) and problems:
        return tell_problems(problems, _texts(problems, str(getattr(error, "file", "")), text), as_json=as_json)
    kind, code, message, hint = _sorted_out(error)
    if as_json:
        put_json({"status": "error", "exit_code": code, "error": {"kind": kind, "message": message, "hint": hint}})
        return code
    say(f"{painted('error:', BOLD + RED)} {safe(message)}")
    if hint:
        say(f"{painted('hint:', BOLD)} {safe(hint)}")
    return code


def _texts(problems: Sequence[Problem], file: str, text: str) -> dict[str, str]:
    """The document's text, and those of the joblets that problems lie in."""
    texts = {file: text}
    for problem in problems:
        other = problem.position.file
        if other not in texts:
            try:
                texts[other] = Path(other).read_text(encoding="utf-8")
            except (OSError, ValueError):
                texts[other] = ""
    return texts


def _sorted_out(error: Exception) -> tuple[str, int, str, str | None]:
    match error:
        case CommandLineError():
            return "command_line", 2, error.message, error.hint
        case Refused():
            return "refused", 2, error.message, error.hint
        case Damaged():
            return "damaged", 4, error.message, error.hint
        case Unavailable():
            return "unavailable", 4, error.message, error.hint
        case Bug():
            return "bug", 4, error.message, error.hint or REPORT
        case PenstockError():
            return "error", 4, error.message, error.hint
        case MemoryError():
            return "unavailable", 4, "there was no memory left", "resume the run with more memory"
        case OSError():
            where = f"`{error.filename}`: " if error.filename else ""
            return "unavailable", 4, f"{where}{(error.strerror or str(error)).lower()}", None
    return "bug", 4, f"{type(error).__name__}: {error}", REPORT


PRESSING = frozenset({"J0314", "J0705", "P0706", "P0709", "P0710", "P0811"})
"""Warnings of what a run would do silently, such as reading other data: they are shown in full by every command that checks or
runs a document."""


def tell_pressing(problems: Sequence[Problem], sources: Mapping[str, str]) -> None:
    from penstock.dialects.report import render  # Only problems of documents need it.

    pressing = [problem for problem in problems if problem.code in PRESSING and problem.severity is Severity.WARNING]
    if pressing:
        say(render(pressing, sources, color=has_colour(sys.stderr)).rstrip("\n"))


def tell_problems(problems: Sequence[Problem], sources: Mapping[str, str], *, as_json: bool) -> int:
    """The problems of a document that cannot run."""
    from penstock.dialects.report import as_json as flat  # Only problems of documents need it.
    from penstock.dialects.report import render

    if as_json:
        body: dict[str, Any] = {"status": "invalid", "exit_code": 2, "problems": flat(problems)}
        put_json(body)
    else:
        say(render(problems, sources, color=has_colour(sys.stderr)).rstrip("\n"))
    return 2


MOST_LINES = 40
_PAINTS = {"+": GREEN, "-": RED}


def tell_changes(found: Sequence[Change], document: str) -> None:
    """`document`: the one that the run was started from; the changed file may be a joblet of it, which cannot be run."""
    for change in found:
        file = safe(near(change.file))
        head = painted("warning", BOLD + YELLOW, sys.stderr)
        say(f"{head}: `{file}` has changed since the run started; the run goes on with the text it started with")
        lines = safe(change.diff).splitlines()
        for line in lines[:MOST_LINES]:
            is_header = line.startswith(("+++ ", "--- "))
            say(f"  {painted(line, BOLD if is_header else _PAINTS.get(line[:1], ''), sys.stderr)}".rstrip())
        if len(lines) > MOST_LINES:
            say(f"  … {len(lines) - MOST_LINES:,} more lines; `--json` has them all")
    if found:
        named = document_key(document).removeprefix(CATALOG).strip("/") if is_address(document) else near(document)
        say(f"hint: to run the new text, start a new run: penstock run {shlex.quote(named)}")
