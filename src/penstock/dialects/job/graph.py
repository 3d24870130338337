"""Pictures of a job: Mermaid and DOT as text, JSON for programs, SVG drawn here, so that no other program is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.dialects.drawing import parts
from penstock.dialects.drawing.layout import Point, Spot, laid_out
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


# ---- Cards and labels, for all formats


_TELLING = (
    "path", "where", "query", "by", "on", "items", "while", "message", "values", "columns", "seconds", "command",
)  # fmt: skip
"""Parameters that say most about a component, the most telling first."""


def card(node: Node) -> parts.Card:
    assert node.part is not None
    task = node.tasks[0]
    badges: list[str] = []
    if node.gate is Gate.BARRIER and not node.part.always:
        badges.append(parts.shortened("join " + " + ".join(node.joins)))
    if node.iterates is not None:
        badges.append("while" if node.iterates.while_ else "for each element")
    if node.part.die_on_error:
        badges.append("dies on error")
    if node.part.group is not None:
        badges.append(parts.shortened(f"fused into {node.part.group}") if node.part.group != node.name else "fused")
    kind = f"@{task.params.get('joblet')}" if task.kind == JOBLET else task.kind
    lines = [kind]
    told = next((key for key in _TELLING if isinstance(task.params.get(key), str | int | float)), None)
    if told is not None:
        lines.append(parts.shortened(f"{told}: {' '.join(str(task.params[told]).split())}"))
    return parts.Card(node.name, tuple(badges), tuple(lines))


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


def mermaid(net: Net) -> str:
    """Sub-jobs are boxes around their members; the inside of a joblet or a body lies in a box of its own."""
    ids = {name: f"c{number}" for number, name in enumerate(net.nodes)}
    lines = ["flowchart TD"]

    def component(name: str, indent: str) -> None:
        lines.append(f'{indent}{ids[name]}["{parts.mermaid_label(card(net.nodes[name]))}"]')

    def begin(number: int, title: str, indent: str) -> None:
        lines.append(f'{indent}subgraph g{number}["{parts.mermaid_text(title)}"]')

    _boxes(net, component, begin, lambda indent: lines.append(f"{indent}end"))
    for each in arrows(net):
        link = each.link
        arrow = "==>" if link.on is On.DATA else "-.->" if is_failure(link) else "-->"
        said = "<br/>".join(parts.mermaid_text(line) for line in parts.wrapped(link_label(link)))
        label = f'|"{said}"|' if said else ""
        lines.append(f"  {ids[each.source]} {arrow}{label} {ids[each.target]}")
    return "\n".join(lines) + "\n"


def _boxes(
    net: Net,
    component: Callable[[str, str], None],
    begin: Callable[[int, str, str], None],
    end: Callable[[str], None],
) -> None:
    """Walk through containers and sub-jobs; a job with one sub-job needs no box around it."""
    count = 0

    def walk(key: str, depth: int) -> None:
        nonlocal count
        regions = net.containers[key].regions
        for region in regions:
            is_boxed = bool(key) or len(regions) > 1
            indent = "  " * (depth + 1)
            if is_boxed:
                count += 1
                begin(count, _title(net, key, region), indent)
            for name in region.members:
                component(name, indent + ("  " if is_boxed else ""))
                part = net.nodes[name].part
                if part is not None and part.opens is not None:
                    walk(part.opens, depth + (1 if is_boxed else 0))
            if is_boxed:
                end(indent)

    walk("", 0)


def _title(net: Net, key: str, region: Region) -> str:
    if not key:
        return f"sub-job {region.name}"
    handles = f" on {region.handles.value}" if region.handles is not None else ""
    what = "joblet" if net.nodes[key].iterates is None else "body"
    return f"{what} of {key}{handles}"


def dot(net: Net) -> str:
    lines = [
        f"digraph {parts.dot_text(net.name)} {{",
        '  rankdir=TB; node [shape=box, style="rounded", fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]

    def component(name: str, indent: str) -> None:
        lines.append(f"{indent}{parts.dot_text(name)} [label={parts.dot_label(card(net.nodes[name]))}];")

    def begin(number: int, title: str, indent: str) -> None:
        lines.append(f"{indent}subgraph cluster_{number} {{ label={parts.dot_text(title)}; style=dotted;")

    _boxes(net, component, begin, lambda indent: lines.append(f"{indent}}}"))
    for each in arrows(net):
        link = each.link
        said = parts.wrapped(link_label(link))
        options = [f"label={parts.dot_text(chr(10).join(said))}"] if said else []
        options.append("penwidth=2" if link.on is On.DATA else "style=dashed" if is_failure(link) else "arrowhead=open")
        lines.append(f"  {parts.dot_text(each.source)} -> {parts.dot_text(each.target)} [{', '.join(options)}];")
    return "\n".join([*lines, "}"]) + "\n"


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


# ---- SVG: data links are thick lines, control links thin ones, dashed for failures


_GAP_Y = 72.0
_INDENT = 16.0
_STRIPES = ("#0f766e", "#1d4ed8", "#b45309", "#7c3aed", "#be185d", "#4d7c0f", "#0369a1", "#a16207")
"""Members of one sub-job have a stripe of one colour."""
_STYLE = """\
.rows{fill:none;stroke:#0f766e;stroke-width:2.4}.control{fill:none;stroke:#64748b;stroke-width:1.2}"""


def svg(net: Net) -> str:
    cards = {name: card(node) for name, node in net.nodes.items()}
    links = arrows(net)
    layout = laid_out(
        {name: parts.box(each, _INDENT, 8) for name, each in cards.items()},
        [(link.source, link.target) for link in links],
        net.entry,
        _GAP_Y,
    )
    ways = [(way, arrow.link) for way, arrow in zip(layout.ways, links, strict=True)]
    body = [_way(way, link) for way, link in ways]
    stripes = _stripes(net)
    body += [_part(layout.spots[name], each, stripes[name]) for name, each in cards.items()]
    labels = [parts.line_label(way, parts.wrapped(link_label(link)), link.index) for way, link in ways]
    body += [label for label in labels if label]
    tips = parts.tip("rows", "#0f766e") + parts.tip("control", "#64748b")
    return parts.page(net.name, _STYLE, tips, layout, body, has_labels=any(labels))


def _stripes(net: Net) -> dict[str, str]:
    regions = [region for container in net.containers.values() for region in container.regions]
    return {name: _STRIPES[number % len(_STRIPES)] for number, region in enumerate(regions) for name in region.members}


def _part(spot: Spot, shown: parts.Card, stripe: str) -> str:
    return parts.card_box(spot, shown.title, (("line", shown.lines), ("badge", shown.badges)), _INDENT, stripe)


def _way(way: list[Point], link: Link) -> str:
    name = "rows" if link.on is On.DATA else "control"
    style = f"{name} fail" if is_failure(link) else name
    return f'<path class="{style}" d="{parts.curve(way)}" marker-end="url(#tip-{name})"/>'
