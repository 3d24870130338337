"""Pictures of documents: cards and the lines between them, as Mermaid and DOT, and as SVG, laid out here: no other program is
needed.

The layout is layered: cards in rows from the entry downwards, lines as chains of points between rows. Lines that lead upwards are
reversed for the layout only. A line over several rows gets a slot in each row between, so that it is routed around cards."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import TypeAlias

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
            text = "<br/>".join(mermaid_text(each) for each in wrapped(line.label))
            label = f'|"{text}"|' if text else ""
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
            label = wrapped(line.label)
            options = [f"label={dot_text(chr(10).join(label))}"] if label else []
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


Point: TypeAlias = tuple[float, float]

_SWEEPS = 8
_GAP_X = 36.0
_LANE = 14.0
# Above this many, arcs are drawn straight: the picture is unreadable anyway, and routing would take too long.
_MOST_BENDS = 20_000
# No step can be called like a bend of an arc.
_BEND = "\0"


@dataclass(frozen=True, slots=True)
class Box:
    width: float
    height: float


@dataclass(slots=True)
class Spot:
    """Where one step, or one bend of an arc, stands: its centre."""

    row: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0


@dataclass(slots=True)
class Layout:
    spots: dict[str, Spot] = field(default_factory=dict)
    ways: list[list[Point]] = field(default_factory=list)
    """Per arc, in the order given: its points from the source to the target."""
    width: float = 0.0
    height: float = 0.0


def laid_out(boxes: dict[str, Box], arcs: list[tuple[str, str]], entry: str, gap_y: float) -> Layout:
    rows_of = _rows(list(boxes), arcs, entry)
    spots: dict[str, Spot] = {name: Spot(rows_of[name], box.width, box.height) for name, box in boxes.items()}
    chains = _chains(spots, arcs, rows_of)
    rows: list[list[str]] = [[] for _ in range(max(spot.row for spot in spots.values()) + 1)]
    for name, spot in spots.items():
        rows[spot.row].append(name)
    _order(rows, chains)
    _position(spots, rows, chains, gap_y)
    layout = Layout({name: spots[name] for name in boxes})
    layout.ways = _ways(spots, arcs, chains)
    layout.width = max(spot.x + spot.width / 2 for spot in spots.values())
    layout.height = max(spot.y + spot.height / 2 for spot in spots.values())
    return layout


def _rows(names: list[str], arcs: list[tuple[str, str]], entry: str) -> dict[str, int]:
    """The row of each step: one below the lowest step that leads to it, arcs that lead back left aside."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for source, target in arcs:
        if source != target:
            after[source].append(target)
    order = _topological(names, after, entry)
    position = {name: index for index, name in enumerate(order)}
    rows = dict.fromkeys(names, 0)
    for name in order:
        for target in after[name]:
            if position[target] > position[name]:
                rows[target] = max(rows[target], rows[name] + 1)
    return rows


def _topological(names: list[str], after: dict[str, list[str]], entry: str) -> list[str]:
    """Reverse finishing order of a depth-first walk from the entry; the walk keeps its own stack."""
    done: list[str] = []
    seen: set[str] = set()
    for root in [entry, *names]:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(after[root]))]
        while stack:
            name, following = stack[-1]
            target = next((each for each in following if each not in seen), None)
            if target is None:
                done.append(name)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(after[target])))
    return done[::-1]


def _chains(spots: dict[str, Spot], arcs: list[tuple[str, str]], rows: dict[str, int]) -> list[list[str]]:
    """Each arc as a chain of spots, one per row it passes, from the upper end to the lower one."""
    chains: list[list[str]] = []
    has_bends = sum(abs(rows[source] - rows[target]) for source, target in arcs) <= _MOST_BENDS
    for number, (source, target) in enumerate(arcs):
        upper, lower = (source, target) if rows[source] <= rows[target] else (target, source)
        chain = [upper]
        for row in range(rows[upper] + 1, rows[lower]) if has_bends else ():
            bend = f"{_BEND}{number}:{row}"
            spots[bend] = Spot(row, _LANE, 0.0)
            chain.append(bend)
        chains.append([*chain, lower])
    return chains


