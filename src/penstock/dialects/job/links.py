"""`connections`: three spellings of a link, one meaning.

text      a.main -> b.input               a (if 1: "NB_LINE > 0") b
list      - a.main -> b.input             - a (ok) b
mapping   - {from: a.main, to: b.input}   - {from: a, to: b, on: if, order: 1, when: "NB_LINE > 0"}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.dialects.job.drafts import End, Excerpt, LinkDraft
from penstock.dialects.job.link_text import Head, Links, Statement, Word, control_links, data_links
from penstock.dialects.job.reader import Reading, did_you_mean, listed
from penstock.dialects.job.words import CONTROL
from penstock.dialects.problems import Place
from penstock.dialects.source.loader import SourceNode, place_in_text
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
    """`if` links without an order are asked in the order in which they are written."""
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
            place = place_in_text(node, slip.start, slip.end, self.text)
            self.reading.report("BAD_LINK", slip.message, place, hint=slip.hint)
        for statement in found.statements:
            self.statement += 1
            sources = self._ends(node, statement.sources, kind)
            targets = self._ends(node, statement.targets, kind)
            place = self._place(node, statement.sources[0], statement.targets[-1])
            if kind == "data":
                self._add(sources, targets, On.DATA, place)
            else:
                assert statement.head is not None
                self._control(node, statement, sources, targets, place)

    def _place(self, node: SourceNode, first: Word, last: Word) -> Place:
        return place_in_text(node, first.start, last.end, self.text)

    def _ends(self, node: SourceNode, words: Sequence[Word], kind: str) -> list[End]:
        ends = [self.end(node, word) for word in words]
        found = [end for end in ends if end is not None]
        if kind == "control":
            self._refuse_ports(found)
        return found

    def end(self, node: SourceNode, word: Word) -> End | None:
        place = place_in_text(node, word.start, word.end, self.text)
        name, _, port = word.text.partition(".")
        is_clear = _PLAIN.match(word.text) and name and "." not in port and not word.text.endswith(".")
        if not is_clear or "*" in word.text:
            hint = "name one port; a wild-card stands for the names you choose" if "*" in word.text else ""
            self.reading.report("BAD_LINK", f"`{word.text}` is not a component or `component.port`", place, hint=hint)
            return None
        return End(name, port or None, place)

    def _refuse_ports(self, ends: Iterable[End]) -> None:
        for end in ends:
            if end.port is not None:
                message = f"a control link joins components, and `{end.name}.{end.port}` is a port"
                self.reading.report("BAD_LINK", message, end.place, hint=f"write `{end.name}`")

    def _control(
        self, node: SourceNode, statement: Statement, sources: list[End], targets: list[End], place: Place
    ) -> None:
        head = statement.head
        assert head is not None
        on_place = place_in_text(node, head.on.start, head.on.end, self.text)
        on = self._on(head.on.text, on_place)
        if on is None:
            return
        when = self._condition(node, head, on, on_place)
        if on is On.IF and when is None:
            return
        self._add(sources, targets, on, place, -1 if head.order is None else head.order, when)

    def _on(self, word: str, place: Place) -> On | None:
        if word in CONTROL:
            return On(word)
        label = did_you_mean(word, CONTROL)
        meant = "nothing" if not word else f"`{word}`"
        hint = f"a link fires on {listed(CONTROL)}"
        self.reading.report("BAD_LINK", f"no link fires on {meant}", place, label=label, hint=hint)
        return None

    def _condition(self, node: SourceNode, head: Head, on: On, place: Place) -> Excerpt | None:
        given = head.condition
        if on is On.IF and given is None:
            self.reading.report(
                "BAD_LINK", "this `if` link has no condition", place, hint='such as `a (if "NB_LINE > 0") b`'
            )
        if on is not On.IF and (given is not None or head.order is not None):
            self.reading.report(
                "BAD_LINK", f"`{on.value}` takes no condition and no order", place, hint="only `if` does"
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
            self._add(sources, targets, On.DATA, node.place)
            return
        on = self._named_on(node)
        if on is None:
            return
        order = self.reading.whole(node.get("order"), "`order`", 0)
        when = self._named_condition(node, on)
        if on is not On.IF or when is not None:
            self._add(sources, targets, on, node.place, -1 if order is None else order, when)

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
            self.reading.report("BAD_LINK", "this control link has no `on`", node.place, hint="such as `on: ok`")
            return None
        return self._on(str(on.value) if on.kind == "scalar" else on.noun, on.place)

    def _named_condition(self, node: SourceNode, on: On) -> Excerpt | None:
        when = node.get("when")
        if on is not On.IF:
            for key in ("when", "order"):
                if key in node.entries:
                    message = f"`{on.value}` takes no `{key}`"
                    self.reading.report("BAD_LINK", message, node.keys[key], hint="only `if` does")
            return None
        if when is None or when.is_null:
            self.reading.report("BAD_LINK", "this `if` link has no `when`", node.place)
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
        place: Place,
        order: int = 0,
        when: Excerpt | None = None,
    ) -> None:
        for source in sources:
            for target in targets:
                self.links.append(
                    LinkDraft(source, target, on, order if on is On.IF else 0, when, place, self.statement)
                )


def _is_torn(node: SourceNode) -> bool:
    return len(node.entries) == 1 and "(" in next(iter(node.entries))


def _hint_of_mapping(kind: str) -> str:
    return "such as `- a.main -> b.input`" if kind == "data" else "such as `- a (ok) b`"
