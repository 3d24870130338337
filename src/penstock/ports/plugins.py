"""What the engine knows of the tools that are installed, without importing any of them.

A dialect checks a document against these descriptions; the registry of tools answers the port.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from penstock.kernel.values import Json, JsonMap


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """One parameter of a tool. `types` are JSON type names (`string`, `integer`, `number` …), or `("any",)`."""

    name: str
    required: bool = False
    types: tuple[str, ...] = ("any",)
    enum: tuple[Json, ...] | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class ToolDescription:
    kind: str
    summary: str = ""
    params: dict[str, ParamInfo] = field(default_factory=dict)
    schema: JsonMap = field(default_factory=dict)
    """JSON Schema of the parameters as one object; `$defs` inside it are allowed."""
    defaults: JsonMap = field(default_factory=dict)
    """Kind defaults of `spec`: the outermost layer of the overlay."""


class ToolCatalog(Protocol):
    def kinds(self) -> list[str]: ...

    def describe(self, kind: str) -> ToolDescription | None:
        """None when no installed tool has that kind."""
        ...
