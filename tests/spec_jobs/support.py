"""Small jobs for the clause tests: links as the document writes them, components as mappings, everything else a `noop`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

Spec = Mapping[str, Any]

_NAME = re.compile(r"[A-Za-z_][\w-]*")
_HEAD = re.compile(r"\((\w+)[^)]*(?:\"[^\"]*\")?[^)]*\)")
OK: Spec = {"type": "noop"}
FAILS: Spec = {"type": "python", "params": {"code": "raise ValueError('broken')"}}
ENDS = {"component.ok": "OK", "component.error": "ERROR", "component.skipped": "SKIPPED"}


def job(*links: str | Spec, data: tuple[str, ...] = (), alone: str = "", **more: Any) -> str:
    """A document in YAML. Keywords are components by name; `config` and `context` are sections.

    Components stand in the order in which `alone`, then the links name them; those that no keyword describes do nothing.
    """
    sections: dict[str, Any] = {}
    for name, section in (("config", "job_config"), ("context", "context")):
        if name in more:
            sections[section] = more.pop(name)
    named = [*alone.split(), *(name for link in (*data, *links) for name in _ends(link)), *more]
    components = [{"name": name, **more.get(name, OK)} for name in dict.fromkeys(named)]
    sections["components"] = components
    sections["connections"] = {"data": list(data), "control": list(links)}
    return json.dumps(sections, indent=1)  # JSON is YAML, and needs no thought about quotes.


def when(source: str, target: str, condition: str) -> Spec:
    """An `if` link as a mapping, for conditions that would need quoting."""
    return {"from": source, "to": target, "on": "if", "when": condition}


def _ends(link: str | Spec) -> list[str]:
    if not isinstance(link, str):
        return [link["from"], link["to"]]
    if "->" in link:
        return [end.strip().partition(".")[0] for end in link.split("->")]
    return _NAME.findall(_HEAD.sub(",", link, count=1))


def python(code: str, **more: Any) -> dict[str, Any]:
    return {"type": "python", "params": {"code": code}, **more}


def sets(**values: Any) -> dict[str, Any]:
    return {"type": "set_global", "params": {"values": values}}


def sleeps(seconds: float) -> dict[str, Any]:
    return {"type": "sleep", "params": {"seconds": seconds}}


def each(*items: Any, **params: Any) -> dict[str, Any]:
    return {"type": "iterate_list", "params": {"items": list(items), **params}}


def rows(*values: int, column: str = "id") -> dict[str, Any]:
    return {"type": "fixed_rows", "params": {"columns": [column], "rows": [[value] for value in values]}}


def marks(file: str, text: str = "x") -> dict[str, Any]:
    """Leaves a line in a file: the effect by which a test counts how often something really ran."""
    return python(f"with open({file!r}, 'a') as file:\n    file.write({text!r} + '\\n')\n")


def positions(events: list[Any], *types: str) -> dict[str, int]:
    """`event_type scope` -> where it stands in the log; for those of the given types."""
    found: dict[str, int] = {}
    for at, event in enumerate(events):
        if not types or event["event_type"] in types:
            found[f"{event['event_type']} {event['scope']}"] = at
    return found
