"""The lowered form of a job, as JSON and as text: what `penstock plan` prints.

Joblets are expanded and their boundaries visible, sub-jobs and fused groups are there, ports have their columns as far as they
are known, and secrets are only named.
"""

from __future__ import annotations

from penstock.dialects.digest import as_json
from penstock.dialects.job.compile import CompiledJob
from penstock.dialects.job.graph import link_text, shown_ends
from penstock.dialects.job.level import ITEM
from penstock.dialects.secrets import masked_tree
from penstock.kernel.errors import Bug
from penstock.kernel.net import Container, Gate, Link, Net, Node, On, Opening, Part, Region
from penstock.kernel.values import Json, JsonMap
from penstock.ports.rows import Schema


def _net(compiled: CompiledJob) -> Net:
    if compiled.net is None:
        raise Bug("a document with errors has no plan")
    return compiled.net


def _part(node: Node) -> Part:
    assert node.part is not None
    return node.part


def plan(compiled: CompiledJob) -> JsonMap:
    net = _net(compiled)
    leaving, arriving = _rows_of(net)
    limits = as_json(net.limits)
    assert isinstance(limits, dict)
    return {
        "name": net.name,
        "kind": net.kind,
        "digest": net.digest,
        "context": net.workload,
        "contexts": dict(net.contexts),
        # A static entry holds the secret itself, so nothing but name and kind is shown.
        "keychain": [{"name": entry.get("name"), "kind": entry.get("kind")} for entry in net.keychain],
        "on_subjob_error": "abort" if net.aborts else "continue",
        "durability": net.durability.value,
        "limits": {name: limits[name] for name in ("max_reevaluations", "max_payload_bytes")},
        "engine": net.engine,
        "subjobs": [
            _subjob(container, region) for container in net.containers.values() for region in container.regions
        ],
        "components": [
            _component(
                compiled,
                node,
                leaving.get(node.name, []),
                _inputs(compiled, net, node.name, arriving.get(node.name, [])),
            )
            for node in net.nodes.values()
        ],
        "links": [_link(net, link) for link in net.links],
        "fused": [list(members) for members in net.groups.values()],
    }


def _subjob(container: Container, region: Region) -> JsonMap:
    found: JsonMap = {"name": region.name, "in": container.key, "members": list(region.members)}
    if container.opening is not Opening.JOB:
        found["opened"] = container.opening.value
    if region.handles is not None:
        found["handles"] = region.handles.value
    return found


def _component(compiled: CompiledJob, node: Node, leaving: list[Link], inputs: JsonMap) -> JsonMap:
    part, task = _part(node), node.tasks[0]
    found: JsonMap = {"name": node.name, "type": task.kind, "params": masked_tree(task.params, "params")}
    flags: dict[str, Json] = {
        "startable": part.startable,
        "joins": list[Json](node.joins) if node.gate is Gate.BARRIER else None,
        "required": list[Json](part.required),
        "die_on_error": part.die_on_error,
        "global_export": list[Json](part.exports),
        "opens": part.opens,
        "fused": part.group,
        "always": part.always,
    }
    found.update({key: value for key, value in flags.items() if value})
    found["inputs"] = inputs
    found["outputs"] = {port: _columns(schema) for port, schema in _outputs(compiled, node.name, leaving).items()}
    return found


def _inputs(compiled: CompiledJob, net: Net, name: str, arriving: list[Link]) -> JsonMap:
    sources: dict[str, list[Json]] = {}
    columns: dict[str, Json] = {}
    for link in arriving:
        if not link.source.startswith(f"{name}.__"):  # what leaves a joblet ends at its call, too
            sources.setdefault(link.to_port, []).append(f"{shown_ends(net, link)[0]}.{link.port}")
            columns.setdefault(link.to_port, _columns(compiled.schemas.get((link.source, link.port))))
    return {port: {"from": found, "columns": columns[port]} for port, found in sources.items()}


def _outputs(compiled: CompiledJob, name: str, leaving: list[Link]) -> dict[str, Schema | None]:
    ports = {link.port for link in leaving if not link.target.startswith(f"{name}.__") or link.port == ITEM}
    return {port: compiled.schemas.get((name, port)) for port in sorted(ports)}


