"""What a document keeps from one run to the next: values it sets itself, and the watermarks of its readers.

Law: the first fact of an execution holds what was kept when it started, its last fact what is kept from then on. So a resume and
a replay see what the run saw, and only a completed run changes anything.
"""

from __future__ import annotations

from penstock.kernel.values import Json, JsonMap

STATE = "state"
"""The part of a playbook's `ctx` that is kept."""
WATERMARK, WATERMARK_KEY = "WATERMARK", "WATERMARK_KEY"
"""After-variables of a reader: the highest value it has read, and the key this is kept under."""


def opened(document: str, values: JsonMap, watermarks: JsonMap) -> JsonMap:
    return {"document": document, "values": values, "watermarks": watermarks}


def part(kept: Json, name: str) -> JsonMap:
    found = kept.get(name) if isinstance(kept, dict) else None
    return found if isinstance(found, dict) else {}


def closed(kept: Json, values: Json, watermarks: JsonMap) -> Json:
    """What a completed run changes: kind -> key -> [before, after]. None if nothing has changed."""
    if not isinstance(kept, dict):
        return None
    now = values if isinstance(values, dict) else {}
    before = part(kept, "values")
    changed: JsonMap = {
        key: [before.get(key), now.get(key)] for key in sorted({*before, *now}) if before.get(key) != now.get(key)
    }
    marked: JsonMap = {}
    known = part(kept, "watermarks")
    for key, value in sorted(watermarks.items()):
        if later(known.get(key), value) != known.get(key):
            marked[key] = [known.get(key), value]
    if not changed and not marked:
        return None
    return {"document": kept["document"], "values": changed, "watermarks": marked}


def later(one: Json, other: Json) -> Json:
    """The higher of two watermarks: numbers compare as numbers, anything else (dates, times) as text; None is lowest."""
    if one is None or other is None:
        return other if one is None else one
    if _is_number(one) and _is_number(other):
        return max(one, other)  # type: ignore[type-var]
    return max(one, other, key=str)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def mark(marks: JsonMap, more: JsonMap) -> None:
    for key, value in more.items():
        marks[key] = later(marks.get(key), value)
