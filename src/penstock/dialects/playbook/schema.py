"""The JSON Schema of a playbook, for editors: made from the table of words and the descriptions of the installed tools."""

from __future__ import annotations

from penstock.dialects.playbook.tasks import WORKBOOK
from penstock.dialects.playbook.words import SCOPES, SUGAR
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
from penstock.dialects.words import TEXT, list_of, ref
from penstock.kernel.values import Json, JsonMap
from penstock.ports.plugins import ParamInfo, ToolCatalog, ToolDescription


def json_schema(catalog: ToolCatalog) -> JsonMap:
    kinds = sorted({*catalog.kinds(), WORKBOOK})
    definitions: JsonMap = {name: scope_schema(scope) for name, scope in SCOPES.items() if name not in ("root", "task")}
    definitions["tool"] = {"anyOf": [ref("task"), list_of(ref("task"))]}
    definitions["task"] = _task()
    definitions["call"] = _call(catalog, kinds, definitions)
    definitions["labelled"] = {
        "description": "A task named by a key. Write `name` instead.",
        "deprecated": True,
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": {"type": "object"},
    }
    definitions["keychain"] = keychain_schema()
    definitions["workbook"] = _workbook()
    root = scope_schema(SCOPES["root"])
    return {"$schema": DIALECT, **root, "title": "Penstock playbook", "$defs": definitions}


def _task() -> JsonMap:
    """One entry of a pipeline. Told apart by its keys, so that an editor complains about the one that was meant."""
    return {
        "type": "object",
        "if": {"required": ["kind"]},
        "then": ref("call"),
        "else": {
            "if": {"anyOf": [{"required": [word]} for word in SUGAR]},
            "then": ref("sugar"),
            "else": ref("labelled"),
        },
    }


def _call(catalog: ToolCatalog, kinds: list[str], definitions: JsonMap) -> JsonMap:
    own = scope_schema(SCOPES["task"])
    properties = own["properties"]
    assert isinstance(properties, dict)
    words = properties
    per_kind: JsonMap = {}
    for kind in kinds:
        description = described(catalog, kind)
        if kind == WORKBOOK:
            per_kind[kind] = {
                "description": "Call a task of the workbook; what is given here is laid over it.",
                "properties": {
                    **words,
                    "task": {**TEXT, "description": "The workbook task; otherwise `name` names it."},
                },
            }
        elif description is not None:
            per_kind[kind] = _params(description, words, definitions)
    kind_word: JsonMap = {"enum": list[Json](kinds), "description": SCOPES["task"].words["kind"].about}
    own["properties"] = {"kind": kind_word}
    return by_key(own, "kind", per_kind)


def _params(description: ToolDescription, words: JsonMap, definitions: JsonMap) -> JsonMap:
    params = {info.name: _param(description, info, definitions) for info in description.params.values()}
    # `input` is another name for `args`, unless the tool has a parameter of that name.
    if "args" in params and "input" not in params:
        params["input"] = params["args"]
    words = {name: schema for name, schema in words.items() if name not in params}
    required: list[Json] = [info.name for info in description.params.values() if info.required and info.name != "args"]
    return {
        "description": description.summary,
        "properties": {**params, **words},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _param(description: ToolDescription, info: ParamInfo, definitions: JsonMap) -> JsonMap:
    own = lifted(_own_schema(description, info), description.kind, description.schema, definitions)
    assert isinstance(own, dict)
    return param_schema({**own, "description": info.description})


def _own_schema(description: ToolDescription, info: ParamInfo) -> JsonMap:
    top = description.schema
    name = str(top.get("$ref", "")).removeprefix("#/$defs/")
    inner = part(part(top, "$defs"), name) if name else top
    found = part(inner, "properties").get(info.name)
    if isinstance(found, dict):
        return found
    if info.enum is not None:
        return {"enum": list(info.enum)}
    return {} if "any" in info.types else {"type": list[Json](info.types)}


def _workbook() -> JsonMap:
    entry = ref("workbook_task")
    return {
        "description": SCOPES["root"].words["workbook"].about,
        "anyOf": [
            list_of({**entry, "required": ["name"]}),
            {"type": "object", "properties": {"tasks": {"type": ["object", "array"]}}, "additionalProperties": entry},
        ],
    }
