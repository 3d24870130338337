"""From rendered values to a tool's typed parameters, with every mistake named at once in the author's words.

Templates give text where a number is meant and numbers where text is meant: both are taken for what they say.
Values are never printed, as they may be secrets; only a wrong choice among fixed words is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import inspect as types

from penstock.kernel.values import Json
from penstock.tools.base import ToolFailure

Positive = Annotated[float, msgspec.Meta(gt=0)]


def about(text: str, *, schema: dict[str, Any] | None = None, **limits: Any) -> msgspec.Meta:
    """What a parameter means, for its page and for editors; `limits` and what else its JSON Schema says are as msgspec takes
    them."""
    return msgspec.Meta(description=text, extra_json_schema=schema, **limits)


_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "`true` or `false`",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}
_SCALARS = (types.AnyType, types.IntType, types.FloatType, types.BoolType)


def convert(kind: str, model: type[msgspec.Struct], values: Mapping[str, Any]) -> msgspec.Struct:
    """The parameters as the tool's model. Raises ToolFailure of kind `parameters` that lists all that is wrong."""
    try:
        return msgspec.convert(values, model, strict=False)
    except msgspec.ValidationError:
        pass  # the careful way from here on; it also knows what the mistake is
    info = _fields(model)
    texted = {name: _texted(value, info[name].type) if name in info else value for name, value in values.items()}
    problems = _problems(model, texted, "")
    if not problems:
        try:
            return msgspec.convert(texted, model, strict=False)
        except msgspec.ValidationError as error:
            problems = [("", _worded(str(error))[1])]
    messages = [f"`{name}`: {text}" if name else text for name, text in problems]
    details: list[Json] = [{"parameter": name, "message": text} for name, text in problems]
    raise ToolFailure("parameters", f"parameters of `{kind}`: {'; '.join(messages)}", problems=details)


def similar(name: str, known: Iterable[str]) -> str:
    """A question to add to a sentence about an unknown name, or nothing."""
    import difflib  # Only a mistake needs it.

    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean `{close[0]}`?" if close else ""


@lru_cache(maxsize=256)
def _fields(model: type[msgspec.Struct]) -> dict[str, types.Field]:
    info = types.type_info(model)
    assert isinstance(info, types.StructType)
    return {field.encode_name: field for field in info.fields}


@lru_cache(maxsize=256)
def _hints(model: type[msgspec.Struct]) -> dict[str, Any]:
    return get_type_hints(model, include_extras=True)


def bare(type_: types.Type) -> types.Type:
    """The type without its description and other metadata."""
    while isinstance(type_, types.Metadata):
        type_ = type_.type
    return type_


def _texted(value: Any, type_: types.Type) -> Any:
    """The value, with numbers and booleans turned into text wherever only text is accepted."""
    type_ = bare(type_)
    if isinstance(type_, types.UnionType):
        members = [bare(member) for member in type_.types]
        if isinstance(value, (bool, int, float)) and any(isinstance(member, _SCALARS) for member in members):
            return value
        for member in members:
            changed = _texted(value, member)
            if changed is not value:
                return changed
        return value
    if isinstance(value, (bool, int, float)) and _is_text(type_):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, list) and isinstance(type_, (types.ListType, types.SetType, types.VarTupleType)):
        return [_texted(item, type_.item_type) for item in value]
    if isinstance(value, dict) and isinstance(type_, types.DictType):
        return {key: _texted(item, type_.value_type) for key, item in value.items()}
    if isinstance(value, dict) and isinstance(type_, types.StructType):
        inner = {field.encode_name: field.type for field in type_.fields}
        return {key: _texted(item, inner[key]) if key in inner else item for key, item in value.items()}
    return value


def _is_text(type_: types.Type) -> bool:
    if isinstance(type_, types.LiteralType):
        return all(isinstance(value, str) for value in type_.values)
    return isinstance(type_, types.StrType)


def _problems(model: type[msgspec.Struct], values: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    """Where and what, for every field that is unknown, missing or wrong."""
    fields, hints = _fields(model), _hints(model)
    found: list[tuple[str, str]] = []
    for name, value in values.items():
        if name not in fields:
            if model.__struct_config__.forbid_unknown_fields:
                found.append((prefix + name, f"there is no such parameter{similar(name, fields)}"))
            continue
        found.extend(_field_problems(fields[name], hints[fields[name].name], value, prefix + name))
    found.extend(
        (prefix + name, "is needed") for name, field in fields.items() if field.required and name not in values
    )
    return found


def _field_problems(field: types.Field, hint: Any, value: Any, path: str) -> list[tuple[str, str]]:
    inner = bare(field.type)
    if isinstance(inner, types.StructType) and isinstance(value, dict):
        deeper = _problems(inner.cls, value, f"{path}.")
        if deeper:
            return deeper
    try:
        msgspec.convert(value, hint, strict=False)
    except msgspec.ValidationError as error:
        below, text = _worded(str(error))
        choices = choices_of(field.type)
        if choices and not below and isinstance(value, str):
            listed = ", ".join(f"`{choice}`" for choice in choices)
            near = similar(value, [str(choice) for choice in choices])
            text = f"expected one of {listed}, got `{value[:60]}`{near}"
        return [(path + below, text)]
    return []


def choices_of(type_: types.Type) -> tuple[Json, ...] | None:
    """The fixed values a type allows, when that is what it is."""
    type_ = bare(type_)
    if isinstance(type_, types.LiteralType):
        return tuple(type_.values)
    if isinstance(type_, types.UnionType):
        others = [bare(member) for member in type_.types if not isinstance(bare(member), types.NoneType)]
        return choices_of(others[0]) if len(others) == 1 else None
    return None


def _worded(message: str) -> tuple[str, str]:
    """Splits a message of msgspec into the path below the value and the sentence."""
    text, _, path = message.partition(" - at `$")
    text = re.sub(r"`([a-z]+(?: \| [a-z]+)*)`", lambda match: _kinds(match[1]), text)
    text = text.replace("Object missing required field", "is a mapping without").replace(
        "Object contains unknown field", "is a mapping with the unknown entry"
    )
    return path.removesuffix("`"), text[:1].lower() + text[1:]


def _kinds(names: str) -> str:
    parts = names.split(" | ")
    if not all(part in _WORDS for part in parts):
        return f"`{names}`"
    shown = [part for part in parts if part != "null"] or parts
    return " or ".join(_WORDS[part] for part in shown)
