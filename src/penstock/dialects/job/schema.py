"""The JSON Schema of jobs and joblets, for editors: made from the table of words and from what components say of themselves."""

from __future__ import annotations

from penstock.dialects.job.words import SCOPES
from penstock.dialects.playbook.schema import DIALECT, scope_schema
from penstock.dialects.playbook.word import TEXT, or_template, ref
from penstock.dialects.playbook.words import KEYCHAIN_KINDS
from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Json, JsonMap
from penstock.ports.components import ComponentCatalog, ComponentDescription


def json_schema(catalog: ComponentCatalog) -> JsonMap:
    """One schema for both kinds of document: `kind: Joblet` tells them apart."""
    definitions: JsonMap = {name: scope_schema(scope) for name, scope in SCOPES.items()}
    for name in ("data_link", "control_link"):
        definitions[name] = {"anyOf": [TEXT, definitions[name]]}
    definitions["column"] = {"anyOf": [definitions["column"], _short_column(), TEXT]}
    definitions["keychain"] = _keychain()
    types = sorted(catalog.types())
    per_type: JsonMap = {}
    for type_ in types:
        description = _described(catalog, type_)
        if description is not None:
            per_type[type_] = _params(description, definitions)
    for name in ("component", "unnamed_component"):
        definitions[name] = _by_type(definitions[name], types, per_type)
    return {
        "$schema": DIALECT,
        "title": "Penstock job",
        "description": SCOPES["job"].about,
        "type": "object",
        "if": {"properties": {"kind": {"const": "Joblet"}}, "required": ["kind"]},
        "then": ref("joblet"),
        "else": ref("job"),
        "$defs": definitions,
    }


def _short_column() -> JsonMap:
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "not": {"required": ["name"]},
        "additionalProperties": {"type": ["string", "object"]},
    }


def _keychain() -> JsonMap:
    kinds: list[Json] = list(KEYCHAIN_KINDS)
    cases: list[Json] = [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": scope_schema(scope)}
        for kind, scope in KEYCHAIN_KINDS.items()
    ]
    return {
        "type": "object",
        "description": "One secret, and how it is found.",
        "properties": {"name": TEXT, "kind": {"enum": kinds}},
        "required": ["name", "kind"],
        "allOf": cases,
    }


def _described(catalog: ComponentCatalog, type_: str) -> ComponentDescription | None:
    """None also for a component that cannot be loaded: an editor should still know all the others."""
    try:
        return catalog.describe(type_)
    except PenstockError:
        return None


def _by_type(own: Json, types: list[str], per_type: JsonMap) -> JsonMap:
    assert isinstance(own, dict)
    properties = own["properties"]
    assert isinstance(properties, dict)
    word = properties["type"]
    assert isinstance(word, dict)
    known: list[Json] = [{"enum": list[Json](types)}, {"type": "string", "pattern": "^@"}]
    cases: list[Json] = [
        {"if": {"properties": {"type": {"const": type_}}, "required": ["type"]}, "then": schema}
        for type_, schema in per_type.items()
    ]
    typed: JsonMap = {"anyOf": known, "description": word["description"]}
    return {**own, "properties": {**properties, "type": typed}, "allOf": cases}


def _params(description: ComponentDescription, definitions: JsonMap) -> JsonMap:
    schema = description.schema
    own = _part(schema, "properties")
    properties: JsonMap = {}
    for name, value in own.items():
        lifted = _lifted(value, description.type, schema, definitions)
        assert isinstance(lifted, dict)
        properties[name] = lifted if _takes_text(lifted) else _or_template(lifted)
    required = schema.get("required")
    params: JsonMap = {
        "type": "object",
        "properties": properties,
        "additionalProperties": schema.get("additionalProperties", True),
    }
    if isinstance(required, list) and required:
        params["required"] = required
        return {"description": description.summary, "properties": {"params": params}, "required": ["params"]}
    return {"description": description.summary, "properties": {"params": {"anyOf": [{"type": "null"}, params]}}}


def _or_template(schema: JsonMap) -> JsonMap:
    about = schema.get("description")
    return {**or_template(schema), **({"description": about} if about else {})}


def _part(value: JsonMap, key: str) -> JsonMap:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _takes_text(schema: JsonMap) -> bool:
    if {"enum", "const", "pattern"} & schema.keys():
        return False
    types = schema.get("type")
    is_open = not (schema.keys() - {"description", "default", "title"})
    return is_open or types == "string" or (isinstance(types, list) and "string" in types)


def _lifted(value: Json, type_: str, top: JsonMap, definitions: JsonMap) -> Json:
    """The same schema with its references pointing into the whole, where the definitions they need are put."""
    if isinstance(value, list):
        return [_lifted(item, type_, top, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    target = value.get("$ref")
    if isinstance(target, str) and target.startswith("#/$defs/"):
        name = target.removeprefix("#/$defs/")
        lifted = f"{type_}.{name}"
        if lifted not in definitions:
            definitions[lifted] = {}
            definitions[lifted] = _lifted(_part(_part(top, "$defs"), name), type_, top, definitions)
        return {**{key: item for key, item in value.items() if key != "$ref"}, "$ref": f"#/$defs/{lifted}"}
    return {key: _lifted(item, type_, top, definitions) for key, item in value.items()}
