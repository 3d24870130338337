"""From parser events to a tree, in one pass and without recursion.

Events are read one at a time, so every limit is checked before the text behind it is even parsed. An alias shares the anchored
node, yet counts as if it were written out: what a reader of the tree could be made to walk is what is limited.

Plain scalars follow the YAML 1.2 core schema: `on`, `no`, `yes`, `2024-01-01` and `1:30` stay text; only null, true/false,
integers and floats are anything else.
"""

from __future__ import annotations

import math
import re
from dataclasses import field
from typing import Any, cast

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    StreamEndEvent,
)

from penstock.dialects.problems import Findings, Position, Problem, Severity
from penstock.dialects.source.node import SourceLimits, SourceNode, path_part
from penstock.dialects.source.positions import Mark, Positions
from penstock.dialects.source.syntax import LONGEST_LINE, UNQUOTED_TEMPLATE, explain, quoted
from penstock.kernel.values import Json, frozen, mutable


@mutable
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
    merge_position: Position | None = None
    merging: bool = False
    merged: list[SourceNode] = field(default_factory=list)
    template: bool = False


@frozen
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


PURE: type[Any] = yaml.SafeLoader
FASTEST: type[Any] = getattr(yaml, "CSafeLoader", PURE)
"""libyaml where PyYAML was built with it; the same events, about ten times as fast."""


def build(
    text: str, file: str, limits: SourceLimits, loader: type[Any] = FASTEST
) -> tuple[SourceNode | None, Findings]:
    """The tree of the one document in `text`, or None where there is none to speak of; never raises for what the text is."""
    tree = _Tree(text, file, limits)
    parser = loader(text)
    try:
        while not tree.stopped:
            event = parser.get_event()
            if isinstance(event, StreamEndEvent):
                break
            tree.take(event)
    except yaml.MarkedYAMLError as error:
        tree.refuse(explain(error, tree.positions.lines, file, tree.path()))
    except (ValueError, OverflowError):
        # The pure parser lets `chr` speak for itself about an escape such as "\UFFFFFFFF".
        message = "a number in an escape or a directive is out of range"
        tree.refuse(Problem("Y0101", Severity.ERROR, message, tree.last_position, path=tree.path()))
    finally:
        parser.dispose()
    return tree.root, tree.findings


