"""The event log as a reader gets it: the envelope, and every type with its fields."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

from docs.generator.markdown import page, table, words
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
    told = words("events")
    _complete(set(CLASSES), set(told["events"]), "event type")
    _complete({body.__name__ for body in CLASSES.values()}, set(told["payloads"]), "payload")
    _complete(set(_an_envelope()), set(told["envelope"]), "field of the envelope")
    parts = []
    for name, about in told["events"].items():
        source, body = "worker" if name in WORKER_TYPES else "server", CLASSES[name]
        described, renamed = told["payloads"][body.__name__], told["names_in_payload"].get(body.__name__, {})
        parts += [f"## {name}", f"{about} Source: {source}.", _payload(body, described, renamed)]
    return page(
        "Events",
        "`penstock events RUN --json` prints one envelope a line. Types and fields are only ever added: a log of any release can "
        "be read for ever.",
        "## Envelope",
        table(("field", "what it is"), [(f"`{name}`", about) for name, about in told["envelope"].items()]),
        *parts,
    )


def _payload(body: type[Any], described: dict[str, str], renamed: dict[str, str]) -> str:
    _complete({one.name for one in fields(body)}, set(described), f"field of `{body.__name__}`")
    rows = [
        (f"`{renamed.get(one.name, one.name)}`", _type(str(one.type)), _default(one), described[one.name])
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
    entry = Entry(
        seq=1,
        ts=0.0,
        type="playbook.started",
        scope="",
        task=None,
        clock="[[],0]",
        cause=None,
        source="server",
        worker=None,
        payload=b"{}",
    )
    return dict(envelope(entry, Header("run", "playbook", "", "", "", "running", 0.0)))


def _complete(known: set[Any], described: set[Any], what: str) -> None:
    for name in sorted(map(str, known - described)):
        raise Bug(f"the {what} `{name}` has no words in words/events.yaml")
    for name in sorted(map(str, described - known)):
        raise Bug(f"the {what} `{name}` in words/events.yaml does not exist")
