"""Edits to the text of a YAML file: comments, order and layout stay.

    text ── ruamel ──▶ tree with comments ── edits ──▶ tree ── ruamel ──▶ text ── laid over the file ──▶ text

Law: a line that no edit touches comes out as it went in. The parser that keeps comments keeps neither the spaces within a line
nor the breaks of a flow collection, so what it writes is laid over the file line by line; if that would change a value, it is
taken as it is.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, ScalarString
from ruamel.yaml.tokens import CommentToken

from penstock.dialects.source.edits import Drop, Edit, Move, Path, Put
from penstock.kernel.values import Json


class LaidOut:
    """A file that is edited."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._yaml = _parser(text)
        self._tree: Any = self._yaml.load(text)
        self._before = self._written()
        self._is_edited = False

    def edit(self, edit: Edit) -> None:
        self._is_edited = True
        match edit:
            case Move():
                _move(self._tree, edit.source, edit.target)
            case Drop():
                _drop(self._tree, edit.path)
            case Put():
                _put(self._tree, edit.path, edit.value)

    def replace(self, path: Path, value: Json) -> None:
        """Another value at a path. Parts of the old one that are in the new one keep their style and their comments."""
        self._is_edited = True
        old = _at(self._tree, path)
        above = None
        if isinstance(old, CommentedMap | CommentedSeq):  # The old one may become a part of the new one.
            above, old.ca.comment = old.ca.comment, None
        new = _styled(value, list(_parts(old)))
        if above is not None and isinstance(new, CommentedMap | CommentedSeq) and new.ca.comment is None:
            new.ca.comment = above
        if path:
            _at(self._tree, path[:-1])[path[-1]] = new

    def result(self) -> str:
        if not self._is_edited:
            return self._text
        after = self._written()
        merged = "".join(_laid_over(self._text, self._before, after))
        return merged if _is_same(merged, after) else after

    def _written(self) -> str:
        out = io.StringIO()
        self._yaml.dump(self._tree, out)
        return out.getvalue()


def _parser(text: str) -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.explicit_start = text.lstrip().startswith("---")
    mapping, offset = _indents(text)
    yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    return yaml


_REST = r"[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*"
"""What may stand between a key and what is below it: comments and blank lines."""
_NESTED = re.compile(rf"^( *(?:- +)?)[\w.-]+:{_REST}( +)[\w.-]+:", re.MULTILINE)
_LISTED = re.compile(rf"^( *(?:- +)?)[\w.-]+:{_REST}( *)- ", re.MULTILINE)


def _indents(text: str) -> tuple[int, int]:
    """How far mappings, and the dashes of lists, are indented in most places."""
    steps = [len(inner) - len(outer) for outer, inner in _NESTED.findall(text) if len(inner) - len(outer) in (2, 3, 4)]
    offsets = [
        len(inner) - len(outer) for outer, inner in _LISTED.findall(text) if len(inner) - len(outer) in (0, 2, 4)
    ]
    return _most(steps, 2), _most(offsets, 2)


def _most(values: list[int], default: int) -> int:
    return max(sorted(set(values)), key=values.count) if values else default


# ---- Edits to the tree


def _at(tree: Any, path: Path) -> Any:
    for part in path:
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def _has(tree: Any, path: Path) -> bool:
    parent, key = _at(tree, path[:-1]), path[-1]
    if isinstance(parent, CommentedMap):
        return key in parent
    return isinstance(parent, CommentedSeq) and isinstance(key, int) and key < len(parent)


def _drop(tree: Any, path: Path) -> None:
    if _has(tree, path):
        parent = _at(tree, path[:-1])
        _with_remark(parent, path[-1])
        _, _, below = _taken(parent, path[-1])
        if below.strip() and isinstance(parent, CommentedMap) and parent:
            text = "\n".join(line.strip().lstrip("#").strip() for line in below.strip().splitlines())
            parent.yaml_set_comment_before_after_key(next(iter(parent)), before=text, indent=parent.lc.col)


def _taken(parent: Any, key: Any) -> tuple[Any, Any, str]:
    """The value without its place, the remark beside it, and what stood below it if nothing stands above that any more."""
    below = _cut(parent, key)
    before = _before(parent, key)
    remark = parent.ca.items.pop(key, None) if isinstance(parent, CommentedMap) else None
    value = parent[key]
    del parent[key]
    if below and before is not None:
        _add(parent, before, below)
        below = ""
    return value, remark, below


def _with_remark(parent: Any, key: Any) -> None:
    """What is said beside an entry that goes, or is written anew, stays as a line of its own."""
    before = _before(parent, key)
    tokens, index = _token(parent, key)
    token = tokens[index] if tokens is not None else None
    head = "" if token is None else token.value.partition("\n")[0].strip()
    if head.startswith("#") and before is not None:
        _add(parent, before, " " * parent.lc.col + head + "\n")


