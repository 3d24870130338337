"""A job as SVG, drawn without any other program. Rows flow along thick lines; triggers are thin, dashed after a failure."""

from __future__ import annotations

from penstock.dialects.drawing.cards import wrapped
from penstock.dialects.drawing.layout import Point, Spot, laid_out
from penstock.dialects.drawing.svg import box, card_box, curve, line_label, page, tip
from penstock.dialects.job.cards import Card, arrows, card, is_failure, link_label
from penstock.kernel.net import Link, Net, On

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
        {name: box(each, _INDENT, 8) for name, each in cards.items()},
        [(link.source, link.target) for link in links],
        net.entry,
        _GAP_Y,
    )
    ways = [(way, arrow.link) for way, arrow in zip(layout.ways, links, strict=True)]
    body = [_way(way, link) for way, link in ways]
    stripes = _stripes(net)
    body += [_part(layout.spots[name], each, stripes[name]) for name, each in cards.items()]
    labels = [line_label(way, wrapped(link_label(link)), link.index) for way, link in ways]
    body += [label for label in labels if label]
    tips = tip("rows", "#0f766e") + tip("control", "#64748b")
    return page(net.name, _STYLE, tips, layout, body, has_labels=any(labels))


def _stripes(net: Net) -> dict[str, str]:
    regions = [region for container in net.containers.values() for region in container.regions]
    return {name: _STRIPES[number % len(_STRIPES)] for number, region in enumerate(regions) for name in region.members}


def _part(spot: Spot, shown: Card, stripe: str) -> str:
    return card_box(spot, shown.title, (("line", shown.lines), ("badge", shown.badges)), _INDENT, stripe)


def _way(way: list[Point], link: Link) -> str:
    name = "rows" if link.on is On.DATA else "control"
    style = f"{name} fail" if is_failure(link) else name
    return f'<path class="{style}" d="{curve(way)}" marker-end="url(#tip-{name})"/>'
