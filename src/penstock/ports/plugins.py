"""What the engine knows about the installed tools without importing any of them.

A dialect checks a document against these descriptions; the registry of tools answers the port.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from penstock.kernel.values import Json, JsonMap

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def offered(group: str) -> Mapping[str, EntryPoint]:
    """What installed packages offer, by name. Finding it takes reading the metadata of every package, so it is done once."""
    return _offered(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _offered(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # It takes long to load: start-up time.

    return {offer.name: offer for offer in entry_points(group=group)}


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
    makes_files: bool = True
    """Whether a call could create a file that a later task reads."""
    gives: tuple[str, ...] = ()
    """The fields of its result, where they are always the same."""
    one_of: tuple[str, ...] = ()
    """Parameters of which a task has exactly one."""


C = TypeVar("C")


def at_folder(catalog: C, folder: Path) -> C:
    """The catalog as documents in that folder see it, with the plug-ins that lie beside them."""
    scoped = getattr(catalog, "at", None)
    return catalog if scoped is None else cast(C, scoped(folder))


class ToolCatalog(Protocol):
    def kinds(self) -> list[str]: ...

    def describe(self, kind: str) -> ToolDescription | None:
        """None if no installed tool has that kind."""
        ...
