"""`connections`: three spellings of a link, one meaning.

text      a.main -> b.input               a (if 1: "NB_LINE > 0") b
list      - a.main -> b.input             - a (ok) b
mapping   - {from: a.main, to: b.input}   - {from: a, to: b, on: if, order: 1, when: "NB_LINE > 0"}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from penstock.dialects.job.drafts import End, Excerpt, LinkDraft
from penstock.dialects.job.reader import Reading
from penstock.dialects.job.words import CONTROL
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean, listed
from penstock.dialects.source.node import SourceNode
from penstock.dialects.source.positions import position_in_text
from penstock.kernel.net import On

_PLAIN = re.compile(r"[\w.*-]+\Z")


def read_links(reading: Reading, root: SourceNode, text: str) -> list[LinkDraft]:
    connections = reading.section(root, "connections", "connections")
    if connections is None:
        return []
    reader = _Reader(reading, text)
    reader.section(connections.get("data"), "data")
    reader.section(connections.get("control"), "control")
    return _ordered(reader.links)


def _ordered(links: list[LinkDraft]) -> list[LinkDraft]:
    """`if` links without an order are evaluated in the order of the document."""
    seen: dict[str, dict[int, int]] = {}
    found: list[LinkDraft] = []
    for link in links:
        if link.on is On.IF:
            statements = seen.setdefault(link.source.name, {})
            position = statements.setdefault(link.statement, len(statements) + 1)
            found.append(replace(link, order=position) if link.order < 0 else link)
        else:
            found.append(link)
    return found


def read_end(reading: Reading, node: SourceNode, text: str, what: str) -> End | None:
    """`component.port` or `component`, standing alone in a value."""
    written = reading.text(node, what)
    if written is None:
        return None
    return _Reader(reading, text).end(node, Word(written.strip(), len(written) - len(written.lstrip())))


class _Reader:
    def __init__(self, reading: Reading, text: str) -> None:
        self.reading = reading
        self.text = text
        self.links: list[LinkDraft] = []
        self.statement = 0

    def section(self, node: SourceNode | None, kind: str) -> None:
        if node is None or node.is_null:
            return
        if node.kind == "mapping":
            self.reading.wrong_shape(node, f"`{kind}`", "a list or lines of text", hint=_hint_of_mapping(kind))
            return
        for item in node.items if node.kind == "sequence" else [node]:
            if item.kind == "mapping":
                self._mapping(item, kind)
            elif item.text() is not None:
                self._lines(item, kind)
            elif not item.is_null:
                self.reading.wrong_shape(item, "a link", "text or a mapping")

    # ---- text

    def _lines(self, node: SourceNode, kind: str) -> None:
        value = str(node.value)
        found: Links = data_links(value) if kind == "data" else control_links(value)
        for slip in found.slips:
            position = position_in_text(node, slip.start, slip.end, self.text)
            self.reading.report("BAD_LINK", slip.message, position, hint=slip.hint)
        for statement in found.statements:
            self.statement += 1
            sources = self._ends(node, statement.sources, kind)
            targets = self._ends(node, statement.targets, kind)
            position = self._position(node, statement.sources[0], statement.targets[-1])
            if kind == "data":
                self._add(sources, targets, On.DATA, position)
            else:
                assert statement.head is not None
                self._control(node, statement, sources, targets, position)

    def _position(self, node: SourceNode, first: Word, last: Word) -> Position:
        return position_in_text(node, first.start, last.end, self.text)

    def _ends(self, node: SourceNode, words: Sequence[Word], kind: str) -> list[End]:
        ends = [self.end(node, word) for word in words]
        found = [end for end in ends if end is not None]
        if kind == "control":
            self._refuse_ports(found)
        return found

    def end(self, node: SourceNode, word: Word) -> End | None:
        position = position_in_text(node, word.start, word.end, self.text)
        name, _, port = word.text.partition(".")
        is_clear = _PLAIN.match(word.text) and name and "." not in port and not word.text.endswith(".")
        if not is_clear or "*" in word.text:
            hint = "name one port; a wild-card stands for the names you choose" if "*" in word.text else ""
            self.reading.report(
                "BAD_LINK", f"`{word.text}` is not a component or `component.port`", position, hint=hint
            )
            return None
        return End(name, port or None, position)

    def _refuse_ports(self, ends: Iterable[End]) -> None:
        for end in ends:
            if end.port is not None:
                message = f"a control link joins components, and `{end.name}.{end.port}` is a port"
                self.reading.report("BAD_LINK", message, end.position, hint=f"write `{end.name}`")

    def _control(
        self, node: SourceNode, statement: Statement, sources: list[End], targets: list[End], position: Position
    ) -> None:
        head = statement.head
        assert head is not None
        on_position = position_in_text(node, head.on.start, head.on.end, self.text)
        on = self._on(head.on.text, on_position)
        if on is None:
            return
        when = self._condition(node, head, on, on_position)
        if on is On.IF and when is None:
            return
        self._add(sources, targets, on, position, -1 if head.order is None else head.order, when)

    def _on(self, word: str, position: Position) -> On | None:
        if word in CONTROL:
            return On(word)
        label = did_you_mean(word, CONTROL)
        meant = "nothing" if not word else f"`{word}`"
        hint = f"a link fires on {listed(CONTROL)}"
        self.reading.report("BAD_LINK", f"no link fires on {meant}", position, label=label, hint=hint)
        return None

    def _condition(self, node: SourceNode, head: Head, on: On, position: Position) -> Excerpt | None:
        given = head.condition
        if on is On.IF and given is None:
            self.reading.report(
                "BAD_LINK", "this `if` link has no condition", position, hint='such as `a (if "NB_LINE > 0") b`'
            )
        if on is not On.IF and (given is not None or head.order is not None):
            self.reading.report(
                "BAD_LINK", f"`{on.value}` takes no condition and no order", position, hint="only `if` does"
            )
        return None if given is None or on is not On.IF else Excerpt(node, given.text, given.start)

    # ---- mappings

    def _mapping(self, node: SourceNode, kind: str) -> None:
        if _is_torn(node):
            self._torn(node)
            return
        self.reading.words(node, f"{kind}_link")
        self.statement += 1
        sources = self._named_ends(node.get("from"), "`from`", kind)
        targets = self._named_ends(node.get("to"), "`to`", kind)
        if kind == "data":
            self._add(sources, targets, On.DATA, node.position)
            return
        on = self._named_on(node)
        if on is None:
            return
        order = self.reading.whole(node.get("order"), "`order`", 0)
        when = self._named_condition(node, on)
        if on is not On.IF or when is not None:
            self._add(sources, targets, on, node.position, -1 if order is None else order, when)

    def _named_ends(self, node: SourceNode | None, what: str, kind: str) -> list[End]:
        found: list[End] = []
        for item in self.reading.texts(node, what):
            value = str(item.value)
            words = [Word(match[0], match.start()) for match in re.finditer(r"[^\s,]+", value)]
            found += self._ends(item, words, kind)
        return found

    def _named_on(self, node: SourceNode) -> On | None:
        on = node.get("on")
        if on is None or on.is_null:
            if "when" in node.entries:
                return On.IF
            self.reading.report("BAD_LINK", "this control link has no `on`", node.position, hint="such as `on: ok`")
            return None
        return self._on(str(on.value) if on.kind == "scalar" else on.noun, on.position)

    def _named_condition(self, node: SourceNode, on: On) -> Excerpt | None:
        when = node.get("when")
        if on is not On.IF:
            for key in ("when", "order"):
                if key in node.entries:
                    message = f"`{on.value}` takes no `{key}`"
                    self.reading.report("BAD_LINK", message, node.keys[key], hint="only `if` does")
            return None
        if when is None or when.is_null:
            self.reading.report("BAD_LINK", "this `if` link has no `when`", node.position)
            return None
        if isinstance(when.value, bool):
            return Excerpt(when, str(when.value).lower())
        text = self.reading.text(when, "`when`")
        return None if text is None else Excerpt(when, text)

    def _torn(self, node: SourceNode) -> None:
        key, value = next(iter(node.entries.items()))
        whole = f"{key}: {value.value}" if value.kind == "scalar" else key
        quoted = "'" + whole.replace("'", "''") + "'"
        self.reading.report(
            "BAD_LINK", "YAML read this link as a mapping, because of the colon in it", node.keys[key],
            hint="put quotes around the whole link, or write the links as a block: `control: |`", rewrite=f"- {quoted}",
        )  # fmt: skip

    def _add(
        self,
        sources: list[End],
        targets: list[End],
        on: On,
        position: Position,
        order: int = 0,
        when: Excerpt | None = None,
    ) -> None:
        for source in sources:
            for target in targets:
                self.links.append(
                    LinkDraft(source, target, on, order if on is On.IF else 0, when, position, self.statement)
                )


def _is_torn(node: SourceNode) -> bool:
    return len(node.entries) == 1 and "(" in next(iter(node.entries))


def _hint_of_mapping(kind: str) -> str:
    return "such as `- a.main -> b.input`" if kind == "data" else "such as `- a (ok) b`"


# ---- Links as lines of text: `a.main -> b.input`, `a (if 1: "NB_LINE > 0") b, c`
#
# Line breaks mean nothing: YAML folds lines that stand without `|` into one, and the same links must come out. So a
# statement ends where it is complete and the next name begins.


_BLANK = re.compile(r"(?:\s|(?:(?<=\s)|(?<![\s\S]))#[^\n]*)+")
_WORD = re.compile(r"(?:[\w.*@\[\]]|-(?!->|>))+")
_ON = re.compile(r"\s*([\w-]*)")
_ORDER = re.compile(r"\s*(\d*)\s*:\s*")
_WRONG_ARROWS = ("=>", "→", "-->")
_DATA_SHAPE = "a data link is written `a.port -> b.port`"
_CONTROL_SHAPE = "a control link is written `a (ok) b`"


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of the text; `start` is its offset."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Head:
    """What stands between the parentheses of a control link."""

    on: Word
    order: int | None = None
    condition: Word | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    sources: tuple[Word, ...]
    targets: tuple[Word, ...]
    head: Head | None = None


@dataclass(frozen=True, slots=True)
class Slip:
    """What is wrong with the text, and where."""

    message: str
    start: int
    end: int
    hint: str = ""


@dataclass(slots=True)
class Links:
    statements: list[Statement] = field(default_factory=list)
    slips: list[Slip] = field(default_factory=list)


def data_links(text: str) -> Links:
    scanner = _Scanner(text)
    return scanner.all(scanner.data)


def control_links(text: str) -> Links:
    scanner = _Scanner(text)
    return scanner.all(scanner.control)


class _Stop(Exception):
    """The statement cannot be read any further; the slip is recorded."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found = Links()
        self.at = 0
        self.read = 0
        """Where the last piece that was read ends."""

    def all(self, statement: Callable[[], None]) -> Links:
        """Statement by statement; after one that cannot be parsed, reading continues with the next line."""
        while self._more():
            self.read = self.at
            try:
                statement()
            except _Stop:
                continue
        return self.found

    def data(self) -> None:
        sources = self._words(_DATA_SHAPE)
        self._arrow(sources)
        targets = self._words(_DATA_SHAPE)
        self.found.statements.append(Statement(sources, targets))
        while self._sees("->"):  # `a -> b -> c`
            self.at = self.read = self.at + 2
            sources, targets = targets, self._words(_DATA_SHAPE)
            self.found.statements.append(Statement(sources, targets))

    def control(self) -> None:
        sources = self._words(_CONTROL_SHAPE)
        if not self._sees("("):
            hint = "rows are joined under `connections.data`" if self._sees("->") else _CONTROL_SHAPE
            self._slip("what makes the link fire is missing", hint, 1 if self._more() else 0)
        head = self._head()
        self.found.statements.append(Statement(sources, self._words(_CONTROL_SHAPE), head))

    def _more(self) -> bool:
        if blank := _BLANK.match(self.text, self.at):
            self.at = blank.end()
        return self.at < len(self.text)

    def _sees(self, sign: str) -> bool:
        return self._more() and self.text.startswith(sign, self.at)

    def _words(self, shape: str) -> tuple[Word, ...]:
        words = [self._word(shape)]
        while self._sees(","):
            self.at = self.read = self.at + 1
            words.append(self._word(shape))
        return tuple(words)

    def _word(self, shape: str) -> Word:
        if not self._more():
            self._slip("the link ends too early", shape, 0)
        match = _WORD.match(self.text, self.at)
        if match is None:
            self._slip(f"`{self.text[self.at]}` cannot stand here", shape, 1)
        self.at = self.read = match.end()
        return Word(match[0], match.start())

    def _arrow(self, sources: tuple[Word, ...]) -> None:
        if self._sees("->"):
            self.at = self.read = self.at + 2
            return
        for other in _WRONG_ARROWS:
            if self._sees(other):
                self._slip(f"`{other}` is not an arrow here", "write `->`", len(other))
        if self._sees("("):
            self._slip("this is a control link", "it belongs under `connections.control`", 1)
        self._slip(f"`->` is expected after `{sources[-1].text}`", _DATA_SHAPE, 1 if self._more() else 0)

    def _slip(self, message: str, hint: str, width: int) -> NoReturn:
        """What is missing at the end of a line is reported there; behind any other slip the rest of the line is skipped."""
        if self.at >= len(self.text) or "\n" in self.text[self.read : self.at]:
            self.found.slips.append(Slip(message, self.read, self.read, hint))
        else:
            self.found.slips.append(Slip(message, self.at, self.at + width, hint))
            line_end = self.text.find("\n", self.at)
            self.at = len(self.text) if line_end < 0 else line_end
        raise _Stop

    def _head(self) -> Head:
        begin = self.at + 1
        end = closing(self.text, begin)
        if end is None:
            self._slip("this `(` is never closed", _CONTROL_SHAPE, 1)
        on = _ON.match(self.text, begin, end)
        assert on is not None
        order: int | None = None
        rest = on.end()
        if numbered := _ORDER.match(self.text, rest, end):
            order = int(numbered[1]) if numbered[1] else None
            rest = numbered.end()
        condition = _unquoted(Word(self.text[rest:end].rstrip(), rest))
        self.at = self.read = end + 1
        return Head(Word(on[1], on.start(1)), order, condition)


def closing(text: str, begin: int) -> int | None:
    """Where the parenthesis before `begin` is closed; those inside quotes do not count."""
    depth, quote, at = 1, "", begin
    while at < len(text):
        sign = text[at]
        if quote:
            if sign == "\\":
                at += 1
            elif sign == quote:
                quote = ""
        elif sign in "\"'":
            quote = sign
        elif sign in "()":
            depth += 1 if sign == "(" else -1
            if depth == 0:
                return at
        at += 1
    return None


def _unquoted(word: Word) -> Word | None:
    """A condition without the quotes around all of it; they are there for people, and may be left out."""
    text = word.text.lstrip()
    start = word.start + len(word.text) - len(text)
    if not text:
        return None
    quote = text[0]
    if quote in "\"'" and len(text) > 1:
        inside = re.fullmatch(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}", text, re.DOTALL)
        if inside:
            return Word(re.sub(rf"\\({quote})", r"\1", inside[1]), start + 1)
    return Word(text, start)
