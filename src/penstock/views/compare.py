"""Two runs side by side: inputs, states, rows per link, times, and the first decision that differs.

Law: nodes are compared by name and links by what they join, so that runs of two versions of a document can be compared. The first
difference is that of the canonical timelines, in which what only ran faster makes none; long runs are compared as far as
`MOST_COMPARED` entries go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.views.canonical import STARTS, canonical_entries
from penstock.views.folded import entries_between
from penstock.views.history import node_at
from penstock.views.run_view import Readable
from penstock.views.wording import shown

MOST_COMPARED = 50_000
MOST_VALUES = 200
NOTICED_MS = 100.0
NOTICED = 1.5
"""Times differ if one is so many times the other, and by so many milliseconds."""
_OF_START = frozenset({"workload", "digest", "document", "name", "state", "trace_id"})
"""What a run was given is compared by itself."""
_ABSENT = object()


# ---- values


def value_differences(left: Any, right: Any) -> list[Any]:
    found = [{"path": path, "left": one, "right": other} for path, one, other in _different(left, right, "")]
    return found[:MOST_VALUES]


def _different(left: Any, right: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in dict.fromkeys([*left, *right]):
            yield from _different(
                left.get(key, _ABSENT), right.get(key, _ABSENT), f"{path}.{key}" if path else str(key)
            )
    elif isinstance(left, list) and isinstance(right, list):
        for index in range(max(len(left), len(right))):
            one, other = (side[index] if index < len(side) else _ABSENT for side in (left, right))
            yield from _different(one, other, f"{path}[{index}]")
    elif left is not right and (type(left) is not type(right) or left != right):
        yield path, None if left is _ABSENT else left, None if right is _ABSENT else right


# ---- nodes and edges


def node_differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[Any]:
    return [
        {
            "node": name,
            "left": left.get(name),
            "right": right.get(name),
            "differs": _differs(left.get(name), right.get(name)),
        }
        for name in dict.fromkeys([*left, *right])
    ]


def _differs(left: Any, right: Any) -> list[Any]:
    if left is None or right is None:
        return ["status"]
    found = [key for key in ("status", "runs", "error") if left[key] != right[key]]
    if left["attempt"] != right["attempt"]:
        found.append("attempts")
    if (left["rows_in"], left["rows_out"]) != (right["rows_in"], right["rows_out"]):
        found.append("rows")
    low, high = sorted((left["ms"], right["ms"]))
    if high - low > NOTICED_MS and high > NOTICED * low:
        found.append("time")
    return found


def edge_differences(
    left: Mapping[str, Any], right: Mapping[str, Any], nets: tuple[Net | None, Net | None]
) -> list[Any]:
    one, other = (_by_label(net) if net is not None else {} for net in nets)
    found: list[Any] = []
    for label in dict.fromkeys([*one, *other]):
        mine, theirs = left.get(one.get(label, "")), right.get(other.get(label, ""))
        keys = ("state", "fired", "rows")
        is_same = mine is not None and theirs is not None and all(mine[key] == theirs[key] for key in keys)
        found.append(
            {
                "edge": one.get(label) or other[label],
                "label": label,
                "left": mine,
                "right": theirs,
                "differs": not is_same,
            }
        )
    return found


def _by_label(net: Net) -> dict[str, str]:
    """What a link joins, in words -> its id."""
    if net.kind == "playbook":
        return {
            f"{node.name} → {edge.target}{f' when {edge.guard}' if edge.guard else ''}": f"{node.name}:{edge.index}"
            for node in net.nodes.values()
            for edge in node.edges
        }
    found: dict[str, str] = {}
    for link in net.links:
        if not link.hidden:
            text = f"{link.source} ({link.on.value}) {link.target}"
            is_data = bool(link.port)
            found[f"{link.source}.{link.port} → {link.target}.{link.to_port}" if is_data else text] = str(link.index)
    return found


# ---- the first difference

Side = tuple[Readable, str, int]
"""A log, a run in it, and its last entry."""
_Event = tuple[Entry, JsonMap]


def first_difference(left: Side, right: Side) -> tuple[JsonMap | None, bool]:
    """The first decision that differs, and whether both runs were compared to their ends."""
    is_complete = max(left[2], right[2]) <= MOST_COMPARED
    one, other = (list(_decisions(side)) for side in (left, right))
    if not is_complete:  # What one of them has not come to yet is no difference.
        one, other = _both(one, other)
    for mine, theirs in zip_longest(one, other):
        if mine is None or theirs is None or (mine[1] != theirs[1] and any(_differences(mine, theirs))):
            return _told(mine, theirs), is_complete
    return None, is_complete


def _decisions(side: Side) -> Iterator[_Event]:
    log, run, last = side
    for entry, event in canonical_entries(entries_between(log, run, 0, min(last, MOST_COMPARED)), run):
        payload = event["payload"]
        if entry.type == "checkpoint.saved":  # What a resume would stand on repeats what was decided.
            continue
        if entry.type in STARTS and isinstance(payload, dict):
            yield entry, {**event, "payload": {key: payload[key] for key in payload if key not in _OF_START}}
        elif entry.type == "component.ok" and isinstance(payload, dict):
            yield entry, {**event, "payload": {**payload, "outputs": _unstored(payload.get("outputs"))}}
        else:
            yield entry, event


def _unstored(outputs: Any) -> Any:
    """Which rows came out, by their hash. Whether they were kept is no decision of the run."""
    if not isinstance(outputs, dict):
        return outputs
    return {
        port: {key: one.get(key) for key in ("hash", "rows")} if isinstance(one, dict) else one
        for port, one in outputs.items()
    }


def _both(one: list[_Event], other: list[_Event]) -> tuple[list[_Event], list[_Event]]:
    def key(event: _Event) -> tuple[Any, ...]:
        return repr(event[1]["clock"]), event[0].type, event[0].scope

    known = {key(event) for event in one} & {key(event) for event in other}
    return [event for event in one if key(event) in known], [event for event in other if key(event) in known]


def _told(left: _Event | None, right: _Event | None) -> JsonMap:
    scope = (left or right)[0].scope  # type: ignore[index]  # One of them is there.
    return {
        "left_seq": left[0].seq if left is not None else None,
        "right_seq": right[0].seq if right is not None else None,
        "left": _line(left, right),
        "right": _line(right, left),
        "node": node_at(scope),
    }


def _line(event: _Event | None, other: _Event | None) -> str | None:
    if event is None:
        return None
    entry = event[0]
    start = f"`{entry.type}` of `{entry.scope or 'the run'}`"
    if other is None or (other[0].type, other[0].scope) != (entry.type, entry.scope):
        return start
    found = next(_differences(event, other), None)
    return start if found is None or not found[0] else f"{start}: {found[0]} = {shown(found[1])}"


def _differences(event: _Event, other: _Event) -> Iterator[tuple[str, Any, Any]]:
    """Hashes of rows and hashes of the plan that made them say nothing about each other."""
    for path, mine, theirs in _different(event[1]["payload"], other[1]["payload"], ""):
        is_hash = path.startswith("outputs.") and path.endswith(".hash")
        if not is_hash or str(mine).partition(":")[0] == str(theirs).partition(":")[0]:
            yield path, mine, theirs
    rest = ("clock", "event_type", "scope", "task_run_id", "cause")
    if any(event[1][key] != other[1][key] for key in rest):
        yield "", None, None
