"""The picture of a job: its components, and the links between them; and the same as JSON, for programs that draw."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.dialects.drawing.picture import Card, Group, Line, LineStyle, Picture, shortened
from penstock.kernel.net import Gate, Link, Net, Node, On, Region
from penstock.kernel.values import JsonMap

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
    told = next((key for key in _TELLING if isinstance(task.params.get(key), str | int | float)), None)
    if told is not None:
        lines.append(shortened(f"{told}: {' '.join(str(task.params[told]).split())}"))
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


def as_json(net: Net) -> JsonMap:
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
        "links": [_link(link) for link in net.links if not link.hidden],
    }


def _link(link: Link) -> JsonMap:
    found: JsonMap = {"from": link.source, "to": link.target, "on": link.on.value}
    if link.on is On.DATA:
        found.update({"port": link.port, "to_port": link.to_port})
    if link.on is On.IF:
        found.update({"order": link.order, "when": link.when})
    return found
