"""Preview: the part of a job that one port needs, run in memory for its first rows."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.adapters.memory.log import MemoryLog
from penstock.kernel.errors import Refused
from penstock.kernel.net import Node
from penstock.kernel.values import Json
from penstock.ports.log import EventLog
from penstock.ports.plugins import at_folder
from penstock.ports.results import decode
from penstock.server.child_execution import context_group
from penstock.server.documents import Documents, Pinned
from penstock.server.inputs import require_known
from penstock.server.preview import Make, PreviewFailed, component_and_port, cut_off, previewed
from penstock.views.names import node_of

if TYPE_CHECKING:
    from penstock.dialects.source.positions import SourceMap


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of one port, and how many there are in all. `made_by` is the output that produced them, `COMPONENT.PORT`: a
    different one if the component is a joblet call or acts on rows that other components made."""

    component: str
    port: str
    made_by: str
    columns: list[str]
    rows: list[dict[str, Any]]
    total: int


async def preview(
    engine: Any, path: Path, wanted: str, rows: int, context: Mapping[str, Any], group: str | None
) -> Preview:
    """`wanted` is `COMPONENT[.PORT]`."""
    documents = Documents(engine.tools, engine.components, strict=engine.strict)
    document = documents.open(path, context, group)
    return await preview_of(engine, documents, document, wanted, rows, context, group)


async def preview_of(
    engine: Any,
    documents: Documents,
    document: Pinned,
    wanted: str,
    rows: int,
    context: Mapping[str, Any],
    group: str | None,
) -> Preview:
    """The same of a document that is known already, such as the one that a run is pinned to."""
    net, compiled = documents.compile(document)
    path = Path(document.file)
    if net.kind != "job":
        raise Refused(f"`{path}` is a playbook, which has no rows to preview", "give a job: a file with `components`")
    context_group(net, group)  # Refused before anything runs, with the names there are.
    require_known(net, context)
    component, port = component_and_port(wanted, net)
    components = at_folder(engine.components, documents.folder(document))
    part, end, port = previewed(
        net, getattr(compiled, "gives_out", {}), component, port, lambda node: _make(components, node)
    )
    made_by = ".".join(end)
    documents.hold(document, part, compiled)
    with tempfile.TemporaryDirectory(prefix="penstock-preview-") as folder:
        alone = replace(engine, scratch=Path(folder), log=MemoryLog(), blobs=MemoryBlobs())
        run = alone.run("preview", documents)
        summary = await run.start(
            document,
            context,
            label=None,
            trace_id="preview",
            context=group,
            outputs=(made_by, *cut_off(net, part)),
            sample=rows,
        )
    if summary.status != "completed":
        raise _failed(summary.error, summary.status, compiled.positions)
    outputs = cast("dict[str, Any]", run.job_result()["outputs"])
    found = outputs.get(made_by) or _in_iteration(alone.log, *end)
    if found is None and any(node.iterates is not None for node in part.nodes.values()):
        raise Refused(f"`{component}` did not run: an iterator that it lies in has no elements")
    if found is None:
        raise Refused(f"`{component}` put nothing on its port `{port}`", "it has rows only in some runs")
    return Preview(component, port, made_by, found["columns"], found["rows"], found["row_count"])


def _in_iteration(log: EventLog, name: str, port: str) -> dict[str, Any] | None:
    """What a component of a body put out in its iteration: only the log has it."""
    for entry in log.read("preview"):
        if entry.type == "component.ok" and "[#" in entry.scope and node_of(entry.scope) == name:
            data: Any = decode(entry.payload)
            output = data["outputs"].get(port)
            return output.get("wanted") if isinstance(output, dict) else None
    return None


def _make(components: Any, node: Node) -> Make:
    type, params = node.tasks[0].kind, node.tasks[0].params
    description = components.describe(type)
    return Make("" if description is None else description.family, components.ports(type, params))


def _failed(error: Json, status: str, positions: SourceMap) -> PreviewFailed:
    known = error if isinstance(error, dict) else {}
    component = str(known.get("component") or "")
    position = positions.steps.get(node_of(component))
    return PreviewFailed(
        component,
        str(known.get("kind") or "error"),
        str(known.get("message") or status),
        (position.file, position.line, position.column) if position is not None and position.line else None,
    )
