"""Parameters against the JSON Schema of their component, with the position of every mistake.

Only literals are checked; a template is checked when it has a value. The part of JSON Schema that is read is the
part that describes parameters: types, choices, bounds, properties, items and alternatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any

from penstock.dialects.job.drafts import ComponentDraft
from penstock.dialects.job.expand import Unit
from penstock.dialects.job.level import SET_GLOBAL
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean, is_template, listed, template_keys_in
from penstock.dialects.schema import NOUNS, types_of
from penstock.dialects.source.node import SourceNode
from penstock.expr.lexer import is_template as has_expression
from penstock.expr.scope import why_not_a_global

Schema = Mapping[str, Any]

_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "at least", ge),
    ("maximum", "at most", le),
    ("exclusiveMinimum", "more than", gt),
    ("exclusiveMaximum", "less than", lt),
)


def check_params(reading: Reading, unit: Unit) -> frozenset[str]:
    """The names of the wrong parameters, so that later checks do not report them again."""
    description = unit.member.description
    if description is None:
        return frozenset()
    draft = unit.member.draft
    return _Check(reading, unit.type, description.schema).root(unit.params, draft.type_position, draft)


class _Check:
    def __init__(self, reading: Reading, type_: str, schema: Schema) -> None:
        self.reading = reading
        self.type = type_
        self.schema = schema
        self.mistakes = 0

    def root(self, params: Mapping[str, SourceNode], position: Position, draft: ComponentDraft) -> frozenset[str]:
        schema = self._resolved(self.schema)
        known = schema.get("properties", {})
        wrong: set[str] = set()
        for name, node in params.items():
            if name in known:
                before = self.mistakes
                self.value(node, known[name], name)
                if self.mistakes > before:
                    wrong.add(name)
            elif schema.get("additionalProperties", True) is False:
                hint = f"`{self.type}` takes {listed(known, most=40)}" if known else "it takes no parameters"
                message = f"`{self.type}` has no parameter `{name}`"
                label = did_you_mean(name, known)
                self.reading.report("UNKNOWN_PARAM", message, draft.params[name].key, label=label, hint=hint)
                wrong.add(name)
        for name in schema.get("required", ()):
            if name not in params:
                about = self._resolved(known.get(name, {})).get("description", "")
                hint = f"`{name}`: {about}" if about else ""
                self.reading.report("MISSING_PARAM", f"`{self.type}` needs the parameter `{name}`", position, hint=hint)
                wrong.add(name)
        return frozenset(wrong)

    def value(self, node: SourceNode, schema: Schema, where: str) -> None:
        schema = self._resolved(schema)
        if is_template(node):
            return
        if "anyOf" in schema or "oneOf" in schema:
            self._alternatives(node, [self._resolved(each) for each in schema.get("anyOf") or schema["oneOf"]], where)
            return
        if not _fits(node, schema):
            self._wrong(node, where, _expected([schema]))
            return
        if "enum" in schema or "const" in schema:
            self._choice(node, schema.get("enum", [schema.get("const")]), where)
        elif node.kind == "mapping":
            self._mapping(node, schema, where)
        elif node.kind == "sequence":
            self._list(node, schema, where)
        else:
            self._scalar(node, schema, where)

    def _alternatives(self, node: SourceNode, options: list[Schema], where: str) -> None:
        fitting = [option for option in options if _fits(node, option)]
        if not fitting:
            self._wrong(node, where, _expected(options))
        elif len(fitting) == 1:
            self.value(node, fitting[0], where)
        elif not any(self._is_right(node, option, where) for option in fitting):
            self._bad(node.position, f"`{where}` is none of what `{self.type}` takes there: {_expected(options)}")

    def _is_right(self, node: SourceNode, schema: Schema, where: str) -> bool:
        trial = _Trial(self.type, self.schema)
        trial.value(node, schema, where)
        return not trial.mistakes

    def _choice(self, node: SourceNode, values: list[Any], where: str) -> None:
        if node.kind == "scalar" and node.value not in values:
            shown = [str(value) for value in values if value is not None]
            label = did_you_mean(str(node.value), shown)
            message = f"`{where}` of `{self.type}` cannot be `{node.value}`"
            self._bad(node.position, message, label, f"it is one of {listed(shown, most=40)}")

    def _mapping(self, node: SourceNode, schema: Schema, where: str) -> None:
        known = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        for key, value in node.entries.items():
            if key in known:
                self.value(value, known[key], f"{where}.{key}")
            elif more is False:
                hint = f"it takes {listed(known, most=40)}"
                message = f"`{key}` is not a word of `{where}` of `{self.type}`"
                self._bad(node.keys[key], message, did_you_mean(key, known), hint)
            elif isinstance(more, Mapping) and not (_is_itself(value) and self._resolved(more).get("type") == "string"):
                self.value(value, more, f"{where}.{key}")
        for key in schema.get("required", ()):
            if key not in node.entries:
                self._bad(node.position, f"`{where}` of `{self.type}` has no `{key}`")
        if len(node.entries) < schema.get("minProperties", 0):
            self._bad(node.position, f"`{where}` of `{self.type}` is empty")

    def _list(self, node: SourceNode, schema: Schema, where: str) -> None:
        first = schema.get("prefixItems", [])
        rest = schema.get("items", {})
        for index, item in enumerate(node.items):
            inner = first[index] if index < len(first) else rest
            if isinstance(inner, Mapping):
                self.value(item, inner, f"{where}[{index}]")
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if len(node.items) < least:
            self._bad(
                node.position, f"`{where}` of `{self.type}` needs {least} entr{'y' if least == 1 else 'ies'} at least"
            )
        elif most is not None and len(node.items) > most:
            self._bad(
                node.position, f"`{where}` of `{self.type}` takes {most} entr{'y' if most == 1 else 'ies'} at most"
            )

    def _scalar(self, node: SourceNode, schema: Schema, where: str) -> None:
        value = node.value
        if isinstance(value, str):
            if len(value) < schema.get("minLength", 0):
                self._bad(node.position, f"`{where}` of `{self.type}` is empty")
            elif "pattern" in schema and not re.search(schema["pattern"], value):
                self._bad(node.position, f"`{where}` of `{self.type}` cannot be `{value}`")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            for word, words, holds in _BOUNDS:
                if word in schema and not holds(value, schema[word]):
                    self._bad(
                        node.position, f"`{where}` of `{self.type}` must be {words} {schema[word]}, not `{value}`"
                    )

    def _wrong(self, node: SourceNode, where: str, expected: str) -> None:
        words = expected.split(" or ")
        hint = ""
        if "text" in words and node.kind == "scalar" and not node.is_null:
            hint = "put it in quotes"
        elif "a list" in words and node.kind == "scalar" and node.value not in (None, ""):
            hint = f"a list of one: `[{node.value}]`"
        self._bad(node.position, f"`{where}` of `{self.type}` must be {expected}, not {node.noun}", "", hint)

    def _bad(self, position: Position, message: str, label: str = "", hint: str = "") -> None:
        self.mistakes += 1
        self.reading.report("BAD_PARAM", message, position, label=label, hint=hint)

    def _resolved(self, schema: Schema) -> Schema:
        target = schema.get("$ref")
        if not isinstance(target, str):
            return schema
        found = self.schema.get("$defs", {}).get(target.rpartition("/")[2], {})
        return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}


class _Trial(_Check):
    """Counts mistakes and reports none: which of several alternatives is meant?"""

    def __init__(self, type_: str, schema: Schema) -> None:
        self.type = type_
        self.schema = schema
        self.mistakes = 0

    def _bad(self, position: Position, message: str, label: str = "", hint: str = "") -> None:
        self.mistakes += 1


def _fits(node: SourceNode, schema: Schema) -> bool:
    """Is the value of the right kind, whatever else may be wrong with it?"""
    if "enum" in schema:
        return node.kind == "scalar" and not (node.is_null and None not in schema["enum"])
    if "const" in schema or "anyOf" in schema or "oneOf" in schema:
        return True
    kinds = schema.get("type")
    if kinds is None:
        return "properties" not in schema or node.kind == "mapping"
    return not types_of(node).isdisjoint({kinds} if isinstance(kinds, str) else kinds)


def _is_itself(node: SourceNode) -> bool:
    """A number or truth value among expressions, `vat: 0.2`, that is the same as text: `5`, and not `007`."""
    return (
        isinstance(node.value, bool | int | float)
        and len(str(node.value)) == node.position.end_column - node.position.column
    )


def _expected(options: list[Schema]) -> str:
    kinds: dict[str, None] = {}
    for option in options:
        given = option.get("type", "object" if "properties" in option else None)
        for kind in [given] if isinstance(given, str) else given or []:
            if kind != "null":
                kinds[NOUNS.get(kind, kind)] = None
        if "enum" in option:
            kinds[f"one of {listed(str(value) for value in option['enum'] if value is not None)}"] = None
    return " or ".join(kinds) or "something else"


# ---- Keys of mappings in parameters: they are never rendered, and those of `set_global` are names


def check_keys(reading: Reading, unit: Unit) -> None:
    for node in unit.params.values():
        for key, position in template_keys_in(node):
            message = f"a key is not rendered, so the template in `{key}` would stay as it is (in `{unit.name}`)"
            hint = 'write the key out, or make the whole mapping of one template: `"{{ {…} }}"`'
            reading.report("TEMPLATE_KEY", message, position, hint=hint)
    values = unit.params.get("values") if unit.type == SET_GLOBAL else None
    for name, position in values.keys.items() if values is not None else ():
        reason = None if has_expression(name) else why_not_a_global(name)
        if reason is not None:
            reading.report("BAD_GLOBAL", reason, position)
