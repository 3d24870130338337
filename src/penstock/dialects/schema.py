"""The parts of JSON Schemas for editors that both languages share."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from penstock.dialects.reader import Catalog
from penstock.dialects.source.node import SourceNode
from penstock.dialects.words import KEYCHAIN_KIND_ALIASES, KEYCHAIN_KINDS, Scope, Strictness, Word, or_template
from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Json, JsonMap

DIALECT = "https://json-schema.org/draft/2020-12/schema"
D = TypeVar("D")

NOUNS = {
    "string": "text", "integer": "a whole number", "number": "a number", "boolean": "`true` or `false`", "object": "a mapping",
    "array": "a list", "null": "nothing",
}  # fmt: skip
"""The types of JSON Schema in the words of a message."""


def types_of(node: SourceNode) -> frozenset[str]:
    """The types of JSON Schema that a value is of."""
    if node.kind != "scalar":
        return frozenset(("object",) if node.kind == "mapping" else ("array",))
    match node.value:
        case None:
            return frozenset(("null",))
        case bool():
            return frozenset(("boolean",))
        case int():
            return frozenset(("integer", "number"))
        case float() as value:
            return frozenset(("number", "integer") if value.is_integer() else ("number",))
    return frozenset(("string",))


def described(catalog: Catalog[D], name: str) -> D | None:
    """None also for what cannot be loaded: an editor should still know all the others."""
    try:
        return catalog.describe(name)
    except PenstockError:
        return None


def scope_schema(scope: Scope) -> JsonMap:
    found: JsonMap = {
        "title": scope.title,
        "description": scope.about,
        "type": "object",
        "properties": {name: word_schema(word) for name, word in scope.words.items()},
    }
    required: list[Json] = [name for name, word in scope.words.items() if word.required]
    if required:
        found["required"] = required
    if scope.need_one_of:
        found["anyOf"] = [{"required": [name]} for name in scope.need_one_of]
    if scope.strictness is Strictness.CLOSED:
        found["additionalProperties"] = False
    return found


def word_schema(word: Word) -> JsonMap:
    return {**word.schema, "description": word.about}


def by_key(own: JsonMap, key: str, cases: JsonMap) -> JsonMap:
    """A mapping that has more to it, depending on what stands under `key`."""
    rules: list[Json] = [
        {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": schema}
        for value, schema in cases.items()
    ]
    return {**own, "allOf": rules}


def keychain_schema() -> JsonMap:
    any_kind = KEYCHAIN_KINDS["env"].words
    words = {"name": any_kind["name"], "kind": replace(any_kind["kind"], required=False)}
    own = scope_schema(
        Scope("keychain entry", "One secret, and how it is found.", words, Strictness.OPEN, ("kind", "type"))
    )
    properties = part(own, "properties")
    kinds: list[Json] = [*KEYCHAIN_KINDS, *KEYCHAIN_KIND_ALIASES]
    properties["kind"] = {"enum": kinds, "description": words["kind"].about}
    properties["type"] = {"enum": kinds, "description": "Another engine's word for `kind`.", "deprecated": True}
    return by_key(own, "kind", {kind: scope_schema(scope) for kind, scope in KEYCHAIN_KINDS.items()})


def param_schema(schema: JsonMap) -> JsonMap:
    """The schema of a parameter in a document: a template may stand for any value."""
    if _takes_text(schema):
        return schema
    about = schema.get("description")
    return {**or_template(schema), **({"description": about} if about else {})}


def _takes_text(schema: JsonMap) -> bool:
    if {"enum", "const", "pattern"} & schema.keys():
        return False
    types = schema.get("type")
    is_open = not (schema.keys() - {"description", "default", "title"})
    return is_open or types == "string" or (isinstance(types, list) and "string" in types)


def part(value: JsonMap, key: str) -> JsonMap:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def lifted(value: Json, owner: str, top: JsonMap, definitions: JsonMap) -> Json:
    """The same schema with its references pointing into the whole, where the definitions they need are put."""
    if isinstance(value, list):
        return [lifted(item, owner, top, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    target = value.get("$ref")
    if isinstance(target, str) and target.startswith("#/$defs/"):
        name = target.removeprefix("#/$defs/")
        there = f"{owner}.{name}"
        if there not in definitions:
            definitions[there] = {}
            definitions[there] = lifted(part(part(top, "$defs"), name), owner, top, definitions)
        return {**{key: item for key, item in value.items() if key != "$ref"}, "$ref": f"#/$defs/{there}"}
    return {key: lifted(item, owner, top, definitions) for key, item in value.items()}
