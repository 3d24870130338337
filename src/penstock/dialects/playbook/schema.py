"""The JSON Schema of a playbook, for editors: made from the table of words and from what installed tools say of themselves."""

from __future__ import annotations

from penstock.dialects.playbook.tasks import WORKBOOK
from penstock.dialects.playbook.word import SUGAR, TEXT, Scope, Strictness, Word, list_of, or_template, ref
from penstock.dialects.playbook.words import KEYCHAIN_KINDS, SCOPES
from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Json, JsonMap
from penstock.ports.plugins import ParamInfo, ToolCatalog, ToolDescription

DIALECT = "https://json-schema.org/draft/2020-12/schema"


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
    definitions["keychain"] = _by_kind(
        _common_keychain(), {kind: scope_schema(scope) for kind, scope in KEYCHAIN_KINDS.items()}
    )
    definitions["workbook"] = _workbook()
    root = scope_schema(SCOPES["root"])
    return {"$schema": DIALECT, **root, "title": "Penstock playbook", "$defs": definitions}


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
        description = _described(catalog, kind)
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
    return _by_kind(own, per_kind)


def _described(catalog: ToolCatalog, kind: str) -> ToolDescription | None:
    """None also for a tool that cannot be loaded: an editor should still know all the others."""
    try:
        return catalog.describe(kind)
    except PenstockError:
        return None


def _by_kind(own: JsonMap, per_kind: JsonMap) -> JsonMap:
    cases: list[Json] = [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": schema}
        for kind, schema in per_kind.items()
    ]
    return {**own, "allOf": cases}


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
    """The tool's own schema of a parameter; a template may stand for any value."""
    schema = _lifted(_own_schema(description, info), description.kind, description.schema, definitions)
    if isinstance(schema, dict) and _takes_text(schema):
        return {**schema, "description": info.description}
    return {**or_template(schema if isinstance(schema, dict) else {}), "description": info.description}


def _own_schema(description: ToolDescription, info: ParamInfo) -> JsonMap:
    top = description.schema
    name = str(top.get("$ref", "")).removeprefix("#/$defs/")
    inner = _part(_part(top, "$defs"), name) if name else top
    found = _part(inner, "properties").get(info.name)
    if isinstance(found, dict):
        return found
    if info.enum is not None:
        return {"enum": list(info.enum)}
    return {} if "any" in info.types else {"type": list[Json](info.types)}


def _part(value: JsonMap, key: str) -> JsonMap:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _takes_text(schema: JsonMap) -> bool:
    if "enum" in schema or "const" in schema or "pattern" in schema:
        return False
    types = schema.get("type")
    return (
        types == "string"
        or (isinstance(types, list) and "string" in types)
        or not (schema.keys() - {"description", "default"})
    )


def _lifted(value: Json, kind: str, top: JsonMap, definitions: JsonMap) -> Json:
    """The same schema with its references pointing into the whole, where the definitions they need are put."""
    if isinstance(value, list):
        return [_lifted(item, kind, top, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    target = value.get("$ref")
    if isinstance(target, str) and target.startswith("#/$defs/"):
        name = target.removeprefix("#/$defs/")
        lifted = f"{kind}.{name}"
        if lifted not in definitions:
            definitions[lifted] = {}
            definitions[lifted] = _lifted(_part(_part(top, "$defs"), name), kind, top, definitions)
        return {**{key: item for key, item in value.items() if key != "$ref"}, "$ref": f"#/$defs/{lifted}"}
    return {key: _lifted(item, kind, top, definitions) for key, item in value.items()}


def _common_keychain() -> JsonMap:
    any_kind = KEYCHAIN_KINDS["env"].words
    words = {"name": any_kind["name"], "kind": any_kind["kind"]}
    own = scope_schema(Scope("keychain entry", "One secret, and how it is found.", words, Strictness.OPEN))
    properties = own["properties"]
    assert isinstance(properties, dict)
    properties["kind"] = {"enum": list[Json](KEYCHAIN_KINDS), "description": words["kind"].about}
    return own


def _workbook() -> JsonMap:
    entry = ref("workbook_task")
    return {
        "description": SCOPES["root"].words["workbook"].about,
        "anyOf": [
            list_of({**entry, "required": ["name"]}),
            {"type": "object", "properties": {"tasks": {"type": ["object", "array"]}}, "additionalProperties": entry},
        ],
    }
