"""JSON Schema in words: what a value may be, its default, and what it contains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from docs.generator.markdown import literal

Schema = Mapping[str, Any]

_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "mapping",
    "null": "null",
}
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most", "minItems": "at least"}


def kind_of(schema: Schema, titles: Mapping[str, str] | None = None) -> str:
    """What a value may be, in a few words. Null is left out: it says what a missing value says.

    A part that is explained elsewhere on the page is a link, called as in `titles` or by its own name.
    """
    if "$ref" in schema:
        part = part_of(schema)
        return f"[{(titles or {}).get(part, part)}](#{part.lower()})"
    if "enum" in schema:
        return ", ".join(literal(value) for value in schema["enum"] if value is not None)
    if "const" in schema:
        return literal(schema["const"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return _joined(kind_of(one, titles) for one in schema[word] if one.get("type") != "null")
    kind = schema.get("type")
    if isinstance(kind, list):
        return _joined(_WORDS[one] for one in kind if one != "null")
    if kind == "array" and schema.get("items"):
        return f"list of {kind_of(schema['items'], titles)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"mapping of {kind_of(schema['additionalProperties'], titles)}"
    found = _WORDS.get(str(kind), "any value")
    bounds = [f"{text} {schema[word]}" for word, text in _BOUNDS.items() if word in schema]
    return f"{found} ({' and '.join(bounds)})" if bounds else found


def _joined(kinds: Iterator[str]) -> str:
    return " or ".join(dict.fromkeys(kinds))


def part_of(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def default_of(schema: Schema) -> str:
    """What holds when the value is left out; nothing when that is null or empty."""
    value = schema.get("default")
    if value in (None, "", [], {}) or (isinstance(value, dict) and not any(value.values())):
        return ""
    return literal(value)


def parts_in(schema: Schema) -> Iterator[str]:
    """The names of the definitions a schema leads to, in order of appearance."""
    waiting: list[Any] = [schema]
    while waiting:
        here = waiting.pop(0)
        if isinstance(here, Mapping):
            if "$ref" in here:
                yield part_of(here)
            waiting[:0] = [value for key, value in here.items() if key != "$defs"]
        elif isinstance(here, list):
            waiting[:0] = here
