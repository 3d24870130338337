"""What is open while a tree is built: the mapping or list that events fall into, and the anchors they may repeat."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.dialects.problems import Place
from penstock.dialects.source.node import SourceNode


@dataclass(slots=True)
class Frame:
    """A mapping or list that is still open."""

    node: SourceNode
    start: int
    flow: bool
    anchor: str | None
    nodes_before: int
    characters_before: int
    height: int = 1
    only_aliases: bool = True
    expects_key: bool = True
    key: str | None = None
    keep: bool = True
    merge_place: Place | None = None
    merging: bool = False
    merged: list[SourceNode] = field(default_factory=list)
    template: bool = False


@dataclass(frozen=True, slots=True)
class Anchor:
    """An anchored value and what it counts for, written out."""

    node: SourceNode
    nodes: int
    characters: int
    height: int


def merge(node: SourceNode, parts: list[SourceNode]) -> None:
    """Keys of the mapping itself win over merged ones, and earlier parts over later ones."""
    entries, keys = dict(node.entries), dict(node.keys)
    node.entries, node.keys = {}, {}
    for part in parts:
        for key, value in part.entries.items():
            node.entries.setdefault(key, value)
            node.keys.setdefault(key, part.keys[key])
    node.entries.update(entries)
    node.keys.update(keys)
