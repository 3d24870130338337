"""A layered layout: steps in rows from the entry downwards, arcs as chains of points between rows.

Arcs that lead back upwards are reversed for the layout only. An arc over several rows gets a slot in each row between, so that
it is routed around steps and not across them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

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
    _place(spots, rows, chains, gap_y)
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


def _place(spots: dict[str, Spot], rows: list[list[str]], chains: list[list[str]], gap_y: float) -> None:
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
        for place, (_, number) in enumerate(sorted(arcs)):
            found[number] = spot.x + (place - (len(arcs) - 1) / 2) * gap
    return found
