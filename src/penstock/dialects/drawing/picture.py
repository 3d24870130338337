"""Pictures of documents: cards and the lines between them, as Mermaid and DOT, and as SVG, drawn here, so that no other program
is needed."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from penstock.dialects.drawing.layout import Box, Layout, Point, Spot, laid_out

_WIDEST = 34
_SYNTAX = frozenset("\"'<>&#;[]{}()|`\\")


@dataclass(frozen=True, slots=True)
class Card:
    """One step or component: its name, badges such as a loop or a join, and what it runs."""

    title: str
    badges: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """An arc or link. `index` tells apart those that leave one card."""

    source: str
    target: str
    label: str
    style: LineStyle
    is_failure: bool
    index: int


@dataclass(frozen=True, slots=True)
class LineStyle:
    """How a kind of line is drawn: in Mermaid, in DOT, and in an SVG, where `name` is its class."""

    name: str
    colour: str
    width: float
    arrow: str = "-->"
    option: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Cards in a box, and groups within it."""

    title: str
    members: list[str | Group]


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    cards: dict[str, Card]
    lines: list[Line]
    members: list[str | Group]
    entry: str
    styles: tuple[LineStyle, ...]
    has_entry: bool = False
    """A dot shows where tokens enter."""
    stripes: Mapping[str, str] = field(default_factory=dict)
    """Card -> colour."""
    letter: str = "c"
    """The first letter of ids in Mermaid."""
    lines_first: bool = True
    """Lines of text stand above the badges."""
    indent: float = 16.0
    gap_y: float = 72.0

    def mermaid(self) -> str:
        ids = {name: f"{self.letter}{number}" for number, name in enumerate(self.cards)}
        lines = ["flowchart TD"]
        if self.has_entry:
            lines.append(f"  entry((( ))) --> {ids[self.entry]}")
        for indent, name, number in self._walked():
            if number is None:
                lines.append(f'{indent}{ids[name]}["{mermaid_label(self.cards[name])}"]' if name else f"{indent}end")
            else:
                lines.append(f'{indent}subgraph g{number}["{mermaid_text(name)}"]')
        for line in self.lines:
            arrow = "-.->" if line.is_failure else line.style.arrow
            said = "<br/>".join(mermaid_text(each) for each in wrapped(line.label))
            label = f'|"{said}"|' if said else ""
            lines.append(f"  {ids[line.source]} {arrow}{label} {ids[line.target]}")
        return "\n".join(lines) + "\n"

    def dot(self) -> str:
        lines = [
            f"digraph {dot_text(self.name)} {{",
            '  rankdir=TB; node [shape=box, style="rounded", fontname="Helvetica", fontsize=11];',
            '  edge [fontname="Helvetica", fontsize=9];',
        ]
        if self.has_entry:
            lines += ['  "" [shape=point, width=0.15];', f'  "" -> {dot_text(self.entry)};']
        for indent, name, number in self._walked():
            if number is None:
                lines.append(
                    f"{indent}{dot_text(name)} [label={dot_label(self.cards[name])}];" if name else f"{indent}}}"
                )
            else:
                lines.append(f"{indent}subgraph cluster_{number} {{ label={dot_text(name)}; style=dotted;")
        for line in self.lines:
            said = wrapped(line.label)
            options = [f"label={dot_text(chr(10).join(said))}"] if said else []
            options += [option for option in ["style=dashed" if line.is_failure else line.style.option] if option]
            suffix = f" [{', '.join(options)}]" if options else ""
            lines.append(f"  {dot_text(line.source)} -> {dot_text(line.target)}{suffix};")
        return "\n".join([*lines, "}"]) + "\n"

    def _walked(self) -> Iterator[tuple[str, str, int | None]]:
        """(indent, name of a card, None), (indent, title, number) where a group begins, (indent, "", None) where it ends."""
        numbers = count(1)

        def walk(members: list[str | Group], indent: str) -> Iterator[tuple[str, str, int | None]]:
            for member in members:
                if isinstance(member, str):
                    yield indent, member, None
                else:
                    yield indent, member.title, next(numbers)
                    yield from walk(member.members, indent + "  ")
                    yield indent, "", None

        return walk(self.members, "  ")

    def svg(self) -> str:
        layout = laid_out(
            {name: box(card, self.indent, 8) for name, card in self.cards.items()},
            [(line.source, line.target) for line in self.lines],
            self.entry,
            self.gap_y,
        )
        ways = list(zip(layout.ways, self.lines, strict=True))
        body = [_entry(layout.spots[self.entry], self.styles[0])] if self.has_entry else []
        body += [_way(way, line) for way, line in ways]
        for name, card in self.cards.items():
            texts = [("line", card.lines), ("badge", card.badges)]
            shown = texts if self.lines_first else texts[::-1]
            body.append(card_box(layout.spots[name], card.title, shown, self.indent, self.stripes.get(name, "")))
        labels = [line_label(way, wrapped(line.label), line.index) for way, line in ways]
        body += [label for label in labels if label]
        return self._page(layout, body, _LABEL_WIDTH if any(labels) else 0, _ABOVE if self.has_entry else 0)

    def _page(self, layout: Layout, body: Iterable[str], labels: float, above: float) -> str:
        """`labels` and `above` are room for labels and over the topmost card."""
        points = [point for way in layout.ways for point in way]
        # A label stands on the middle of its line, which may be the outermost.
        right = max([layout.width, *(x for x, _ in points)]) + labels
        low = max([layout.height, *(y for _, y in points)])
        width, height = right + 2 * _MARGIN, low + 2 * _MARGIN + above
        # The lines come first, so that `fail` changes the colour of any of them.
        own = "".join(f".{one.name}{{fill:none;stroke:{one.colour};stroke-width:{one.width}}}" for one in self.styles)
        own += ".entry{fill:#334155}" if self.has_entry else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n'
            f"<title>{html.escape(self.name)}</title>\n<style>{own}\n{_STYLE}</style>\n"
            f"<defs>{''.join(map(_tip, self.styles))}</defs>\n"
            '<rect class="ground" width="100%" height="100%"/>\n'
            f'<g transform="translate({_MARGIN:.0f} {_MARGIN + above:.0f})">\n' + "\n".join(body) + "\n</g>\n</svg>\n"
        )


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
_ABOVE = 26.0
"""Room for the dot that shows where tokens enter."""

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


def _tip(style: LineStyle) -> str:
    """The head of an arrow; as large on a thick line as on a thin one."""
    return (
        f'<marker id="tip-{style.name}" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="9" '
        f'markerHeight="9" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{style.colour}"/></marker>'
    )


def _entry(spot: Spot, style: LineStyle) -> str:
    top = spot.y - spot.height / 2
    return (
        f'<circle class="entry" cx="{spot.x:.1f}" cy="{top - 32:.1f}" r="5"/>'
        f'<path class="{style.name}" d="M{spot.x:.1f} {top - 27:.1f}V{top:.1f}" marker-end="url(#tip-{style.name})"/>'
    )


def _way(way: Sequence[Point], line: Line) -> str:
    name = line.style.name
    return f'<path class="{name}{" fail" * line.is_failure}" d="{curve(way)}" marker-end="url(#tip-{name})"/>'


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