def _before(parent: Any, key: Any) -> Any:
    if isinstance(parent, CommentedSeq):
        return key - 1 if key else None
    keys = list(parent)
    index = keys.index(key)
    return keys[index - 1] if index else None


def _last(parent: Any, key: Any) -> tuple[Any, Any]:
    """Where the last line of an entry ends: the innermost last value of a block."""
    while True:
        value = parent[key]
        if not isinstance(value, CommentedMap | CommentedSeq) or not value or value.fa.flow_style():
            return parent, key
        parent, key = value, (list(value)[-1] if isinstance(value, CommentedMap) else len(value) - 1)


def _token(parent: Any, key: Any) -> tuple[list[Any] | None, int]:
    index = 2 if isinstance(parent, CommentedMap) else 0
    return parent.ca.items.get(key), index


def _cut(parent: Any, key: Any) -> str:
    """Take away the blank lines and comments below an entry, without the remark on its last line."""
    parent, key = _last(parent, key)
    tokens, index = _token(parent, key)
    token = tokens[index] if tokens is not None else None
    if token is None:
        return ""
    head, line_break, below = str(token.value).partition("\n")
    if not below:
        return ""
    if head:
        token.value = head + line_break
    else:
        tokens[index] = None  # type: ignore[index]
    return below


def _add(parent: Any, key: Any, below: str) -> None:
    parent, key = _last(parent, key)
    tokens, index = _token(parent, key)
    if tokens is None:
        tokens = parent.ca.items[key] = list[Any]((None, None, None, None))
    token = tokens[index]
    if token is None:
        tokens[index] = CommentToken("\n" + below, CommentMark(0), None)
    else:
        token.value = token.value + below


def _move(tree: Any, source: Path, target: Path) -> None:
    if not _has(tree, source) or _has(tree, target):
        return
    parent, key = _at(tree, source[:-1]), source[-1]
    if source[:-1] == target[:-1]:
        position = list(parent).index(key)
        remark, value = parent.ca.items.pop(key, None), parent[key]
        del parent[key]
        parent.insert(position, target[-1], value)
        if remark is not None:
            parent.ca.items[target[-1]] = remark
        return
    value, remark, below = _taken(parent, key)
    into, first = _inserted(tree, target, value)
    home = _at(tree, target[:-1])
    if remark is not None and isinstance(home, CommentedMap):
        kept = home.ca.items.get(target[-1])
        home.ca.items[target[-1]] = remark
        if kept is not None and kept[2] is not None:  # Lines that stood below the last entry stand below this one now.
            _add(home, target[-1], kept[2].value.removeprefix("\n"))
    if below:
        _add(into, first, below)


def _put(tree: Any, path: Path, value: Json) -> None:
    if _has(tree, path):
        old = _at(tree, path)
        parent = _at(tree, path[:-1])
        parent[path[-1]] = _styled(value, list(_parts(old)), old)
    else:
        _inserted(tree, path, _styled(value, []))


def _inserted(tree: Any, path: Path, value: Any) -> tuple[CommentedMap, Any]:
    """A new value at a path, in mappings that are made if they are not there. Gives where it was put, and its key there."""
    length = 0
    while length < len(path) - 1 and _at(tree, path[: length + 1]) is not None:
        length += 1
    into, key = _at(tree, path[:length]), path[length]
    for part in reversed(path[length + 1 :]):
        around = CommentedMap()
        if into.fa.flow_style():
            around.fa.set_flow_style()
        around[part] = value
        value = around
    if key in into:  # It is there, and null.
        into[key] = value
    else:
        _set(into, key, value)
    return into, key


def _set(into: CommentedMap, key: Any, value: Any) -> None:
    """A new entry at the end, in front of the lines below what was the last."""
    below = _cut(into, list(into)[-1]) if into else ""
    into[key] = value
    if below:
        _add(into, key, below)


def _parts(value: Any) -> Iterator[Any]:
    """A value and all in it that has a style or comments of its own."""
    if isinstance(value, CommentedMap):
        yield value
        for inner in value.values():
            yield from _parts(inner)
    elif isinstance(value, CommentedSeq):
        yield value
        for inner in value:
            yield from _parts(inner)
    elif isinstance(value, ScalarString):
        yield value


def _styled(value: Json, known: list[Any], old: Any = None) -> Any:
    """A value as a person would write it, or as it stood in the file."""
    for each in known:
        if type(value) in (dict, list, str) and each == value:
            return each
    if isinstance(value, str):
        if isinstance(old, ScalarString) and ("\n" in value) == ("\n" in old):
            return type(old)(value)
        if "\n" in value:
            return LiteralScalarString(value)
        return DoubleQuotedScalarString(value) if "{{" in value and '"' not in value else value
    if isinstance(value, dict):
        return _changed(_most_like(value, known), value, known)
    if isinstance(value, list):
        return CommentedSeq([_styled(item, known) for item in value])
    return value


