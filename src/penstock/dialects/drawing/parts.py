"""The parts of pictures that both languages share: cards, their labels in Mermaid and DOT, and the elements of an SVG."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.dialects.drawing.layout import Box, Layout, Point, Spot

_WIDEST = 34
_SYNTAX = frozenset("\"'<>&#;[]{}()|`\\")


@dataclass(frozen=True, slots=True)
class Card:
    """One step or component: its name, badges such as a loop or a join, and what it runs."""

    title: str
    badges: tuple[str, ...]
    lines: tuple[str, ...]


def shortened(text: str, widest: int = _WIDEST) -> str:
    return text if len(text) <= widest else text[: widest - 1].rstrip() + "…"


def wrapped(text: str, widest: int = 26, most: int = 3) -> list[str]:
    """The text in lines, broken at blanks; what does not fit into `most` lines is left out."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= widest:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    lines = [shortened(line, widest) for line in lines]
    if len(lines) > most:
        lines = [*lines[: most - 1], shortened(f"{lines[most - 1]} …", widest)]
    return lines


def mermaid_text(text: str) -> str:
    """Mermaid writes characters that would be syntax as `#number;`."""
    return "".join(f"#{ord(sign)};" if sign in _SYNTAX else sign for sign in text)


def mermaid_label(shown: Card) -> str:
    head = [f"<b>{mermaid_text(shown.title)}</b>", *(mermaid_text(f"[{badge}]") for badge in shown.badges)]
    small = "<br/>".join(mermaid_text(line) for line in shown.lines)
    return "<br/>".join([*head, f"<small>{small}</small>"] if small else head)


def dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def dot_label(shown: Card) -> str:
    return dot_text("\n".join([shown.title, *(f"[{badge}]" for badge in shown.badges), *shown.lines]))


_MARGIN = 28.0
_LINE = 16.0
_TITLE, _SMALL = 7.6, 6.3
"""Widths of one character, wide enough for any of the fonts named below."""
_LABEL_WIDTH = 120.0

_STYLE = """\
text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
.card{fill:#ffffff;stroke:#334155;stroke-width:1.4}.title{font-size:13px;font-weight:600;fill:#0f172a}
.badge{font-size:10.5px;fill:#1d4ed8}.line{font-size:10.5px;fill:#475569}
.fail{stroke:#b91c1c;stroke-dasharray:5 4}
.label{font-size:10px;fill:#334155;paint-order:stroke;stroke:#f8fafc;stroke-width:4px;stroke-linejoin:round}
.ground{fill:#f8fafc}"""


def box(shown: Card, indent: float, bottom: float) -> Box:
    widest = max(len(shown.title) * _TITLE, *(len(line) * _SMALL for line in (*shown.badges, *shown.lines)), 64.0)
    rows = len(shown.badges) + len(shown.lines)
    return Box(widest + 2 * indent, 30 + rows * _LINE + (bottom if rows else 0))


def page(
    title: str, style: str, defs: str, layout: Layout, body: Iterable[str], *, has_labels: bool, above: float = 0
) -> str:
    """`style` is the language's own; it comes first, so that `fail` changes the colour of any line. `above` is room over the
    topmost card."""
    points = [point for way in layout.ways for point in way]
    # A label stands on the middle of its line, which may be the outermost.
    right = max([layout.width, *(x for x, _ in points)]) + (_LABEL_WIDTH if has_labels else 0)
    low = max([layout.height, *(y for _, y in points)])
    width, height = right + 2 * _MARGIN, low + 2 * _MARGIN + above
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}\n{_STYLE}</style>\n<defs>{defs}</defs>\n"
        '<rect class="ground" width="100%" height="100%"/>\n'
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN + above:.0f})">\n' + "\n".join(body) + "\n</g>\n</svg>\n"
    )


def tip(name: str, colour: str) -> str:
    """The head of an arrow; as large on a thick line as on a thin one."""
    return (
        f'<marker id="tip-{name}" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="9" '
        f'markerHeight="9" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    )


def card_box(
    spot: Spot, title: str, texts: Sequence[tuple[str, Sequence[str]]], indent: float, stripe: str = ""
) -> str:
    """`texts` are lines below the title, with the style of each group of them."""
    left, top = spot.x - spot.width / 2, spot.y - spot.height / 2
    parts = [
        f'<g><rect class="card" x="{left:.1f}" y="{top:.1f}" width="{spot.width:.1f}" height="{spot.height:.1f}" rx="7"/>'
    ]
    if stripe:
        parts.append(
            f'<rect x="{left:.1f}" y="{top + 6:.1f}" width="4" height="{spot.height - 12:.1f}" fill="{stripe}"/>'
        )
    at = top + 20
    parts.append(f'<text class="title" x="{left + indent:.1f}" y="{at:.1f}">{html.escape(title)}</text>')
    for style, lines in texts:
        for line in lines:
            at += _LINE
            parts.append(f'<text class="{style}" x="{left + indent:.1f}" y="{at:.1f}">{html.escape(line)}</text>')
    return "".join([*parts, "</g>"])


def curve(way: Sequence[Point]) -> str:
    """A smooth line through the points, leaving and arriving upright."""
    (x, y), *rest = way
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in rest:
        half = (next_y - y) / 2
        parts.append(f"C{x:.1f} {y + half:.1f} {next_x:.1f} {next_y - half:.1f} {next_x:.1f} {next_y:.1f}")
        x, y = next_x, next_y
    return "".join(parts)


def line_label(way: Sequence[Point], lines: Sequence[str], index: int) -> str:
    """Words on the first stretch of a line; `index` tells apart the lines that leave one card."""
    if not lines:
        return ""
    (x, y), (next_x, next_y) = way[0], way[1]
    anchor = "middle"
    rise = (len(lines) - 1) * 6
    if way[0][0] == way[-1][0] and len(way) == 3:
        # It leads back to its own card: beside it there is room.
        at_x, at_y, anchor = next_x + 4, next_y - rise + 3, "start"
    else:
        # At different heights, so that the labels of one card do not lie on each other.
        share = (0.36, 0.66, 0.5)[index % 3]
        at_x, at_y = x + (next_x - x) * share, y + (next_y - y) * share - rise
    spans = "".join(
        f'<tspan x="{at_x:.1f}" dy="{0 if number == 0 else 12}">{html.escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    return f'<text class="label" text-anchor="{anchor}" x="{at_x:.1f}" y="{at_y:.1f}">{spans}</text>'
