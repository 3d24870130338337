"""The JSON Schema of a playbook, for editors: made from the table of words and the descriptions of the installed tools."""

from __future__ import annotations

from penstock.dialects.playbook.public import WORDS, Alias, Treatment
from penstock.dialects.playbook.tasks import WORKBOOK
from penstock.dialects.playbook.words import SCOPES, SQL_KINDS, SUGAR
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
    definitions: JsonMap = {
        name: _with_aliases(scope_schema(scope), name) for name, scope in SCOPES.items() if name not in ("root", "task")
    }
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
    root = _with_aliases(scope_schema(SCOPES["root"]), "root")
    return {"$schema": DIALECT, **root, "title": "Penstock playbook", "$defs": definitions}


def _aliases(*scopes: str) -> dict[str, Alias]:
    """The words of other engines that are read there."""
    return {
        one.key: one for one in WORDS if one.scope in scopes and one.rule and one.treatment is not Treatment.REFUSED
    }


def _alias(alias: Alias) -> JsonMap:
    """Those that have a word of today in their place are shown as out of date."""
    about: JsonMap = {"description": f"{alias.meaning} Today: {alias.instead}."}
    return about if alias.treatment is Treatment.ALIAS else {**about, "deprecated": True}


def _with_aliases(schema: JsonMap, *scopes: str) -> JsonMap:
    """What a scope or a tool takes, and the words of other engines beside it. A word that stands for a required one is enough."""
    schema = _with_values(schema, *scopes)
    found = _aliases(*scopes)
    if not found:
        return schema
    own = part(schema, "properties")
    properties = {**{key: _alias(one) for key, one in found.items() if key not in own}, **own}
    required = schema.get("required")
    named = [str(name) for name in required] if isinstance(required, list) else []
    others = {name: [key for key, one in found.items() if one.replaces == name] for name in named}
    stays: list[Json] = [name for name in named if not others[name]]
    either: list[Json] = [
        {"anyOf": [{"required": [one]} for one in (name, *others[name])]} for name in named if others[name]
    ]
    plain = {key: value for key, value in schema.items() if key != "required"}
    return {
        **plain,
        "properties": properties,
        **({"required": stays} if stays else {}),
        **({"allOf": either} if either else {}),
    }


OTHER_VALUES = {("then", "backoff"): "fixed", ("loop_spec", "mode"): "cursor"}
"""Scope and word -> a value of it that other engines have."""


def _with_values(schema: JsonMap, *scopes: str) -> JsonMap:
    properties = dict(part(schema, "properties"))
    for (scope, word), value in OTHER_VALUES.items():
        if scope in scopes:
            known = dict(part(properties, word))
            about = known.pop("description")
            properties[word] = {"anyOf": [known, {"const": value}], "description": about}
    return {**schema, "properties": properties}


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
            scopes = (kind, *(("sql",) if kind in SQL_KINDS else ()), "task")
            per_kind[kind] = _with_aliases(_params(description, words, definitions), *scopes)
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
