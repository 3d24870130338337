"""What a picture of a job says about each component and each link, whatever the picture is drawn with."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.dialects.drawing.cards import Card, shortened
from penstock.dialects.job.proxies import JOBLET
from penstock.kernel.net import Gate, Link, Net, Node, On

__all__ = ["Arrow", "Card", "arrows", "card", "is_failure", "link_label"]

_TELLING = (
    "path",
    "where",
    "query",
    "by",
    "on",
    "items",
    "while",
    "message",
    "values",
    "columns",
    "seconds",
    "command",
)
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
