"""`{{ params.x }}` inside a joblet: replaced by what the caller gave, when the call is expanded.

A text that is nothing but `{{ params.x }}` becomes the value itself, of whatever kind, with its place in the caller's file.
Inside a longer text or expression the value is written into it: as a literal, or as an expression where the caller gave a
template.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from penstock.dialects.job.drafts import Excerpt
from penstock.dialects.source.loader import SourceNode, to_json
from penstock.expr import nodes
from penstock.expr.check import inspect
from penstock.expr.errors import ExpressionError
from penstock.expr.lexer import is_template
from penstock.expr.parse import parse, parse_condition
from penstock.kernel.values import Json

Given = Mapping[str, SourceNode]
ROOT = "params"


class Unfit(Exception):
    """A value that cannot be written into an expression."""


def used_params(text: str, *, condition: bool = False) -> Iterator[str]:
    """The parameters that a text reads."""
    if ROOT in text:
        for use in inspect(text, condition=condition).uses:
            if use.path[0] == ROOT and len(use.path) > 1:
                yield use.path[1]


def leading_param(text: str) -> str | None:
    """`x` of a text that begins with `{{ params.x }}`: it is a path of the caller's, if it is a path."""
    if ROOT not in text or not is_template(text):
        return None
    try:
        body = parse(text).body
    except ExpressionError:
        return None
    first = body[0] if body else None
    return _param(first.expr) if isinstance(first, nodes.Output) else None


def substituted(node: SourceNode, given: Given) -> SourceNode:
    """The same value with its parameters filled in. Raises Unfit."""
    if node.kind == "mapping":
        return replace(node, entries={key: substituted(value, given) for key, value in node.entries.items()})
    if node.kind == "sequence":
        return replace(node, items=[substituted(item, given) for item in node.items])
    text = node.text()
    if text is None or ROOT not in text or not is_template(text):
        return node
    try:
        template = parse(text)
    except ExpressionError:
        return node
    whole = None if template.single is None else _param(template.single)
    if whole is not None and whole in given:
        return given[whole]
    filled = _written_out(text, template.body, given)
    # The text no longer stands in the file as it is; as a folded one its words are looked for there.
    return node if filled == text else replace(node, value=filled, style=">")


def substituted_condition(excerpt: Excerpt, given: Given) -> Excerpt:
    if ROOT not in excerpt.text:
        return excerpt
    try:
        spans = list(_in_expression(parse_condition(excerpt.text)))
    except ExpressionError:
        return excerpt
    return replace(excerpt, text=_filled(excerpt.text, spans, given))


def _param(node: nodes.Expr) -> str | None:
    """`x` of a bare `params.x`."""
    path = nodes.path_of(node)
    if path is None or path[0] != ROOT or len(path[1]) != 1:
        return None
    return str(path[1][0])


Span = tuple[int, int, str]
"""Start, end, and the parameter that is read there."""


def _written_out(text: str, body: nodes.Body, given: Given) -> str:
    """Plain texts and numbers stand in the text itself, as if the author had written them; all else in its expression."""
    plain: dict[tuple[int, int], str] = {}
    for part in body:
        name = _param(part.expr) if isinstance(part, nodes.Output) else None
        if name is not None and name in given and text.startswith("{{", part.start) and "-" not in _edges(text, part):
            value = given[name].value
            if isinstance(value, str | int) and not isinstance(value, bool) and not set("{}") & set(str(value)):
                plain[part.start, part.end] = str(value)
    rest = [span for span in _spans(body) if not any(start <= span[0] < end for start, end in plain)]
    changes = {(start, end): as_expression(to_json(given[name])) for start, end, name in rest if name in given}
    for (start, end), new in sorted({**plain, **changes}.items(), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _edges(text: str, part: nodes.Statement) -> str:
    """The signs that would trim the white space around an expression."""
    return text[part.start + 2] + text[part.end - 3]


def _spans(body: nodes.Body) -> list[Span]:
    found: list[Span] = []
    for part in body:
        match part:
            case nodes.Output():
                found += _in_expression(part.expr)
            case nodes.Assign():
                found += _in_expression(part.value)
            case nodes.If():
                for test, inner in part.branches:
                    found += [*_in_expression(test), *_spans(inner)]
                found += _spans(part.otherwise)
            case nodes.For():
                found += _in_expression(part.over)
                if part.where is not None:
                    found += _in_expression(part.where)
                found += [*_spans(part.body), *_spans(part.otherwise)]
    return found


def _in_expression(node: nodes.Expr) -> Iterator[Span]:
    name = _param(node)
    if name is not None:
        yield node.start, node.end, name
        return
    for child in nodes.children(node):
        yield from _in_expression(child)


def _filled(text: str, spans: list[Span], given: Given) -> str:
    for start, end, name in sorted(spans, reverse=True):
        if name in given:
            text = text[:start] + as_expression(to_json(given[name])) + text[end:]
    return text


def as_expression(value: Json) -> str:
    """A value as it is written inside an expression. Raises Unfit."""
    match value:
        case None | bool():
            return {None: "none", True: "true", False: "false"}[value]
        case str() if is_template(value):
            return _joined(value)
        case list():
            return f"[{', '.join(as_expression(item) for item in value)}]"
        case dict():
            return "{" + ", ".join(f"{_quoted(key)}: {as_expression(item)}" for key, item in value.items()) + "}"
        case str():
            return _quoted(value)
        case float() if value < 0 or value != value or value in (float("inf"), float("-inf")):
            if value != value or value in (float("inf"), float("-inf")):
                raise Unfit(f"the number `{value}` cannot be written into an expression")
            return f"({value!r})"
    return f"({value})" if isinstance(value, int) and value < 0 else repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _joined(text: str) -> str:
    """A template as one expression: its only one, or its parts put together as text."""
    template = parse(text)
    single = template.single
    if single is not None:
        return f"({text[single.start : single.end]})"
    parts: list[str] = []
    for part in template.body:
        match part:
            case nodes.Text():
                parts.append(_quoted(part.value))
            case nodes.Output():
                parts.append(f"({text[part.expr.start : part.expr.end]})")
            case _:
                raise Unfit("a template with statements cannot be written into an expression")
    return f"({' ~ '.join(parts)})"
