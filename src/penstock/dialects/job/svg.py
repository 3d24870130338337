"""A job as SVG, drawn without any other program. Rows flow along thick lines; triggers are thin, dashed after a failure."""

from __future__ import annotations

import html

from penstock.dialects.job.cards import Arrow, Card, arrows, card, is_failure, link_label
from penstock.dialects.playbook.cards import wrapped
from penstock.dialects.playbook.layout import Box, Layout, Point, Spot, laid_out
from penstock.kernel.net import Link, Net, On

_MARGIN = 28.0
_GAP_Y = 72.0
_TITLE, _SMALL = 7.6, 6.3
"""Widths of one character, wide enough for any of the fonts named below."""
_LINE = 16.0
_LABEL_WIDTH = 120.0
_STRIPES = ("#0f766e", "#1d4ed8", "#b45309", "#7c3aed", "#be185d", "#4d7c0f", "#0369a1", "#a16207")
"""Members of one sub-job have a stripe of one colour."""

_STYLE = """\
text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
.part{fill:#ffffff;stroke:#334155;stroke-width:1.4}.title{font-size:13px;font-weight:600;fill:#0f172a}
.badge{font-size:10.5px;fill:#1d4ed8}.line{font-size:10.5px;fill:#475569}
.rows{fill:none;stroke:#0f766e;stroke-width:2.4}.control{fill:none;stroke:#64748b;stroke-width:1.2}
.fail{stroke:#b91c1c;stroke-dasharray:5 4}
.label{font-size:10px;fill:#334155;paint-order:stroke;stroke:#f8fafc;stroke-width:4px;stroke-linejoin:round}
.ground{fill:#f8fafc}"""


def svg(net: Net) -> str:
    cards = {name: card(node) for name, node in net.nodes.items()}
    links = arrows(net)
    layout = laid_out(
        {name: _box(each) for name, each in cards.items()},
        [(link.source, link.target) for link in links],
        net.entry,
        _GAP_Y,
    )
    ways = list(zip(layout.ways, links, strict=True))
    body = [_way(way, arrow.link) for way, arrow in ways]
    stripes = _stripes(net)
    body += [_part(layout.spots[name], each, stripes[name]) for name, each in cards.items()]
    body += [_label(way, arrow.link) for way, arrow in ways]
    return _page(net, layout, links, [part for part in body if part])


def _stripes(net: Net) -> dict[str, str]:
    regions = [region for container in net.containers.values() for region in container.regions]
    return {name: _STRIPES[number % len(_STRIPES)] for number, region in enumerate(regions) for name in region.members}


def _box(shown: Card) -> Box:
    widest = max(len(shown.title) * _TITLE, *(len(line) * _SMALL for line in (*shown.badges, *shown.lines)), 64.0)
    return Box(widest + 32, 38 + (len(shown.badges) + len(shown.lines)) * _LINE)


def _page(net: Net, layout: Layout, links: list[Arrow], body: list[str]) -> str:
    points = [point for way in layout.ways for point in way]
    # A label stands on the middle of its line, which may be the outermost.
    right = max([layout.width, *(x for x, _ in points)]) + (
        _LABEL_WIDTH if any(link_label(arrow.link) for arrow in links) else 0
    )
    low = max([layout.height, *(y for _, y in points)])
    width, height = right + 2 * _MARGIN, low + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n'
        f"<title>{html.escape(net.name)}</title>\n<style>{_STYLE}</style>\n<defs>{_tip('rows', '#0f766e')}"
        f"{_tip('control', '#64748b')}</defs>\n"
        f'<rect class="ground" width="100%" height="100%"/>\n<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">\n'
        + "\n".join(body)
        + "\n</g>\n</svg>\n"
    )


def _tip(name: str, colour: str) -> str:
    return (
        f'<marker id="tip-{name}" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="9" '
        f'markerHeight="9" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    )


def _part(spot: Spot, shown: Card, stripe: str) -> str:
    left, top = spot.x - spot.width / 2, spot.y - spot.height / 2
    parts = [
        f'<g><rect class="part" x="{left:.1f}" y="{top:.1f}" width="{spot.width:.1f}" height="{spot.height:.1f}" rx="6"/>',
        f'<rect x="{left:.1f}" y="{top + 6:.1f}" width="4" height="{spot.height - 12:.1f}" fill="{stripe}"/>',
        f'<text class="title" x="{left + 16:.1f}" y="{top + 20:.1f}">{html.escape(shown.title)}</text>',
    ]
    at = top + 20
    for style, lines in (("line", shown.lines), ("badge", shown.badges)):
        for line in lines:
            at += _LINE
            parts.append(f'<text class="{style}" x="{left + 16:.1f}" y="{at:.1f}">{html.escape(line)}</text>')
    return "".join([*parts, "</g>"])


def _way(way: list[Point], link: Link) -> str:
    name = "rows" if link.on is On.DATA else "control"
    style = f"{name} fail" if is_failure(link) else name
    return f'<path class="{style}" d="{_curve(way)}" marker-end="url(#tip-{name})"/>'


def _curve(way: list[Point]) -> str:
    """A smooth line through the points, leaving and arriving upright."""
    (x, y), *rest = way
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in rest:
        half = (next_y - y) / 2
        parts.append(f"C{x:.1f} {y + half:.1f} {next_x:.1f} {next_y - half:.1f} {next_x:.1f} {next_y:.1f}")
        x, y = next_x, next_y
    return "".join(parts)


def _label(way: list[Point], link: Link) -> str:
    lines = wrapped(link_label(link))
    if not lines:
        return ""
    (x, y), (next_x, next_y) = way[0], way[1]
    # Links of one component stand at different heights, so that their labels do not lie on each other.
    share = (0.36, 0.66, 0.5)[link.index % 3]
    at_x, at_y = x + (next_x - x) * share, y + (next_y - y) * share - (len(lines) - 1) * 6
    spans = "".join(
        f'<tspan x="{at_x:.1f}" dy="{0 if number == 0 else 12}">{html.escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    return f'<text class="label" text-anchor="middle" x="{at_x:.1f}" y="{at_y:.1f}">{spans}</text>'
