"""The lowered form of a job, as JSON and as text: what `penstock plan` prints; and as a picture: what `penstock graph` draws.

Joblets are expanded and their boundaries visible, sub-jobs and fused groups are there, ports have their columns as far as they
are known, and secrets are only named.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.dialects.connections import CONNECTIONS
from penstock.dialects.digest import as_json
from penstock.dialects.drawing import Card, Group, Line, LineStyle, Picture, shortened
from penstock.dialects.job.compile import CompiledJob
from penstock.dialects.job.level import ITEM
from penstock.dialects.secrets import masked_tree
from penstock.kernel.errors import Bug
from penstock.kernel.net import Container, Gate, Link, Location, Net, Node, On, Opening, Region
from penstock.kernel.values import Json, JsonMap
from penstock.ports.rows import Schema


def _net(compiled: CompiledJob) -> Net:
    if compiled.net is None:
        raise Bug("a document with errors has no plan")
    return compiled.net


def _part(node: Node) -> Location:
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
        "engine": _told(net.engine),
        "subjobs": [
            _subjob(net, container, region) for container in net.containers.values() for region in container.regions
        ],
        "components": [
            _component(
                compiled,
                net,
                node,
                leaving.get(node.name, []),
                _inputs(compiled, net, node.name, arriving.get(node.name, [])),
            )
            for node in net.nodes.values()
        ],
        "links": [_link(net, link) for link in net.links],
        "fused": [list(members) for members in net.groups.values()],
    }


def _subjob(net: Net, container: Container, region: Region) -> JsonMap:
    found: JsonMap = {"name": region.name, "in": container.key, "members": list(region.members)}
    if words := net.engines.get(region.members[0]):
        found["engine"] = _told(words)
    if container.opening is not Opening.JOB:
        found["opened"] = container.opening.value
    if region.handles is not None:
        found["handles"] = region.handles.value
    return found


def _component(compiled: CompiledJob, net: Net, node: Node, leaving: list[Link], inputs: JsonMap) -> JsonMap:
    part, task = _part(node), node.tasks[0]
    found: JsonMap = {"name": node.name, "type": task.kind, "params": masked_tree(task.params, "params")}
    found["engine"] = _words_of(net, node.name).get("engine", "duckdb")
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
    found = [f"engine {_engine(net.engine)}"]
    if net.workload:
        found.append("context " + ", ".join(f"{key}={value!r}" for key, value in net.workload.items()))
    if net.contexts:
        found.append("context groups " + ", ".join(net.contexts))
    if net.aborts:
        found.append("aborts when a sub-job fails")
    return found


def _told(words: JsonMap) -> JsonMap:
    """As the author wrote them: the name of a connection, and not what it stands for."""
    return {name: value for name, value in words.items() if name != CONNECTIONS}


def _engine(words: JsonMap) -> str:
    more = ", ".join(f"{key} {value}" for key, value in _told(words).items() if key != "engine" and value is not True)
    return f"{words.get('engine', 'duckdb')}{f', {more}' if more else ''}"


def _heading(net: Net, container: Container, region: Region) -> str:
    where = {
        Opening.JOB: "",
        Opening.JOBLET: f" in the joblet call {container.key}",
        Opening.BODY: f" in the body of {container.key}",
    }[container.opening]
    handles = f", on {region.handles.value}" if region.handles is not None else ""
    # Where all is on DuckDB, the first lines say so.
    is_plain = not net.engines and net.engine.get("engine", "duckdb") == "duckdb"
    engine = "" if is_plain else f", engine {_engine(_words_of(net, region.members[0]))}"
    return f"sub-job {region.name}{where}{handles}{engine}"


def _words_of(net: Net, name: str) -> JsonMap:
    """Of the engine that a component runs on."""
    return net.engines.get(name) or net.engine


def _rows(compiled: CompiledJob, net: Net, region: Region, leaving: dict[str, list[Link]]) -> list[str]:
    widest = max(len(_part(net.nodes[name]).local) for name in region.members)
    kinds = max(len(net.nodes[name].tasks[0].kind) for name in region.members)
    found: list[str] = []
    for name in region.members:
        node = net.nodes[name]
        details = "; ".join([*_marks(node), *_ports(_outputs(compiled, name, leaving.get(name, [])))])
        found.append(f"  {_part(node).local:<{widest}}  {node.tasks[0].kind:<{kinds}}  {details}".rstrip())
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


# ---- The ends of a link: in the net a joblet call is its own boundary; pictures and plans name the boundary


JOBLET = "joblet"


def kind_of(net: Net, name: str) -> str:
    return net.nodes[name].tasks[0].kind


def container_of(net: Net, name: str) -> str:
    part = net.nodes[name].part
    return "" if part is None else part.container


def shown_ends(net: Net, link: Link) -> tuple[str, str]:
    """`caller.__proxy_in` where rows enter a joblet, `caller.__proxy_out` where they leave it."""
    source, target = link.source, link.target
    if link.on is not On.DATA:
        return source, target
    if kind_of(net, link.source) == JOBLET:
        inside = container_of(net, link.target) == link.source
        source = f"{source}.__proxy_{'in' if inside else 'out'}"
    if kind_of(net, link.target) == JOBLET:
        inside = container_of(net, link.source) == link.target
        target = f"{target}.__proxy_{'out' if inside else 'in'}"
    return source, target


def link_text(net: Net, link: Link) -> str:
    """A link as it would be written."""
    source, target = shown_ends(net, link)
    if link.on is On.DATA:
        return f"{source}.{link.port} -> {target}.{link.to_port}"
    if link.on is On.IF:
        return f'{source} (if {link.order}: "{link.when}") {target}'
    return f"{source} ({link.on.value}) {target}"


# ---- Cards and labels


_TELLING = (
    "path", "where", "query", "by", "on", "items", "while", "message", "values", "columns", "seconds", "command",
)  # fmt: skip
"""Parameters that say most about a component, the most telling first."""


def card(node: Node) -> Card:
    assert node.part is not None
    task = node.tasks[0]
    badges: list[str] = []
    if node.gate is Gate.BARRIER and not node.part.always:
        badges.append(shortened("join " + " + ".join(node.joins)))
    if node.iterates is not None:
        badges.append("while" if node.iterates.while_ else "for each element")
    if node.part.die_on_error:
        badges.append("dies on error")
    if node.part.group is not None:
        badges.append(shortened(f"fused into {node.part.group}") if node.part.group != node.name else "fused")
    kind = f"@{task.params.get('joblet')}" if task.kind == JOBLET else task.kind
    lines = [kind]
    telling = next((key for key in _TELLING if isinstance(task.params.get(key), str | int | float)), None)
    if telling is not None:
        lines.append(shortened(f"{telling}: {' '.join(str(task.params[telling]).split())}"))
    return Card(node.name, tuple(badges), tuple(lines))


@dataclass(frozen=True, slots=True)
class Arrow:
    """A link as a picture shows it."""

    source: str
    target: str
    link: Link


def arrows(net: Net) -> list[Arrow]:
    """The author's own links. Rows that leave a joblet are drawn from the component inside that gives them: a picture with lines
    back to the call would show a circle where there is none."""
    shown = [link for link in net.links if not link.hidden]
    left = {(link.target, link.to_port): link for link in shown if link.source.startswith(f"{link.target}.__")}
    found: list[Arrow] = []
    for link in shown:
        if (link.target, link.to_port) in left and left[link.target, link.to_port] is link:
            continue
        start = link
        while link.on is On.DATA and (start.source, start.port) in left:
            start = left[start.source, start.port]
        found.append(Arrow(start.source, link.target, link))
    return found


def link_label(link: Link) -> str:
    """Ports where they say anything; what makes the link fire."""
    if link.on is On.DATA:
        ports = (link.port, link.to_port)
        if ports in (("main", "input"), ("main", "main")):
            return ""
        return link.port if link.to_port in ("input", "main") else f"{link.port} → {link.to_port}"
    if link.on is On.IF:
        return f"if {link.order}: {link.when}"
    return str(link.on.value)


def is_failure(link: Link) -> bool:
    return link.on in (On.ERROR, On.SUBJOB_ERROR, On.ITERATION_ERROR)


_ROWS = LineStyle("rows", "#0f766e", 2.4, "==>", "penwidth=2")
_CONTROL = LineStyle("control", "#64748b", 1.2, option="arrowhead=open")
_STRIPES = ("#0f766e", "#1d4ed8", "#b45309", "#7c3aed", "#be185d", "#4d7c0f", "#0369a1", "#a16207")
"""Members of one sub-job have a stripe of one colour."""


def picture(net: Net) -> Picture:
    """Data links are thick lines. Sub-jobs are boxes around their members; the inside of a joblet or a body lies in a box of its
    own."""
    regions = [region for container in net.containers.values() for region in container.regions]
    return Picture(
        name=net.name,
        cards={name: card(node) for name, node in net.nodes.items()},
        lines=[
            Line(
                each.source,
                each.target,
                link_label(each.link),
                _ROWS if each.link.on is On.DATA else _CONTROL,
                is_failure=is_failure(each.link),
                index=each.link.index,
            )
            for each in arrows(net)
        ],
        members=_members(net, ""),
        entry=net.entry,
        styles=(_ROWS, _CONTROL),
        stripes={name: _STRIPES[number % len(_STRIPES)] for number, one in enumerate(regions) for name in one.members},
    )


def _members(net: Net, key: str) -> list[str | Group]:
    """Of a container: a job with one sub-job needs no box around it."""
    found: list[str | Group] = []
    regions = net.containers[key].regions
    for region in regions:
        inside: list[str | Group] = []
        for name in region.members:
            part = net.nodes[name].part
            inside += [name, *(_members(net, part.opens) if part is not None and part.opens is not None else [])]
        found += [Group(_title(net, key, region), inside)] if key or len(regions) > 1 else inside
    return found


def _title(net: Net, key: str, region: Region) -> str:
    if not key:
        return f"sub-job {region.name}"
    handles = f" on {region.handles.value}" if region.handles is not None else ""
    what = "joblet" if net.nodes[key].iterates is None else "body"
    return f"{what} of {key}{handles}"


def graph_json(net: Net) -> JsonMap:
    """Components and links, for programs that draw."""
    return {
        "name": net.name,
        "components": [
            {
                "name": node.name,
                "type": kind_of(net, node.name),
                "in": "" if node.part is None else node.part.container,
                "subjob": net.containers[node.part.container].regions[node.part.region].name if node.part else "",
                "opens": None if node.part is None else node.part.opens,
                "fused": None if node.part is None else node.part.group,
            }
            for node in net.nodes.values()
        ],
        "links": [_drawn_link(link) for link in net.links if not link.hidden],
    }


def _drawn_link(link: Link) -> JsonMap:
    found: JsonMap = {"from": link.source, "to": link.target, "on": link.on.value}
    if link.on is On.DATA:
        found.update({"port": link.port, "to_port": link.to_port})
    if link.on is On.IF:
        found.update({"order": link.order, "when": link.when})
    return found