class _Tree:
    def __init__(self, text: str, file: str, limits: SourceLimits) -> None:
        self.positions = Positions(text, file)
        self.findings = Findings()
        self.root: SourceNode | None = None
        self.stopped = False
        self.last_position = Position(file, 1, 1, 1)
        self._limits = limits
        self._stack: list[Frame] = []
        self._anchors: dict[str, Anchor | None] = {}
        self._documents = self._nodes = self._characters = self._aliases = 0
        self._template: Frame | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, ScalarEvent):
            self._scalar(event)
        elif isinstance(event, CollectionStartEvent):
            self._open(event)
        elif isinstance(event, CollectionEndEvent):
            self._close(_marks(event)[1])
        elif isinstance(event, AliasEvent):
            self._alias(event)
        elif isinstance(event, DocumentStartEvent):
            self._document(event)

    def refuse(self, problem: Problem) -> None:
        if problem.code == "Y0102":
            # `{{ x }}/y`: the part that parsed was reported when it closed; the whole of it is reported now.
            line = problem.position.line
            self.findings = Findings(f for f in self.findings if f.code != "Y0102" or f.position.line != line)
        self.findings.add(problem)
        self.root = None
        self.stopped = True

    def path(self) -> str:
        parts: list[str] = []
        for frame in self._stack:
            if frame.node.kind == "sequence":
                parts.append(path_part(len(frame.node.items)))
            elif frame.key is not None and not frame.expects_key:
                parts.append(path_part(frame.key))
        whole = "".join(parts).removeprefix(".")
        return whole if len(whole) <= 160 else f"{whole[:80]}…{whole[-60:]}"

    def _report(
        self, code: str, message: str, position: Position, label: str = "", hint: str = "", rewrite: str = ""
    ) -> None:
        # Inside an unquoted template nothing is what it seems; the template itself is reported when it closes.
        if self._template is None:
            self.findings.error(code, message, position, label=label, hint=hint, rewrite=rewrite, path=self.path())

    def _exceeded(self, code: str, message: str, position: Position) -> None:
        self.refuse(Problem(code, Severity.ERROR, message, position, path=self.path()))

    def _document(self, event: Event) -> None:
        self._documents += 1
        if self._documents > 1:
            self._report(
                "Y0201", "a second document starts here; a file holds one", self.positions.span(*_marks(event))
            )
            self.stopped = True

    def _count(self, nodes: int, characters: int, position: Position) -> None:
        self._nodes += nodes
        self._characters += characters
        self.last_position = position
        if self._nodes > self._limits.nodes:
            self._exceeded(
                "Y0302", f"the document has more than {self._limits.nodes:,} values, aliases written out", position
            )
        elif self._characters > self._limits.max_bytes:
            self._exceeded(
                "Y0304", f"aliases bring the text to more than {self._limits.max_bytes:,} characters", position
            )

    # Scalars and keys

    def _scalar(self, event: ScalarEvent) -> None:
        start, end = _marks(event)
        spot = self.positions.content(start, end) if event.anchor or event.tag else start
        style = event.style or ""
        span = self.positions.scalar(spot, end, style, event.value)
        node = SourceNode("scalar", span.position, None, text_line=span.line, text_column=span.column, style=style)
        node.end_line = span.end_line
        if self._stack and self._stack[-1].node.kind == "mapping" and self._stack[-1].expects_key:
            node.value = event.value
            self._key(self._stack[-1], event, node.position)
        else:
            self._count(1, len(event.value), node.position)
            node.value = self._value(event, node.position)
            self._attach(node, 0, False, node.end_line)
        if event.anchor:
            self._anchors[event.anchor] = Anchor(node, 1, len(event.value), 0)

    def _value(self, event: ScalarEvent, position: Position) -> Json:
        text = event.value
        if event.style == '"' and not is_text(text):
            self._report("Y0008", "half of a surrogate pair is no character", position)
            return text.encode("utf-8", "replace").decode("utf-8")
        if event.tag is not None and event.tag not in SCALAR_TAGS:
            self._bad_tag(event)
            return text
        try:
            if event.tag is not None:
                return tagged(event.tag, text)
            return text if event.style else resolve(text)
        except NotJson:
            self._report(
                "Y0205", f"`{short(text)}` is a number that JSON cannot say", position, hint="quote it if text is meant"
            )
        except ValueError:
            self._report(
                "Y0204",
                f"`{short(text)}` does not fit the tag `{tag_text(event.tag)}`",
                position,
                hint="delete the tag",
            )
        return text

    def _bad_tag(self, event: ScalarEvent | CollectionStartEvent) -> None:
        word = tag_text(event.tag)
        if word.startswith("!!python"):
            hint = "a document cannot create Python objects; delete the tag"
        elif word.strip("!") in ("secret", "vault", "env", "env_var"):
            hint = "delete the tag; secrets come from the keychain, other values from `workload`"
        else:
            hint = "delete the tag, or quote the value if it starts with an exclamation mark"
        self._report(
            "Y0204", f"the tag `{short(word)}` is not allowed", self.positions.tag(_marks(event)[0]), hint=hint
        )

    def _key(self, frame: Frame, event: ScalarEvent, position: Position) -> None:
        text, plain = event.value, not event.style and event.tag is None
        frame.merging = plain and text == "<<"
        if frame.merging:
            self._merge_key(frame, position)
            return
        if plain and not names_something(text):
            shown = f"`{short(text)}`" if text else "nothing"
            self._report(
                "Y0203",
                f"{shown} is not text, so it cannot be a key",
                position,
                hint=f"quote it: `{quoted(short(text))}`",
            )
        elif event.tag not in (None, "!", CORE + "str"):
            self._bad_tag(event)
        self._set_key(frame, text if is_text(text) else ascii(text), position)

    def _set_key(self, frame: Frame, text: str, position: Position) -> None:
        frame.key, frame.expects_key = text, False
        first = frame.node.keys.get(text)
        frame.keep = first is None
        if first is None:
            frame.node.keys[text] = position
        else:
            message = (
                f"the key `{short(text)}` is given twice; the first is at line {first.line}, column {first.column}"
            )
            self._report("Y0202", message, position, label=f"first on line {first.line}")

    def _merge_key(self, frame: Frame, position: Position) -> None:
        frame.key, frame.expects_key, frame.keep = "<<", False, frame.merge_position is None
        if frame.merge_position is not None:
            first = frame.merge_position
            message = f"`<<` is given twice; the first is at line {first.line}, column {first.column}"
            self._report("Y0202", message, position, hint="merge several with `<<: [*one, *two]`")
        frame.merge_position = frame.merge_position or position

    # Mappings and lists

    def _open(self, event: CollectionStartEvent) -> None:
        start, end = _marks(event)
        mapping = isinstance(event, MappingStartEvent)
        spot = self.positions.content(start, end) if event.anchor or event.tag else start
        position = self.positions.first_line(spot)
        if len(self._stack) >= self._limits.depth:
            self._exceeded("Y0301", f"the document is nested more than {self._limits.depth} levels deep", position)
            return
        frame = Frame(
            SourceNode("mapping" if mapping else "sequence", position, end_line=spot.line + 1),
            spot.index,
            bool(event.flow_style),
            event.anchor,
            self._nodes,
            self._characters,
        )
        self._count(1, 0, position)
        if event.tag is not None and event.tag not in ("!", CORE + ("map" if mapping else "seq")):
            self._bad_tag(event)
        if event.anchor:
            self._anchors[event.anchor] = None
        if mapping and not self._template and self._stack and _is_template(self._stack[-1], frame):
            around = self._stack[-1]
            around.template = True
            self._template = around
        self._stack.append(frame)

    def _close(self, end: Mark) -> None:
        frame = self._stack.pop()
        node = frame.node
        if frame.flow:
            node.end_line = end.line + 1
            if end.line + 1 == node.position.line:
                node.position = Position(node.position.file, node.position.line, node.position.column, end.column + 1)
        if frame.merged:
            merge(node, frame.merged)
        if frame.template:
            node = self._close_template(frame, end)
        if frame.anchor:
            nodes, characters = self._nodes - frame.nodes_before, self._characters - frame.characters_before
            self._anchors[frame.anchor] = Anchor(node, nodes, characters, frame.height)
        aliased = node.kind == "sequence" and bool(node.items) and frame.only_aliases
        self._attach(node, frame.height, aliased, node.end_line)

    def _close_template(self, frame: Frame, end: Mark) -> SourceNode:
        """`{{ x }}` without quotes parsed as mappings; the text it was meant to be stands in for it."""
        self._template = None
        position, raw = frame.node.position, self.positions.text[frame.start : end.index]
        rewrite = ""
        if position.line == end.line + 1:
            line = self.positions.lines[end.line]
            if len(line) <= LONGEST_LINE:
                rewrite = (line[: position.column - 1] + quoted(raw) + line[end.column :]).strip()
        message, label, hint = UNQUOTED_TEMPLATE
        self._report("Y0102", message, position, label, hint, rewrite)
        return SourceNode(
            "scalar", position, raw, text_line=position.line, text_column=position.column, end_line=frame.node.end_line
        )

    def _alias(self, event: AliasEvent) -> None:
        position = self.positions.span(*_marks(event))
        name = cast(str, event.anchor)
        self._aliases += 1
        if self._aliases > self._limits.aliases:
            self._exceeded("Y0303", f"the document has more than {self._limits.aliases:,} aliases", position)
            return
        merging = bool(self._stack) and self._stack[-1].merging
        anchor = self._anchors.get(name)
        if anchor is None:
            if name in self._anchors:
                self._report("Y0207", f"`*{short(name)}` stands inside the value it repeats", position)
            else:
                message = f"`*{short(name)}` repeats `&{short(name)}`, which is not in the file above it"
                self._report(
                    "Y0206", message, position, hint=f"quote it if text is meant: `{quoted('*' + short(name))}`"
                )
            if merging:
                self._stack[-1].keep = False
            self._attach(SourceNode("scalar", position, end_line=position.line), 0, True, position.line)
            return
        if len(self._stack) + anchor.height - merging > self._limits.depth:
            self._exceeded(
                "Y0301", f"with its aliases the document is more than {self._limits.depth} levels deep", position
            )
            return
        self._count(anchor.nodes, anchor.characters, position)
        self._attach(anchor.node, anchor.height, True, position.line)

    def _attach(self, node: SourceNode, height: int, aliased: bool, end_line: int) -> None:
        if not self._stack:
            self.root = node if not self.stopped else None
            return
        frame = self._stack[-1]
        parent = frame.node
        parent.end_line = max(parent.end_line, end_line)
        # Merged keys stand on the level of the mapping itself, and so do those of a list of merged mappings.
        nested = 1 if not frame.merging else -1 if node.kind == "sequence" else 0
        frame.height = max(frame.height, height + nested)
        if parent.kind == "sequence":
            parent.items.append(node)
            frame.only_aliases &= aliased
        elif frame.expects_key:
            self._key_from_node(frame, node, aliased)
        else:
            if frame.keep and frame.merging:
                self._merge_value(frame, node, aliased)
            elif frame.keep and frame.key is not None:
                parent.entries[frame.key] = node
            frame.expects_key, frame.key, frame.keep, frame.merging = True, None, True, False

    def _key_from_node(self, frame: Frame, node: SourceNode, aliased: bool) -> None:
        text = node.text()
        if text is not None and not aliased:
            # The text of an unquoted template, which is reported already.
            self._set_key(frame, text, node.position)
            return
        what = "an alias" if aliased else node.noun
        self._report(
            "Y0203", f"{what} is not text, so it cannot be a key", node.position, hint="write the key out, as text"
        )
        frame.key, frame.keep, frame.expects_key = None, False, False

    def _merge_value(self, frame: Frame, node: SourceNode, aliased: bool) -> None:
        parts = node.items if node.kind == "sequence" else [node]
        if aliased and all(part.kind == "mapping" for part in parts):
            frame.merged.extend(parts)
        else:
            found = f"this alias stands for {node.noun}" if aliased else "write the mapping elsewhere, with an anchor"
            message = f"`<<` merges an anchored mapping, as in `<<: *name`; {found}"
            self._report(
                "Y0208", message, frame.merge_position or node.position, hint="quote the key if `<<` is meant as a name"
            )


