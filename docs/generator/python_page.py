"""The Python API: functions and classes with their signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import penstock
from docs.generator.markdown import code, page

FUNCTIONS = ("run", "arun", "resume", "aresume", "replay", "rows", "validate", "connect", "tool", "component")
CLASSES = ("Run", "Rows", "Report", "Replay", "Server")


def python_page() -> str:
    parts = [
        "What `import penstock` has for running documents. [Use Penstock from Python](../how-to/embedding.md) shows it at work. "
        "Classes to build tools and components with are in [write a tool](../how-to/write-a-tool.md) and "
        "[write a component](../how-to/write-a-component.md).",
        "## Functions",
        *(_function(name, getattr(penstock, name)) for name in FUNCTIONS),
        "## Classes",
    ]
    for name in CLASSES:
        found = getattr(penstock, name)
        parts += [f"### {name}", _words(found), *_members(found)]
    return page("Python", *parts)


def _function(name: str, function: Callable[..., Any]) -> str:
    return "\n\n".join([f"### {name}", code("python", f"penstock.{name}{_signature(function)}"), _words(function)])


def _members(cls: type) -> list[str]:
    fields = [name for name in getattr(cls, "__dataclass_fields__", {}) if name not in ("store", "sources")]
    lines = [f"- `{name}: {cls.__annotations__[name]}`" for name in fields]
    for name, member in vars(cls).items():
        if isinstance(member, property) and not name.startswith("_"):
            about = _words(member.fget)
            lines.append(f"- `{name}`{f': {about}' if about else ''}")
        elif inspect.isfunction(member) and (not name.startswith("_") or name in ("__iter__", "__len__")):
            about = _words(member)
            lines.append(f"- `{name}{_signature(member)}`{f': {about}' if about else ''}")
    return ["\n".join(lines)]


def _signature(function: Callable[..., Any]) -> str:
    found = inspect.signature(function)
    kept = [one for one in found.parameters.values() if one.name != "self"]
    # Annotations are text, and shown in quotes.
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(found.replace(parameters=kept)))


def _words(found: Any) -> str:
    return " ".join((inspect.getdoc(found) or "").split())