def _most_like(value: dict[str, Any], known: list[Any]) -> CommentedMap:
    """The mapping of the file that holds most of what the new one has: its comments are about the same things."""
    best, most = CommentedMap(), 0
    for each in known:
        if isinstance(each, CommentedMap):
            same = sum(1 for key, inner in each.items() if key in value and value[key] == inner)
            if same > most and same * 2 >= len(each):
                best, most = each, same
    return best


def _changed(made: CommentedMap, value: dict[str, Any], known: list[Any]) -> CommentedMap:
    for key in [key for key in made if key not in value]:
        _taken(made, key)
    for position, (key, inner) in enumerate(value.items()):
        if key not in made:
            if position < len(made):
                made.insert(position, key, _styled(inner, known))
            else:
                _set(made, key, _styled(inner, known))
        elif made[key] != inner:
            made[key] = _styled(inner, known, made[key])
    return made


# ---- The layout of the file


def _laid_over(file: str, before: str, after: str) -> Iterator[str]:
    """The lines of `after`; where a line is as it was `before`, as it stands in the file. Other lines are indented as those
    around them are in the file, whose places may each have their own way."""
    old, was, now = file.splitlines(True), before.splitlines(True), after.splitlines(True)
    shown = _stands_for(old, was)
    depths = _Depths()
    for tag, first, last, start, stop in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if tag != "equal":
            below = shown.get(last)
            depths.ahead = {} if below is None else {_indent(was[last]): _indent(old[below[2]])}
            yield from map(depths.moved, now[start:stop])
            continue
        index = first
        while index < last:
            whole = shown.get(index)
            if whole is not None and whole[1] <= last:
                if whole[1] - whole[0] == 1:
                    depths.seen(was[index], old[whole[2]])
                yield from old[whole[2] : whole[3]]
                index = whole[1]
            else:
                yield depths.moved(was[index])
                index += 1


_START = re.compile(r" *((?:- +)*)")


class _Depths:
    """How far lines are indented in the file, for each indent of what the parser writes: of the mappings and lists that are
    open. `ahead`: the same of the next line that the file has, for what nothing is open for: the first lines of a text."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {0: 0}
        self.ahead: dict[int, int] = {}

    def seen(self, written: str, filed: str) -> None:
        """A line as the parser writes it, and as it stands in the file."""
        if written.strip() and not written.lstrip().startswith("#"):
            self._open(zip(_columns(written), _columns(filed), strict=False))

    def moved(self, written: str) -> str:
        """A line of the parser, where it belongs in the file."""
        if not written.strip():
            return written
        columns = _columns(written)
        outer = max(column for column in self._known if column <= columns[0])
        shift = self._known[outer] - outer
        if outer != columns[0] and columns[0] in self.ahead:
            shift = self.ahead[columns[0]] - columns[0]
        if not written.lstrip().startswith("#"):
            self._open((column, column + shift) for column in columns)
        return " " * (columns[0] + shift) + written.lstrip(" ")

    def _open(self, pairs: Iterable[tuple[int, int]]) -> None:
        for column, filed in pairs:
            self._known = {known: at for known, at in self._known.items() if known < column}
            self._known[column] = filed


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _columns(line: str) -> list[int]:
    """Where a line begins, and what stands behind each dash of it."""
    found = _START.match(line)
    assert found is not None
    begin = found.start(1)
    return [begin, *(begin + dash.end() for dash in re.finditer(r"- +", found[1]))]


def _stands_for(old: list[str], was: list[str]) -> dict[int, tuple[int, int, int, int]]:
    """First line of a piece of `was` -> the piece, and that of the file which it stands for."""
    found: dict[int, tuple[int, int, int, int]] = {}
    bare_old, bare_was = ["".join(line.split()) for line in old], ["".join(line.split()) for line in was]
    for tag, start, stop, first, last in SequenceMatcher(None, bare_old, bare_was, autojunk=False).get_opcodes():
        if tag == "equal":
            for offset in range(last - first):
                found[first + offset] = (first + offset, first + offset + 1, start + offset, start + offset + 1)
        elif tag == "replace":
            found[first] = (first, last, start, stop)
        elif tag == "delete" and first > 0 and first - 1 in found:
            # Lines that the parser leaves out go with the one before them.
            one = found[first - 1]
            found[first - 1] = (one[0], one[1], one[2], stop)
    return found


def _is_same(left: str, right: str) -> bool:
    try:
        return bool(YAML(typ="safe", pure=True).load(left) == YAML(typ="safe", pure=True).load(right))
    except YAMLError:
        return False
