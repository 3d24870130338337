"""`penstock preview FILE COMPONENT[.PORT]`: the rows of one port, by running just what leads to it."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from penstock import homes
from penstock.cli import inputs
from penstock.cli.output import one_line, put, put_json, say, table

WIDEST_CELL = 60


def main(options: Namespace) -> int:
    from penstock.cli.documents import Library

    file = Path(options.file)
    values = inputs.workload(options.payload, options.set)
    job = Library().valid_job(file, "rows to preview", values or None)
    assert job.net is not None
    if options.context is not None:
        inputs.context_group(options.context, job.net)  # Refused here, with the names there are.
    component, port = inputs.component_and_port(options.component, job.net)
    columns, rows, total = _rows(options, file, component, port, values)
    if options.json:
        shown = [{name: _json(row.get(name)) for name in columns} for row in rows]
        put_json(
            {
                "component": component,
                "port": port,
                "columns": columns,
                "rows": shown,
                "total": total,
                "exit_code": 0,
            }
        )
        return 0
    if columns:
        put(table(columns, ([_cell(row.get(name)) for name in columns] for row in rows)))
    sys.stdout.flush()
    left = f" of {total:,}" if total != len(rows) else ""
    say(f"{len(rows):,}{left} {'row' if total == 1 else 'rows'} of {component}{f'.{port}' if port else ''}")
    return 0


def _rows(
    options: Namespace, file: Path, component: str, port: str | None, values: dict[str, Any]
) -> tuple[list[str], list[dict[str, Any]], int]:
    import asyncio

    from penstock.app import embedded

    async def previewed() -> tuple[list[str], list[dict[str, Any]], int]:
        engine = embedded(homes.home_for(file, options.store))
        try:
            return await engine.preview(
                file, component, port, options.rows, context=values or None, group=options.context
            )
        finally:
            await engine.close()

    return asyncio.run(previewed())


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    return one_line(str(value), WIDEST_CELL)


def _json(value: Any) -> Any:
    """A value of a row as JSON has it: what JSON has no word for, as text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(inner) for inner in value]
    if isinstance(value, (bytes, bytearray)):
        import base64

        return base64.b64encode(value).decode()
    return str(value)
