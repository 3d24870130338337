"""Pictures of a job: Mermaid and DOT as text, JSON for programs, SVG drawn here, so that no other program is needed."""

from __future__ import annotations

from collections.abc import Callable

from penstock.dialects.drawing.cards import dot_label, dot_text, mermaid_label, mermaid_text, wrapped
from penstock.dialects.job.cards import arrows, card, is_failure, link_label
from penstock.dialects.job.proxies import kind_of
from penstock.dialects.job.svg import svg
from penstock.kernel.net import Link, Net, On, Region
from penstock.kernel.values import JsonMap

__all__ = ["as_json", "dot", "mermaid", "svg"]


def mermaid(net: Net) -> str:
    """Sub-jobs are boxes around their members; the inside of a joblet or a body lies in a box of its own."""
    ids = {name: f"c{number}" for number, name in enumerate(net.nodes)}
    lines = ["flowchart TD"]

    def component(name: str, indent: str) -> None:
        lines.append(f'{indent}{ids[name]}["{mermaid_label(card(net.nodes[name]))}"]')

    def begin(number: int, title: str, indent: str) -> None:
        lines.append(f'{indent}subgraph g{number}["{mermaid_text(title)}"]')

    _boxes(net, component, begin, lambda indent: lines.append(f"{indent}end"))
    for each in arrows(net):
        link = each.link
        arrow = "==>" if link.on is On.DATA else "-.->" if is_failure(link) else "-->"
        said = "<br/>".join(mermaid_text(line) for line in wrapped(link_label(link)))
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
        f"digraph {dot_text(net.name)} {{",
        '  rankdir=TB; node [shape=box, style="rounded", fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]

    def component(name: str, indent: str) -> None:
        lines.append(f"{indent}{dot_text(name)} [label={dot_label(card(net.nodes[name]))}];")

    def begin(number: int, title: str, indent: str) -> None:
        lines.append(f"{indent}subgraph cluster_{number} {{ label={dot_text(title)}; style=dotted;")

    _boxes(net, component, begin, lambda indent: lines.append(f"{indent}}}"))
    for each in arrows(net):
        link = each.link
        said = wrapped(link_label(link))
        options = [f"label={dot_text(chr(10).join(said))}"] if said else []
        options.append("penwidth=2" if link.on is On.DATA else "style=dashed" if is_failure(link) else "arrowhead=open")
        lines.append(f"  {dot_text(each.source)} -> {dot_text(each.target)} [{', '.join(options)}];")
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