def _is_template(around: Frame, inner: Frame) -> bool:
    """`{{`: a flow mapping that is the first key of a flow mapping, with nothing between the two brackets."""
    return around.node.kind == "mapping" and around.flow and around.expects_key and around.start + 1 == inner.start


def _marks(event: Event) -> tuple[Mark, Mark]:
    return cast(Mark, event.start_mark), cast(Mark, event.end_mark)


CORE = "tag:yaml.org,2002:"

_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_FIRST = frozenset("+-.0123456789")
_INTEGER = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
# More digits than any number that means something; Python itself refuses to read integers of over 4,300.
_MOST_DIGITS = 400


class NotJson(ValueError):
    """A number that JSON cannot say."""


def resolve(text: str) -> Json:
    """The value of a plain scalar. Raises NotJson for infinities, `.nan`, and numbers of absurd size."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST:
        return text
    if _INTEGER.match(text):
        return _integer(text)
    if _FLOAT.match(text):
        number = float(text)
        if math.isinf(number):
            raise NotJson(text)
        return number
    if _NOT_FINITE.match(text):
        raise NotJson(text)
    return text


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise NotJson(text)
    if text.startswith("0x"):
        return int(text[2:], 16)
    if text.startswith("0o"):
        return int(text[2:], 8)
    return int(text)


SCALAR_TAGS = frozenset({"!", *(CORE + name for name in ("str", "null", "bool", "int", "float"))})


def tagged(tag: str, text: str) -> Json:
    """The value of a scalar with one of `SCALAR_TAGS`. Raises ValueError when the text does not fit the tag."""
    if tag in ("!", CORE + "str"):
        return text
    value = resolve(text)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        CORE + "null": value is None,
        CORE + "bool": isinstance(value, bool),
        CORE + "int": number and isinstance(value, int),
        CORE + "float": number,
    }[tag]
    if not fits:
        raise ValueError(text)
    # Read again as a fraction, which also finds an integer that no float can hold.
    return resolve(f"{value}.0") if tag == CORE + "float" and isinstance(value, int) else value


def names_something(text: str) -> bool:
    """Integers are names too (`404:`), and keep the spelling they have in the file. So is `null:`, a parameter of CSV files."""
    if text == "null":
        return True
    try:
        value = resolve(text)
    except NotJson:
        return False
    return isinstance(value, str | int) and not isinstance(value, bool)


def is_text(text: str) -> bool:
    """Only the pure parser lets half a surrogate pair through."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def tag_text(tag: str | None) -> str:
    tag = tag or ""
    return "!!" + tag.removeprefix(CORE) if tag.startswith(CORE) else tag


def short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
