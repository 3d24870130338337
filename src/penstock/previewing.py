"""Preview, put together: part of a job run in memory, for the rows of one port."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from penstock.adapters.memory_blobs import MemoryBlobs
from penstock.adapters.memory_log import MemoryLog
from penstock.kernel.errors import Refused
from penstock.kernel.net import Net, On
from penstock.server.documents import Documents
from penstock.server.preview import previewed


async def preview(
    engine: Any,
    path: Path,
    component: str,
    port: str | None,
    rows: int,
    context: dict[str, Any],
    group: str | None,
) -> tuple[list[str], list[dict[str, Any]], int]:
    documents = Documents(engine.tools, engine.components, strict=engine.strict)
    document = documents.open(path, context, group)
    net, compiled = documents.compile(document)
    if net.kind != "job":
        raise Refused("a playbook has no rows to preview", hint="`penstock preview` is for jobs")
    part, name, from_port = previewed(net, component, port, lambda type: _family(engine, type))
    documents.hold(document, part, compiled)
    with tempfile.TemporaryDirectory(prefix="penstock-preview-") as folder:
        alone = replace(engine, home=Path(folder), log=MemoryLog(), blobs=MemoryBlobs())
        run = alone.run("preview")
        run.world.documents = documents
        summary = await run.start(
            document,
            context,
            label=None,
            trace_id="preview",
            context=group,
            outputs=(f"{name}.{from_port}", *_cut_off(net, part)),
            sample=rows,
        )
    if summary.status != "completed":
        error = summary.error if isinstance(summary.error, dict) else {}
        raise Refused(f"the rows cannot be shown: {error.get('message', summary.status)}")
    outputs = cast("dict[str, Any]", run.job_result()["outputs"])
    found = outputs.get(f"{name}.{from_port}")
    if found is None:
        raise Refused(f"`{name}` put no rows on its port `{from_port}`")
    return found["columns"], found["rows"], found["row_count"]


def _cut_off(net: Net, part: Net) -> list[str]:
    """Ports whose readers were left out. They count as read all the same: with nobody at `reject` a bad row is a failure."""
    return [
        f"{link.source}.{link.port}"
        for link in net.links
        if link.on is On.DATA and link.source in part.nodes and link.target not in part.nodes
    ]


def _family(engine: Any, type: str) -> str | None:
    description = engine.components.describe(type)
    return None if description is None else str(description.family)
