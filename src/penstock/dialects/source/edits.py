"""Changes to a document, said in its own structure: what moves where, what goes, what comes.

Law: an edit says what changes and never how a tree is built, so that the same edits change the tree that is compiled here and the
text of the file that `convert` writes. The tree is never changed in place: a value that an anchor gives to several places is one
node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from penstock.dialects.problems import Position
from penstock.dialects.source.node import SourceNode
from penstock.kernel.values import Json

Path: TypeAlias = "tuple[str | int, ...]"
"""From the root of the document: keys of mappings, indices of lists."""


@dataclass(frozen=True, slots=True)
class Move:
    """The value comes to stand elsewhere; a key that only changes its name keeps its place in the mapping. Mappings on the way
    are made, and what stands at the target already stays: then nothing moves."""

    source: Path
    target: Path


@dataclass(frozen=True, slots=True)
class Drop:
    path: Path


@dataclass(frozen=True, slots=True)
class Put:
    """A value of its own, in place of what stands there. `like` is the path of the value that it comes from."""

    path: Path
    value: Json
    like: Path | None = None


Edit: TypeAlias = Move | Drop | Put


def at(root: SourceNode, path: Path) -> SourceNode | None:
    """The node at a path, if there is one."""
    node: SourceNode | None = root
    for part in path:
        if node is None:
            return None
        node = (
            (node.items[part] if part < len(node.items) else None) if isinstance(part, int) else node.entries.get(part)
        )
    return node


def edited(root: SourceNode, edit: Edit) -> SourceNode:
    """The document after an edit. What it does not touch is shared with the one before."""
    match edit:
        case Drop():
            return _without(root, edit.path)
        case Put():
            origin = at(root, edit.like) if edit.like is not None else at(root, edit.path)
            position = root.position if origin is None else origin.position
            return _with(root, edit.path, source_of(edit.value, origin, position), position)
        case Move():
            return _moved(root, edit.source, edit.target)


def _moved(root: SourceNode, source: Path, target: Path) -> SourceNode:
    value = at(root, source)
    if value is None or at(root, target) is not None:
        return root
    key = _key_position(root, source)
    if source[:-1] == target[:-1] and isinstance(source[-1], str) and isinstance(target[-1], str):
        return _renamed(root, source[:-1], source[-1], target[-1])
    return _with(_without(root, source), target, value, key)


def _key_position(root: SourceNode, path: Path) -> Position:
    parent = at(root, path[:-1])
    if parent is not None and isinstance(path[-1], str) and path[-1] in parent.keys:
        return parent.keys[path[-1]]
    found = at(root, path)
    return root.position if found is None else found.position


def _renamed(node: SourceNode, path: Path, old: str, new: str) -> SourceNode:
    if path:
        return _changed(node, path[0], _renamed(_child(node, path[0]), path[1:], old, new))
    names = {key: new if key == old else key for key in node.entries}
    return replace(
        node,
        entries={names[key]: value for key, value in node.entries.items()},
        keys={names[key]: position for key, position in node.keys.items()},
    )


def _child(node: SourceNode, part: str | int) -> SourceNode:
    return node.items[part] if isinstance(part, int) else node.entries[part]


def _changed(node: SourceNode, part: str | int, value: SourceNode, key: Position | None = None) -> SourceNode:
    """The node with another value at a key or an index."""
    if isinstance(part, int):
        items = list(node.items)
        items[part] = value
        return replace(node, items=items)
    keys = node.keys if part in node.keys else {**node.keys, part: key or value.position}
    return replace(node, entries={**node.entries, part: value}, keys=keys)


def _without(node: SourceNode, path: Path) -> SourceNode:
    part, *rest = path
    if at(node, path) is None:
        return node
    if rest:
        return _changed(node, part, _without(_child(node, part), tuple(rest)))
    if isinstance(part, int):
        return replace(node, items=[*node.items[:part], *node.items[part + 1 :]])
    return replace(
        node,
        entries={key: value for key, value in node.entries.items() if key != part},
        keys={key: position for key, position in node.keys.items() if key != part},
    )


def _with(node: SourceNode, path: Path, value: SourceNode, key: Position) -> SourceNode:
    part, *rest = path
    if not rest:
        return _changed(node, part, value, key)
    inner = at(node, (part,))
    if inner is None or inner.is_null:
        inner = SourceNode("mapping", key, end_line=key.line)
    return _changed(node, part, _with(inner, tuple(rest), value, key), key)


def source_of(value: Json, origin: SourceNode | None, position: Position) -> SourceNode:
    """A value as a node that stands where the one it comes from stood."""
    if isinstance(value, dict):
        entries = {
            key: source_of(inner, None if origin is None else origin.get(key), position) for key, inner in value.items()
        }
        known = {} if origin is None else origin.keys
        return SourceNode("mapping", position, entries=entries, keys={key: known.get(key, position) for key in value})
    if isinstance(value, list):
        return SourceNode("sequence", position, items=[source_of(item, None, position) for item in value])
    if origin is not None and origin.kind == "scalar":
        return replace(origin, value=value)
    return SourceNode("scalar", position, value, text_line=position.line, end_line=position.line)
