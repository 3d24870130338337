"""A playbook as SVG, drawn without any other program."""

from __future__ import annotations

from penstock.dialects.drawing.cards import Card, wrapped
from penstock.dialects.drawing.layout import Point, Spot, laid_out
from penstock.dialects.drawing.svg import box, card_box, curve, line_label, page, tip
from penstock.dialects.playbook.cards import arc_text, card, is_failure_arc, targets
from penstock.kernel.net import Edge, Net

_GAP_Y = 80.0
_INDENT = 14.0
_ABOVE = 26.0
"""Room for the dot that shows where tokens enter."""
_STYLE = ".arc{fill:none;stroke:#475569;stroke-width:1.3}.entry{fill:#334155}"


def svg(net: Net) -> str:
    cards = {name: card(node) for name, node in net.nodes.items()}
    arcs = targets(net)
    layout = laid_out(
        {name: box(each, _INDENT, 8) for name, each in cards.items()},
        [(source, edge.target) for source, edge in arcs],
        net.entry,
        _GAP_Y,
    )
    ways = [(way, edge) for way, (_, edge) in zip(layout.ways, arcs, strict=True)]
    body = [_entry(layout.spots[net.entry])]
    body += [_arc(way, edge) for way, edge in ways]
    body += [_step(layout.spots[name], each) for name, each in cards.items()]
    body += [line_label(way, wrapped(arc_text(edge)), edge.index) for way, edge in ways]
    has_labels = any(edge.guard for _, edge in arcs)
    return page(net.name, _STYLE, tip("arc", "#475569"), layout, body, has_labels=has_labels, above=_ABOVE)


def _entry(spot: Spot) -> str:
    top = spot.y - spot.height / 2
    return (
        f'<circle class="entry" cx="{spot.x:.1f}" cy="{top - 32:.1f}" r="5"/>'
        f'<path class="arc" d="M{spot.x:.1f} {top - 27:.1f}V{top:.1f}" marker-end="url(#tip-arc)"/>'
    )


def _step(spot: Spot, shown: Card) -> str:
    return card_box(spot, shown.title, (("badge", shown.badges), ("line", shown.lines)), _INDENT)


def _arc(way: list[Point], edge: Edge) -> str:
    style = "arc fail" if is_failure_arc(edge) else "arc"
    return f'<path class="{style}" d="{curve(way)}" marker-end="url(#tip-arc)"/>'
