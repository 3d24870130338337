"""A playbook as SVG, drawn without any other program."""

from __future__ import annotations

import html

from penstock.dialects.playbook.cards import Card, arc_text, card, is_failure_arc, targets, wrapped
from penstock.dialects.playbook.layout import Box, Layout, Spot, laid_out
from penstock.kernel.net import Edge, Net

_MARGIN = 28.0
_GAP_Y = 80.0
_TITLE, _SMALL = 7.6, 6.3
"""Widths of one character, wide enough for any of the fonts named below."""
_LINE = 16.0
_GUARD_WIDTH = 120.0

_STYLE = """\
text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
.step{fill:#ffffff;stroke:#334155;stroke-width:1.4}.title{font-size:13px;font-weight:600;fill:#0f172a}
.badge{font-size:10.5px;fill:#1d4ed8}.task{font-size:10.5px;fill:#475569}
.arc{fill:none;stroke:#475569;stroke-width:1.3}.fail{stroke:#b91c1c;stroke-dasharray:5 4}
.guard{font-size:10px;fill:#334155;paint-order:stroke;stroke:#f8fafc;stroke-width:4px;stroke-linejoin:round}
.ground{fill:#f8fafc}.entry{fill:#334155}"""


def svg(net: Net) -> str:
    cards = {name: card(node) for name, node in net.nodes.items()}
    arcs = targets(net)
    layout = laid_out(
        {name: _box(each) for name, each in cards.items()},
        [(source, edge.target) for source, edge in arcs],
        net.entry,
        _GAP_Y,
    )
    body = [_entry(layout.spots[net.entry])]
    body += [_arc(way, edge) for way, (_, edge) in zip(layout.ways, arcs, strict=True)]
    body += [_step(layout.spots[name], each) for name, each in cards.items()]
    body += [_guard(way, edge) for way, (_, edge) in zip(layout.ways, arcs, strict=True)]
    return _page(net, layout, body)


def _box(shown: Card) -> Box:
    widest = max(
        len(shown.title) * _TITLE, *(len(line) * _SMALL for line in (*shown.badges, *shown.lines)), 64.0
    )  # fmt: skip
    rows = len(shown.badges) + len(shown.lines)
    return Box(widest + 28, 30 + rows * _LINE + (8 if rows else 0))


def _page(net: Net, layout: Layout, body: list[str]) -> str:
    edges = [edge for _, edge in targets(net)]
    points = [point for way in layout.ways for point in way]
    # A guard stands on the middle of its arc, or beside it where the arc leads back to its own step.
    right = max([layout.width, *(x for x, _ in points)]) + (_GUARD_WIDTH if any(edge.guard for edge in edges) else 0)
    low = max([layout.height, *(y for _, y in points)])
    width, height = right + 2 * _MARGIN, low + 2 * _MARGIN + 26
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n'
        f"<title>{html.escape(net.name)}</title>\n<style>{_STYLE}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" '
        'markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        '<path d="M0 0L10 5L0 10z" fill="#475569"/></marker></defs>\n'
        f'<rect class="ground" width="100%" height="100%"/>\n<g transform="translate({_MARGIN:.0f} {_MARGIN + 26:.0f})">\n'
        + "\n".join(body)
        + "\n</g>\n</svg>\n"
    )


def _entry(spot: Spot) -> str:
    top = spot.y - spot.height / 2
    return (
        f'<circle class="entry" cx="{spot.x:.1f}" cy="{top - 32:.1f}" r="5"/>'
        f'<path class="arc" d="M{spot.x:.1f} {top - 27:.1f}V{top:.1f}" marker-end="url(#tip)"/>'
    )


def _step(spot: Spot, shown: Card) -> str:
    left, top = spot.x - spot.width / 2, spot.y - spot.height / 2
    parts = [
        f'<g><rect class="step" x="{left:.1f}" y="{top:.1f}" width="{spot.width:.1f}" height="{spot.height:.1f}" rx="8"/>',
        f'<text class="title" x="{left + 14:.1f}" y="{top + 20:.1f}">{html.escape(shown.title)}</text>',
    ]
    at = top + 20
    for style, lines in (("badge", shown.badges), ("task", shown.lines)):
        for line in lines:
            at += _LINE
            parts.append(f'<text class="{style}" x="{left + 14:.1f}" y="{at:.1f}">{html.escape(line)}</text>')
    return "".join([*parts, "</g>"])


def _arc(way: list[tuple[float, float]], edge: Edge) -> str:
    style = "arc fail" if is_failure_arc(edge) else "arc"
    return f'<path class="{style}" d="{_curve(way)}" marker-end="url(#tip)"/>'


def _curve(way: list[tuple[float, float]]) -> str:
    """A smooth line through the points, leaving and arriving upright."""
    (x, y), *rest = way
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in rest:
        half = (next_y - y) / 2
        parts.append(f"C{x:.1f} {y + half:.1f} {next_x:.1f} {next_y - half:.1f} {next_x:.1f} {next_y:.1f}")
        x, y = next_x, next_y
    return "".join(parts)


def _guard(way: list[tuple[float, float]], edge: Edge) -> str:
    lines = wrapped(arc_text(edge))
    if not lines:
        return ""
    (x, y), (next_x, next_y) = way[0], way[1]
    anchor = "middle"
    if way[0][0] == way[-1][0] and len(way) == 3:
        at_x, at_y, anchor = next_x + 4, next_y - (len(lines) - 1) * 6 + 3, "start"
    else:
        # Guards of one router stand at different heights, so that they do not lie on each other.
        share = (0.36, 0.66, 0.5)[edge.index % 3]
        at_x, at_y = x + (next_x - x) * share, y + (next_y - y) * share - (len(lines) - 1) * 6
    spans = "".join(
        f'<tspan x="{at_x:.1f}" dy="{0 if number == 0 else 12}">{html.escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    return f'<text class="guard" text-anchor="{anchor}" x="{at_x:.1f}" y="{at_y:.1f}">{spans}</text>'
