"""The event log as a reader gets it: the envelope, and every type with its fields."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

from docs.generator.event_words import ENVELOPE, EVENTS, FIELDS, PAYLOAD_NAMES
from docs.generator.markdown import page, table
from penstock.kernel.errors import Bug
from penstock.kernel.facts import CLASSES, WORKER_TYPES
from penstock.ports.log import Entry, Header
from penstock.ports.wire import envelope

_TYPES = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "Json": "any value",
    "JsonMap": "mapping",
    "list[str]": "list of text",
    "list[int]": "list of whole numbers",
    "list[list[int]]": "list of places",
    "list[Json]": "list",
}


def events_page() -> str:
    _complete(set(CLASSES), set(EVENTS), "event type")
    _complete(set(CLASSES.values()), set(FIELDS), "payload")
    _complete(set(_an_envelope()), set(ENVELOPE), "field of the envelope")
    parts = []
    for name, about in EVENTS.items():
        source = "worker" if name in WORKER_TYPES else "server"
        parts += [f"## {name}", f"{about} Source: {source}.", _payload(CLASSES[name])]
    return page(
        "Events",
        "`penstock events RUN --json` prints one envelope a line. Types and fields are only ever added: a log of any release can "
        "be read for ever.",
        "## Envelope",
        table(("field", "what it is"), [(f"`{name}`", about) for name, about in ENVELOPE.items()]),
        *parts,
    )


def _payload(body: type[Any]) -> str:
    words = FIELDS[body]
    _complete({one.name for one in fields(body)}, set(words), f"field of `{body.__name__}`")
    names = PAYLOAD_NAMES.get(body, {})
    rows = [
        (f"`{names.get(one.name, one.name)}`", _type(str(one.type)), _default(one), words[one.name])
        for one in fields(body)
    ]
    return table(("field", "type", "default", "what it is"), rows)


def _type(annotation: str) -> str:
    plain = annotation.removesuffix(" | None")
    return "text" if plain.startswith("Literal") else _TYPES[plain]


def _default(one: Field[Any]) -> str:
    if one.default is MISSING or one.default is None:
        return ""
    return f"`{str(one.default).lower()}`"


def _an_envelope() -> dict[str, Any]:
    entry = Entry(1, 0.0, "playbook.started", "", None, "[[],0]", None, "server", None, b"{}")
    return dict(envelope(entry, Header("run", "playbook", "", "", "", "running", 0.0)))


def _complete(known: set[Any], described: set[Any], what: str) -> None:
    for name in sorted(map(str, known - described)):
        raise Bug(f"the {what} `{name}` has no words in docs.generator.event_words")
    for name in sorted(map(str, described - known)):
        raise Bug(f"the {what} `{name}` in docs.generator.event_words does not exist")
