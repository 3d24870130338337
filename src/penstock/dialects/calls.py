"""Calls of other documents by literal paths: known before the run, so that both documents are checked together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from penstock.dialects.problems import Position
from penstock.dialects.reader import is_template
from penstock.dialects.source.node import SourceNode, to_json
from penstock.kernel.values import JsonMap, frozen

PLAYBOOK_CALLS: Mapping[str, tuple[str, ...]] = {"playbook": ("args",), "job": ("args",)}
"""Tool that calls another document -> the parameters with its inputs; later ones win."""
JOB_CALLS: Mapping[str, tuple[str, ...]] = {"run_job": ("context",), "playbook": ("workload", "args")}
"""The same for components."""


@frozen
class Named:
    """A part of the called document that the call names."""

    name: str
    position: Position


@frozen
class DocumentCall:
    caller: str
    """The step or component."""
    path: str
    position: Position
    given: JsonMap | None = None
    """The inputs as they are written, with their templates; None when one template makes all of them."""
    positions: Mapping[str, Position] = field(default_factory=dict)
    """Where the name of each input stands."""
    folder: Path | None = None
    """Where the path begins, if not in the folder of the calling document."""
    return_step: Named | None = None
    group: Named | None = None
    may_be_absent: bool = False
    """An earlier task could write the file, or the calling document handles its absence."""


def call_in(
    caller: str,
    params: Mapping[str, SourceNode],
    inputs: tuple[str, ...],
    *,
    folder: Path | None = None,
    may_be_absent: bool = False,
) -> DocumentCall | None:
    """The call in the parameters of a task or component; None when its path is a template."""
    path = params.get("path")
    if path is None or not (path.text() or "").strip() or is_template(path):
        return None
    given: JsonMap | None = {}
    positions: dict[str, Position] = {}
    for name in inputs:
        node = params.get(name)
        if node is None or node.is_null:
            continue
        if node.kind != "mapping":
            given = None
        elif given is not None:
            given.update({key: to_json(inner) for key, inner in node.entries.items()})
        positions.update(node.keys)
    return DocumentCall(
        caller,
        str(path.value),
        path.position,
        given=given,
        positions=positions,
        folder=folder,
        return_step=_named(params.get("return_step")),
        group=_named(params.get("context_group")),
        may_be_absent=may_be_absent,
    )


def _named(node: SourceNode | None) -> Named | None:
    text = None if node is None else node.text()
    return None if node is None or not text or is_template(node) else Named(text, node.position)
