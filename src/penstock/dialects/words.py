"""What a word of a document is, in either language, and the small vocabulary of its values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from penstock.kernel.values import Json, JsonMap

DURABILITIES = ("grouped", "strict")
OPEN = "open"
INPUT_RULES = ("declared", OPEN)
"""Which inputs a run may be given: those that the document declares or reads, or any."""


class Strictness(Enum):
    """What a key that is not in the table means. CLOSED: a mistake. HINTS: it does nothing. OPEN: it is the author's own."""

    CLOSED = "closed"
    HINTS = "hints"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Word:
    about: str
    schema: JsonMap = field(default_factory=dict)
    required: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    title: str
    about: str
    words: dict[str, Word]
    strictness: Strictness = Strictness.CLOSED
    need_one_of: tuple[str, ...] = ()


def ref(scope: str) -> JsonMap:
    return {"$ref": f"#/$defs/{scope}"}


def list_of(item: JsonMap, least: int = 0) -> JsonMap:
    return {"type": "array", "items": item, **({"minItems": least} if least else {})}


def choice(values: Iterable[str], default: str | None = None) -> JsonMap:
    found: JsonMap = {"enum": list[Json](values)}
    return {**found, "default": default} if default else found


def number(least: float = 0, default: float | None = None) -> JsonMap:
    found: JsonMap = {"type": "number", "minimum": least}
    return found if default is None else {**found, "default": default}


def integer(least: int = 0, default: int | None = None) -> JsonMap:
    found: JsonMap = {"type": "integer", "minimum": least}
    return found if default is None else {**found, "default": default}


ANY: JsonMap = {}
TEXT: JsonMap = {"type": "string"}
BOOLEAN: JsonMap = {"type": "boolean"}
MAPPING: JsonMap = {"type": "object"}
TEMPLATE: JsonMap = {"type": "string", "pattern": r"\{\{"}


def or_template(schema: JsonMap) -> JsonMap:
    return {"anyOf": [schema, TEMPLATE]}