def _rows_of(net: Net) -> tuple[dict[str, list[Link]], dict[str, list[Link]]]:
    """Data links by the component they leave, and by the one they arrive at."""
    leaving: dict[str, list[Link]] = {}
    arriving: dict[str, list[Link]] = {}
    for link in net.links:
        if link.on is On.DATA:
            leaving.setdefault(link.source, []).append(link)
            arriving.setdefault(link.target, []).append(link)
    return leaving, arriving


def _columns(schema: Schema | None) -> Json:
    return None if schema is None else [column.as_json() for column in schema]


def _link(net: Net, link: Link) -> JsonMap:
    source, target = shown_ends(net, link)
    found: JsonMap = {"from": source, "to": target, "on": link.on.value}
    if link.on is On.DATA:
        found.update({"port": link.port, "to_port": link.to_port})
    if link.on is On.IF:
        found.update({"order": link.order, "when": link.when})
    found.update({key: True for key, value in (("crosses", link.crosses), ("hidden", link.hidden)) if value})
    return found


# ---- text


def plan_text(compiled: CompiledJob) -> str:
    """The same for people."""
    net = _net(compiled)
    leaving, _ = _rows_of(net)
    lines = [f"job {net.name}", f"digest {net.digest[:16]}", *_settings(net)]
    for container in net.containers.values():
        for region in container.regions:
            lines += ["", _heading(net, container, region), *_rows(compiled, net, region, leaving)]
    shown = [link for link in net.links if not link.hidden]
    if shown:
        lines += [
            "",
            "links",
            *(f"  {link_text(net, link)}{'   (handed over)' if link.crosses else ''}" for link in shown),
        ]
    if net.groups:
        lines += ["", "run as one query", *(f"  {' + '.join(members)}" for members in net.groups.values())]
    return "\n".join(lines) + "\n"


def _settings(net: Net) -> list[str]:
    engine = ", ".join(f"{key} {value}" for key, value in net.engine.items() if key != "engine" and value is not True)
    found = [f"engine {net.engine.get('engine', 'duckdb')}{f', {engine}' if engine else ''}"]
    if net.workload:
        found.append("context " + ", ".join(f"{key}={value!r}" for key, value in net.workload.items()))
    if net.contexts:
        found.append("context groups " + ", ".join(net.contexts))
    if net.aborts:
        found.append("aborts when a sub-job fails")
    return found


def _heading(net: Net, container: Container, region: Region) -> str:
    where = {
        Opening.JOB: "",
        Opening.JOBLET: f" in the joblet call {container.key}",
        Opening.BODY: f" in the body of {container.key}",
    }[container.opening]
    handles = f", on {region.handles.value}" if region.handles is not None else ""
    return f"sub-job {region.name}{where}{handles}"


def _rows(compiled: CompiledJob, net: Net, region: Region, leaving: dict[str, list[Link]]) -> list[str]:
    widest = max(len(_part(net.nodes[name]).local) for name in region.members)
    kinds = max(len(net.nodes[name].tasks[0].kind) for name in region.members)
    found: list[str] = []
    for name in region.members:
        node = net.nodes[name]
        said = "; ".join([*_marks(node), *_ports(_outputs(compiled, name, leaving.get(name, [])))])
        found.append(f"  {_part(node).local:<{widest}}  {node.tasks[0].kind:<{kinds}}  {said}".rstrip())
    return found


def _marks(node: Node) -> list[str]:
    part = _part(node)
    marks = {
        "starts at once": part.startable and not part.required,
        f"joins {', '.join(node.joins)}": node.gate is Gate.BARRIER and not part.always,
        "dies on error": part.die_on_error,
        "runs in any case": part.always,
    }
    return [mark for mark, holds in marks.items() if holds]


def _ports(outputs: dict[str, Schema | None]) -> list[str]:
    return [
        f"{port}({', '.join(f'{column.name} {column.type}' for column in schema)})"
        for port, schema in outputs.items()
        if schema is not None
    ]