def _order(rows: list[list[str]], chains: list[list[str]]) -> None:
    """Sort each row by the middle of its neighbours, downwards and upwards in turn: few crossings, little work."""
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for chain in chains:
        for upper, lower in pairwise(chain):
            if upper != lower:
                above.setdefault(lower, []).append(upper)
                below.setdefault(upper, []).append(lower)
    position = {name: float(index) for row in rows for index, name in enumerate(row)}
    for sweep in range(_SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            middles = {
                name: _middle([position[other] for other in neighbours.get(name, ())], position[name]) for name in row
            }
            row.sort(key=middles.__getitem__)
            position.update({name: float(index) for index, name in enumerate(row)})


def _middle(near: list[float], here: float) -> float:
    return sum(near) / len(near) if near else here


def _position(spots: dict[str, Spot], rows: list[list[str]], chains: list[list[str]], gap_y: float) -> None:
    """Rows centred on one axis, then spots drawn towards their neighbours as far as their row lets them."""
    top = 0.0
    for row in rows:
        tallest = max(spots[name].height for name in row)
        width = sum(spots[name].width for name in row) + _GAP_X * (len(row) - 1)
        left = -width / 2
        for name in row:
            spot = spots[name]
            spot.x, spot.y = left + spot.width / 2, top + tallest / 2
            if name.startswith(_BEND):
                spot.height = tallest
            left += spot.width + _GAP_X
        top += tallest + gap_y
    near: dict[str, list[str]] = {}
    for chain in chains:
        for one, other in pairwise(chain):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    for _ in range(_SWEEPS):
        for row in rows:
            _draw_near(spots, row, near)
    shift = min(spot.x - spot.width / 2 for spot in spots.values())
    for spot in spots.values():
        spot.x -= shift


def _draw_near(spots: dict[str, Spot], row: list[str], near: dict[str, list[str]]) -> None:
    for index, name in enumerate(row):
        spot = spots[name]
        others = [spots[other].x for other in near.get(name, ()) if other != name]
        if not others:
            continue
        wanted = sum(others) / len(others)
        if index:
            before = spots[row[index - 1]]
            wanted = max(wanted, before.x + before.width / 2 + _GAP_X + spot.width / 2)
        if index + 1 < len(row):
            following = spots[row[index + 1]]
            wanted = min(wanted, following.x - following.width / 2 - _GAP_X - spot.width / 2)
        spot.x = wanted


def _ways(spots: dict[str, Spot], arcs: list[tuple[str, str]], chains: list[list[str]]) -> list[list[Point]]:
    """From the lower edge of one step to the upper edge of the next; arcs within a row and back to itself go round."""
    leave, arrive = _ports(spots, chains)
    ways: list[list[Point]] = []
    for number, ((source, target), chain) in enumerate(zip(arcs, chains, strict=True)):
        one, other = spots[source], spots[target]
        if source == target:
            right, up = one.x + one.width / 2, one.height / 4
            ways.append([(right, one.y - up), (right + _GAP_X * 0.8, one.y), (right, one.y + up)])
            continue
        if one.row == other.row:
            low = max(one.y + one.height / 2, other.y + other.height / 2) + 18
            bottom, other_bottom = one.y + one.height / 2, other.y + other.height / 2
            ways.append([(one.x, bottom), ((one.x + other.x) / 2, low), (other.x, other_bottom)])
            continue
        upper, lower = spots[chain[0]], spots[chain[-1]]
        points = [(leave[number], upper.y + upper.height / 2)]
        for bend in chain[1:-1]:
            # Upright through the whole row, so that the arc does not cut the corners of tall neighbours.
            spot = spots[bend]
            points += [(spot.x, spot.y - spot.height / 2), (spot.x, spot.y + spot.height / 2)]
        points.append((arrive[number], lower.y - lower.height / 2))
        ways.append(points[::-1] if one.row > other.row else points)
    return ways


def _ports(spots: dict[str, Spot], chains: list[list[str]]) -> tuple[dict[int, float], dict[int, float]]:
    """Where each arc touches its upper and its lower step: side by side, in the order of where they go."""
    below: dict[str, list[tuple[float, int]]] = {}
    above: dict[str, list[tuple[float, int]]] = {}
    for number, chain in enumerate(chains):
        if spots[chain[0]].row != spots[chain[-1]].row:
            below.setdefault(chain[0], []).append((spots[chain[1]].x, number))
            above.setdefault(chain[-1], []).append((spots[chain[-2]].x, number))
    return _spread(spots, below), _spread(spots, above)


def _spread(spots: dict[str, Spot], touching: dict[str, list[tuple[float, int]]]) -> dict[int, float]:
    found: dict[int, float] = {}
    for name, arcs in touching.items():
        spot = spots[name]
        gap = min(spot.width * 0.7 / len(arcs), _GAP_X * 1.5)
        for position, (_, number) in enumerate(sorted(arcs)):
            found[number] = spot.x + (position - (len(arcs) - 1) / 2) * gap
    return found
