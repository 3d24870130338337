"""The JSON Schema of jobs and joblets, for editors: made from the table of words and the descriptions of components."""

from __future__ import annotations

from penstock.dialects.job.words import SCOPES
from penstock.dialects.schema import (
    DIALECT,
    by_key,
    described,
    keychain_schema,
    lifted,
    param_schema,
    part,
    scope_schema,
)
from penstock.dialects.words import TEXT, ref
from penstock.kernel.values import Json, JsonMap
from penstock.ports.components import ComponentCatalog, ComponentDescription


def json_schema(catalog: ComponentCatalog) -> JsonMap:
    """One schema for both kinds of document: `kind: Joblet` tells them apart."""
    definitions: JsonMap = {name: scope_schema(scope) for name, scope in SCOPES.items()}
    for name in ("data_link", "control_link"):
        definitions[name] = {"anyOf": [TEXT, definitions[name]]}
    definitions["column"] = {"anyOf": [definitions["column"], _short_column(), TEXT]}
    definitions["keychain"] = keychain_schema()
    links = definitions["connections"]
    assert isinstance(links, dict)
    links["additionalProperties"] = ref("connection")
    types = sorted(catalog.types())
    per_type: JsonMap = {}
    for type_ in types:
        description = described(catalog, type_)
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


def _by_type(own: Json, types: list[str], per_type: JsonMap) -> JsonMap:
    assert isinstance(own, dict)
    properties = own["properties"]
    assert isinstance(properties, dict)
    word = properties["type"]
    assert isinstance(word, dict)
    known: list[Json] = [{"enum": list[Json](types)}, {"type": "string", "pattern": "^@"}]
    typed: JsonMap = {"anyOf": known, "description": word["description"]}
    return by_key({**own, "properties": {**properties, "type": typed}}, "type", per_type)


def _params(description: ComponentDescription, definitions: JsonMap) -> JsonMap:
    schema = description.schema
    own = part(schema, "properties")
    properties: JsonMap = {}
    for name, value in own.items():
        param = lifted(value, description.type, schema, definitions)
        assert isinstance(param, dict)
        properties[name] = param_schema(param)
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
