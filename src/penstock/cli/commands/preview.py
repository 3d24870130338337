"""`penstock preview FILE COMPONENT[.PORT]`: the rows of one port, by running just what leads to it."""

from __future__ import annotations

import asyncio
import base64
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.app import state_folder
from penstock.cli import inputs
from penstock.cli.output import BOLD, RED, one_line, painted, put, put_json, safe, say, table
from penstock.server.preview import PreviewFailed

if TYPE_CHECKING:
    from penstock.app.preview import Preview

WIDEST_CELL = 60
MOST_LINES = 20
FAILED = 1


def preview(options: Namespace) -> int:
    try:
        found = asyncio.run(_previewed(options))
    except PreviewFailed as error:
        return _report(error, as_json=options.json)
    if options.json:
        put_json(_as_json(found))
    else:
        _show(found, options.component)
    return 0


async def _previewed(options: Namespace) -> Preview:
    from penstock.app.embedded import in_memory  # Commands for a server do not need the engine.

    file = Path(options.file)
    values = inputs.workload(options.payload, options.set)
    engine = in_memory(state_folder.home_for(file, options.store))
    try:
        return await engine.preview(file, options.component, options.rows, context=values, group=options.context)
    finally:
        await engine.close()


def _show(found: Preview, asked: str) -> None:
    if found.columns:
        put(table(found.columns, ([_cell(row.get(name)) for name in found.columns] for row in found.rows)))
    sys.stdout.flush()
    left = f" of {found.total:,}" if found.total != len(found.rows) else ""
    whose = asked if found.made_by == f"{found.component}.{found.port}" else f"{asked}, made by {found.made_by}"
    say(f"{len(found.rows):,}{left} {'row' if found.total == 1 else 'rows'} of {safe(whose)}")


def _as_json(found: Preview) -> dict[str, Any]:
    return {
        "component": found.component,
        "port": found.port,
        "made_by": found.made_by,
        "columns": found.columns,
        "rows": [{name: _json(row.get(name)) for name in found.columns} for row in found.rows],
        "total": found.total,
        "exit_code": 0,
    }


def _report(error: PreviewFailed, *, as_json: bool) -> int:
    file, line, column = error.position or (None, None, None)
    if as_json:
        details = {"kind": error.kind, "message": error.message, "component": error.component or None}
        position = {"file": file, "line": line, "column": column}
        put_json({"status": "failed", "exit_code": FAILED, "error": {**details, **position}})
        return FAILED
    where = f"{safe(str(file))}:{line}:{column}: " if file else ""
    at = f"component `{safe(error.component)}`" if error.component else "the job"
    say(f"{where}{painted('error', BOLD + RED)} in {at}: {safe(error.kind)}")
    for text in safe(error.message).splitlines()[:MOST_LINES]:
        say(f"  {text}")
    return FAILED


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    return one_line(str(value), WIDEST_CELL)


def _json(value: Any) -> Any:
    """A value of a row as JSON; values that JSON cannot represent become text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(inner) for inner in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    return str(value)
