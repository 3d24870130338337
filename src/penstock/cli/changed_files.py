"""Telling that files have changed since a run was started, before it goes on with what it is pinned to."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from penstock.cli.book import near
from penstock.cli.output import BOLD, GREEN, RED, YELLOW, painted, safe, say
from penstock.ports.folders import CATALOG, is_address
from penstock.ports.kept_state import document_key
from penstock.server.changes import Change

MOST_LINES = 40
_PAINTS = {"+": GREEN, "-": RED}


def tell_changes(found: Sequence[Change], document: str) -> None:
    """`document`: the one that the run is of; what has changed may be a joblet of it, which cannot be run."""
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
