"""The graph of a document for a page: nodes, edges and frames, each with its lines in the text.

Law: it depends on the document alone. Ids are those of the view of a run: nodes by name, links of a job by index, arcs of a
playbook as `STEP:INDEX`, sub-jobs as `<NAME>`, the inside of a joblet call and the body of an iterator by the name of what opens
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.dialects.secrets import MASK, is_secret_key, masked_tree
from penstock.kernel.net import Gate, Net, Node, On, Opening
from penstock.kernel.values import Json, JsonMap
from penstock.views.links import arc_id, frame_of, subjob_frame

if TYPE_CHECKING:
    from penstock.dialects.job import CompiledJob
    from penstock.dialects.playbook import Compiled
    from penstock.dialects.problems import Position

Near = Callable[[str], str]


def form_of(net: Net) -> JsonMap:
    """What a run of the document can be given: the names in its workload or context, with what is there by default."""
    return {
        "kind": net.kind,
        "name": net.name,
        "fields": [_field(name, default) for name, default in net.workload.items()],
        "contexts": [*net.contexts],
        "is_open": net.open_inputs,
    }


_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


def _field(name: str, default: Json) -> JsonMap:
    is_secret = is_secret_key(name)
    return {
        "name": name,
        "type": _TYPES.get(type(default), "any"),
        "default": MASK if is_secret and default else masked_tree(default, name, is_group=True),
        "is_secret": is_secret,
    }


def graph_of(net: Net, compiled: Compiled | CompiledJob, near: Near = lambda file: file) -> JsonMap:
    drawing = _Drawing(net, compiled, near)
    return {
        "kind": net.kind,
        "name": net.name,
        "digest": net.digest,
        "entry": net.entry or None,
        "nodes": [drawing.node(node) for node in net.nodes.values()],
        "edges": drawing.links() if net.kind == "job" else drawing.arcs(),
        "frames": drawing.frames(),
    }


class _Drawing:
    def __init__(self, net: Net, compiled: Compiled | CompiledJob, near: Near) -> None:
        self._net = net
        self._positions = compiled.positions
        self._near = near
        self._calls = {call.caller: call.path for call in compiled.calls}

    # ---- nodes

    def node(self, node: Node) -> JsonMap:
        first, last = self._positions.spans.get(node.name, (0, 0))
        position = self._positions.steps.get(node.name)
        line = first or (position.line if position is not None else 0)
        return {
            "id": node.name,
            "title": node.name.rpartition(".__")[2],
            "kind": _kind(node),
            "type": _type(node),
            "tasks": self._tasks(node),
            "frame": frame_of(self._net, node.name),
            "opens": node.part.opens if node.part is not None else None,
            "loop": _loop(node),
            "badges": _badges(node),
            "calls": self._calls.get(node.name),
            "file": self._file(position),
            "line": line or None,
            "end_line": max(last, line) or None,
        }

    def _tasks(self, node: Node) -> list[Any]:
        if node.part is not None:
            return []
        lines = self._positions.tasks
        return [
            {"name": task.label, "kind": task.kind, "line": _line(lines.get((node.name, task.label)))}
            for task in node.tasks
        ]

    def _file(self, position: Position | None) -> str:
        return self._near(position.file if position is not None else self._positions.file)

    # ---- edges

    def links(self) -> list[Any]:
        from penstock.dialects.job.plan import arrows, is_failure, link_label  # Playbooks need none of it.

        found: list[Any] = []
        for arrow in arrows(self._net):
            link = arrow.link
            position = self._positions.arcs.get((link.source, link.index))
            is_data = link.on is On.DATA
            found.append(
                {
                    "id": str(link.index),
                    "source": arrow.source,
                    "target": arrow.target,
                    "kind": "data" if is_data else "control",
                    "on": link.on.value,
                    "label": link_label(link),
                    "port": link.port if is_data else None,
                    "to_port": link.to_port if is_data else None,
                    "guard": link.when,
                    "is_failure": is_failure(link),
                    "file": self._file(position),
                    "line": _line(position),
                }
            )
        return found

    def arcs(self) -> list[Any]:
        from penstock.dialects.playbook.plan import arc_text, is_failure_arc  # Jobs need none of it.

        found: list[Any] = []
        for node in self._net.nodes.values():
            for edge in node.edges:
                position = self._positions.arcs.get((node.name, edge.index))
                found.append(
                    {
                        "id": arc_id(node.name, edge.index),
                        "source": node.name,
                        "target": edge.target,
                        "kind": "arc",
                        "on": "arc",
                        "label": arc_text(edge),
                        "port": None,
                        "to_port": None,
                        "guard": edge.guard,
                        "is_failure": is_failure_arc(edge),
                        "file": self._file(position),
                        "line": _line(position),
                    }
                )
        return found

    # ---- frames

    def frames(self) -> list[Any]:
        net, found = self._net, list[Any]()
        for key, container in net.containers.items():
            if not key:
                if len(container.regions) > 1:
                    found += [
                        _frame(subjob_frame(region.name), "subjob", f"sub-job {region.name}", None, None)
                        for region in container.regions
                    ]
                continue
            kind = "body" if container.opening is Opening.BODY else "joblet"
            opener = next((one.name for one in net.nodes.values() if one.part and one.part.opens == key), key)
            what = "body" if kind == "body" else f"@{net.nodes[opener].tasks[0].params.get('joblet', 'joblet')}"
            found.append(_frame(key, kind, f"{what} of {opener}", frame_of(net, opener), opener))
        return found


def _frame(id: str, kind: str, title: str, parent: str | None, opener: str | None) -> JsonMap:
    return {"id": id, "kind": kind, "title": title, "parent": parent, "opener": opener}


def _line(position: Position | None) -> int | None:
    return position.line or None if position is not None else None


def _kind(node: Node) -> str:
    if node.part is None:
        return "step"
    if node.iterates is not None:
        return "iterator"
    return "joblet" if node.part.opens is not None else "component"


def _type(node: Node) -> str:
    if node.part is None:
        return ", ".join(dict.fromkeys(task.kind for task in node.tasks))
    task = node.tasks[0]
    return f"@{task.params.get('joblet')}" if task.kind == "joblet" and "joblet" in task.params else task.kind


def _loop(node: Node) -> str | None:
    if node.iterates is not None:
        return "while" if node.iterates.while_ else "for each element"
    if node.fan is None:
        return None
    if node.fan.fanout is not None:
        return f"for each {node.fan.iterator}, fanned out"
    if node.fan.max_in_flight != 1:
        return f"for each {node.fan.iterator}, {node.fan.max_in_flight} at a time"
    return f"for each {node.fan.iterator}"


def _badges(node: Node) -> list[Any]:
    found: list[Any] = []
    part = node.part
    if node.gate in (Gate.JOIN, Gate.BARRIER) and not (part is not None and part.always):
        found.append("join " + " + ".join(node.joins))
    if node.admit is not None:
        found.append("admission")
    if part is None and not node.first_only and len(node.edges) > 1:
        found.append("all matching arcs")
    if part is not None and part.die_on_error:
        found.append("dies on error")
    if part is not None and part.always:
        found.append("runs in any case")
    if part is not None and part.group is not None:
        found.append(f"fused into {part.group}" if part.group != node.name else "fused")
    return found
