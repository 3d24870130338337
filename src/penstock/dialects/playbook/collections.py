"""Collections that are read page by page, as a document describes them: which parameters each kind takes, and of what types."""

from __future__ import annotations

from penstock.dialects.playbook.loop_words import CONNECTION
from penstock.dialects.playbook.reader import Reading, is_template, listed
from penstock.dialects.playbook.word import SQL_KINDS
from penstock.dialects.problems import Place
from penstock.dialects.schema import NOUNS, types_of
from penstock.dialects.source.loader import SourceNode
from penstock.dialects.words import TEMPLATE, Word
from penstock.kernel.values import JsonMap


def check_paged(reading: Reading, kind: str, node: SourceNode, place: Place) -> None:
    """`{lines: orders.csv}` or `{lines: {path: orders.csv, skip: 1}}`."""
    scope_name = f"collection_{kind}"
    scope = reading.language.scopes[scope_name]
    if node.kind == "mapping":
        reading.words(node, scope_name)
        for name, word in scope.words.items():
            value = node.get(name)
            if value is not None:
                _check_value(reading, f"{scope.title}.{name}", word, value)
        if kind == "sql":
            _check_connection(reading, node)
        reading.refuse_template_keys(node)
        return
    required = [name for name, word in scope.words.items() if word.required]
    hint = f"`{kind}` takes {listed(scope.words)}"
    if len(required) > 1:
        shown = ", ".join(f"{name}: …" for name in required)
        reading.wrong_shape(node, f"`{kind}`", "a mapping", hint=f"write `{{{shown}}}`")
    elif node.is_null or not (node.text() or "").strip():
        reading.wrong_shape(node, f"`{kind}`", f"its `{required[0]}`, or a mapping", hint=hint)


def _check_value(reading: Reading, what: str, word: Word, node: SourceNode) -> None:
    if is_template(node):
        return
    schema = _plain(word.schema)
    if node.is_null:
        if word.required:
            reading.wrong_shape(node, f"`{what}`", "given")
        return
    values = schema.get("enum")
    if isinstance(values, list):
        reading.choice(node, f"a value of `{what}`", [str(value) for value in values])
        return
    types = schema.get("type")
    allowed = types if isinstance(types, list) else [types] if types else []
    if allowed and types_of(node).isdisjoint(map(str, allowed)):
        expected = " or ".join(NOUNS[str(name)] for name in allowed)
        reading.wrong_shape(node, f"`{what}`", expected)
        return
    least = schema.get("minimum")
    if isinstance(least, int) and isinstance(node.value, int):
        reading.whole(node, f"`{what}`", least)


def _plain(schema: JsonMap) -> JsonMap:
    """The schema of a value that is written out."""
    several = schema.get("anyOf")
    if isinstance(several, list):
        return next((one for one in several if isinstance(one, dict) and one != TEMPLATE), {})
    return schema


def _check_connection(reading: Reading, node: SourceNode) -> None:
    """How to connect is said in the words of the tool of that database, and each has its own."""
    kind = node.get("kind")
    description = (
        None if kind is None or kind.text() not in SQL_KINDS else reading.describe(str(kind.value), kind.place)
    )
    if kind is None or description is None:
        return
    takes = [name for name in CONNECTION if name in description.params]
    for name, place in node.keys.items():
        if name in CONNECTION and name not in takes:
            hint = f"to connect, `{kind.value}` takes {listed(takes)}"
            reading.findings.error("P0102", f"`{name}` says nothing to `{kind.value}`", place, hint=hint)
