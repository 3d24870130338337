"""Words within expressions: names and texts that have another name today.

Law: an expression that cannot be parsed is left as it is, and reported by whoever reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from penstock.dialects.playbook.guards import OUTCOME_ROOTS, texts_compared
from penstock.dialects.playbook.public.table import Alias, Treatment
from penstock.dialects.source.node import SourceNode, to_json
from penstock.expr.errors import ExpressionError
from penstock.expr.lexer import is_template
from penstock.expr.parse import parse, parse_condition
from penstock.expr.rules import Use, read_expression, read_template

Replacement: TypeAlias = "tuple[int, int, str]"
"""From where to where in the text, and what comes there."""


def replaced(text: str, replacements: list[Replacement]) -> str:
    for start, end, new in sorted(replacements, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def uses_in(text: str, *, condition: bool = False) -> list[Use]:
    """Every variable that a text reads; none when it has no expression, or one that cannot be parsed."""
    try:
        if condition:
            return read_expression(parse_condition(text), guarded=True)[1]
        return read_template(parse(text))[1] if is_template(text) else []
    except ExpressionError:
        return []


def names_replaced(text: str, new_name: Callable[[Use], tuple[str, str] | None], *, condition: bool = False) -> str:
    """`new_name` gives what a use begins with, as it is written, and what comes in its place."""
    found: list[Replacement] = []
    for use in uses_in(text, condition=condition):
        names = new_name(use)
        if names is not None and text.startswith(names[0], use.start):
            found.append((use.start, use.start + len(names[0]), names[1]))
    return replaced(text, list(dict.fromkeys(found)))


_ENDS = {"call.done": "step.done", "call.error": "step.failed"}
_OF_EVENTS = ("name", "type", "event_type")
_STATUSES = {"success": "ok"}


def ends_renamed(condition: str) -> str:
    """The ends of a step, by the names that another engine has for them."""
    return _renamed(condition, texts_compared(condition, *(("event", (word,)) for word in _OF_EVENTS)), _ENDS)


def statuses_renamed(condition: str) -> str:
    """The status of an outcome, by the name that another engine has for it."""
    return _renamed(condition, texts_compared(condition, *((root, ("status",)) for root in OUTCOME_ROOTS)), _STATUSES)


def _renamed(condition: str, texts: Iterable[tuple[str, int, int]], names: Mapping[str, str]) -> str:
    found = [
        (start, end, condition[start:end].replace(text, names[text])) for text, start, end in texts if text in names
    ]
    return replaced(condition, found)


_INDEX = {
    ("loop_index",): "loop_index",
    ("_index",): "_index",
    ("iter", "_index"): "iter._index",
    ("iter", "loop_index"): "iter.loop_index",
}


def index_renamed(use: Use) -> tuple[str, str] | None:
    """The place of an element in its collection."""
    for length in (1, 2):
        if use.path[:length] in _INDEX:
            return _INDEX[use.path[:length]], "iter.index"
    return None


def input_renamed(given: Collection[str]) -> Callable[[Use], tuple[str, str] | None]:
    """`input.x` is `x`, where the step gives it to its tasks."""

    def new_name(use: Use) -> tuple[str, str] | None:
        return (
            (f"input.{use.path[1]}", str(use.path[1]))
            if use.path[0] == "input" and use.path[1:2] and use.path[1] in given
            else None
        )

    return new_name


def as_expression(node: SourceNode) -> str | None:
    """A value as an expression; None when it cannot be one."""
    text = node.text()
    if text is not None and is_template(text):
        try:
            single = parse(text).single
        except ExpressionError:
            return None
        return None if single is None else f"({text[single.start : single.end]})"
    if node.kind == "sequence":
        items = [as_expression(item) for item in node.items]
        return None if None in items else f"[{', '.join(map(str, items))}]"
    if node.kind == "mapping":
        pairs = {json.dumps(key, ensure_ascii=False): as_expression(value) for key, value in node.entries.items()}
        return None if None in pairs.values() else f"{{{', '.join(f'{key}: {value}' for key, value in pairs.items())}}}"
    return json.dumps(to_json(node), ensure_ascii=False) if node.value is not None else "none"


def texts_below(node: SourceNode, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], SourceNode]]:
    """Every text in a value and where it stands."""
    waiting = [(path, node)]
    while waiting:
        here, value = waiting.pop()
        if value.text() is not None:
            yield here, value
        waiting += [((*here, index), item) for index, item in enumerate(value.items)]
        waiting += [((*here, key), inner) for key, inner in value.entries.items()]


def results_read(tasks: Mapping[tuple[str, str], object]) -> Callable[[Use], tuple[str, str] | None]:
    """`step.results.task` is kept in ctx: see the door."""

    def new_name(use: Use) -> tuple[str, str] | None:
        if len(use.path) < 3 or use.path[1] != "results" or (use.path[0], use.path[2]) not in tasks:
            return None
        return f"{use.path[0]}.results.{use.path[2]}", f"ctx.{use.path[0]}_results.{use.path[2]}"

    return new_name


_OF_ANSWERS = ("data", "status", "headers", "url", "elapsed_ms", "status_code", "body")
"""What the result of a request has, so that `output.data` has it as well."""


def body_read(use: Use) -> tuple[str, str] | None:
    """A field of what was answered, where `output.data` is the answer's body."""
    if use.path[:2] != ("output", "data") or len(use.path) < 3 or use.path[2] in _OF_ANSWERS:
        return None
    return "output.data", "output.data.data"


EXPRESSIONS = (
    Alias(
        "expression",
        "event.name == 'call.done'",
        "The step has done its work; `call.error`: it failed.",
        Treatment.ALIAS,
        "`step.done`, `step.failed`",
    ),
    Alias(
        "expression",
        "input.x",
        "A value of the step's `input`, in its tasks.",
        Treatment.ALIAS,
        "`x`",
    ),
    Alias(
        "expression",
        "output.status == 'success'",
        "The task has done its work.",
        Treatment.ALIAS,
        "`output.status == 'ok'`",
    ),
    Alias(
        "expression",
        "loop_index, _index",
        "The place of the element in its collection, from 0.",
        Treatment.ALIAS,
        "`iter.index`",
    ),
    Alias(
        "expression",
        "step.results.task",
        "The result of one task of a pipeline.",
        Treatment.ALIAS,
        '`set: {ctx.x: "{{ output }}"}` on the task, and `ctx.x`',
    ),
    Alias(
        "expression",
        "output.data.field",
        "In `set` and arcs of a step whose tasks are all `http`: a field of what was answered, unless the result has one "
        "of that name, such as `status`.",
        Treatment.ALIAS,
        "`output.data.data.field`, or `step.data.field`",
    ),
    Alias(
        "expression",
        "step.stats",
        "Of a loop: `{total, success, failed}`.",
        Treatment.ALIAS,
        "`{{ step.total }}`, `{{ step.done }}`, `{{ step.failed }}`",
    ),
    Alias("expression", "token(name)", "An access token.", Treatment.REFUSED, "`auth: name`"),
    Alias("expression", "result", "The result of the step.", Treatment.REFUSED, "the name of the step, or `output`"),
    Alias(
        "expression",
        "output.error.kind",
        "Compared with a word such as `rate_limit` or `server_error`.",
        Treatment.ALIAS,
        "`outcome.error.kind`, and `outcome.http.status`",
    ),
)
